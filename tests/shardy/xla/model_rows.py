"""The cost of a model beside what XLA says of it, figure by figure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cache

import shardcore

from tests.shardy.programs import registry
from tests.shardy.xla.cases import CASES as PROGRAMS
from tests.shardy.xla.compare import FREE, HARDWARE, PEAK_WITHIN, Row
from tests.shardy.xla.measured import Measured, measured
from tests.shardy.xla.models import catalog

WITHIN = 0.05
# A kind that makes up less of all that is sent does not count by itself.
SMALL = 0.01


def names() -> list[str]:
    """The models, and the smaller programs that are held against XLA op by op."""
    return [*catalog.names(), *PROGRAMS]


def text(name: str) -> str:
    return catalog.text(name) if name in catalog.names() else registry.text(name)


@cache
def cost(name: str) -> shardcore.Cost:
    return (
        shardcore.Module.parse(text(name))
        .propagate(legalize_chlo=True)
        .cost(HARDWARE, compiler="none")
    )


@cache
def rows(name: str) -> dict[str, Row]:
    """Every figure of the model called `name`; of collectives those kinds that either has."""
    return {row.figure: row for row in _rows(cost(name), measured(name, text(name)))}


@cache
def peak(name: str) -> Row:
    """The peak memory of the model called `name`."""
    mine, theirs = cost(name).xla_cpu_peak_bytes, measured(name, text(name)).peak
    return Row("xla_cpu_peak_bytes", mine, theirs, abs(mine - theirs) <= PEAK_WITHIN * theirs)


def _rows(ours: shardcore.Cost, xla: Measured) -> Iterator[Row]:
    for figure in ("argument", "output", "alias"):
        mine, theirs = getattr(ours, f"{figure}_bytes"), getattr(xla, figure)
        yield Row(f"{figure}_bytes", mine, theirs, mine == theirs)
    yield _row("flops", ours.flops_counting_loops_once, xla.flops)
    mine, theirs = sent_by_kind(ours), as_all_reduce(xla.spmd)
    total = sum(theirs.values())
    yield _row("sent_bytes", sum(mine.values()), total)
    for kind in sorted(mine.keys() | theirs.keys()):
        row = _row(kind, mine[kind], theirs[kind])
        is_small = max(row.ours, row.xla) <= SMALL * total
        yield Row(kind, row.ours, row.xla, row.agrees or is_small)


def sent_by_kind(cost: shardcore.Cost) -> Counter[str]:
    """Bytes that a device sends."""
    sent: Counter[str] = Counter()
    for one in cost.collectives:
        if one.kind not in FREE:
            sent[one.kind] += one.total_wire_bytes
    return as_all_reduce(sent)


def as_all_reduce(sent: dict[str, float]) -> Counter[str]:
    """The same with a reduce-scatter as hosts write it: an all-reduce and a slice."""
    counts: Counter[str] = Counter()
    for name, sent_bytes in sent.items():
        kind = name.replace("-", "_")
        is_scatter = kind == "reduce_scatter"
        counts["all_reduce" if is_scatter else kind] += sent_bytes * (2 if is_scatter else 1)
    return counts


def _row(figure: str, ours: float, xla: float) -> Row:
    return Row(figure, ours, xla, abs(ours - xla) <= WITHIN * xla)
