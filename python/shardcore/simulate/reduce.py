"""Reductions with arbitrary functions, for ``reduce``, windows and collectives."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from shardcore.simulate.dtypes import in_type, is_complex, wide
from shardcore.simulate.elementwise import binary_of
from shardcore.simulate.order import is_ordered
from shardcore.simulate.registry import op
from shardcore.simulate.run import Run
from shardcore.simulate.site import Body, Kernel, Site
from shardcore.simulate.values import Array, Value, fitted

__all__ = ["Reducer"]

_UFUNCS: dict[str, np.ufunc] = {
    "stablehlo.add": np.add,
    "stablehlo.and": np.bitwise_and,
    "stablehlo.maximum": np.maximum,
    "stablehlo.minimum": np.minimum,
    "stablehlo.multiply": np.multiply,
    "stablehlo.or": np.bitwise_or,
    "stablehlo.xor": np.bitwise_xor,
}


_MOST_MASKED = 1 << 24
"""Of so many elements at a time it is found which are zeros."""


class Reducer:
    """The body of a reduction: a function that combines two lists of scalars into one.

    Elements are combined in order, as a balanced tree. So the body must be associative, as
    StableHLO requires, but need not be commutative.
    """

    def __init__(self, site: Site, body: Body) -> None:
        self.body = body
        name = body.only_op()
        types = [kind for kind in body.argument_types if kind is not None]
        self.dtype = types[0].dtype if types else np.dtype(np.float32)
        self.order = site.order if is_ordered(site.order, self.dtype) else None
        """The order in which floats are added; ``None`` for that of NumPy."""
        self.width = max(len(body.arguments) // 2, 1)
        self._ufunc = _UFUNCS.get(name or "") if not is_complex(self.dtype) else None
        if is_complex(self.dtype) and name in ("stablehlo.add", "stablehlo.multiply"):
            self._ufunc = _UFUNCS[name]
        self._binary = binary_of(name, self.dtype) if name else None

    @property
    def ufunc(self) -> np.ufunc | None:
        """The NumPy function that equals the body; ``None`` if there is none."""
        return self._ufunc

    @property
    def is_reordered(self) -> bool:
        """Whether it adds floats in an order other than that of the terms."""
        return self._ufunc is np.add and self.order is not None

    def combine(
        self, run: Run, a: Sequence[Array], b: Sequence[Array], captured: Mapping[int, Value]
    ) -> list[Array]:
        """The body applied to each pair of elements of equally shaped arrays; rows are
        broadcast."""
        if self._binary is not None:
            return [self._binary(a[0], b[0])]
        whole = fitted([*a, *b])
        shape = np.broadcast_shapes(*(array.shape for array in whole))
        size = int(np.prod(shape[1:], dtype=np.int64))
        flat = [np.broadcast_to(array, shape).reshape(-1) for array in whole]
        row = None if shape[0] == 1 else np.repeat(np.arange(shape[0]), size)
        if not len(flat[0]):
            return [array.reshape(shape) for array in flat[: self.width]]
        found = run.each(self.body, flat, captured, row)
        return [array.reshape(shape) for array in found]

    def reduce(
        self, run: Run, operands: Sequence[Array], captured: Mapping[int, Value]
    ) -> list[Array]:
        """``operands`` reduced along their last dim, which is not empty."""
        if self._ufunc is not None:
            return [in_type(self._along(wide(operands[0])), self.dtype)]
        if self.order is None:
            return self._tree(run, operands, captured)
        # Of a body that is not commutative the parts are in the order of the terms.
        found: list[Array] | None = None
        for at in self.order.contiguous.slices(operands[0].shape[-1]):
            part = self._tree(run, [each[..., at] for each in operands], captured)
            found = part if found is None else self.combine(run, found, part, captured)
        assert found is not None
        return found

    def _tree(
        self, run: Run, operands: Sequence[Array], captured: Mapping[int, Value]
    ) -> list[Array]:
        """``operands`` reduced along their last dim as a balanced tree."""
        parts = list(operands)
        while (size := parts[0].shape[-1]) > 1:
            left = [part[..., 0 : size - size % 2 : 2] for part in parts]
            right = [part[..., 1::2] for part in parts]
            paired = self.combine(run, left, right, captured)
            if size % 2:
                last = [part[..., -1:] for part in parts]
                paired = [
                    np.concatenate(fitted(pair), axis=-1) for pair in zip(paired, last, strict=True)
                ]
            parts = paired
        return [part[..., 0] for part in parts]

    def _along(self, operand: Array) -> Array:
        assert self._ufunc is not None
        if operand.dtype == np.bool_:
            return self._ufunc.reduce(operand, axis=-1)
        if self._ufunc is np.add and operand.dtype.kind in "fc":
            if self.order is not None:
                length = operand.shape[-1]
                return self.order.total(length, self.dtype, lambda at: _sum(operand[..., at]))
            return _sum(operand)
        if self._ufunc is np.multiply and self.order is not None:
            parts = (operand[..., at] for at in self.order.slices(operand.shape[-1]))
            factors = [
                wide(in_type(np.multiply.reduce(each, axis=-1), self.dtype)) for each in parts
            ]
            return np.asarray(math.prod(factors[1:], start=factors[0]))
        found = self._ufunc.reduce(operand, axis=-1, dtype=operand.dtype)
        if operand.dtype.kind != "f" or self._ufunc not in (np.maximum, np.minimum):
            return found
        # NumPy ignores the sign of zeros; here +0 is larger than -0.
        zeros = np.nonzero(found == 0)
        step = max(_MOST_MASKED // operand.shape[-1], 1)
        for first in range(0, zeros[0].size, step):
            at = tuple(places[first : first + step] for places in zeros)
            some = operand[at]
            is_minus = np.signbit(some) & (some == 0)
            has_both = is_minus.any(axis=-1) & ((some == 0) & ~is_minus).any(axis=-1)
            zero = operand.dtype.type(0.0 if self._ufunc is np.maximum else -0.0)
            found[at] = np.where(has_both, zero, found[at])
        return found


def _sum(operand: Array) -> Array:
    """The sums along the last dim."""
    # NumPy's sums start from +0, so a sum of -0 alone would lose its sign.
    start = operand.dtype.type(complex(-0.0, -0.0) if is_complex(operand.dtype) else -0.0)
    return np.asarray(np.add.reduce(operand, axis=-1, dtype=operand.dtype, initial=start))


def last_dims(operand: Array, dims: Sequence[int]) -> Array:
    """``operand`` with ``dims`` merged, in order, into one last dim."""
    kept = [dim for dim in range(operand.ndim - 1) if dim not in dims]
    order = (0, *(dim + 1 for dim in (*kept, *sorted(dims))))
    sizes = [operand.shape[dim + 1] for dim in kept]
    length = int(np.prod([operand.shape[dim + 1] for dim in dims], dtype=np.int64))
    return operand.transpose(order).reshape(len(operand), *sizes, length)


@op("stablehlo.reduce")
def reduce(site: Site) -> Kernel:
    """Elements along dims reduced with an initial value."""
    dims = site.integers("dimensions")
    [body] = site.bodies
    reducer = Reducer(site, body)
    width = reducer.width

    def kernel(run: Run, *values: Value) -> Value:
        operands, captured = site.split(values)
        arrays = [last_dims(operand, dims) for operand in operands[:width]]
        initial = [
            np.broadcast_to(
                value.reshape(len(value), *(1,) * (array.ndim - 2)),
                (len(value), *array.shape[1:-1]),
            )
            for value, array in zip(operands[width:], arrays, strict=True)
        ]
        found = initial
        if arrays[0].shape[-1]:
            found = reducer.combine(run, initial, reducer.reduce(run, arrays, captured), captured)
        return found[0] if width == 1 else found

    return kernel


@op("stablehlo.map")
def map_(site: Site) -> Kernel:
    """A function of scalars applied to each element."""
    [body] = site.bodies

    def kernel(run: Run, *values: Value) -> Value:
        operands, captured = site.split(values)
        whole = fitted(operands)
        shape = whole[0].shape
        row = np.repeat(np.arange(shape[0]), int(np.prod(shape[1:], dtype=np.int64)))
        found = run.each(
            body, [x.reshape(-1) for x in whole], captured, row if shape[0] > 1 else None
        )
        return found[0].reshape(shape)

    return kernel
