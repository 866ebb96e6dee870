"""The sizes at which the best strategy changes, and at which a strategy changes its bound.

One dim is varied while the others stay; sizes need not be whole here, so that rounding of blocks
does not hide where the lines cross.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from shardcore.calculus.collective_time import TimeOptions
from shardcore.calculus.contraction import Contraction
from shardcore.calculus.matmul import dtypes_of, known_sizes, matmul_plans, price
from shardcore.calculus.plan import Pricing, Stage
from shardcore.calculus.strategy import Strategy
from shardcore.calculus.topology import Topology

MAX_SIZE = 2.0**24
"""Sizes are tried from 1 to this, in steps of a factor of 2."""

_PRECISION = 1e-9


class Crossover(NamedTuple):
    """A size of one dim at which something changes."""

    dim: str
    size: float
    below: str
    """What holds for smaller sizes."""
    above: str
    """What holds for larger sizes."""

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
    """Return the sizes at which the best strategy changes, each dim varied by itself.

    Strategies that take equally long, overlapped and serially, count as one. ``plans`` restricts
    the strategies that are compared.

    Raises:
        CalculusError: a size or an element type is not known (``missing-size``).
    """
    pricing = Pricing(topology, options or TimeOptions(), dtypes_of([contraction]))
    limit = topology.hardware.hbm_bytes if memory_limit is None else memory_limit
    stages = list(plans or matmul_plans(contraction, topology.mesh, search=search))
    sizes = known_sizes([contraction])

    def figures(index: int, at: Mapping[str, float]) -> tuple[float, ...]:
        stage = stages[index]
        comm, work = pricing.communication(stage, at), pricing.compute(stage, at)
        numbers = (max(comm, work), comm + work)
        unfit = pricing.peak_bytes(stage, at) > limit
        steps = len(stage.before) + len(stage.after)
        return (float(unfit), *(float(f"{value:.10e}") for value in numbers), steps, index)

    names = _names(stages, pricing, sizes)

    def best(dim: str) -> Callable[[float], str]:
        def at(size: float) -> str:
            point: dict[str, float] = {**sizes, dim: size}
            return names[min(range(len(stages)), key=lambda index: figures(index, point))]

        return at

    return [Crossover(dim, *change) for dim in contraction.dims for change in _changes(best(dim))]


def bound_changes(
    strategy: Strategy, topology: Topology, options: TimeOptions | None = None
) -> list[Crossover]:
    """Return the sizes at which communication and computation of ``strategy`` take equally long."""
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


def _names(stages: Sequence[Stage], pricing: Pricing, sizes: Mapping[str, float]) -> list[str]:
    return [price([stage], pricing, sizes, math.inf).name for stage in stages]


def _changes(label: Callable[[float], str]) -> Iterator[tuple[float, str, str]]:
    """Yield every size at which ``label`` changes, with the labels on both sides."""
    low, below = 1.0, label(1.0)
    while low < MAX_SIZE:
        high = low * 2
        end = label(high)
        start = low
        # Several changes may lie between two sizes that are tried.
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
