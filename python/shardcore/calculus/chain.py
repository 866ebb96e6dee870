"""Strategies for products one after the other, such as the two matmuls of a transformer block.

``In[B, D] * W_in[D, F] * W_out[F, D] -> Out[B, D]`` is multiplied from the left. Each product is
cut in some way while devices multiply, and the array in between goes from one cut to the next
straight away: it is nowhere given. Communication and computation of one product overlap; those of
different products do not.

With ``search`` operands without any axis are cut as is best. The first operand and the output are
then cut alike where they have the same dims, so that blocks can follow each other.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from shardcore._core import Mesh
from shardcore.calculus.collective_time import TimeOptions
from shardcore.calculus.contraction import Contraction, names
from shardcore.calculus.matmul import (
    dtypes_of,
    elsewhere,
    known_sizes,
    possible_cuts,
    price,
    stored_bytes,
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

MAX_COMBINATIONS = 2_000_000
"""More combinations of cuts than this are refused."""


def chain_strategies(
    contractions: Sequence[Contraction],
    topology: Topology,
    options: TimeOptions | None = None,
    *,
    memory_limit: float | None = None,
    search: bool = False,
    limit: int = 20,
) -> list[Strategy]:
    """Return the best ``limit`` strategies for products one after the other.

    Arguments as for :func:`shardcore.calculus.matmul_strategies`.

    Raises:
        CalculusError: a size or an element type is not known (``missing-size``), or there are too
            many combinations (``invalid-option``).
    """
    planner = _Planner(
        list(contractions),
        topology,
        Pricing(topology, options or TimeOptions(), dtypes_of(contractions)),
        search,
        known_sizes(contractions),
    )
    bound = topology.hardware.hbm_bytes if memory_limit is None else memory_limit
    best = heapq.nsmallest(
        limit, planner.plans(), key=lambda stages: planner.quick_rank(stages, bound)
    )
    priced = [price(stages, planner.pricing, planner.sizes, bound) for stages in best]
    return sorted(priced, key=lambda strategy: strategy.rank)


@dataclass
class _Planner:
    contractions: list[Contraction]
    topology: Topology
    pricing: Pricing
    search: bool
    sizes: dict[str, int]
    _ways: dict[tuple[object, ...], tuple[Step, ...]] = field(default_factory=dict)

    def plans(self) -> Iterator[list[Stage]]:
        """Every combination of cuts of the products, and of the first operand where it is free."""
        cuts = [
            list(possible_cuts(contraction, self.topology.mesh))
            for contraction in self.contractions
        ]
        ends = list(self.ends())
        combinations = len(ends)
        for each in cuts:
            combinations *= len(each)
        if combinations > MAX_COMBINATIONS:
            raise mistake(
                CalculusError,
                "invalid-option",
                f"there are {combinations} ways to cut these products",
                hint="join mesh axes that are used together, or give the shardings",
            )
        for first, last in ends:
            for chosen in itertools.product(*cuts):
                yield self.stages(chosen, first, last)

    def ends(self) -> Iterator[tuple[Layout | None, Layout]]:
        """How the first operand (``None``: as it is multiplied) and the output may be cut."""
        first, output = self.contractions[0].operands[0], self.contractions[-1].output
        if not self.search or first.axes:
            yield layout_of(first), layout_of(output)
        elif output.axes or sorted(names(first)) != sorted(names(output)):
            yield None, layout_of(output)
        else:
            for layout in layouts(first, self.topology.mesh):
                by_name = dict(zip(names(first), layout, strict=True))
                yield layout, tuple(by_name[name] for name in names(output))

    def stages(self, chosen: Sequence[Cut], first: Layout | None, last: Layout) -> list[Stage]:
        """The stages for one combination."""
        found: list[Stage] = []
        for index, (contraction, cut) in enumerate(zip(self.contractions, chosen, strict=True)):
            left, right = contraction.operands
            before: tuple[Step, ...] = ()
            ready = layout_in(left, cut)
            source = ready if index or first is None else first
            if index == 0:
                before = self.best_way(contraction, left, source, ready)
            needed = layout_in(right, cut)
            kept = needed if self.search and not right.axes else layout_of(right)
            before += self.best_way(contraction, right, kept, needed)
            output = contraction.output
            target = last
            if index + 1 < len(chosen):
                target = layout_in(output, chosen[index + 1])
            summed = summed_axes(contraction, cut)
            after = self.best_way(contraction, output, layout_in(output, cut), target, summed)
            found.append(Stage(contraction, before, cut, after, (source, kept), target))
        return found

    def best_way(
        self,
        contraction: Contraction,
        array: NamedArray,
        source: Layout,
        target: Layout,
        unreduced: tuple[str, ...] = (),
    ) -> tuple[Step, ...]:
        """The fastest steps from ``source`` to ``target``."""
        key = (array.name, source, target, unreduced)
        if key not in self._ways:
            tensor = arrays_of(contraction)[array.name or ""]
            self._ways[key] = tuple(
                min(
                    ways(array.name or "", source, target, unreduced),
                    key=lambda steps: sum(
                        self.pricing.step_seconds(step, tensor, self.sizes) for step in steps
                    ),
                )
            )
        return self._ways[key]

    def quick_rank(self, stages: Sequence[Stage], limit: float) -> tuple[float, ...]:
        """What :attr:`Strategy.rank` will be, without building the strategy."""
        sizes = self.sizes
        total = serial = peak = 0.0
        for index, stage in enumerate(stages):
            comm = self.pricing.communication(stage, sizes)
            work = self.pricing.compute(stage, sizes)
            total, serial = total + max(comm, work), serial + comm + work
            own = self.pricing.peak_bytes(stage, sizes)
            peak = max(peak, own + elsewhere(stages, index, self.pricing, sizes))
        peak = max(peak, stored_bytes(stages, self.pricing, sizes))
        numbers = [rounded(value) for value in (total, serial, peak)]
        count = sum(len(stage.before) + len(stage.after) for stage in stages)
        return (float(peak > limit), *numbers, count)


def layouts(array: NamedArray, mesh: Mesh) -> Iterator[Layout]:
    """Yield every way to cut ``array`` by the axes of ``mesh``, axes of one dim in mesh order."""
    axes = [axis.name for axis in mesh.axes if axis.size > 1]
    for places in itertools.product([None, *range(len(array.dims))], repeat=len(axes)):
        cut: list[tuple[str, ...]] = [() for _ in array.dims]
        for axis, place in zip(axes, places, strict=True):
            if place is not None:
                cut[place] = (*cut[place], axis)
        yield tuple(cut)
