"""Numbers of every element type: those where something happens, and others."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
from shardcore.simulate.dtypes import DTYPES, is_complex, is_float

Array = np.ndarray[Any, Any]

FLOATS = ("f32", "f64", "bf16", "f16", "f8E4M3FN", "f8E5M2")
INTEGERS = ("i8", "i16", "i32", "i64", "ui8", "ui16", "ui32", "ui64", "i4", "ui4")
COMPLEX = ("complex<f32>", "complex<f64>")
ALL = ("i1", *INTEGERS, *FLOATS, *COMPLEX)

_EDGES = (
    *(0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 0.1, -0.1, 3.0, 100.0, -100.0, 1e-3),
    *(np.inf, -np.inf, np.nan, 1e30, -1e30, 1e10, -1e10, 0.49999997, 255.5, 300.0, -300.0),
    *(2147483648.0, -2147483904.0, 4294967296.0, 9.3e18, -9.3e18, 1.9e19, 127.6, -128.6),
    *(448.0, 480.0, 57344.0, 65504.0, 1e-8, -1e-8),
)


def edges(element: str, seed: int = 0) -> Array:
    """A vector of numbers, special ones first."""
    rng = np.random.default_rng(seed)
    dtype = DTYPES[element]
    if dtype == np.bool_:
        return np.arange(64) % 2 == 0
    if is_complex(dtype):
        parts = rng.standard_normal((2, 200)) * [[1], [3]]
        return (parts[0] + 1j * parts[1]).astype(dtype)
    if is_float(dtype):
        others = (rng.standard_normal(200), rng.standard_normal(100) * 50)
        sizes = np.exp(rng.standard_normal(100) * 5)
        numbers = np.concatenate([_EDGES, *others, sizes])
        with np.errstate(over="ignore"):
            return numbers.astype(dtype if dtype == np.float64 else np.float32).astype(dtype)
    info = ml_dtypes.iinfo(dtype)
    low, high = int(info.min), int(info.max)
    wide = np.int64 if low else np.uint64
    special = [low, low + 1, high, high - 1, 0, 1, 2, 3, *([-1, -2] if low else [])]
    return np.concatenate(
        [np.array(special, wide), rng.integers(low, high, 200, wide, endpoint=True)]
    ).astype(dtype)


def small(rng: np.random.Generator, shape: tuple[int, ...], element: str) -> Array:
    """Small integers of any type: sums and products of some of them are exact."""
    dtype = DTYPES[element]
    low = 0 if dtype.kind in "ub" or element.startswith("ui") else -3
    numbers = rng.integers(low, 4, shape)
    if is_complex(dtype):
        return (numbers + 1j * rng.integers(low, 4, shape)).astype(dtype)
    return (numbers > 1) if dtype == np.bool_ else numbers.astype(dtype)
