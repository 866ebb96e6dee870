"""Ops that move, repeat or create elements at positions that depend on shapes only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from shardcore.simulate.dtypes import DTYPES, in_type
from shardcore.simulate.registry import arrays, op
from shardcore.simulate.site import Kernel, Site, dense_array
from shardcore.simulate.values import Array, fitted, spread


def uniform_integers(value: Array, site: Site, what: str) -> tuple[int, ...]:
    """The integers in ``value``, which have to be equal on all devices."""
    flat = value.reshape(len(value), -1)
    if (flat != flat[:1]).any():
        raise site.unsupported(f"{what} of {site.name} differs between devices")
    return tuple(int(number) for number in flat[0])


@op("stablehlo.constant", "sdy.constant", "chlo.constant")
def constant(site: Site) -> Kernel:
    """The elements given in the program."""
    try:
        element, shape, data = site.op.elements()
    except KeyError:
        value = str(site.attributes.get("value"))[:60]
        raise site.unsupported(
            f"the elements of the constant are not in the text: {value}"
        ) from None
    if element not in DTYPES:
        raise site.unsupported(f"{site.name} has a value of element type {element}")
    whole = in_type(dense_array(element, shape, data), site.dtypes[element])[None]
    return lambda run: whole


@op("chlo.constant_like")
def constant_like(site: Site) -> Kernel:
    """A number in the shape of another value."""
    [result] = site.results
    value = site.attributes["value"]
    if isinstance(value, int) and result.dtype.kind in "fV":
        scalar = np.array(value, f"u{result.dtype.itemsize}").view(result.dtype)
    else:
        scalar = np.array(value).astype(result.dtype)
    return arrays(lambda x: np.broadcast_to(scalar, (1, *x.shape[1:])))


@op("stablehlo.iota", "stablehlo.dynamic_iota")
def iota(site: Site) -> Kernel:
    """The index along a dim."""
    dim, dtype = site.integer("iota_dimension"), site.results[0].dtype

    def make(shape: Sequence[int]) -> Array:
        numbers = in_type(np.arange(shape[dim]), dtype)
        column = numbers.reshape(-1, *(1,) * (len(shape) - dim - 1))
        return np.broadcast_to(column, (1, *shape))

    if site.name == "stablehlo.dynamic_iota":
        return arrays(lambda shape: make(uniform_integers(shape, site, "the shape")))
    whole = make(site.results[0].shape)
    return lambda run: whole


@op("stablehlo.reshape", "stablehlo.dynamic_reshape")
def reshape(site: Site) -> Kernel:
    """The elements in row-major order in another shape."""
    shape = site.results[0].shape
    return arrays(lambda x, *_: x.reshape(len(x), *shape))


@op("stablehlo.transpose")
def transpose(site: Site) -> Kernel:
    """Dims in another order."""
    order = (0, *(dim + 1 for dim in site.integers("permutation")))
    return arrays(lambda x: x.transpose(order))


def broadcast_in(x: Array, shape: Sequence[int], dims: Sequence[int]) -> Array:
    """``x`` with its dims at ``dims`` of ``shape``; nothing is copied."""
    order = sorted(range(len(dims)), key=lambda at: dims[at])
    x = x.transpose(0, *(at + 1 for at in order))
    sizes = [1] * len(shape)
    for at in order:
        sizes[dims[at]] = x.shape[order.index(at) + 1]
    return np.broadcast_to(x.reshape(len(x), *sizes), (len(x), *shape))


@op("stablehlo.broadcast_in_dim", "stablehlo.dynamic_broadcast_in_dim")
def broadcast_in_dim(site: Site) -> Kernel:
    """The operand with its dims mapped to dims of the result, repeated along all others."""
    shape, dims = site.results[0].shape, site.integers("broadcast_dimensions")
    return arrays(lambda x, *_: broadcast_in(x, shape, dims))


@op("stablehlo.broadcast")
def broadcast(site: Site) -> Kernel:
    """The operand repeated along new leading dims."""
    shape, rank = site.results[0].shape, len(site.operands[0].shape)
    dims = range(len(shape) - rank, len(shape))
    return arrays(lambda x: broadcast_in(x, shape, dims))


@op("stablehlo.concatenate")
def concatenate(site: Site) -> Kernel:
    """The operands concatenated along a dim."""
    dim = site.integer("dimension") + 1
    return arrays(lambda *parts: np.concatenate(fitted(parts), axis=dim))


@op("stablehlo.slice")
def slice_(site: Site) -> Kernel:
    """A strided slice between static bounds."""
    bounds = (site.integers(name) for name in ("start_indices", "limit_indices", "strides"))
    places = (slice(None), *(slice(*bound) for bound in zip(*bounds, strict=True)))
    return arrays(lambda x: x[places])


@op("stablehlo.real_dynamic_slice")
def real_dynamic_slice(site: Site) -> Kernel:
    """A strided slice between dynamic bounds."""

    def compute(x: Array, *bounds: Array) -> Array:
        numbers = (uniform_integers(bound, site, "a bound") for bound in bounds)
        place = (slice(None), *(slice(*bound) for bound in zip(*numbers, strict=True)))
        return x[place]

    return arrays(compute)


@op("stablehlo.reverse")
def reverse(site: Site) -> Kernel:
    """The operand with some dims reversed."""
    dims = tuple(dim + 1 for dim in site.integers("dimensions"))
    return arrays(lambda x: np.flip(x, dims))


def padded(
    x: Array, value: Array, low: Sequence[int], high: Sequence[int], interior: Sequence[int]
) -> Array:
    """``x`` with ``value`` around and between its elements; negative padding removes elements."""
    devices = max(len(x), len(value))
    sizes, source, target = [], [slice(None)], [slice(None)]
    for size, before, after, between in zip(x.shape[1:], low, high, interior, strict=True):
        step = between + 1
        spread_size = max(size - 1, 0) * step + (size > 0)
        total = max(before + spread_size + after, 0)
        # The elements that end up inside the result.
        first = max(-(before // step), 0) if before < 0 else 0
        last = min(size, -(-(total - before) // step)) if total > before else first
        sizes.append(total)
        source.append(slice(first, max(last, first)))
        start = before + first * step
        target.append(slice(start, start + max(last - first, 0) * step, step))
    fill = value.reshape(len(value), *(1,) * len(sizes))
    whole = np.array(np.broadcast_to(fill, (devices, *sizes)))
    if whole.size:
        whole[tuple(target)] = spread(x, devices)[tuple(source)]
    return whole


@op("stablehlo.pad", "stablehlo.dynamic_pad")
def pad(site: Site) -> Kernel:
    """The operand padded around and between its elements."""
    if site.name == "stablehlo.dynamic_pad":

        def dynamic(x: Array, value: Array, *amounts: Array) -> Array:
            return padded(
                x, value, *(uniform_integers(amount, site, "padding") for amount in amounts)
            )

        return arrays(dynamic)
    names = ("edge_padding_low", "edge_padding_high", "interior_padding")
    low, high, interior = (site.integers(name) for name in names)
    return arrays(lambda x, value: padded(x, value, low, high, interior))


@op("stablehlo.get_dimension_size")
def get_dimension_size(site: Site) -> Kernel:
    """The size of a dim."""
    dim = site.integer("dimension") + 1
    return arrays(lambda x: np.array([x.shape[dim]], np.int32))


@op("stablehlo.set_dimension_size")
def set_dimension_size(site: Site) -> Kernel:
    """The operand, if the dim already has that size: dims of bounded size are not supported."""
    bounded = site.unsupported(
        "stablehlo.set_dimension_size makes a dim whose size is only bounded"
    )
    if site.results[0].shape != site.operands[0].shape:
        raise bounded
    dim = site.integer("dimension") + 1

    def compute(x: Array, size: Array) -> Array:
        if np.any(size != x.shape[dim]):
            raise bounded
        return x

    return arrays(compute)


@op("stablehlo.tuple")
def tuple_(site: Site) -> Kernel:
    """A tuple of the operands."""
    return arrays(lambda *parts: parts)


@op("stablehlo.get_tuple_element")
def get_tuple_element(site: Site) -> Kernel:
    """One of the values of a tuple."""
    index = site.integer("index")
    return arrays(lambda parts: parts[index])


@op("stablehlo.after_all", "stablehlo.create_token")
def token(site: Site) -> Kernel:
    """A token, which orders side effects; a simulation has none."""
    return arrays(lambda *_: None)


@op("stablehlo.optimization_barrier")
def barrier(site: Site) -> Kernel:
    """The operands themselves."""

    def compute(*values: Any) -> Any:
        return values[0] if len(values) == 1 else values

    return arrays(compute)
