"""Which figures of a chip the step time depends on, and how much each widens the interval."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from shardcore.calculus.hardware import hardware as find_hardware

if TYPE_CHECKING:
    from shardcore._core import Module, Result
    from shardcore.calculus.hardware import Hardware
    from shardcore.costs.program import Cost
    from shardcore.partition import Partitioned

MEASURED_BY = {
    "products": "a large product of matrices",
    "sustained": "a step of many chips, minutes long",
    "convolutions": "a convolution of the program's sizes",
    "grouped": "a grouped product of the program's sizes",
    "kernels": "the custom call by itself",
    "vector_flops": "exponentials of an array that fits the cache",
    "memory": "the sum of two large arrays",
    "scattered": "the transpose of a large array",
    "op_seconds": "a hundred small ops, one after the other",
    "sort_flops": "a sort of the program's sizes",
    "links": "a gather of 1 GiB within a node or slice",
    "switch_reductions": "an all-reduce of 1 GiB within a node",
    "network": "an all-reduce of 1 GiB between nodes or slices",
    "chunk_bytes": "an all-reduce of 16 MiB",
    "collective_seconds": "an all-reduce of 1 KiB",
    "contention": "a product beside a collective that does not wait for it",
}
"""The achieved figures, each with what measures it."""

_TIMES = ("op_seconds", "collective_seconds", "chunk_bytes", "contention")
"""Figures that lengthen a step as they grow; the others are rates."""

_STEP = 0.95
"""The factor by which a figure is made worse."""

_HALVED = 0.75
"""If this part of the squared error is removed, the error is halved."""

_LEAST = 0.005
"""Figures with less influence are not listed."""


@dataclass(frozen=True)
class Term:
    """A figure of the chip that the step time depends on."""

    figure: str
    """One of :data:`MEASURED_BY`."""
    value: float
    slope: float
    """By how many percent the step gets longer if the figure gets one percent worse."""
    share: float
    """The figure's part of the squared width of the interval, if all figures are equally uncertain
    and independent."""
    measured_by: str
    """What would measure the figure."""
    source: str
    """The source of the figure."""


@dataclass(frozen=True)
class TimeExplained:
    """The step time, and the figures that it depends on."""

    cost: Cost
    terms: tuple[Term, ...]
    """The figures, the most important first."""

    @property
    def halving(self) -> tuple[str, ...]:
        """The fewest figures that halve the width of the interval if they are known exactly."""
        chosen, left = [], 1.0
        for term in self.terms:
            if left <= 1 - _HALVED:
                break
            chosen.append(term.figure)
            left -= term.share
        return tuple(chosen)

    def record(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "hardware": self.cost.hardware.name,
            "step_seconds": self.cost.step_seconds,
            "step_seconds_lower": self.cost.step_seconds_lower,
            "confidence": self.cost.confidence.record(),
            "terms": [asdict(term) for term in self.terms],
            "halving": list(self.halving),
        }


def explain_time(
    program: Module | Result | Partitioned,
    hardware: str | Hardware = "tpu-v5p",
    policy: str = "xla",
    **options: Any,
) -> TimeExplained:
    """Return the figures that the step time depends on: each is made 5 % worse on its own, and the
    step is costed again.

    Args:
        program, hardware, policy, **options: as for :func:`shardcore.cost`.

    Raises:
        ShardcoreError, ValueError: as for :func:`shardcore.cost`.
    """
    from shardcore.costs import cost
    from shardcore.costs.compilers import compiler_of
    from shardcore.partition.counted import local_program

    file = options.pop("hardware_file", None)
    chip = find_hardware(hardware, file) if isinstance(hardware, str) else hardware
    compiler = compiler_of(chip, options.get("compiler"))
    ports = options.get("keep_ports", False)
    local = local_program(program, policy, ports, compiler=compiler)
    found = cost(local, chip, **options)
    slopes = {}
    for name, worse in _worse(chip):
        longer = cost(local, worse, **options).step_seconds
        if found.step_seconds > 0 and longer > 0:
            slopes[name] = math.log(longer / found.step_seconds) / -math.log(_STEP)
    square = sum(slope * slope for slope in slopes.values())
    source = chip.source.get("achieved", chip.source.get("default", "not said"))
    terms = [
        Term(name, _value(chip, name), slope, slope**2 / square, MEASURED_BY[name], source)
        for name, slope in slopes.items()
        if slope > _LEAST
    ]
    return TimeExplained(found, tuple(sorted(terms, key=lambda term: -term.slope)))


def _value(chip: Hardware, name: str) -> float:
    """The figure ``name``; for products the one for bf16."""
    shares = chip.achieved
    found = shares.products_of("bf16") if name == "products" else getattr(shares, name)
    return float(found)


def _worse(chip: Hardware) -> Iterator[tuple[str, Hardware]]:
    """Copies of the chip, each with one figure made worse."""
    shares = chip.achieved
    for name in MEASURED_BY:
        values: dict[str, Any] = {name: _value(chip, name) * _STEP}
        if name == "products":
            known = {"bf16": shares.products_of("bf16"), **shares.products}
            worse = {dtype: share * _STEP for dtype, share in known.items()}
            values = {name: MappingProxyType(worse)}
        elif name in _TIMES:
            values = {name: _value(chip, name) / _STEP}
        yield name, replace(chip, achieved=replace(shares, **values))
