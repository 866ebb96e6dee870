"""The NumPy types of MLIR's element types, and their properties."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import ml_dtypes
import numpy as np

from shardcore.bounded import shown

__all__ = [
    "DTYPES",
    "WIDER",
    "are_equal",
    "bits_of",
    "in_type",
    "is_complex",
    "is_float",
    "is_integer",
    "is_narrow",
    "wide",
    "widened",
]

DType = np.dtype[Any]
Array = np.ndarray[Any, DType]

_FLOATS: dict[str, Any] = {
    "f16": np.float16,
    "f32": np.float32,
    "f64": np.float64,
    "bf16": ml_dtypes.bfloat16,
    "f8E3M4": ml_dtypes.float8_e3m4,
    "f8E4M3": ml_dtypes.float8_e4m3,
    "f8E4M3FN": ml_dtypes.float8_e4m3fn,
    "f8E4M3FNUZ": ml_dtypes.float8_e4m3fnuz,
    "f8E4M3B11FNUZ": ml_dtypes.float8_e4m3b11fnuz,
    "f8E5M2": ml_dtypes.float8_e5m2,
    "f8E5M2FNUZ": ml_dtypes.float8_e5m2fnuz,
    "f8E8M0FNU": ml_dtypes.float8_e8m0fnu,
    "f6E2M3FN": ml_dtypes.float6_e2m3fn,
    "f6E3M2FN": ml_dtypes.float6_e3m2fn,
    "f4E2M1FN": ml_dtypes.float4_e2m1fn,
}
_INTEGERS: dict[str, Any] = {
    **{f"{sign}{bits}": f"int{bits}" for sign in ("i", "si") for bits in (8, 16, 32, 64)},
    **{f"ui{bits}": f"uint{bits}" for bits in (8, 16, 32, 64)},
    "index": np.int64,
    "i2": ml_dtypes.int2,
    "i4": ml_dtypes.int4,
    "ui2": ml_dtypes.uint2,
    "ui4": ml_dtypes.uint4,
}
DTYPES: dict[str, DType] = {
    "i1": np.dtype(bool),
    **{name: np.dtype(kind) for name, kind in (_FLOATS | _INTEGERS).items()},
    "complex<f32>": np.dtype(np.complex64),
    "complex<f64>": np.dtype(np.complex128),
}
"""The NumPy type of each element type that can be simulated, by MLIR name."""

_FLOAT_TYPES = frozenset(DTYPES[name] for name in _FLOATS)
_INTEGER_TYPES = frozenset(DTYPES[name] for name in _INTEGERS)
# Types that NumPy's functions do not support fully: values are computed in a wider type.
_WIDE: dict[DType, DType] = {
    **{DTYPES[name]: np.dtype(np.float32) for name in _FLOATS if name not in ("f32", "f64")},
    **{DTYPES[name]: np.dtype(np.int8) for name in ("i2", "i4")},
    **{DTYPES[name]: np.dtype(np.uint8) for name in ("ui2", "ui4")},
}
_BITS = {
    **{DTYPES[name]: int(name.lstrip("sui")) for name in _INTEGERS if name != "index"},
    np.dtype(bool): 1,
    DTYPES["f4E2M1FN"]: 4,
    DTYPES["f6E2M3FN"]: 6,
    DTYPES["f6E3M2FN"]: 6,
}

WIDER = ("f32", "f64")
"""The types in which narrower floats of a program may be computed."""


def widened(least: str | None) -> Mapping[str, DType]:
    """The types of computation, by element type: floats that are narrower than ``least``, one of
    :data:`WIDER`, and complex numbers of such floats, are computed in that type.

    Raises:
        ValueError: ``least`` is neither ``None`` nor one of these types.
    """
    if least is None:
        return DTYPES
    if not isinstance(least, str) or least not in WIDER:
        raise ValueError(f"dtype is 'f32', 'f64' or None, not {shown(least)}")
    kind = DTYPES[least]
    found = {
        name: kind if name in _FLOATS and own.itemsize < kind.itemsize else own
        for name, own in DTYPES.items()
    }
    return found | {"complex<f32>": DTYPES[f"complex<{least}>"]}


def is_float(dtype: DType) -> bool:
    """Whether it is a real floating-point type."""
    return dtype in _FLOAT_TYPES


def is_integer(dtype: DType) -> bool:
    """Whether it is an integer type; booleans are none."""
    return dtype in _INTEGER_TYPES


def is_complex(dtype: DType) -> bool:
    """Whether it is a complex type."""
    return dtype.kind == "c"


def is_narrow(dtype: DType) -> bool:
    """Whether values of the type are computed in a wider one."""
    return dtype in _WIDE


def finfo(dtype: DType) -> Any:
    """``numpy.finfo`` for any floating-point type."""
    return ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]


def iinfo(dtype: DType) -> Any:
    """``numpy.iinfo`` for any integer type."""
    return ml_dtypes.iinfo(dtype)  # type: ignore[no-untyped-call]


def bits_of(dtype: DType) -> int:
    """How many bits a value of the type has."""
    return _BITS.get(dtype, 8 * dtype.itemsize)


def wide(array: Array) -> Array:
    """``array`` in its wider type of computation; exact."""
    return array.astype(_WIDE[array.dtype]) if array.dtype in _WIDE else array


def in_type(array: Array, dtype: DType) -> Array:
    """``array``, a result in a wider type, rounded or wrapped to ``dtype``."""
    if array.dtype == dtype:
        return array
    if dtype in _INTEGER_TYPES and dtype in _WIDE:
        unused = 8 - bits_of(dtype)
        byte = array.astype(_WIDE[dtype])
        return (byte << unused >> unused).astype(dtype)
    return array.astype(dtype)


def are_equal(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> bool:
    """Whether all elements are equal; NaN equals NaN, also in types that NumPy does not know."""
    return np.array_equal(a, b, equal_nan=a.dtype.kind in "fcV")
