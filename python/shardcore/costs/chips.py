"""The cost of one program on every known chip."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from shardcore.errors import ShardcoreError

if TYPE_CHECKING:
    from shardcore._core import Module, Result
    from shardcore.costs.program import Cost
    from shardcore.partition import Partitioned


@dataclass(frozen=True)
class ChipCost:
    """The cost on one chip."""

    hardware: str
    """The chip's name."""
    cost: Cost | None
    """The cost; ``None`` if the mesh does not fit a topology of such chips."""
    reason: str | None
    """Why there is no cost."""

    def record(self) -> dict[str, Any]:
        """Return the figures that depend on the chip, as plain data."""
        cost = self.cost
        return {
            "hardware": self.hardware,
            "reason": self.reason,
            "hbm_bytes": None if cost is None else cost.hardware.hbm_bytes,
            "fits": None if cost is None else cost.fits,
            "compute_seconds": None if cost is None else cost.compute_seconds,
            "comm_seconds": None if cost is None else cost.comm_seconds,
            "step_seconds": None if cost is None else cost.step_seconds,
            "step_seconds_lower": None if cost is None else cost.step_seconds_lower,
            "step_seconds_upper": None if cost is None else cost.step_seconds_upper,
        }


def on_every_chip(
    program: Module | Result | Partitioned, policy: str = "xla", **options: Any
) -> tuple[ChipCost, ...]:
    """Return the cost of ``program`` on every chip; it is partitioned once for each compiler.

    Args:
        program, policy: as for :func:`shardcore.cost`.
        **options: those of :func:`shardcore.cost`; ``hardware_file`` adds the chips in it.

    Raises:
        PartitionError, ShardcoreError: as for :func:`shardcore.cost`, except that a mesh need not
            fit the topology of every chip.
    """
    from shardcore.calculus.hardware import hardware, hardware_names
    from shardcore.costs import cost
    from shardcore.costs.compilers import compiler_of
    from shardcore.partition.counted import local_program

    file = options.get("hardware_file")
    names = hardware_names(file)

    @cache
    def local(compiler: str) -> Partitioned:
        return local_program(program, policy, options.get("keep_ports", False), compiler=compiler)

    def of(name: str) -> Cost:
        compiler = compiler_of(hardware(name, file), options.get("compiler"))
        return cost(local(compiler), name, **options)

    rows = tuple(_rows(names, of))
    if all(row.cost is None for row in rows):
        # The error is in the options, so it is the same for all chips.
        of(names[0])
    return rows


def _rows(names: list[str], cost: Callable[[str], Cost]) -> Iterator[ChipCost]:
    for name in names:
        try:
            yield ChipCost(name, cost(name), None)
        except ShardcoreError as error:
            yield ChipCost(name, None, error.message)
