"""MLIR bytecode, StableHLO portable artifacts included, as text: jaxlib reads it.

jaxlib is imported when there is bytecode to read, and jax never. Locations are kept.
"""

from __future__ import annotations

import re

from shardcore.errors import Diagnostic, ParseError

MAGIC = b"ML\xefR"
"""What bytecode starts with."""


def to_text(data: bytes, filename: str = "<bytecode>") -> str:
    """Return the program of ``data`` as MLIR text.

    Raises:
        ParseError: jaxlib is not installed, or cannot read it (``bytecode``).
    """
    try:
        from jaxlib.mlir import ir
        from jaxlib.mlir.dialects import chlo, sdy, stablehlo
    except ImportError:
        raise _mistake(
            f"{filename} is MLIR bytecode, and jaxlib, which reads it, is not installed",
            "install it, pip install jaxlib, or write the program as text",
        ) from None
    context = ir.Context()
    context.allow_unregistered_dialects = True
    context.emit_error_diagnostics = True
    for dialect in (stablehlo, chlo, sdy):
        dialect.register_dialect(context)
    producer = data[len(MAGIC) : 64].split(b"\0")[0]
    try:
        with context:
            if b"StableHLO" in producer:
                module = stablehlo.deserialize_portable_artifact(context, data)
            else:
                module = ir.Module.parse(data)
            return str(module.operation.get_asm(enable_debug_info=True))
    # What it cannot read is an error of its own or of nanobind's, which do not share a base.
    except Exception as error:
        reason = re.sub(r"\s+", " ", str(error)).strip()
        raise _mistake(
            f"jaxlib cannot read the bytecode of {filename}: {reason[:200]}",
            "the file may be cut off, or written by a later version",
        ) from None


def _mistake(message: str, hint: str) -> ParseError:
    return ParseError(Diagnostic("bytecode", message, hint))
