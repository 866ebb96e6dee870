"""shardcore's cost of a program beside what XLA says of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import pytest
import shardcore
from jax.sharding import AbstractMesh

from tests.shardy.programs import registry
from tests.shardy.programs.registry import Tree
from tests.shardy.xla import compiled
from tests.shardy.xla.measured import measure, measured

HARDWARE = "tpu-v5p"  # Nothing compared here depends on it, without its compiler.
FLOPS_WITHIN = 0.05
PEAK_WITHIN = 0.10

# XLA's pipeline for host devices writes an AllReduce and a slice; a slice alone moves nothing.
AS_ON_HOST = {"reduce_scatter": "all_reduce"}
FREE = {"all_slice"}


@dataclass(frozen=True)
class Row:
    """One figure of a program, ours and XLA's."""

    figure: str
    ours: float
    xla: float
    agrees: bool


@cache
def rows(name: str) -> dict[str, Row]:
    """Every figure of the program called ``name``; of collectives those kinds that either has."""
    return {row.figure: row for row in _rows(name, registry.text(name))}


def _rows(name: str, text: str) -> Iterator[Row]:
    ours = (
        shardcore.Module.parse(text).propagate(legalize_chlo=True).cost(HARDWARE, compiler="none")
    )
    xla = compiled.compiled(text)
    for figure in ("argument_bytes", "output_bytes", "alias_bytes"):
        mine, theirs = getattr(ours, figure), getattr(xla, figure)
        yield Row(figure, mine, theirs, mine == theirs)
    kept = measured(name, text)
    mine, theirs = ours.flops_counting_loops_once, kept.flops
    yield Row("flops", mine, theirs, _within(mine, theirs, FLOPS_WITHIN))
    # All-reduces that run as one hold all of their results: those passes are on.
    mine, theirs = ours.xla_cpu_peak_bytes, kept.peak
    yield Row("xla_cpu_peak_bytes", mine, theirs, _within(mine, theirs, PEAK_WITHIN))
    counts = Counter(
        AS_ON_HOST.get(one.kind, one.kind) for one in ours.collectives if one.kind not in FREE
    )
    for kind in sorted(counts.keys() | xla.counts().keys()):
        mine, theirs = counts[kind], xla.counts()[kind]
        yield Row(kind, mine, theirs, mine == theirs)


def _within(ours: float, xla: float, tolerance: float) -> bool:
    return abs(ours - xla) <= tolerance * xla


class PeakCase(NamedTuple):
    """A function whose peak is compared with XLA's, and its FLOPs if ``flops_within`` is given."""

    function: Callable[..., Any]
    arguments: Tree
    specs: Tree
    mesh: AbstractMesh = registry.mesh(data=8)
    within: float = PEAK_WITHIN
    flops_within: float | None = None


def check_peak(case: PeakCase) -> None:
    """Compare the peak of ``case`` with that of XLA for hosts."""
    text, cost = costed(case.function, case.mesh, case.arguments, case.specs)
    assert cost.xla_cpu_peak_bytes == pytest.approx(measure(text).peak, rel=case.within)
    if case.flops_within is not None:
        flops = pytest.approx(compiled.flops(text), rel=case.flops_within)
        assert cost.flops_counting_loops_once == flops


def costed(
    function: Callable[..., Any], on: AbstractMesh, arguments: Tree, specs: Tree
) -> tuple[str, shardcore.Cost]:
    """The text of ``function``, lowered for hosts, and its cost."""
    text = str(registry.lower(function, on, arguments, specs, platform="cpu").as_text())
    return text, shardcore.Module.parse(text).propagate(legalize_chlo=True).cost(
        HARDWARE, compiler="none"
    )
