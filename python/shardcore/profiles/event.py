"""The record of an event of a trace."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Event"]


class Event(NamedTuple):
    """An event of a trace, with a duration."""

    name: str
    """The name of the instruction, or of another kind of event."""
    module: str | None
    """The module of the instruction, if the trace has it."""
    line: str
    """The name of the row in which the trace shows it."""
    start: int
    """When it begins, in picoseconds since any time."""
    seconds: float
    run: str | None
    """The run of the module, if the trace has it."""
