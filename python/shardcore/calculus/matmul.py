"""Every strategy for a sharded product, with its time and memory, the best first.

A strategy is given by its *cut*: how the dims are sharded while devices multiply. Each mesh axis
shards one dim, or none. The cut determines which operands are gathered or sliced, and which sums
are computed. All cuts are listed, so every valid sequence of collectives is found, except those
that move data twice.

For ``A[I, J_X] * B[J, K] -> C[I, K]`` they include: ``X`` shards nothing (AllGather of A); ``X``
shards J (slice B, multiply, AllReduce of C); ``X`` shards I (AllToAll of A, AllGather of C); ...

Times: ``total_seconds`` overlaps communication and computation entirely, ``serial_seconds`` not at
all; ``chunked_seconds`` is a collective matmul of as many chunks as the largest group has devices,
in which all but the first chunk overlap.

Source: "How to Scale Your Model", chapter 3, "Computation With Sharded Arrays"; for collective
matmul, Wang et al., ASPLOS 2023.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence

from shardcore._core import AxisRef, Mesh
from shardcore.calculus.collective_time import TimeOptions
from shardcore.calculus.contraction import Contraction, cuts
from shardcore.calculus.mistakes import mistake
from shardcore.calculus.notation import NamedArray
from shardcore.calculus.plan import (
    Cut,
    Pricing,
    Stage,
    arrays_of,
    layout_in,
    layout_of,
    layout_text,
    summed_axes,
)
from shardcore.calculus.reshard import Layout, ways
from shardcore.calculus.strategy import Strategy, TimedStep, rounded
from shardcore.calculus.topology import Topology
from shardcore.errors import CalculusError
from shardcore.expected import expect_all

MAX_CUTS = 5000
"""If there are more cuts, axes that the product does not mention shard nothing."""


def matmul_strategies(
    contraction: Contraction,
    topology: Topology,
    options: TimeOptions | None = None,
    *,
    memory_limit: float | None = None,
    search: bool = False,
) -> list[Strategy]:
    """Return every strategy for ``contraction``, the best first.

    Args:
        contraction: the product, with sizes and element types.
        topology: the mesh, mapped to chips.
        options: how times are counted.
        memory_limit: bytes of memory of a device, by default the chip's; strategies that need more
            come last, with ``fits=False``.
        search: whether to choose also the shardings of operands without axes.

    Raises:
        CalculusError: a size or an element type is unknown (``missing-size``).
    """
    sizes = known_sizes([contraction])
    pricing = Pricing(topology, options or TimeOptions(), dtypes_of([contraction]))
    limit = topology.hardware.hbm_bytes if memory_limit is None else memory_limit
    best: dict[tuple[object, ...], Strategy] = {}
    for stage in matmul_plans(contraction, topology.mesh, search=search):
        strategy = price([stage], pricing, sizes, limit)
        # Orders of axes within a dim differ only in permutes: keep the best order.
        key = (
            frozenset((dim, frozenset(axes)) for dim, axes in stage.cut.items()),
            tuple(
                (step.op, step.tensor, frozenset(step.axes), step.dim)
                for step in (*stage.before, *stage.after)
                if step.op != "permute"
            ),
        )
        if key not in best or strategy.rank < best[key].rank:
            best[key] = strategy
    return sorted(best.values(), key=lambda strategy: strategy.rank)


def best_strategies(strategies: Sequence[Strategy]) -> list[Strategy]:
    """Return the strategies that equal the first in time and number of collectives."""
    strategies = expect_all(strategies, Strategy, "strategies")
    if not strategies:
        return []
    first = strategies[0]
    return [
        each
        for each in strategies
        if each.fits == first.fits
        and rounded(each.total_seconds) == rounded(first.total_seconds)
        and rounded(each.serial_seconds) == rounded(first.serial_seconds)
    ]


def matmul_plans(contraction: Contraction, mesh: Mesh, *, search: bool = False) -> list[Stage]:
    """Return every strategy for ``contraction``, without costs and in no particular order."""
    left, right = contraction.operands
    output = contraction.output
    target = layout_of(output)
    found = []
    for cut in possible_cuts(contraction, mesh):
        befores = []
        stored: list[Layout] = []
        for array in (left, right):
            ready = layout_in(array, cut)
            source = ready if search and not array.axes else layout_of(array)
            stored.append(source)
            befores.append(ways(array.name or "", source, ready))
        product = layout_in(output, cut)
        summed = summed_axes(contraction, cut)
        if not set(output.unreduced) <= set(summed):
            continue
        afters = ways(output.name or "", product, target, summed, output.unreduced)
        for first, second, after in itertools.product(*befores, afters):
            found.append(
                Stage(
                    contraction,
                    (*first, *second),
                    cut,
                    tuple(after),
                    (stored[0], stored[1]),
                    target,
                )
            )
    return found


def possible_cuts(contraction: Contraction, mesh: Mesh) -> Iterator[Cut]:
    """Yield every cut of a product: each axis shards one dim or none.

    Axes of one dim are in mesh order, or in the order of a given array.
    """
    given = [cuts(array) for array in (*contraction.operands, contraction.output)]
    mentioned = {axis for each in given for axes in each.values() for axis in axes}
    axes = [AxisRef(axis.name) for axis in mesh.axes if axis.size > 1]
    dims = contraction.dims
    if (len(dims) + 1) ** len(axes) > MAX_CUTS:
        axes = [axis for axis in axes if axis in mentioned]
    if (len(dims) + 1) ** len(axes) > 20 * MAX_CUTS:
        raise mistake(
            CalculusError,
            "invalid-option",
            f"{len(axes)} axes may cut {len(dims)} dims in too many ways",
            hint="join mesh axes that are used together",
            text=str(mesh),
            filename="<mesh>",
        )
    for places in itertools.product([None, *dims], repeat=len(axes)):
        chosen: dict[str, list[AxisRef]] = {}
        for axis, dim in zip(axes, places, strict=True):
            if dim is not None:
                chosen.setdefault(dim, []).append(axis)
        orders = [
            _orders(cut, [each.get(dim, ()) for each in given]) for dim, cut in chosen.items()
        ]
        for combination in itertools.product(*orders):
            yield dict(zip(chosen, combination, strict=True))


def _orders(axes: list[AxisRef], given: Sequence[tuple[AxisRef, ...]]) -> list[tuple[AxisRef, ...]]:
    found = {tuple(axes): None}
    for order in given:
        first = [axis for axis in order if axis in axes]
        order = (*first, *(axis for axis in axes if axis not in first))
        found[order] = None
    return list(found)


def price(
    stages: Sequence[Stage], pricing: Pricing, sizes: Mapping[str, float], limit: float
) -> Strategy:
    """Return ``stages`` with all their figures for ``sizes``."""
    timed: list[TimedStep] = []
    comm = compute = total = chunked = peak = hbm = flops = 0.0
    stored = stored_bytes(stages, pricing, sizes)
    for index, stage in enumerate(stages):
        own = pricing.communication(stage, sizes)
        work = pricing.compute(stage, sizes)
        comm, compute, total = comm + own, compute + work, total + max(own, work)
        chunked += max(own, work) + min(own, work) / _chunks(stage, pricing)
        flops += pricing.flops(stage, sizes)
        peak = max(
            peak,
            pricing.peak_bytes(stage, sizes) + other_stages_bytes(stages, index, pricing, sizes),
        )
        hbm += (
            _read_and_written(stage, pricing, sizes)
            / pricing.topology.hardware.hbm_bytes_per_second
        )
        timed += _timed(stage, index, pricing, sizes)
    peak = max(peak, stored)
    return Strategy(
        tuple(stages),
        tuple(timed),
        comm,
        compute,
        total,
        comm + compute,
        chunked,
        flops,
        peak,
        stored,
        hbm,
        peak <= limit,
    )


def stored_bytes(stages: Sequence[Stage], pricing: Pricing, sizes: Mapping[str, float]) -> float:
    """Bytes of the inputs and the output on a device, in their given shardings."""
    first, last = stages[0], stages[-1]
    count = pricing.local_bytes(first.contraction.operands[0], first.stored[0], sizes)
    for stage in stages:
        count += pricing.local_bytes(stage.contraction.operands[1], stage.stored[1], sizes)
    return count + pricing.local_bytes(last.contraction.output, last.result, sizes)


def other_stages_bytes(
    stages: Sequence[Stage], index: int, pricing: Pricing, sizes: Mapping[str, float]
) -> float:
    """Bytes of the right operands of other stages on a device, during stage ``index``."""
    return sum(
        pricing.local_bytes(stage.contraction.operands[1], stage.stored[1], sizes)
        for other, stage in enumerate(stages)
        if other != index
    )


def known_sizes(contractions: Sequence[Contraction]) -> dict[str, int]:
    """The size of every dim.

    Raises:
        CalculusError: a size or an element type is unknown (``missing-size``).
    """
    sizes: dict[str, int] = {}
    for contraction in expect_all(contractions, Contraction, "products"):
        for array in (*contraction.operands, contraction.output):
            for dim, size in zip(array.dims, array.shape, strict=True):
                sizes[dim.name or ""] = size
    return sizes


def dtypes_of(contractions: Sequence[Contraction]) -> dict[str, str]:
    """The element type of every array.

    Raises:
        CalculusError: one is unknown (``missing-size``).
    """
    found: dict[str, str] = {}
    for contraction in expect_all(contractions, Contraction, "products"):
        for array in (*contraction.operands, contraction.output):
            if array.dtype is None:
                raise mistake(
                    CalculusError,
                    "missing-size",
                    f"the element type of {array} is not known",
                    hint="give --dtype bf16",
                    text=str(array),
                )
            found[array.name or ""] = array.dtype
    return found


def _timed(
    stage: Stage, index: int, pricing: Pricing, sizes: Mapping[str, float]
) -> Iterator[TimedStep]:
    arrays = arrays_of(stage.contraction)
    for when, steps in (("before", stage.before), ("after", stage.after)):
        for step in steps:
            array = arrays[step.tensor]
            num_bytes = 0.0 if step.op == "slice" else pricing.step_bytes(step, array, sizes)
            seconds = pricing.step_seconds(step, array, sizes)
            rates = pricing.rates(step.op, step.axes)
            is_latency = rates.latency_seconds > num_bytes * rates.seconds_per_byte
            yield TimedStep(
                step,
                when,
                f"{layout_text(array, step.before, step.before_unreduced)} -> "
                f"{layout_text(array, step.after, step.after_unreduced)}",
                None if step.dim is None else array.dims[step.dim].name,
                seconds,
                num_bytes,
                "free" if seconds == 0 else "latency" if is_latency else "bandwidth",
                index,
            )


def _chunks(stage: Stage, pricing: Pricing) -> int:
    steps = [step for step in (*stage.before, *stage.after) if step.op != "slice"]
    return max((pricing.devices(step.axes) for step in steps), default=1)


def _read_and_written(stage: Stage, pricing: Pricing, sizes: Mapping[str, float]) -> float:
    arrays: tuple[NamedArray, ...] = (*stage.contraction.operands, stage.contraction.output)
    return sum(
        pricing.local_bytes(array, layout, sizes)
        for array, layout in zip(arrays, stage.cut_layouts, strict=True)
    )
