"""The entry function of a result."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shardcore._core import Module, Result


def entry_function(result: Result | Module) -> str | None:
    """Return the name of the function that a value is in unless it says another one."""
    functions = dict.fromkeys(value.function for value in result.values())
    return "main" if "main" in functions else next(iter(functions), None)
