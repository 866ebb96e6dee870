"""Searches for stages, chunks, micro-batches and a schedule for the layers of a program."""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Iterable, Iterator, Mapping
from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple

from shardcore._core import AxisRef, Mesh
from shardcore.errors import Diagnostic, PlanError
from shardcore.pipeline.answer import Candidate, Pipeline, Setup
from shardcore.pipeline.cuts import Cut, chunk, cut, neighbours, parts, seconds
from shardcore.pipeline.layers import Layers
from shardcore.pipeline.orders import KEEPING, SPLIT
from shardcore.pipeline.part import Part
from shardcore.pipeline.schedules import LOOPED, check, run
from shardcore.units import format_bytes, format_bytes_up

if TYPE_CHECKING:
    from shardcore.calculus.hardware import Hardware
    from shardcore.costs.links import Links, Transfer

_MOST_MICRO_BATCHES = 64
_MOST_TASKS = 100_000
_STAGE = "stage"
"""The mesh axis of stages, the slowest axis of the mesh."""


def tasks_of(
    stages: Iterable[int], batches: Iterable[int], names: Iterable[str], turns: Iterable[int]
) -> Iterator[tuple[str, int, int, int]]:
    """Yield what :meth:`PipelineSearch.add` takes, for each of these."""
    for count, batch, name in itertools.product(stages, batches, names):
        for turn in turns if name in LOOPED else (1,):
            yield name, count, turn, batch


class _Prepared(NamedTuple):
    """A pipeline whose timeline is not known yet."""

    setup: Setup
    sizes: Cut
    send: Transfer
    bound: float
    """Seconds that no step is below."""


