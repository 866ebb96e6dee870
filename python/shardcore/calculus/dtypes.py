"""Element types under their names in the source, NumPy, JAX and MLIR, and their sizes."""

from __future__ import annotations

from shardcore.calculus.mistakes import choices, mistake
from shardcore.errors import CalculusError

_BITS = {
    "int4": 4, "uint4": 4, "fp4": 4,
    "bool": 8, "int8": 8, "uint8": 8, "fp8": 8,
    "bf16": 16, "fp16": 16, "int16": 16, "uint16": 16,
    "fp32": 32, "int32": 32, "uint32": 32,
    "fp64": 64, "int64": 64, "uint64": 64, "complex64": 64, "complex128": 128,
}  # fmt: skip

_NARROW = {
    "fp8": ("e3m4", "e4m3", "e4m3fn", "e4m3fnuz", "e4m3b11fnuz", "e5m2", "e5m2fnuz", "e8m0fnu"),
    "fp4": ("e2m1fn",),
}
"""The formats of short floats: an f8E4M3FN of MLIR is a float8_e4m3fn of JAX."""

_ALIASES = {
    "bfloat16": "bf16", "half": "fp16",
    **{f"{prefix}{bits}": f"fp{bits}" for prefix in ("f", "float") for bits in (8, 16, 32, 64)},
    **{f"{prefix}{bits}": f"int{bits}" for prefix in ("i", "s") for bits in (4, 8, 16, 32, 64)},
    **{f"u{bits}": f"uint{bits}" for bits in (4, 8, 16, 32, 64)},
    "ui8": "uint8", "ui16": "uint16", "ui32": "uint32", "ui64": "uint64", "i1": "bool",
    **{
        name: of
        for of, formats in _NARROW.items()
        for each in formats
        for name in (f"float{of[2:]}_{each}", f"f{of[2:]}{each}", f"f{of[2:]}{each.upper()}")
    },
}  # fmt: skip


def is_dtype(name: str) -> bool:
    """Whether ``name`` is an element type."""
    return name in _BITS or name in _ALIASES


def canonical_dtype(name: str) -> str:
    """Return the book's name: ``canonical_dtype("float32") == "fp32"``.

    Raises:
        CalculusError: there is no such type (``unknown-dtype``).
    """
    canonical = _ALIASES.get(name, name)
    if canonical not in _BITS:
        raise mistake(
            CalculusError,
            "unknown-dtype",
            f'unknown element type "{name}"',
            hint=choices(name, _BITS),
            text=name,
            filename="<dtype>",
        )
    return canonical


def element_bytes(name: str) -> float:
    """Return the bytes of one element; half a byte for 4-bit types.

    Raises:
        CalculusError: there is no such type (``unknown-dtype``).
    """
    return _BITS[canonical_dtype(name)] / 8


def jax_dtype(name: str) -> str:
    """Return the name that ``jax.numpy`` has for the type.

    Raises:
        CalculusError: there is no such type (``unknown-dtype``).
    """
    canonical = canonical_dtype(name)
    special = {"bf16": "bfloat16", "bool": "bool_", "fp8": "float8_e4m3fn", "fp4": "float4_e2m1fn"}
    return special.get(canonical, canonical.replace("fp", "float"))
