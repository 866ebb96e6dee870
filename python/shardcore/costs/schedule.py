"""The time of a step, and what it is made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Schedule:
    """The time of a step. What it takes to start, its ops, slowed by what overlaps with them, and
    the time in which nothing is computed add up to :attr:`seconds`; all figures are in seconds.
    """

    seconds: float
    """Of the step."""
    lower: float
    """That no step goes below."""
    communication: float
    """Of all collectives at the full bandwidth."""
    start: float
    """Before the first op."""
    ops: float
    """Of all ops at the rates that programs achieve, if nothing slows them."""
    exposed: Sequence[float]
    """Of each row of collectives, over all its runs, in which nothing is computed."""
    host_exposed: Sequence[float]
    """Those of each transfer to or from the host."""

    @property
    def slowdown(self) -> float:
        """How many times as long ops take while collectives use the memory, too; 1 without ops."""
        waiting = self.start + sum(self.exposed) + sum(self.host_exposed)
        return max(self.seconds - waiting, 0.0) / self.ops if self.ops else 1.0
