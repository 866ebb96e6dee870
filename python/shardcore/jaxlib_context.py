"""An MLIR context for the separate processes that use jaxlib; they load this file by its path.

Like them, it imports nothing of shardcore.
"""

from __future__ import annotations

from typing import Any


def context() -> Any:
    """Return an MLIR context with the dialects of jaxlib loaded.

    Raises:
        ImportError: jaxlib is not installed.
    """
    from jaxlib.mlir import ir
    from jaxlib.mlir._mlir_libs import _jax_mlir_ext
    from jaxlib.mlir.dialects import chlo, mhlo, sdy, stablehlo

    registry = ir.DialectRegistry()
    _jax_mlir_ext.register_dialects(registry)
    made = ir.Context()
    made.append_dialect_registry(registry)
    made.allow_unregistered_dialects = True
    # If a dialect is not loaded, the properties of its ops are lost.
    made.load_all_available_dialects()
    for dialect in (stablehlo, chlo, sdy):
        dialect.register_dialect(made)
    mhlo.register_mhlo_dialect(made)
    return made
