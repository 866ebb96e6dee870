"""Products of matrices: ``dot_general``, ``dot``, ``einsum``, ``ragged_dot``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from shardcore.simulate.convert import converted
from shardcore.simulate.dtypes import in_type, is_complex, is_float, wide
from shardcore.simulate.order import is_ordered
from shardcore.simulate.registry import arrays, op
from shardcore.simulate.site import Kernel, Site, TensorType
from shardcore.simulate.values import Array

Dims = Sequence[int]


def product_type(site: Site) -> np.dtype[Any]:
    """The accumulation type: the result's, or a wider type that NumPy has."""
    result = site.results[0].dtype
    kinds = [result, *(operand.dtype for operand in site.operands[:2])]
    if any(is_complex(kind) for kind in kinds):
        return result
    if any(is_float(kind) for kind in kinds):
        # Products of narrow floats are exact in 32 bits; only 64-bit results need 64 bits.
        return np.dtype(np.float64 if result == np.float64 else np.float32)
    return np.dtype(np.int64) if result != np.bool_ else np.dtype(np.int32)


class Products:
    """The products of an op: the type in which terms are summed, and their order.

    Args:
        site: an op with two operands and a result.
    """

    def __init__(self, site: Site) -> None:
        self.kind = product_type(site)
        self.dtype = site.results[0].dtype
        self._order = site.order if is_ordered(site.order, self.dtype) else None

    def matmul(self, a: Array, b: Array) -> Array:
        """The product of stacks of matrices."""
        if self._order is None:
            return exact_matmul(a, b)
        part = lambda at: np.matmul(a[..., at], b[..., at, :])  # noqa: E731
        return self._order.total(a.shape[-1], self.dtype, part)


def exact_matmul(a: Array, b: Array) -> Array:
    """The product of stacks of matrices; integers are multiplied as floats if that is exact."""
    if a.dtype.kind not in "iu":
        return np.matmul(a, b)
    largest = max((int(abs(x).max(initial=0)) for x in (a, b)), default=0)
    if largest**2 * max(a.shape[-1], 1) < 2**53:
        return np.matmul(a.astype(np.float64), b.astype(np.float64)).astype(a.dtype)
    return np.matmul(a, b)


def contracted(
    lhs: Array,
    rhs: Array,
    batch: tuple[Dims, Dims],
    contracting: tuple[Dims, Dims],
    products: Products,
) -> Array:
    """The product along ``contracting`` dims for each index of ``batch`` dims, on all devices."""
    free = [
        [dim for dim in range(x.ndim - 1) if dim not in (*batch[side], *contracting[side])]
        for side, x in enumerate((lhs, rhs))
    ]

    def arranged(x: Array, *groups: Dims) -> Array:
        order = [dim + 1 for group in groups for dim in group]
        sizes = [int(np.prod([x.shape[dim + 1] for dim in group], dtype=int)) for group in groups]
        return x.transpose(0, *order).reshape(len(x), *sizes)

    a = arranged(lhs, batch[0], free[0], contracting[0])
    b = arranged(rhs, batch[1], contracting[1], free[1])
    found = products.matmul(a, b)
    sizes = [lhs.shape[dim + 1] for dim in (*batch[0], *free[0])]
    sizes += [rhs.shape[dim + 1] for dim in free[1]]
    return found.reshape(len(found), *sizes)


def sum_in_type(found: Array, dtype: np.dtype[Any]) -> Array:
    """Sums converted to the result type; for booleans whether any term was true."""
    return found != 0 if dtype == np.bool_ else in_type(found, dtype)


def dimension_numbers(site: Site, name: str = "dot_dimension_numbers") -> list[tuple[int, ...]]:
    """The batch and contracting dims of both operands."""
    numbers = site.attributes.get(name, {})
    return [
        tuple(numbers.get(f"{side}_{kind}_dimensions", ()))
        for kind in ("batching", "contracting")
        for side in ("lhs", "rhs")
    ]


@op("stablehlo.dot_general")
def dot_general(site: Site) -> Kernel:
    """The product along contracting dims for each index of the batch dims."""
    lhs_batch, rhs_batch, lhs_contracting, rhs_contracting = dimension_numbers(site)
    products = Products(site)
    kind, dtype = products.kind, products.dtype
    batch, contracting = (lhs_batch, rhs_batch), (lhs_contracting, rhs_contracting)

    def compute(lhs: Array, rhs: Array) -> Array:
        lhs, rhs = converted(lhs, kind), converted(rhs, kind)
        return sum_in_type(contracted(lhs, rhs, batch, contracting, products), dtype)

    return arrays(compute)


