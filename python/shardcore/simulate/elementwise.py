"""Elementwise ops on numbers of any kind: arithmetic, comparison, selection."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from shardcore.simulate.dtypes import (
    bits_of,
    in_type,
    is_complex,
    is_float,
    wide,
)
from shardcore.simulate.registry import arrays, op
from shardcore.simulate.site import Kernel, Site
from shardcore.simulate.values import Array

Binary = Callable[[Array, Array], Array]


def divide(a: Array, b: Array) -> Array:
    """The quotient; for integers truncated, with all bits set if the divisor is zero."""
    if a.dtype.kind not in "iu":
        return a / b
    zero = b == 0
    if a.dtype.kind == "u":
        return np.where(zero, ~np.zeros((), a.dtype), a // np.where(zero, 1, b).astype(b.dtype))
    # The smallest integer divided by -1 is itself.
    flip = b == -1
    safe = np.where(zero | flip, 1, b).astype(b.dtype)
    floor = a // safe
    floor = floor + ((floor * safe != a) & ((a < 0) != (safe < 0))).astype(a.dtype)
    return np.where(zero, ~np.zeros((), a.dtype), np.where(flip, -a, floor))


def remainder(a: Array, b: Array) -> Array:
    """The remainder of truncated division, with the dividend's sign; for integers the dividend
    itself if the divisor is zero."""
    if a.dtype.kind not in "iu":
        return np.fmod(a, b)
    whole = b == 0
    one = whole if a.dtype.kind == "u" else whole | (b == -1)
    left = np.fmod(a, np.where(one, 1, b).astype(b.dtype))
    return np.where(whole, a, left)


def maximum(a: Array, b: Array) -> Array:
    """The larger one; NaN if one is NaN; +0 is larger than -0; complex numbers by parts."""
    if is_complex(a.dtype):
        return np.where(_complex_less(a, b), b, a)
    if a.dtype.kind != "f":
        return np.maximum(a, b)
    return np.where((a == 0) & (b == 0), np.where(np.signbit(a), b, a), np.maximum(a, b))


def minimum(a: Array, b: Array) -> Array:
    """The smaller one; NaN if one is NaN; -0 is smaller than +0; complex numbers by parts."""
    if is_complex(a.dtype):
        return np.where(_complex_less(b, a), b, a)
    if a.dtype.kind != "f":
        return np.minimum(a, b)
    return np.where((a == 0) & (b == 0), np.where(np.signbit(a), a, b), np.minimum(a, b))


def _complex_less(a: Array, b: Array) -> Array:
    return np.where(a.real == b.real, a.imag < b.imag, a.real < b.real)


def power(a: Array, b: Array) -> Array:
    """The power; for integers modulo 2^bits, and 0 for negative exponents unless the base is 1 or
    -1."""
    if a.dtype.kind not in "iu":
        if a.dtype == np.float32:
            return np.power(a.astype(np.float64), b.astype(np.float64)).astype(np.float32)
        if a.dtype == np.complex64:
            return np.power(a.astype(np.complex128), b.astype(np.complex128)).astype(a.dtype)
        return np.power(a, b)
    a, b = np.broadcast_arrays(a, b)
    found, square, left = np.ones_like(a), a.copy(), np.where(b < 0, 0, b)
    while np.any(left):
        found = np.where(left & 1, found * square, found)
        square, left = square * square, left >> 1
    if a.dtype.kind == "i":
        tiny = np.where(a == 1, 1, np.where(a == -1, np.where(b & 1, -1, 1), 0))
        found = np.where(b < 0, tiny, found).astype(a.dtype)
    return found


def atan2(a: Array, b: Array) -> Array:
    """The angle of a point; for complex numbers by the defining logarithm."""
    if not is_complex(a.dtype):
        return np.arctan2(a.astype(np.float64), b.astype(np.float64)).astype(a.dtype)
    return -1j * np.log((b + 1j * a) / np.sqrt(a * a + b * b))


def add(a: Array, b: Array) -> Array:
    """The sum; for booleans the disjunction."""
    return np.add(a, b)


def mulhi(a: Array, b: Array) -> Array:
    """The upper half of the bits of a product."""
    product = a.astype(object) * b.astype(object)
    return np.asarray(product >> bits_of(a.dtype)).astype(a.dtype)


BINARY: dict[str, Binary] = {
    "add": add,
    "and": np.bitwise_and,
    "atan2": atan2,
    "divide": divide,
    "maximum": maximum,
    "minimum": minimum,
    "multiply": np.multiply,
    "or": np.bitwise_or,
    "power": power,
    "remainder": remainder,
    "subtract": np.subtract,
    "xor": np.bitwise_xor,
}
"""Functions of two numbers, in the type of computation."""


def binary_of(name: str, dtype: np.dtype[Any]) -> Binary | None:
    """The function of two arrays of ``dtype`` that the op ``name`` computes, if it is binary."""
    compute = BINARY.get(name.removeprefix("stablehlo."))
    if compute is None:
        return None
    return lambda a, b: in_type(compute(wide(a), wide(b)), dtype)


@op(*(f"stablehlo.{name}" for name in BINARY), "chlo.mulhi")
@op(*(f"chlo.broadcast_{name}" for name in BINARY))
def binary(site: Site) -> Kernel:
    """An op of :data:`BINARY`; CHLO ops broadcast their operands to one shape."""
    compute = (
        mulhi
        if site.name == "chlo.mulhi"
        else BINARY[site.name.split(".")[1].removeprefix("broadcast_")]
    )
    dtype, rank = site.results[0].dtype, len(site.results[0].shape)

    def kernel(run: object, a: Array, b: Array) -> Array:
        return in_type(compute(wide(a), wide(b)), dtype)

    if not site.name.startswith("chlo.broadcast_"):
        return kernel
    return lambda run, a, b: kernel(run, of_rank(a, rank), of_rank(b, rank))


def of_rank(array: Array, rank: int) -> Array:
    """``array`` with leading dims of size one added, so that it has rank ``rank``."""
    missing = rank + 1 - array.ndim
    return array.reshape(len(array), *(1,) * missing, *array.shape[1:])


def negate(x: Array) -> Array:
    """The negative."""
    return np.negative(x)


def absolute(x: Array) -> Array:
    """The absolute value; that of the smallest integer is itself."""
    return np.abs(x)


def sign(x: Array) -> Array:
    """-1, 0 or 1; NaN and zeros are returned unchanged; for a complex number ``x / |x|``."""
    if is_complex(x.dtype):
        size = np.abs(x)
        return np.where(size == 0, 0, x / np.where(size == 0, 1, size)).astype(x.dtype)
    if x.dtype.kind == "f":
        return np.where(np.isnan(x) | (x == 0), x, np.copysign(1, x)).astype(x.dtype)
    return np.sign(x)


def square(x: Array) -> Array:
    """The product with itself."""
    return x * x


_UNARY: dict[str, Callable[[Array], Array]] = {
    "stablehlo.abs": absolute,
    "stablehlo.negate": negate,
    "stablehlo.sign": sign,
    "stablehlo.not": np.invert,
    "chlo.square": square,
}


@op(*_UNARY)
def unary(site: Site) -> Kernel:
    """An exact function of one number."""
    compute, dtype = _UNARY[site.name], site.results[0].dtype
    return arrays(lambda x: in_type(compute(wide(x)), dtype))


_COMPARE: dict[str, np.ufunc] = {
    "EQ": np.equal,
    "NE": np.not_equal,
    "LT": np.less,
    "LE": np.less_equal,
    "GT": np.greater,
    "GE": np.greater_equal,
}


def total_order(x: Array) -> Array:
    """Integers in the total order of floats: -NaN, -inf, ..., -0, +0, ..., inf, NaN."""
    signed = x.view(f"i{x.dtype.itemsize}")
    largest = np.iinfo(signed.dtype).max
    return np.where(signed < 0, signed ^ largest, signed)


@op("stablehlo.compare", "chlo.broadcast_compare")
def compare(site: Site) -> Kernel:
    """Whether one number is equal to, less or greater than another; false with NaN."""
    test = _COMPARE[site.attributes["comparison_direction"]]
    rank = len(site.results[0].shape)
    dtype = site.operands[0].dtype
    key: Callable[[Array], Array] = wide
    if site.attributes.get("compare_type") == "TOTALORDER" and is_float(dtype):
        key = total_order
    return arrays(lambda a, b: test(key(of_rank(a, rank)), key(of_rank(b, rank))))


@op("stablehlo.select", "chlo.broadcast_select")
def select(site: Site) -> Kernel:
    """Elements of one operand or the other; the predicate is a scalar or has their shape."""
    rank = len(site.results[0].shape)

    def compute(which: Array, on_true: Array, on_false: Array) -> Array:
        if which.ndim == 1:
            which = which.reshape(-1, *(1,) * rank)
            if which.size == 1:
                return on_true if which.item() else on_false
        return np.where(of_rank(which, rank), of_rank(on_true, rank), of_rank(on_false, rank))

    return arrays(compute)


@op("stablehlo.clamp")
def clamp(site: Site) -> Kernel:
    """Elements raised to a lower bound, then lowered to an upper bound."""
    dtype, rank = site.results[0].dtype, len(site.results[0].shape)

    def bound(x: Array) -> Array:
        return x.reshape(-1, *(1,) * rank) if x.ndim == 1 else x

    def compute(low: Array, x: Array, high: Array) -> Array:
        raised = maximum(wide(bound(low)), wide(x))
        return in_type(minimum(raised, wide(bound(high))), dtype)

    return arrays(compute)
