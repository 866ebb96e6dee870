"""How results are compared: bit for bit, or by units in the last place."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

Array = np.ndarray[Any, Any]


def ordered(x: Array) -> Array:
    """Floats as integers in their order, so that neighbours differ by one; both zeros are 0."""
    bits = x.view(f"i{x.dtype.itemsize}").astype(np.int64)
    lowest = -(1 << (8 * x.dtype.itemsize - 1))
    return np.where(bits < 0, lowest - bits, bits)


def ulps(a: Array, b: Array) -> Array:
    """How many units in the last place elements differ by; as good as infinite where only one is
    NaN. Numbers so small that XLA, which flushes them, has zero for them, are zero."""
    if a.dtype.kind == "c":
        return complex_ulps(a, b)
    tiny = float(ml_dtypes.finfo(a.dtype).smallest_normal)
    wide = [x.astype(np.float64) for x in (a, b)]
    places = [
        ordered(np.where(np.abs(w) < tiny, 0, x).astype(x.dtype))
        for w, x in zip(wide, (a, b), strict=True)
    ]
    # Neighbours are told apart as integers; numbers of other signs are far enough for floats.
    exact = np.abs(np.subtract(*places, dtype=np.int64)).astype(np.float64)
    rough = np.abs(places[0].astype(np.float64) - places[1].astype(np.float64))
    distance = np.where(rough < 2.0**53, exact, rough)
    nan = [np.isnan(w) for w in wide]
    return np.where(nan[0] | nan[1], np.where(nan[0] & nan[1], 0, 2.0**62), distance)


def complex_ulps(a: Array, b: Array) -> Array:
    """The same for complex numbers: how far apart they are in units of the larger part."""
    size = np.abs(np.where(np.isfinite(b), b, 0))
    unit = np.finfo(a.dtype).eps * np.maximum(size, np.finfo(a.dtype).tiny)
    odd = ~(np.isfinite(a) & np.isfinite(b))
    plain = [np.where(odd, 0, x).astype(np.complex128) for x in (a, b)]
    distance = np.abs(plain[0] - plain[1]) / np.where(odd, 1, unit)
    same = ((a.real == b.real) | (np.isnan(a.real) & np.isnan(b.real))) & (
        (a.imag == b.imag) | (np.isnan(a.imag) & np.isnan(b.imag))
    )
    return np.where(odd, np.where(same, 0, 2.0**62), distance)


def is_inexact(dtype: np.dtype[Any]) -> bool:
    return dtype.kind in "fc" or (dtype.kind == "V" and "int" not in dtype.name)


def assert_same(got: Array, want: Array, bound: float = 0, what: object = "") -> None:
    """Fails unless ``got`` is ``want``, where it is inexact within ``bound`` units."""
    assert (got.shape, got.dtype) == (want.shape, want.dtype), what
    if not is_inexact(got.dtype):
        assert np.array_equal(got, want), (what, first_difference(got, want, got != want))
        return
    distance = ulps(got, want)
    assert distance.max(initial=0) <= bound, (
        what,
        distance.max(),
        first_difference(got, want, distance > bound),
    )


def first_difference(got: Array, want: Array, where: Array) -> tuple[Any, ...]:
    at = tuple(int(index[0]) for index in np.nonzero(where))
    return at, got[at], want[at]