@op("stablehlo.dot")
def dot(site: Site) -> Kernel:
    """The product of vectors or matrices along the last dim of one and the first of the other."""
    products = Products(site)
    kind, dtype = products.kind, products.dtype
    contracting = ((len(site.operands[0].shape) - 1,), (0,))

    def compute(lhs: Array, rhs: Array) -> Array:
        lhs, rhs = converted(lhs, kind), converted(rhs, kind)
        return sum_in_type(contracted(lhs, rhs, ((), ()), contracting, products), dtype)

    return arrays(compute)


@op("stablehlo.einsum", "stablehlo.unary_einsum")
def einsum(site: Site) -> Kernel:
    """The sum of products that an equation states."""
    inputs, output = site.attributes["einsum_config"].split("->")
    terms = [f"...{term.strip()}" for term in inputs.split(",")]
    equation = f"{','.join(terms)}->...{output.strip()}"
    kind = (
        product_type(site) if len(terms) == 2 else wide(np.empty(0, site.operands[0].dtype)).dtype
    )
    dtype = site.results[0].dtype
    return arrays(
        lambda *operands: sum_in_type(
            np.einsum(equation, *(converted(operand, kind) for operand in operands)), dtype
        )
    )


@op("chlo.ragged_dot")
def ragged_dot(site: Site) -> Kernel:
    """Products in which a dim of the left side is split into groups whose sizes are an operand."""
    numbers = site.attributes["ragged_dot_dimension_numbers"]
    dot = numbers.get("dot_dimension_numbers", numbers)
    lhs_batch, rhs_batch, lhs_contracting, rhs_contracting = (
        tuple(dot.get(f"{side}_{kind}_dimensions", ()))
        for kind in ("batching", "contracting")
        for side in ("lhs", "rhs")
    )
    [ragged] = numbers["lhs_ragged_dimensions"]
    group_dims = tuple(numbers.get("rhs_group_dimensions", ()))
    products = Products(site)
    kind, dtype = products.kind, products.dtype
    batch, contracting = (lhs_batch, rhs_batch), (lhs_contracting, rhs_contracting)
    is_in_batch, is_contracted = ragged in lhs_batch, ragged in lhs_contracting

    def in_group(sizes: Array, group: int, lhs: TensorType) -> Array:
        """The mask of left-hand elements whose ragged dim is in ``group``."""
        ends = np.cumsum(sizes, axis=-1)
        place = np.arange(lhs.shape[ragged])
        ends, starts = ends[..., group, None], (ends - sizes)[..., group, None]
        mask = (place >= starts) & (place < ends)
        # Sizes may have batch dims; the left-hand side may have dims before the ragged one.
        leading = [dim for dim in lhs_batch if dim != ragged][: sizes.ndim - 2]
        shape = [1] * len(lhs.shape)
        for dim in (*leading, ragged):
            shape[dim] = lhs.shape[dim]
        return mask.reshape(len(sizes), *shape)

    def compute(lhs: Array, rhs: Array, sizes: Array) -> Array:
        lhs, rhs = converted(lhs, kind), converted(rhs, kind)
        parts = []
        for group in range(sizes.shape[-1]):
            mine = np.where(in_group(sizes, group, site.operands[0]), lhs, 0).astype(kind)
            if is_in_batch:
                parts = [contracted(lhs, rhs, batch, contracting, products)]
                break
            other, other_batch, other_contracting = rhs, rhs_batch, rhs_contracting
            if group_dims:
                [dim] = group_dims
                other = rhs.take(group, axis=dim + 1)
                other_batch, other_contracting = (
                    tuple(each - (each > dim) for each in dims)
                    for dims in (rhs_batch, rhs_contracting)
                )
            parts.append(
                contracted(
                    mine,
                    other,
                    (lhs_batch, other_batch),
                    (lhs_contracting, other_contracting),
                    products,
                )
            )
        if is_contracted:
            return sum_in_type(np.stack(parts, axis=1), dtype)
        total = parts[0]
        for part in parts[1:]:
            total = total + part
        return sum_in_type(total, dtype)

    return arrays(compute)
