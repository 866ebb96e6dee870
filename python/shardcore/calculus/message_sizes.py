"""Bandwidth by the size of messages: from the figures of a chip, and from measurements.

A small message does not reach the full bandwidth of a link. The share that it reaches depends on
the bytes that a device sends and on the size of the chunks in which it sends them; see
:meth:`~shardcore.calculus.rates.Rates.moving_seconds`.

Source: "How to Scale Your Model", chapter 3, "Empirical measurement of AllGather bandwidth".
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from shardcore.calculus.collective_time import Estimate, Rates, reached_share, wire_bytes
from shardcore.calculus.hardware import Hardware
from shardcore.calculus.mistakes import mistake
from shardcore.calculus.topology import Topology
from shardcore.errors import CalculusError
from shardcore.expected import expect

__all__ = ["SizeTime", "by_size", "measured"]

SIZES = tuple(4**power for power in range(5, 16))
"""The sizes of gathered arrays in a table: 1 KiB to 1 GiB."""


@dataclass(frozen=True)
class SizeTime:
    """The time of a collective for one size of the gathered array."""

    bytes: int
    """V: the bytes of the gathered array in a group of devices."""
    achieved_seconds: float
    reached: float
    """The share of the bandwidth that messages of this size reach."""

    @property
    def bytes_per_second(self) -> float:
        """V divided by the time."""
        return self.bytes / self.achieved_seconds if self.achieved_seconds else 0.0

    def record(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {**vars(self), "bytes_per_second": self.bytes_per_second}


def by_size(
    found: Estimate, topology: Topology, sizes: Iterable[int] = SIZES
) -> tuple[SizeTime, ...]:
    """Return the times of the collective ``found`` for other ``sizes`` of the gathered array."""
    expect(found, Estimate)
    expect(topology, Topology)
    return tuple(_of_size(found, topology, found.rates, size) for size in sizes)


def _of_size(found: Estimate, topology: Topology, rates: Rates, size: int) -> SizeTime:
    shift = found.collective.shift
    sent = wire_bytes(found.collective.op, size, rates.devices, shift=shift)
    share = reached_share(topology, rates, size, sent)
    waiting = rates.waiting_seconds(topology.hardware.achieved)
    return SizeTime(size, size * rates.seconds_per_byte / share + waiting, share)


def measured(found: Estimate, chip: Hardware, runs: Iterable[tuple[float, float]]) -> Hardware:
    """Return ``chip`` with the bandwidth that measured runs of a collective reached.

    Args:
        found: the measured collective, of any size.
        chip: the chip that it was measured on.
        runs: for each run V, the bytes of the gathered array, and the seconds.

    Raises:
        CalculusError: there are no runs, two have one size, or one has no bytes or no time
            (``invalid-option``).
    """
    expect(found, Estimate)
    expect(chip, Hardware)
    rates = found.rates
    points: dict[float, float] = {}
    for num_bytes, seconds in runs:
        sent = wire_bytes(
            found.collective.op, int(num_bytes), rates.devices, shift=found.collective.shift
        )
        if not (sent > 0 and seconds > 0) or float(sent) in points:
            raise _wrong(f"a run of {num_bytes:g} bytes in {seconds:g} s cannot be counted")
        moving = max(seconds - rates.latency_seconds, 1e-12)
        points[float(sent)] = min(max(num_bytes * rates.seconds_per_byte / moving, 1e-9), 1.0)
    if not points:
        raise _wrong("there are no measured runs")
    # The measured shares are complete: they include latencies and the share of long messages.
    shares = replace(
        chip.achieved,
        links=1.0,
        network=1.0,
        switch_reductions=1.0,
        chunk_bytes=0.0,
        collective_seconds=0.0,
        link_step_seconds=0.0,
        network_step_seconds=0.0,
        message_shares=tuple(sorted(points.items())),
    )
    return replace(chip, achieved=shares)


def _wrong(message: str) -> CalculusError:
    return mistake(
        CalculusError,
        "invalid-option",
        message,
        hint="give pairs of bytes and seconds, each size once",
        text="runs",
        filename="<runs>",
    )
