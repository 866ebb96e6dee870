"""The host of a device: the copies to and from its memory, and their times."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from shardcore.costs.records import UncountedOp

if TYPE_CHECKING:
    from shardcore._core import Figures
    from shardcore.calculus.hardware import Hardware


@dataclass(frozen=True)
class HostTransfer:
    """A copy between the memory of a device and that of its host; ``bytes`` and ``seconds`` are for
    one run.
    """

    value: str
    """The name of the copied value."""
    direction: str
    """``"to_host"`` or ``"to_device"``."""
    bytes: int
    """Its bytes on one device."""
    count: int
    """The number of runs in a step."""
    seconds: float | None
    """Seconds at the full bandwidth; ``None`` if the chip has no ``host_bytes_per_second``."""
    exposed_seconds: float | None
    """Seconds, over all runs, in which the device idles waiting for it, in the schedule of
    ``Cost.step_seconds``; ``None`` as for ``seconds``."""
    location: str | None
    """The source location of the op that copies, or needs the copy."""

    @property
    def total_bytes(self) -> int:
        """``bytes`` of all runs."""
        return self.bytes * self.count

    @property
    def total_seconds(self) -> float | None:
        """``seconds`` of all runs."""
        return None if self.seconds is None else self.seconds * self.count

    def record(self) -> dict[str, Any]:
        """Return it as plain data, with ``total_bytes`` and ``total_seconds`` of all runs."""
        totals = {"total_bytes": self.total_bytes, "total_seconds": self.total_seconds}
        return {**vars(self), **totals}


@dataclass(frozen=True)
class HostCost:
    """What a program keeps, copies and computes on the host of a device."""

    argument_bytes: int = 0
    """Bytes of the arguments in host memory."""
    output_bytes: int = 0
    """Bytes of the outputs in host memory."""
    alias_bytes: int = 0
    """Bytes of these outputs that reuse the memory of donated arguments."""
    flops: int = 0
    """FLOPs computed on the host; their time is unknown."""
    transcendentals: int = 0
    transfers: tuple[HostTransfer, ...] = ()
    """The copies to and from its memory, in program order."""

    def __bool__(self) -> bool:
        return self != HostCost()

    def moved(self, direction: str) -> int:
        """Return the bytes of all runs of transfers in ``direction``."""
        return sum(row.total_bytes for row in self.transfers if row.direction == direction)

    def seconds(self, direction: str) -> float:
        """Return the seconds of these transfers, as far as they are known."""
        rows = (row for row in self.transfers if row.direction == direction)
        return sum(row.total_seconds or 0.0 for row in rows)

    @property
    def has_unknown_times(self) -> bool:
        """Whether the time of some transfer is unknown."""
        return any(row.seconds is None for row in self.transfers)

    @property
    def exposed_seconds(self) -> float:
        """The sum of the transfers' exposed seconds, as far as they are known."""
        return sum(row.exposed_seconds or 0.0 for row in self.transfers)

    @property
    def busy_seconds(self) -> float:
        """A lower bound of the step time from host copies; the two directions overlap."""
        return max(self.seconds("to_device"), self.seconds("to_host"))


DIRECTIONS = ("to_device", "to_host")


def host_cost(figures: Figures, chip: Hardware) -> HostCost:
    """Return the host cost on ``chip``, without exposed seconds."""
    rate = chip.host_bytes_per_second
    transfers = tuple(
        HostTransfer(
            direction=DIRECTIONS[row.pop("to_host")],
            seconds=None if rate is None else row["bytes"] / rate,
            exposed_seconds=None,
            **row,
        )
        for row in figures.host_copies()
    )
    arguments, outputs, aliased = figures.memory(True)
    return HostCost(arguments, outputs, aliased, *figures.host_work(), transfers)


def achieved_seconds(host: HostCost, chip: Hardware) -> list[float]:
    """Return the seconds of one run of each transfer at achieved rates; 0 if no rate is known."""
    share = chip.achieved.links
    return [(row.seconds or 0.0) / share for row in host.transfers]


def with_exposed(host: HostCost, exposed: Iterable[float]) -> HostCost:
    """Return ``host`` with the exposed seconds of its transfers."""
    rows = zip(host.transfers, exposed, strict=True)
    known = [
        row if row.seconds is None else replace(row, exposed_seconds=seconds)
        for row, seconds in rows
    ]
    return replace(host, transfers=tuple(known))


def untimed(host: HostCost, chip: Hardware) -> list[UncountedOp]:
    """Return the transfers whose time is unknown."""
    reason = f"{chip.name} has no host_bytes_per_second"
    return [
        UncountedOp(
            row.direction, reason, "communication", row.count, row.total_bytes, row.location
        )
        for row in host.transfers
        if row.seconds is None
    ]
