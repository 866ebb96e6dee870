"""Special functions of CHLO, in 64 bits.

Sources: Abramowitz and Stegun, chapters 6, 7, 9 and 23: the asymptotic series of the gamma
function's derivatives, Euler and Maclaurin's formula for zeta sums, the integral of the modified
Bessel function. The error and the gamma function are C's.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from shardcore.simulate.dtypes import in_type
from shardcore.simulate.elementwise import of_rank
from shardcore.simulate.registry import arrays, op
from shardcore.simulate.site import Kernel, Site
from shardcore.simulate.values import Array

# Bernoulli numbers of even index, from B2.
_BERNOULLI = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6, -3617 / 510)


def _each(function: Callable[[float], float]) -> Callable[[Array], Array]:
    """A function of Python's ``math``, applied to each element."""

    def compute(x: Array) -> Array:
        flat = [function(number) for number in x.reshape(-1).tolist()]
        return np.array(flat, np.float64).reshape(x.shape)

    return compute


def _lgamma(x: float) -> float:
    if math.isinf(x) or (x <= 0 and x == math.floor(x)):
        return math.inf
    return math.lgamma(x)


erf, erfc, lgamma = _each(math.erf), _each(math.erfc), _each(_lgamma)


def erf_inv(x: Array) -> Array:
    """The inverse error function: Halley's iteration from an approximation."""
    inside = np.abs(x) < 1
    y = np.where(inside, x, 0.0)
    # Winitzki's approximation, which is good to two digits.
    log = np.log1p(-y * y)
    half = 2 / (math.pi * 0.147) + log / 2
    found = np.copysign(np.sqrt(np.sqrt(half * half - log / 0.147) - half), y)
    for _ in range(4):
        # Near one the complementary error function avoids cancellation.
        far = np.abs(y) > 0.5
        complement = (1 - np.abs(y)) - erfc(np.abs(found))
        error = np.where(far, np.where(y < 0, -complement, complement), erf(found) - y)
        step = error / (2 / math.sqrt(math.pi) * np.exp(-found * found))
        found = found - step / (1 + found * step)
    found = np.where(np.abs(x) == 1, np.copysign(np.inf, x), found)
    return np.where(inside | (np.abs(x) == 1), found, np.nan)


def zeta(s: Array, q: Array) -> Array:
    """The sum of ``(q + k) ** -s`` over all ``k``, for ``s > 1`` and ``q > 0``.

    For other arguments it is NaN or infinite, as in Cephes, or the sum where that is defined.
    """
    s, q = np.broadcast_arrays(s.astype(np.float64), q.astype(np.float64))
    is_pole = (q <= 0) & (q == np.floor(q))
    start = np.where(is_pole, 1.0, q)
    count = 12
    total = sum(((start + k) ** -s for k in range(count)), np.zeros_like(start))
    a = start + count
    total = total + a ** (1 - s) / (s - 1) + 0.5 * a**-s
    factor, power = s.copy(), a ** (-s - 1)
    for k, number in enumerate(_BERNOULLI):
        total = total + number / math.factorial(2 * k + 2) * factor * power
        factor = factor * (s + 2 * k + 1) * (s + 2 * k + 2)
        power = power / (a * a)
    whole_power = s == np.floor(s)
    total = np.where(is_pole, np.where(whole_power & (s % 2 == 0), np.inf, np.nan), total)
    total = np.where((q < 0) & ~is_pole & ~whole_power, np.nan, total)
    total = np.where(np.isposinf(start) & (s > 1), 0.0, total)
    total = np.where(s == 1, np.inf, np.where(s < 1, np.nan, total))
    return np.where(np.isnan(s) | np.isnan(q), np.nan, total)


def digamma(x: Array) -> Array:
    """The derivative of the gamma function's logarithm; NaN at its poles."""
    x = x.astype(np.float64)
    is_pole = (x <= 0) & (x == np.floor(x))
    reflected = x < 0.5
    y = np.where(is_pole, 1.0, np.where(reflected, 1 - x, x))
    total = np.zeros_like(y)
    for _ in range(10):
        low = y < 10
        total = np.where(low, total - 1 / y, total)
        y = np.where(low, y + 1, y)
    inverse = 1 / (y * y)
    series, power = np.zeros_like(y), inverse
    for k, number in enumerate(_BERNOULLI):
        series = series + number / (2 * k + 2) * power
        power = power * inverse
    total = total + np.log(y) - 0.5 / y - series
    # The tangent depends only on the distance to the next integer, which is exact.
    fraction = np.where(is_pole, 0.5, x - np.rint(x))
    total = np.where(reflected, total - math.pi / np.tan(math.pi * fraction), total)
    return np.where(is_pole | np.isneginf(x), np.nan, total)


def polygamma(order: Array, x: Array) -> Array:
    """The derivative of order ``order`` of :func:`digamma`."""
    order, x = np.broadcast_arrays(order.astype(np.float64), x.astype(np.float64))
    sign = np.where(order % 2 == 0, -1.0, 1.0)
    found = sign * np.exp(lgamma(order + 1)) * zeta(order + 1, x)
    found = np.where(order == 0, digamma(x), found)
    return np.where((order < 0) | (order != np.floor(order)), np.nan, found)


def bessel_i1e(x: Array) -> Array:
    """The modified Bessel function of order one times ``exp(-|x|)``.

    The integral over half a circle by the midpoint rule, which converges geometrically; for large
    arguments the asymptotic series.
    """
    size = np.abs(x.astype(np.float64))
    # Angles symmetric to the right angle are added in pairs, to avoid cancellation.
    cosines = np.cos((np.arange(64) + 0.5) * (math.pi / 128))
    near = np.minimum(size, 300.0)[..., None]
    terms = np.exp(near * (cosines - 1)) * -np.expm1(-2 * near * cosines) * cosines
    found = terms.sum(axis=-1) / 128
    far = np.maximum(size, 300.0)
    series, term = np.ones_like(far), np.ones_like(far)
    for k in range(1, 12):
        term = -term * (4 - (2 * k - 1) ** 2) / (8 * k * far)
        series = series + term
    found = np.where(size > 300, series / np.sqrt(2 * math.pi * far), found)
    return np.copysign(found, x)


_UNARY = {
    "chlo.bessel_i1e": bessel_i1e,
    "chlo.digamma": digamma,
    "chlo.erf": erf,
    "chlo.erf_inv": erf_inv,
    "chlo.erfc": erfc,
    "chlo.lgamma": lgamma,
}
_BINARY = {"polygamma": polygamma, "zeta": zeta}


@op(*_UNARY)
def unary(site: Site) -> Kernel:
    """A special function of one number."""
    compute, dtype = _UNARY[site.name], site.results[0].dtype
    return arrays(lambda x: in_type(compute(x.astype(np.float64)), dtype))


@op("chlo.polygamma", "chlo.zeta", "chlo.broadcast_polygamma", "chlo.broadcast_zeta")
def binary(site: Site) -> Kernel:
    """A special function of two numbers."""
    compute = _BINARY[site.name.split(".")[1].removeprefix("broadcast_")]
    [result] = site.results
    rank = len(result.shape)
    return arrays(
        lambda a, b: in_type(
            compute(of_rank(a, rank).astype(np.float64), of_rank(b, rank).astype(np.float64)),
            result.dtype,
        )
    )