class PipelineSearch:
    """Pipelines for some layers, of which the best of each kind are kept."""

    def __init__(self, layers: Layers, limit: float, links: Links, mesh: Mesh | None) -> None:
        self._layers, self._limit, self._links = layers, limit, links
        self._sizes = dict(mesh.shape) if mesh is not None else {}
        self._own = mesh.num_devices if mesh is not None else 1
        self._best: dict[tuple[str, int], Candidate] = {}
        self._cuts: dict[tuple[int, int, int, bool, bool], Cut] = {}
        self.least: float | None = None
        """The least memory of what was computed."""
        self.tried = 0
        self._refused: PlanError | None = None

    def add(
        self,
        name: str,
        stages: int,
        turns: int,
        micro_batches: int,
        cut: Cut | None = None,
        once: bool | None = None,
    ) -> None:
        """Compute a pipeline, and keep it if it is the best of its kind that fits; without ``cut``
        with the layers of chunks that suit it best. Parameters are prepared ``once`` a step or for
        each micro-batch, by default once if that fits."""
        choices = self._choices(micro_batches) if once is None else (once,)
        for each in choices:
            found = self._prepared(Setup(name, stages, turns, micro_batches, each), cut)
            known = self._best.get((name, stages))
            if found is None or (known is not None and found.bound >= known.step_seconds):
                return
            if self._keep(found):
                return

    def _choices(self, micro_batches: int) -> tuple[bool, ...]:
        """Whether parameters are prepared once a step, the faster choice first."""
        return (True, False) if micro_batches > 1 and self._layers.are_prepared else (False,)

    def add_fastest(
        self, tasks: Iterable[tuple[str, int, int, int]], most: float, near: float = 1.0
    ) -> None:
        """Compute pipelines, each what :meth:`add` takes, those first whose bound is shortest,
        until no other can take less than ``most`` seconds, or the best that fits times ``near``."""
        queue: list[tuple[float, int, _Prepared]] = []
        count = itertools.count()

        def put(setup: Setup) -> None:
            found = self._prepared(setup)
            if found is not None:
                heapq.heappush(queue, (found.bound, next(count), found))

        for name, stages, turns, micro_batches in tasks:
            put(Setup(name, stages, turns, micro_batches, self._choices(micro_batches)[0]))
        while queue:
            found = heapq.heappop(queue)[-1]
            best = self.best
            if found.bound >= min(most, math.inf if best is None else best.step_seconds * near):
                break
            fits = not self._is_too_large(found) and self._keep(found)
            if not fits and found.setup.once:
                put(found.setup._replace(once=False))

    def _prepared(self, setup: Setup, given: Cut | None = None) -> _Prepared | None:
        """A pipeline with its cut; ``None`` if there is none."""
        name, stages, turns, micro_batches, once = setup
        try:
            self._check(stages * turns if given is None else 1, micro_batches)
            check(name, stages * turns, stages, micro_batches)
        except PlanError as error:
            self._refused = self._refused or error
            return None
        key = stages, turns, micro_batches, turns == 1 and name in KEEPING, once
        found = given or self._cuts.get(key)
        if found is None:
            found = self._cuts[key] = self._cut(setup)
        send = self._send(stages, micro_batches)
        return _Prepared(setup, found, send, self._bound(setup, found, send.achieved))

    def _cut(self, setup: Setup) -> Cut:
        """The cut whose slowest chunk is the fastest, within the memory if there is such a cut."""
        name, stages, turns, micro_batches, once = setup

        def fits(number: int, part: Part) -> bool:
            live = micro_batches if name in KEEPING else min(stages - number, micro_batches)
            kept = live * part.activation_bytes / micro_batches
            return self._held(part, setup) + kept <= self._limit

        chunks = stages * turns
        # What takes least memory is said where nothing fits.
        layers = self._layers.split(micro_batches, once=once)
        found = cut(layers, chunks, micro_batches, fits) if turns == 1 else None
        found = found or cut(layers, chunks, micro_batches)
        assert found is not None
        return found

    def _is_too_large(self, of: _Prepared) -> bool:
        """Whether stages take more than the limit before any time is known."""
        name, stages, turns, micro_batches, _ = of.setup
        found = parts(self._layers, of.sizes)
        for stage in range(stages):
            own = reduce(Part.__add__, found[stage::stages])
            live = micro_batches if name in KEEPING else 1
            kept = live * own.activation_bytes / micro_batches / turns
            kept *= turns if name in KEEPING else 1
            if self._held(own, of.setup) + kept > self._limit:
                return True
        return False

    def _keep(self, of: _Prepared) -> bool:
        """Compute a pipeline, and keep it if it is the best of its kind that fits; return whether
        it does."""
        best = self._candidate(of.setup, of.sizes, of.send)
        key = best.schedule, best.stages
        known = self._best.get(key)
        self.least = min(best.peak_bytes, self.least or best.peak_bytes)
        fits = best.peak_bytes <= self._limit
        if fits and (known is None or best.step_seconds < known.step_seconds):
            self._best[key] = best
        return fits

    def _check(self, chunks: int, micro_batches: int) -> None:
        """Check that there are enough layers and sequences."""
        batch, count = self._layers.batch, len(self._layers.layers)
        if chunks > count:
            raise PlanError(
                Diagnostic(
                    "schedule",
                    f"{count} layers are fewer than {chunks} chunks",
                    f"ask for at most {count} stages, with one chunk each",
                )
            )
        if batch is not None and batch % micro_batches:
            raise PlanError(
                Diagnostic(
                    "schedule",
                    f"{micro_batches} micro-batches do not divide the {batch} of the batch that "
                    "each device has",
                    f"take {', '.join(map(str, divisors(batch)))}",
                )
            )

    def answer(self, most: int | None = None) -> Pipeline:
        """Return the best of all, with the best of other kinds; only the ``most`` best are improved
        by other cuts.

        Raises:
            PlanError: as for :func:`find`.
        """
        cost = self._layers.cost
        if self._refused is not None and self.least is None:
            raise self._refused
        if not self._best:
            least, has = format_bytes_up(self.least or 0), format_bytes(self._limit)
            raise PlanError(
                Diagnostic(
                    "does-not-fit",
                    f"no pipeline that was found takes less than {least} of a device, which has "
                    f"{has}",
                    "ask for more stages or micro-batches, or give more memory",
                )
            )
        ranked = sorted(self._best.values(), key=lambda each: each.device_seconds)
        ranked[:most] = map(self._improved, ranked[:most])
        ranked.sort(key=lambda each: each.device_seconds)
        best = ranked[0]
        others: list[Candidate] = []
        for other in ranked[1:]:
            known = [best, *others]
            is_new = other.schedule not in {each.schedule for each in known}
            if is_new or other.stages not in {each.stages for each in known}:
                others.append(other)
        whole = (cost.step_seconds, float(cost.peak_bytes), self._own)
        return Pipeline(
            best, tuple(others), self._layers, cost.hardware, self._limit, whole, self.tried
        )

    def _improved(self, found: Candidate) -> Candidate:
        """``found`` with layers moved; where it prepares parameters once a step, or, if that is
        faster within the memory, for each micro-batch."""
        best = self._moved(found)
        other = self._prepared(found.setup._replace(once=False)) if found.setup.once else None
        if other is not None and other.bound < best.step_seconds:
            each = self._candidate(other.setup, other.sizes, other.send)
            if each.peak_bytes <= self._limit:
                each = self._moved(each)
                best = each if each.step_seconds < best.step_seconds else best
        return best

    def _moved(self, found: Candidate) -> Candidate:
        """``found`` with layers moved between chunks as long as that makes it faster; the number of
        evaluated cuts is limited by :data:`_MOST_TASKS`.
        """
        left = _MOST_TASKS // len(found.timeline.tasks)
        while True:
            better = found
            for sizes in neighbours(found.cut)[: max(left, 0)]:
                left -= 1
                each = self._candidate(found.setup, sizes, found.send)
                if each.peak_bytes <= self._limit and each.step_seconds < better.step_seconds:
                    better = each
            if better.step_seconds >= found.step_seconds * (1 - 1e-6):
                return found
            found = better

    def _candidate(self, setup: Setup, sizes: Cut, send: Transfer) -> Candidate:
        self.tried += 1
        name, stages, _, micro_batches, once = setup
        layers = self._layers.split(micro_batches, once=once)
        found = parts(layers, sizes)
        chunks = [chunk(part, micro_batches, send.achieved) for part in found]
        of_stages = [reduce(Part.__add__, found[stage::stages]) for stage in range(stages)]
        rest = layers.rest.seconds / stages
        timeline = run(
            name, chunks, stages, micro_batches, [part.update + rest for part in of_stages]
        )
        memory = tuple(
            self._held(part, setup) + kept
            for part, kept in zip(of_stages, timeline.peak_activations, strict=True)
        )
        return Candidate(*setup, sizes, timeline, memory, send, stages * self._own)

    def _held(self, part: Part, setup: Setup) -> float:
        """Bytes of a stage besides the kept activations: parameters, gradients, temporaries, and
        receive buffers for both sides. Gathered parameters are as large for each micro-batch; those
        of all layers are kept where they are prepared once.
        """
        layers = self._layers
        received = 2 * layers.boundary_bytes if setup.stages > 1 else 0
        working = max(layers.working_bytes - layers.gathered_bytes, 0)
        prepared = part.prepared_bytes if setup.once else layers.gathered_bytes
        work = (working + received) / setup.micro_batches + prepared
        return part.parameter_bytes + part.gradient_bytes + layers.rest.parameter_bytes + work

    def _bound(self, setup: Setup, sizes: Cut, send: float) -> float:
        """Seconds of the step, at least: each stage computes what it has, after the first
        micro-batch has come through those before it, and before the last one has gone back."""
        name, stages, _, micro_batches, once = setup
        found = parts(self._layers.split(micro_batches, once=once), sizes)
        first = [chunk(part, micro_batches, send) for part in found[:stages]]
        most = way = 0.0
        for stage, one in enumerate(first):
            own = found[stage::stages]
            busy = sum(seconds(part, micro_batches) for part in own)
            # Gradients of parameters may wait until the last one has gone back.
            late = sum(part.update for part in own) if name not in SPLIT else 0.0
            most = max(most, busy - late + way)
            way += one.forward + send
            if name not in SPLIT:
                way += one.backward_input + one.backward_weight + send
        return most

    @property
    def best(self) -> Candidate | None:
        """The fastest of what was found to fit."""
        return min(self._best.values(), key=lambda each: each.step_seconds, default=None)

    def _send(self, stages: int, micro_batches: int) -> Transfer:
        from shardcore.costs.build import NOTHING

        if stages == 1:
            return NOTHING
        mesh = Mesh({_STAGE: stages, **self._sizes})
        num_bytes = -(-self._layers.boundary_bytes // micro_batches)
        return self._links.cost("collective_permute", mesh, (AxisRef(_STAGE),), num_bytes)


def links_of(hardware: Hardware, options: Mapping[str, Any]) -> Links:
    """Return the links that stages send over, under options of :func:`shardcore.cost`."""
    from shardcore.costs.links import links

    # Where a mesh without stages lies says nothing of one with stages.
    placed = ("topology", "mapping")
    return links(hardware, {name: at for name, at in options.items() if name not in placed})


def divisors(batch: int | None) -> list[int]:
    """The powers of two that divide ``batch``."""
    found, count = [1], 2
    while batch is not None and batch % count == 0 and count <= _MOST_MICRO_BATCHES:
        found.append(count)
        count *= 2
    return found
