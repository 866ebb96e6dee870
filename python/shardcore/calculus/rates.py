"""The rates from which, with the bytes, the time of a collective follows; options of the model."""

from __future__ import annotations

import math
from dataclasses import dataclass

from shardcore.calculus.achieved import Achieved
from shardcore.calculus.mistakes import mistake
from shardcore.errors import CalculusError

LEAST_EFFICIENCY = 1e-12
"""The smallest allowed efficiency; with it, times do not overflow."""

RAMP = 0.6
"""The exponent by which collectives approach their bandwidth as chunks grow: with 16 times as many
bytes, the loss falls to 16**-0.6, a fifth. Fitted to public
measurements; see ``docs/cost_evidence.md``."""


@dataclass(frozen=True)
class TimeOptions:
    """Options of the time model.

    Raises:
        CalculusError: the efficiency is below :data:`LEAST_EFFICIENCY`, or above 1
            (``invalid-option``).
    """

    exact: bool = False
    """Count ``(N - 1) / N`` where the book rounds it to 1."""
    efficiency: float = 1.0
    """The share of the bandwidth that is reached; the book measures 0.95 on v5e."""
    one_way: bool = False
    """Whether rings send blocks in one direction only."""

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
    """The rates of an op along some axes, independent of the bytes.

    The bandwidth bound is ``bytes * seconds_per_byte``, and the latency bound ``latency_seconds``.
    """

    devices: int
    hops: int
    seconds_per_byte: float
    latency_seconds: float
    formula: str
    """The bandwidth bound as text, with ``{V}`` for the bytes."""
    latency_formula: str
    wraparound: bool
    link_share: float
    """The fraction of V that crosses the busiest link in one direction."""
    network_seconds_per_byte: float = 0.0
    """Seconds per byte between slices or nodes; 0 within one."""
    links_seconds_per_byte: float | None = None
    """Seconds per byte within slices or nodes; ``None`` for ``seconds_per_byte`` minus that of the
    network."""
    reduced_seconds_per_byte: float = math.inf
    """Seconds per byte within nodes whose switches do reductions."""
    overlaps_network: bool = False
    """Whether devices send within nodes and between them at the same time."""
    links_steps: int = 0
    """The number of sequential messages of a group within a slice or node."""
    network_steps: int = 0
    """The number of sequential messages between slices or nodes."""
    chunks: int = 1
    """The number of parts into which V is divided; devices send one per step."""

    def seconds(self, num_bytes: float) -> float:
        """Return the time for V = ``num_bytes``."""
        return max(num_bytes * self.seconds_per_byte, self.latency_seconds)

    def moving_seconds(self, num_bytes: float, sent: float, shares: Achieved) -> float:
        """Return the time for V = ``num_bytes`` at the bandwidth that ``shares`` reach of it, of
        which a device sends ``sent`` bytes; without latencies.
        """
        if not num_bytes or not sent:
            return 0.0
        links, network = self.links_seconds_per_byte, self.network_seconds_per_byte
        if links is None:
            links = self.seconds_per_byte - network
        links = min(links, self.reduced_seconds_per_byte / shares.switch_reductions) / shares.links
        network /= shares.network
        moving = max(links, network) if self.overlaps_network else links + network
        # What was measured, by the bytes that a device sends, holds for all chunks.
        chunk = 0.0 if shares.message_shares else shares.chunk_bytes
        lost: float = (chunk * self.chunks / num_bytes) ** RAMP
        return num_bytes * moving * (1 + lost) / shares.message_share(sent)

    def waiting_seconds(self, shares: Achieved) -> float:
        """Return what a collective takes however few bytes it sends."""
        steps = self.links_steps * shares.link_step_seconds
        steps += self.network_steps * shares.network_step_seconds
        return shares.collective_seconds + steps + self.latency_seconds


def steps_of(op: str, members: int) -> int:
    """Return how many messages among ``members`` wait for each other: an all-reduce goes up a tree
    and down again, a gather around a ring, and an all-to-all to all at once.

    >>> steps_of("all_reduce", 8), steps_of("all_gather", 8), steps_of("all_to_all", 8)
    (6, 7, 1)
    """
    if op in ("permute", "all_to_all"):
        return 1
    return 2 * (members - 1).bit_length() if op == "all_reduce" else members - 1


def chunks_of(op: str, devices: int) -> int:
    """Return the number of parts of V of which each of ``devices`` sends one in a step."""
    return 1 if op == "permute" else devices
