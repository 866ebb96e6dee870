"""Strategies for a chain of products, such as the two matmuls of a transformer block.

``In[B, D] * W_in[D, F] * W_out[F, D] -> Out[B, D]`` is multiplied from the left. For each product a
strategy chooses how its dims are sharded (*cut*) while devices multiply. The sharding of an
intermediate array is not given: it is resharded from the cut of one product to that of the next.
Communication and computation of one product overlap; those of different products do not.

With ``search`` the shardings of operands without axes are chosen too. The first operand and the
output then get equal shardings where they have the same dims, as blocks in sequence need.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from shardcore._core import AxisRef, Mesh
from shardcore.bounded import items
from shardcore.calculus.collective_time import TimeOptions
from shardcore.calculus.contraction import Contraction, names
from shardcore.calculus.matmul import (
    dtypes_of,
    known_sizes,
    possible_cuts,
    price,
)
from shardcore.calculus.mistakes import mistake
from shardcore.calculus.notation import NamedArray
from shardcore.calculus.plan import (
    Cut,
    Pricing,
    Stage,
    arrays_of,
    layout_in,
    layout_of,
    summed_axes,
)
from shardcore.calculus.reshard import Layout, Step, ways
from shardcore.calculus.strategy import Strategy, rounded
from shardcore.calculus.topology import Topology
from shardcore.errors import CalculusError

ChainStrategy = Strategy
"""A strategy of several stages."""

MAX_COMBINATIONS = 300_000
"""If there are more combinations of cuts, an error is raised."""

MAX_COMPARED = 3000
"""If there are more combinations, no crossovers are computed."""

MAX_STRATEGIES = 1000
"""How many of the best strategies are returned by default."""


def chain_strategies(
    contractions: Sequence[Contraction],
    topology: Topology,
    options: TimeOptions | None = None,
    *,
    memory_limit: float | None = None,
    search: bool = False,
    limit: int | None = None,
) -> list[Strategy]:
    """Return the strategies for a chain of products, the best first.

    Arguments are as for :func:`shardcore.calculus.matmul_strategies`; ``limit`` is the largest
    number of strategies to return, by default :data:`MAX_STRATEGIES`.

    Raises:
        CalculusError: a size or an element type is unknown (``missing-size``), or there are too
            many combinations (``invalid-option``).
    """
    planner = Planner.of(contractions, topology, options, search=search)
    bound = topology.hardware.hbm_bytes if memory_limit is None else memory_limit
    count = MAX_STRATEGIES if limit is None else limit
    best = heapq.nsmallest(
        count, planner.plans(), key=lambda stages: planner.quick_rank(stages, bound)
    )
    priced = [
        price([each.stage for each in stages], planner.pricing, planner.sizes, bound)
        for stages in best
    ]
    return sorted(priced, key=lambda strategy: strategy.rank)


class _Priced(NamedTuple):
    stage: Stage
    total: float
    serial: float
    peak_bytes: float
    kept_bytes: float
    """Bytes of the stored right operand on a device."""
    steps: int


@dataclass
class Planner:
    """Combines the cuts of all products of a chain, for given sizes."""

    contractions: list[Contraction]
    topology: Topology
    pricing: Pricing
    search: bool
    sizes: Mapping[str, float]
    _ways: dict[tuple[object, ...], list[list[Step]]] = field(default_factory=dict)
    _best_ways: dict[tuple[object, ...], tuple[Step, ...]] = field(default_factory=dict)
    _stages: dict[tuple[object, ...], _Priced] = field(default_factory=dict)
    _fixed: dict[tuple[object, ...], Stage] = field(default_factory=dict)
    """Stages that do not depend on the sizes."""
    _choices: int = 1
    """The number of cuts of the last stage."""

    @staticmethod
    def of(
        contractions: Sequence[Contraction],
        topology: Topology,
        options: TimeOptions | None,
        *,
        search: bool,
    ) -> Planner:
        """A planner for the sizes of the arrays.

        Raises:
            CalculusError: a size or an element type is unknown (``missing-size``).
        """
        pricing = Pricing(topology, options or TimeOptions(), dtypes_of(contractions))
        sizes = known_sizes(contractions)
        return Planner(list(items(contractions, "contractions")), topology, pricing, search, sizes)

    def at(self, sizes: Mapping[str, float]) -> Planner:
        """Return this planner for other sizes of the dims."""
        return replace(self, sizes=sizes, _best_ways={}, _stages={})

    def best(self, limit: float) -> list[Stage]:
        """The best plan for a device with ``limit`` bytes.

        Raises:
            CalculusError: there are more than :data:`MAX_COMPARED` plans (``invalid-option``).
        """
        found = min(self.plans(MAX_COMPARED), key=lambda stages: self.quick_rank(stages, limit))
        return [each.stage for each in found]

    def plans(self, at_most: int = MAX_COMBINATIONS) -> Iterator[list[_Priced]]:
        """Every combination of cuts of the products, and of the first operand if that is free.

        Raises:
            CalculusError: there are more than ``at_most`` plans (``invalid-option``).
        """
        cuts = [
            [
                (number, cut)
                for number, cut in enumerate(possible_cuts(contraction, self.topology.mesh))
                if set(contraction.output.unreduced) <= set(summed_axes(contraction, cut))
            ]
            for contraction in self.contractions
        ]
        ends = list(self.ends())
        combinations = len(ends) * math.prod(map(len, cuts))
        if combinations > at_most:
            raise mistake(
                CalculusError,
                "invalid-option",
                f"there are {combinations} ways to cut these products",
                hint="join mesh axes that are used together, or give the shardings",
                text=" * ".join(str(each.operands[1]) for each in self.contractions),
                filename="<product>",
            )
        for first, last in ends:
            for chosen in itertools.product(*cuts):
                yield self.stages(chosen, first, last)

    def ends(self) -> Iterator[tuple[Layout | None, Layout]]:
        """The layouts of the first operand (``None``: as its cut) and of the output."""
        first, output = self.contractions[0].operands[0], self.contractions[-1].output
        if not self.search or first.axes:
            yield layout_of(first), layout_of(output)
        elif output.axes or sorted(names(first)) != sorted(names(output)):
            yield None, layout_of(output)
        else:
            for layout in layouts(first, self.topology.mesh):
                by_name = dict(zip(names(first), layout, strict=True))
                yield layout, tuple(by_name[name] for name in names(output))

    def stages(
        self, chosen: Sequence[tuple[int, Cut]], first: Layout | None, last: Layout
    ) -> list[_Priced]:
        """The stages for one combination."""
        found = []
        for index, (number, cut) in enumerate(chosen):
            following = chosen[index + 1] if index + 1 < len(chosen) else None
            key = (index, number, following[0] if following else last, index or first)
            if key not in self._stages:
                output = self.contractions[index].output
                target = layout_in(output, following[1]) if following else last
                stage = self._fixed.get(key)
                if stage is None:
                    self._choices = 1
                    stage = self.stage(index, cut, first, target)
                    if self._choices == 1:
                        self._fixed[key] = stage
                self._stages[key] = self.priced(stage)
            found.append(self._stages[key])
        return found

    def stage(self, index: int, cut: Cut, first: Layout | None, target: Layout) -> Stage:
        """Stage ``index`` with the cut ``cut``; its output is then resharded to ``target``."""
        contraction = self.contractions[index]
        left, right = contraction.operands
        ready = layout_in(left, cut)
        source = ready if index or first is None else first
        needed = layout_in(right, cut)
        kept = needed if self.search and not right.axes else layout_of(right)
        output = contraction.output
        summed = summed_axes(contraction, cut)
        return Stage(
            contraction,
            self.best_way(contraction, left, source, ready)
            + self.best_way(contraction, right, kept, needed),
            cut,
            self.best_way(
                contraction, output, layout_in(output, cut), target, summed, output.unreduced
            ),
            (source, kept),
            target,
        )

    def priced(self, stage: Stage) -> _Priced:
        """``stage`` with the figures that strategies are compared by."""
        right = stage.contraction.operands[1]
        comm = self.pricing.communication(stage, self.sizes)
        work = self.pricing.compute(stage, self.sizes)
        return _Priced(
            stage,
            max(comm, work),
            comm + work,
            self.pricing.peak_bytes(stage, self.sizes),
            self.pricing.local_bytes(right, stage.stored[1], self.sizes),
            len(stage.before) + len(stage.after),
        )

    def best_way(
        self,
        contraction: Contraction,
        array: NamedArray,
        source: Layout,
        target: Layout,
        unreduced: tuple[AxisRef, ...] = (),
        kept: tuple[AxisRef, ...] = (),
    ) -> tuple[Step, ...]:
        """The fastest steps from ``source`` to ``target``."""
        key = (array.name, source, target, unreduced)
        if key not in self._ways:
            self._ways[key] = ways(array.name or "", source, target, unreduced, kept)
        self._choices *= len(self._ways[key])
        if key not in self._best_ways:
            tensor = arrays_of(contraction)[array.name or ""]
            self._best_ways[key] = tuple(
                min(
                    self._ways[key],
                    key=lambda steps: sum(
                        self.pricing.step_seconds(step, tensor, self.sizes) for step in steps
                    ),
                )
            )
        return self._best_ways[key]

    def quick_rank(self, stages: Sequence[_Priced], limit: float) -> tuple[float, ...]:
        """:attr:`Strategy.rank`, but without the stored bytes of inputs and output."""
        kept = sum(stage.kept_bytes for stage in stages)
        peak = max(stage.peak_bytes + kept - stage.kept_bytes for stage in stages)
        return (
            float(peak > limit),
            rounded(sum(stage.total for stage in stages)),
            rounded(sum(stage.serial for stage in stages)),
            rounded(peak),
            sum(stage.steps for stage in stages),
        )


def layouts(array: NamedArray, mesh: Mesh) -> Iterator[Layout]:
    """Yield every layout of ``array`` over the axes of ``mesh``, axes of one dim in mesh order."""
    axes = [AxisRef(axis.name) for axis in mesh.axes if axis.size > 1]
    for places in itertools.product([None, *range(len(array.dims))], repeat=len(axes)):
        cut: list[tuple[AxisRef, ...]] = [() for _ in array.dims]
        for axis, place in zip(axes, places, strict=True):
            if place is not None:
                cut[place] = (*cut[place], axis)
        yield tuple(cut)
