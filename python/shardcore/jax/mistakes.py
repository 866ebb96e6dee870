"""Makes the :class:`shardcore.LoweringError` for mistakes in the use of JAX."""

from __future__ import annotations

from shardcore.errors import Diagnostic, LoweringError

CODES = (
    "artifact",
    "devices",
    "invalid-mesh",
    "jax-version",
    "lowering",
    "missing-mesh",
    "not-a-function",
    "unexpected-argument",
    "unknown-axis",
    "unsayable-sharding",
)
"""Every error code of the interface to JAX."""


def mistake(code: str, message: str, hint: str | None = None) -> LoweringError:
    """Return the error for one mistake."""
    return mistakes(Diagnostic(code, message, hint))


def mistakes(*diagnostics: Diagnostic) -> LoweringError:
    """Return the error for several."""
    assert all(diagnostic.code in CODES for diagnostic in diagnostics)
    return LoweringError(diagnostics)
