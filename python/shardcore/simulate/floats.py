"""Elementwise ops on floating-point and complex numbers.

Transcendental functions of 32-bit floats are computed in 64 bits and rounded once, those of
narrower ones in 32 bits: results are correctly rounded, except for rare near-ties where the C
library is inexact.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from shardcore.simulate.dtypes import DTYPES, bits_of, finfo, is_complex, is_float, wide
from shardcore.simulate.registry import arrays, op
from shardcore.simulate.site import Kernel, Site
from shardcore.simulate.values import Array

Unary = Callable[[Array], Array]

_HIGHER: dict[np.dtype[Any], Any] = {
    np.dtype(np.float32): np.float64,
    np.dtype(np.complex64): np.complex128,
}


def precise(compute: Unary, dtype: np.dtype[Any]) -> Unary:
    """``compute`` on arrays of ``dtype``, in a wider type if there is one."""
    higher = _HIGHER.get(dtype)
    if is_float(dtype) and dtype.itemsize < 4:
        higher = np.float32
    if higher is None:
        return compute
    return lambda x: compute(x.astype(higher)).astype(dtype)


def logistic(x: Array) -> Array:
    """``1 / (1 + exp(-x))`` without overflow."""
    if x.dtype.kind == "c":
        return 1 / (1 + np.exp(-x))
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1, small) / (1 + small)


def round_half_away(x: Array) -> Array:
    """The nearest integers, halves away from zero."""
    whole = np.trunc(x)
    away = np.where(np.abs(x - whole) >= 0.5, whole + np.copysign(1, x), whole)
    return np.copysign(away, x)


def expm1(x: Array) -> Array:
    """``exp(x) - 1``, exact near zero for complex numbers too."""
    if x.dtype.kind != "c":
        return np.expm1(x)
    real = np.expm1(x.real) * np.cos(x.imag) - 2 * np.sin(x.imag / 2) ** 2
    found = np.empty_like(x)
    found.real, found.imag = real, np.exp(x.real) * np.sin(x.imag)
    return found


def cbrt(x: Array) -> Array:
    """The cube root; of a complex number the principal one."""
    return np.cbrt(x) if x.dtype.kind != "c" else x ** (1 / 3)


def rsqrt(x: Array) -> Array:
    """``1 / sqrt(x)``."""
    return 1 / np.sqrt(x)


UNARY: dict[str, Unary] = {
    "stablehlo.cbrt": cbrt,
    "stablehlo.cosine": np.cos,
    "stablehlo.exponential": np.exp,
    "stablehlo.exponential_minus_one": expm1,
    "stablehlo.log": np.log,
    "stablehlo.log_plus_one": np.log1p,
    "stablehlo.logistic": logistic,
    "stablehlo.rsqrt": rsqrt,
    "stablehlo.sine": np.sin,
    "stablehlo.sqrt": np.sqrt,
    "stablehlo.tan": np.tan,
    "stablehlo.tanh": np.tanh,
    "stablehlo.ceil": np.ceil,
    "stablehlo.floor": np.floor,
    "stablehlo.round_nearest_afz": round_half_away,
    "stablehlo.round_nearest_even": np.rint,
    "chlo.acos": np.arccos,
    "chlo.acosh": np.arccosh,
    "chlo.asin": np.arcsin,
    "chlo.asinh": np.arcsinh,
    "chlo.atan": np.arctan,
    "chlo.atanh": np.arctanh,
    "chlo.cosh": np.cosh,
    "chlo.sinh": np.sinh,
    "chlo.tan": np.tan,
}
"""Functions of one number, in the type of computation."""


@op(*UNARY)
def unary(site: Site) -> Kernel:
    """An op of :data:`UNARY`."""
    return arrays(precise(UNARY[site.name], site.operands[0].dtype))


@op("stablehlo.is_finite", "chlo.is_inf", "chlo.is_neg_inf", "chlo.is_pos_inf")
def classify(site: Site) -> Kernel:
    """Whether numbers are finite, or infinite."""
    tests: dict[str, Unary] = {
        "stablehlo.is_finite": np.isfinite,
        "chlo.is_inf": np.isinf,
        "chlo.is_neg_inf": lambda x: x == -np.inf,
        "chlo.is_pos_inf": lambda x: x == np.inf,
    }
    test = tests[site.name]
    return arrays(lambda x: test(wide(x)))


@op("stablehlo.real", "stablehlo.imag")
def part(site: Site) -> Kernel:
    """A part of a complex number; a real one is its own real part."""
    if site.name == "stablehlo.real":
        return arrays(lambda x: x.real)
    return arrays(lambda x: x.imag if is_complex(x.dtype) else np.zeros_like(x))


@op("stablehlo.complex", "chlo.broadcast_complex")
def complex_of(site: Site) -> Kernel:
    """A complex number of its parts."""
    dtype = site.results[0].dtype

    def compute(real: Array, imag: Array) -> Array:
        found = np.empty(np.broadcast_shapes(real.shape, imag.shape), dtype)
        found.real, found.imag = real, imag
        return found

    return arrays(compute)


@op("chlo.conj")
def conj(site: Site) -> Kernel:
    """The complex conjugate."""
    return arrays(lambda x: np.conj(x) if is_complex(x.dtype) else x)


_BITS = {16: np.uint16, 32: np.uint32, 64: np.uint64, 8: np.uint8}


@op("chlo.next_after", "chlo.broadcast_next_after")
def next_after(site: Site) -> Kernel:
    """The next number of the type in the direction of another."""
    dtype = site.results[0].dtype
    if not (is_float(dtype) and dtype.itemsize < 4):
        return arrays(lambda x, to: np.nextafter(x, to))

    def compute(x: Array, to: Array) -> Array:
        bits = x.view(_BITS[bits_of(dtype)])
        here, there = np.broadcast_arrays(wide(x), wide(to))
        away = (there > here) == (here > 0)
        stepped = np.where(away, bits + 1, bits - 1).astype(bits.dtype).view(dtype)
        one = np.ones((), bits.dtype)
        sign = one << (bits_of(dtype) - 1)
        least = np.where(there > 0, one, sign | one).view(dtype)
        found = np.where(here == 0, least, stepped)
        found = np.where(here == there, to, found)
        return np.where(np.isnan(here) | np.isnan(there), np.array(np.nan, dtype), found)

    return arrays(compute)


@op("stablehlo.reduce_precision")
def reduce_precision(site: Site) -> Kernel:
    """Numbers rounded to ``mantissa_bits``, with the range of ``exponent_bits``.

    An exponent or mantissa at least as wide as the operand's own is left unchanged, in whatever
    type the op is computed.
    """
    exponent_bits, mantissa_bits = site.integer("exponent_bits"), site.integer("mantissa_bits")
    dtype = site.operands[0].dtype
    info, own = _layout(dtype), _layout(DTYPES[site.operands[0].element])
    unsigned = _BITS[bits_of(dtype)]

    def compute(x: Array) -> Array:
        bits = x.view(unsigned)
        one = unsigned(1)
        dropped = info.mantissa - mantissa_bits
        sign_mask = one << unsigned(info.bits - 1)
        if mantissa_bits < own.mantissa:
            last = (bits >> unsigned(dropped)) & one
            bias = (one << unsigned(dropped - 1)) - one + last
            bits = (bits + bias) & ~((one << unsigned(dropped)) - one)
        if exponent_bits < own.exponent:
            field = bits & ~sign_mask & ~((one << unsigned(info.mantissa)) - one)
            bias = (1 << (info.exponent - 1)) - 1
            reach = (1 << (exponent_bits - 1)) - 1
            largest = unsigned(bias + reach) << unsigned(info.mantissa)
            smallest = unsigned(bias - reach + 1) << unsigned(info.mantissa)
            infinity = unsigned((1 << info.exponent) - 1) << unsigned(info.mantissa)
            sign = bits & sign_mask
            bits = np.where(field > largest, sign | infinity, bits)
            bits = np.where(field < smallest, sign, bits)
        found = bits.astype(unsigned).view(dtype)
        return np.where(np.isnan(wide(x)), x, found)

    return arrays(compute)


class _Layout(NamedTuple):
    """The numbers of bits of a floating-point type: all, exponent, and mantissa."""

    bits: int
    exponent: int
    mantissa: int


def _layout(dtype: np.dtype[Any]) -> _Layout:
    bits, mantissa = bits_of(dtype), int(finfo(dtype).nmant)
    return _Layout(bits, bits - 1 - mantissa, mantissa)
