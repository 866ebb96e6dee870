"""Makes the errors for programs that cannot be simulated, with the op and its line."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shardcore.errors import Diagnostic, ProgramTooLargeError, SimulationError

if TYPE_CHECKING:
    from shardcore._core import Op

TOO_LARGE_HINT = "simulate a smaller batch, fewer layers or fewer devices"

CODES = (
    "diverging-collective",
    "invalid-argument",
    "invalid-op",
    "unknown-device",
    "unknown-symbol",
    "unsupported-op",
)
"""Every error code of a simulation."""


def of_elements(element: str) -> str | None:
    """Return the hint for a tensor with elements ``element``, for which NumPy has no type."""
    if element.startswith("!"):
        return "quantized types and types of other dialects are not simulated"
    return None


def mistake(
    code: str, message: str, hint: str | None, ops: tuple[Op, ...], filename: str
) -> SimulationError:
    """Return an error at the first of ``ops``, an op and the ops around it, that has a location."""
    assert code in CODES, code
    place = next((op.place for op in ops if op.place is not None), None)
    return SimulationError(Diagnostic(code, message, hint, filename if place else None, place))


def too_large(message: str) -> ProgramTooLargeError:
    """Return the error of a program whose values do not fit into memory."""
    return ProgramTooLargeError(Diagnostic("program-too-large", message, TOO_LARGE_HINT))
