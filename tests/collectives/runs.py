"""The runs of ``measured.toml``, and what they take by the figures of their chips."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from statistics import median
from typing import Any

from shardcore import AxisRef, Mesh
from shardcore.calculus import Hardware, hardware
from shardcore.calculus.collective_time import wire_bytes
from shardcore.costs.links import Links, Transfer

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


@dataclass(frozen=True)
class Point:
    """A measured collective of one size."""

    run: str
    chip: Hardware
    op: str
    devices: int
    bytes: int
    """As nccl-tests counts them: what a device has before an all-to-all, else the larger of what
    it has before and after."""
    seconds: float
    held_out: bool

    @property
    def gathered_bytes(self) -> int:
        """V of the calculus."""
        return self.bytes * (self.devices if self.op == "all_to_all" else 1)

    def transfer(self) -> Transfer:
        """The collective by the figures of the chip."""
        mesh = Mesh({"x": self.devices})
        return Links(self.chip).cost(self.op, mesh, (AxisRef("x"),), self.gathered_bytes)

    @property
    def sent(self) -> int:
        """What a device sends around a ring: nccl-tests relate the bandwidth of the bus to that."""
        return wire_bytes(self.op, self.gathered_bytes, self.devices)

    @property
    def error(self) -> float:
        """Ours over the measured time, less 1."""
        return self.transfer().achieved / self.seconds - 1


def points() -> list[Point]:
    """All measured collectives, in the order of the file."""
    table = tomllib.loads(Path(__file__).with_name("measured.toml").read_text(encoding="utf-8"))
    return [point for name, run in table.items() for point in _points(name, run)]


def _points(name: str, run: Mapping[str, Any]) -> Iterator[Point]:
    chips = Path(str(files("shardcore.bench").joinpath("chips.toml")))
    chip = hardware(run["hardware"], chips)
    if "node" in run:
        part = chip.node_bytes_per_second * run["node"] / chip.node_size
        chip = replace(chip, node_size=run["node"], node_bytes_per_second=part)
    for size, value in run.get("rows", run.get("busbw")):
        point = Point(name, chip, run["op"], run["devices"], size, 1.0, run.get("held_out", False))
        seconds = value * 1e-6 if "rows" in run else point.sent / value * 1e-9
        yield replace(point, seconds=seconds)


def misses(some: Iterable[Point]) -> tuple[float, float, float]:
    """The median error of these, the one that 9 of 10 do not exceed, and the median with signs."""
    errors = [point.error for point in some]
    sizes = sorted(map(abs, errors))
    return median(sizes), sizes[-(-9 * len(sizes) // 10) - 1], median(errors)
