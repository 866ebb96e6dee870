"""The rates that, with the bytes, determine the time of a collective, and options of the model."""

from __future__ import annotations

from dataclasses import dataclass

from shardcore.calculus.mistakes import mistake
from shardcore.errors import CalculusError

LEAST_EFFICIENCY = 1e-12
"""The smallest efficiency, with which times do not overflow."""


@dataclass(frozen=True)
class TimeOptions:
    """Options of the time model.

    Raises:
        CalculusError: the efficiency is below :data:`LEAST_EFFICIENCY`, or above 1
            (``invalid-option``).
    """

    exact: bool = False
    """Count ``(N - 1) / N`` where the book rounds to 1."""
    efficiency: float = 1.0
    """The fraction of the bandwidth that is reached; the book measures 0.95 on v5e."""
    one_way: bool = False
    """Rings send blocks in one direction only."""

    def __post_init__(self) -> None:
        if not LEAST_EFFICIENCY <= self.efficiency <= 1:
            shown = f"{self.efficiency:g}" if abs(self.efficiency) < 1e300 else "so much"
            least = "0" if self.efficiency <= 0 else f"{LEAST_EFFICIENCY:g}"
            raise mistake(
                CalculusError,
                "invalid-option",
                f"an efficiency of {shown} is not above {least} and at most 1",
                hint="0.95 is what is measured on a v5e",
                text=shown,
                filename="<efficiency>",
            )


@dataclass(frozen=True)
class Rates:
    """The rates of one op along some axes, which do not depend on the bytes.

    The bandwidth bound is ``bytes * seconds_per_byte``, and the latency bound ``latency_seconds``.
    """

    devices: int
    hops: int
    seconds_per_byte: float
    latency_seconds: float
    formula: str
    """The bandwidth bound, with ``{V}`` for the bytes."""
    latency_formula: str
    wraparound: bool
    link_share: float
    """The fraction of V that crosses the busiest link in one direction."""
    network_seconds_per_byte: float = 0.0
    """The part of ``seconds_per_byte`` between slices or nodes."""

    def seconds(self, num_bytes: float) -> float:
        """Return the time for V = ``num_bytes``."""
        return max(num_bytes * self.seconds_per_byte, self.latency_seconds)
