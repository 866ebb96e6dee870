"""The sizes at which the best strategy changes, and at which a strategy changes its bound.

One dim varies while the others are fixed. Sizes are real numbers here, so that rounding of blocks
does not shift the crossovers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from shardcore.bounded import items
from shardcore.calculus.chain import Planner
from shardcore.calculus.collective_time import TimeOptions
from shardcore.calculus.contraction import Contraction
from shardcore.calculus.matmul import (
    dtypes_of,
    known_sizes,
    matmul_plans,
    other_stages_bytes,
    price,
)
from shardcore.calculus.plan import Pricing, Stage
from shardcore.calculus.strategy import Strategy, rounded
from shardcore.calculus.topology import Topology
from shardcore.expected import expect

MAX_SIZE = 2.0**24
"""Sizes from 1 to this are tried, in steps of a factor of 2."""

_PRECISION = 1e-9
_ROUNDS = 6
"""How many times further strategies are searched next to the crossovers found so far."""


class Crossover(NamedTuple):
    """A size of one dim at which something changes."""

    dim: str
    size: float
    below: str
    """The best strategy, or the bound, for smaller sizes."""
    above: str
    """The best strategy, or the bound, for larger sizes."""

    def record(self) -> dict[str, Any]:
        """Return it as plain data."""
        return self._asdict()


def crossovers(
    contraction: Contraction,
    topology: Topology,
    options: TimeOptions | None = None,
    *,
    memory_limit: float | None = None,
    search: bool = False,
    plans: Sequence[Stage] | None = None,
) -> list[Crossover]:
    """Return the sizes at which the best strategy changes, as each dim varies on its own.

    Strategies with equal times, overlapped and serial, count as one. The compared strategies are
    ``plans``, or those that are best at one of the tried sizes: powers of 2 (of 4 for chains, of 16
    if the shardings of inputs are searched), and sizes next to the crossovers found with these.

    Raises:
        CalculusError: a size or an element type is unknown (``missing-size``).
    """
    pricing = Pricing(topology, options or TimeOptions(), dtypes_of([contraction]))
    limit = topology.hardware.hbm_bytes if memory_limit is None else memory_limit
    sizes = known_sizes([contraction])
    if plans is not None:
        return _best_changes([[stage] for stage in plans], pricing, sizes, limit)
    stages = matmul_plans(contraction, topology.mesh, search=search)

    def best(at: Mapping[str, float]) -> list[Stage]:
        return [min(stages, key=lambda stage: _figures([stage], pricing, at, limit))]

    return _found_changes(best, pricing, sizes, limit, 2.0)


def chain_crossovers(
    contractions: Sequence[Contraction],
    topology: Topology,
    options: TimeOptions | None = None,
    *,
    memory_limit: float | None = None,
    search: bool = False,
) -> list[Crossover]:
    """Return the crossovers between strategies for a chain of products.

    Raises:
        CalculusError: a size or an element type is unknown (``missing-size``), or there are too
            many combinations (``invalid-option``).
    """
    contractions = list(items(contractions, "contractions"))
    planner = Planner.of(contractions, topology, options, search=search)
    limit = topology.hardware.hbm_bytes if memory_limit is None else memory_limit
    sizes = known_sizes(contractions)

    def best(at: Mapping[str, float]) -> list[Stage]:
        return planner.at(at).best(limit)

    return _found_changes(best, planner.pricing, sizes, limit, 16.0 if search else 4.0)


def _found_changes(
    best: Callable[[Mapping[str, float]], list[Stage]],
    pricing: Pricing,
    sizes: Mapping[str, int],
    limit: float,
    factor: float,
) -> list[Crossover]:
    """The sizes at which the result of ``best`` changes; tried sizes grow by ``factor``."""
    found: dict[object, list[Stage]] = {}

    def add(at: Mapping[str, float]) -> None:
        stages = best(at)
        found[tuple((each.before, tuple(each.cut.items()), each.after) for each in stages)] = stages

    add(sizes)
    for dim in sizes:
        size = 1.0
        while size <= MAX_SIZE:
            add({**sizes, dim: size})
            size *= factor
    changes: list[Crossover] = []
    seen: set[tuple[str, float]] = set()
    for _ in range(_ROUNDS):
        count = len(found)
        changes = _best_changes(list(found.values()), pricing, sizes, limit)
        for dim, size, *_ in changes:
            # A strategy that is best only between two tried sizes is also best next to a crossover.
            for near in (size * 0.99, size * 1.01):
                if (dim, near) not in seen:
                    seen.add((dim, near))
                    add({**sizes, dim: near})
        if len(found) == count:
            break
    return changes


def _figures(
    plan: Sequence[Stage], pricing: Pricing, at: Mapping[str, float], limit: float
) -> tuple[float, ...]:
    """The figures by which plans are compared, at sizes ``at``."""
    total = serial = 0.0
    is_unfit, steps = False, 0
    for number, stage in enumerate(plan):
        comm, work = pricing.communication(stage, at), pricing.compute(stage, at)
        total, serial = total + max(comm, work), serial + comm + work
        peak = pricing.peak_bytes(stage, at) + other_stages_bytes(plan, number, pricing, at)
        is_unfit = is_unfit or peak > limit
        steps += len(stage.before) + len(stage.after)
    return (float(is_unfit), rounded(total), rounded(serial), steps)


def _best_changes(
    plans: Sequence[Sequence[Stage]], pricing: Pricing, sizes: Mapping[str, int], limit: float
) -> list[Crossover]:
    """The sizes at which the best of ``plans`` changes."""
    names = [price(plan, pricing, sizes, math.inf).name for plan in plans]

    def best(dim: str) -> Callable[[float], str]:
        def at(size: float) -> str:
            point: dict[str, float] = {**sizes, dim: size}
            # Of equal plans the first, the same one at all sizes.
            ranks = (_figures(plan, pricing, point, limit) for plan in plans)
            return names[min(enumerate(ranks), key=lambda each: each[1])[0]]

        return at

    return [Crossover(dim, *change) for dim in sizes for change in _changes(best(dim))]


def bound_changes(
    strategy: Strategy, topology: Topology, options: TimeOptions | None = None
) -> list[Crossover]:
    """Return the sizes at which communication and computation of ``strategy`` take equal time."""
    expect(strategy, Strategy)
    contractions = [stage.contraction for stage in strategy.stages]
    pricing = Pricing(topology, options or TimeOptions(), dtypes_of(contractions))
    sizes = known_sizes(contractions)

    def bound(dim: str) -> Callable[[float], str]:
        def at(size: float) -> str:
            point: dict[str, float] = {**sizes, dim: size}
            comm = sum(pricing.communication(stage, point) for stage in strategy.stages)
            work = sum(pricing.compute(stage, point) for stage in strategy.stages)
            return "communication" if comm > work else "compute"

        return at

    return [Crossover(dim, *change) for dim in sizes for change in _changes(bound(dim))]


def _changes(label: Callable[[float], str]) -> Iterator[tuple[float, str, str]]:
    """Yield every size at which ``label`` changes, with the labels on both sides."""
    low, below = 1.0, label(1.0)
    while low < MAX_SIZE:
        high = low * 2
        end = label(high)
        start = low
        # There may be several changes between two tried sizes.
        for _ in range(4):
            if below == end:
                break
            left, right = start, high
            while right / left > 1 + _PRECISION:
                middle = math.sqrt(left * right)
                if label(middle) == below:
                    left = middle
                else:
                    right = middle
            above = label(right)
            yield right, below, above
            start, below = right, above
        low, below = high, end
