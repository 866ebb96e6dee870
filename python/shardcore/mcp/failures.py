"""The text of a tool's error: code, location and hint, as in the library's errors."""

from __future__ import annotations

from shardcore.controls import visible
from shardcore.errors import Diagnostic, ShardcoreError, bounded


def failure(error: BaseException) -> str:
    """Return the text of ``error``."""
    if isinstance(error, ShardcoreError):
        return str(error)
    return str(_diagnostic(error))


def _diagnostic(error: BaseException) -> Diagnostic:
    text = bounded(visible(str(error.args[0] if error.args else error)))
    if isinstance(error, OSError):
        name = f"{error.filename}: " if error.filename is not None else ""
        return Diagnostic("io", f"{name}{error.strerror or error}", "give the path of a file")
    if isinstance(error, MemoryError):
        return Diagnostic("out-of-memory", "the program needs more memory than there is")
    if isinstance(error, ImportError):
        return Diagnostic("missing-package", text)
    if isinstance(error, (KeyError, TypeError, ValueError)):
        return Diagnostic("invalid-arguments", text)
    message = f"shardcore failed with {type(error).__name__}: {text}"
    return Diagnostic("internal", message, "the program stays open; please report it")
