"""Searches for stages, chunks, micro-batches and a schedule for the layers of a program."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple

from shardcore._core import AxisRef, Mesh, Module, Result
from shardcore.bounded import items, shown
from shardcore.errors import Diagnostic, PlanError
from shardcore.pipeline.answer import Candidate, Pipeline
from shardcore.pipeline.cuts import Cut, chunk, cut, neighbours, parts, seconds
from shardcore.pipeline.layers import Layers, Part, find_layers
from shardcore.pipeline.orders import KEEPING, SPLIT
from shardcore.pipeline.schedules import LOOPED, SCHEDULES, check, run
from shardcore.units import format_bytes, format_bytes_up

if TYPE_CHECKING:
    from shardcore.calculus.hardware import Hardware
    from shardcore.costs.links import Links, Transfer

STAGES = (2, 4, 8, 16)
"""The numbers of stages to try."""
TURNS = (2, 4)
"""The numbers of chunks per stage to try, for schedules with several."""
_MOST_MICRO_BATCHES = 64
_MOST_TASKS = 100_000
_STAGE = "stage"
"""The mesh axis of stages, the slowest axis of the mesh."""


def find(
    program: Module | Result,
    hardware: str | Hardware = "tpu-v5p",
    *,
    stages: int | Iterable[int] | None = None,
    micro_batches: int | Iterable[int] | None = None,
    schedules: str | Iterable[str] | None = None,
    chunks: int | Iterable[int] | None = None,
    memory: float | str | None = None,
    progress: Callable[[str, float], None] | None = None,
    **options: Any,
) -> Pipeline:
    """Return the pipeline of a training step with the least step time times devices that fits into
    memory.

    Each stage runs on as many devices as the program's mesh has, sharded as the program is: stages
    are a new axis, and the work of one device is divided among them. Times are those of the whole
    batch, divided among micro-batches; parameters are gathered for each micro-batch.

    Args:
        program: a training step, which is propagated first, or a propagation result.
        hardware: the chip.
        stages: the numbers of stages to try; by default 2, 4, 8 and 16.
        micro_batches: the numbers of micro-batches to try; by default powers of two that divide the
            batch of a device.
        schedules: some of :data:`SCHEDULES`; by default all.
        chunks: the numbers of chunks per stage to try, for schedules with several; by default 2 and
            4.
        memory: bytes of memory of a device, as a number or as ``"16GiB"``; by default the chip's.
        progress: called with the current step and the fraction done.
        options: those of :func:`shardcore.cost`.

    Raises:
        PlanError: there are no layers (``no-layers``), no such schedule, or none for these numbers
            (``schedule``), or nothing fits (``does-not-fit``).
        ShardcoreError: as for :func:`shardcore.cost`.
    """
    layers = find_layers(program, hardware, **options)
    limit = _limit(memory, layers.cost.hardware)
    search = PipelineSearch(layers, limit, links_of(layers.cost.hardware, options), _mesh(program))
    names = _list(schedules, SCHEDULES)
    turns = _list(chunks, TURNS)
    counts = _list(stages, [n for n in STAGES if n <= len(layers.layers)] or [len(layers.layers)])
    batches = _list(micro_batches, _divisors(layers.batch))
    for name in names:
        check(name, 1, 1, 1)
    tasks = list(tasks_of(counts, batches, names, turns))
    for at, task in enumerate(tasks):
        if progress is not None:
            progress("pipelines", at / len(tasks))
        search.add(*task)
    return search.answer()


def tasks_of(
    stages: Iterable[int], batches: Iterable[int], names: Iterable[str], turns: Iterable[int]
) -> Iterator[tuple[str, int, int, int]]:
    """Yield what :meth:`PipelineSearch.add` takes, for each of these."""
    for count, batch, name in itertools.product(stages, batches, names):
        for turn in turns if name in LOOPED else (1,):
            yield name, count, turn, batch


class _Prepared(NamedTuple):
    """A pipeline whose timeline is not known yet."""

    name: str
    stages: int
    turns: int
    micro_batches: int
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
        self._cuts: dict[tuple[int, int, int, bool], Cut] = {}
        self.least: float | None = None
        """The least memory of what was computed."""
        self.tried = 0
        self._refused: PlanError | None = None

    def add(
        self, name: str, stages: int, turns: int, micro_batches: int, cut: Cut | None = None
    ) -> None:
        """Compute a pipeline, and keep it if it is the best of its kind that fits; without ``cut``
        with the layers of chunks that suit it best."""
        found = self._prepared(name, stages, turns, micro_batches, cut)
        known = self._best.get((name, stages))
        if found is not None and (known is None or found.bound < known.step_seconds):
            self._keep(found)

    def add_fastest(
        self, tasks: Iterable[tuple[str, int, int, int]], most: float, near: float = 1.0
    ) -> None:
        """Compute pipelines, each what :meth:`add` takes, those first whose bound is shortest,
        until no other can take less than ``most`` seconds, or the best that fits times ``near``."""
        prepared = [found for task in tasks if (found := self._prepared(*task)) is not None]
        for found in sorted(prepared, key=lambda each: each.bound):
            best = self.best
            if found.bound >= min(most, math.inf if best is None else best.step_seconds * near):
                break
            if not self._is_too_large(found):
                self._keep(found)

    def _prepared(
        self, name: str, stages: int, turns: int, micro_batches: int, given: Cut | None = None
    ) -> _Prepared | None:
        """A pipeline with its cut; ``None`` if there is none."""
        try:
            self._check(stages * turns if given is None else 1, micro_batches)
            check(name, stages * turns, stages, micro_batches)
        except PlanError as error:
            self._refused = self._refused or error
            return None
        key = stages, turns, micro_batches, turns == 1 and name in KEEPING
        found = given or self._cuts.get(key)
        if found is None:
            found = self._cuts[key] = self._cut(*key)
        send = self._send(stages, micro_batches)
        bound = self._bound(name, found, stages, micro_batches, send.achieved)
        return _Prepared(name, stages, turns, micro_batches, found, send, bound)

    def _cut(self, stages: int, turns: int, micro_batches: int, keeps: bool) -> Cut:
        """The cut whose slowest chunk is the fastest, within the memory if there is such a cut."""

        def fits(number: int, part: Part) -> bool:
            if turns > 1:
                return True
            live = micro_batches if keeps else min(stages - number, micro_batches)
            kept = live * part.activation_bytes / micro_batches
            return self._held(part, stages, micro_batches) + kept <= self._limit

        chunks = stages * turns
        # What takes least memory is said where nothing fits.
        layers = self._layers.split(micro_batches)
        found = cut(layers, chunks, micro_batches, fits) or cut(
            layers, chunks, micro_batches, lambda *_: True
        )
        assert found is not None
        return found

    def _is_too_large(self, of: _Prepared) -> bool:
        """Whether stages take more than the limit before any time is known."""
        found = parts(self._layers, of.sizes)
        for stage in range(of.stages):
            own = reduce(Part.__add__, found[stage :: of.stages])
            live = of.micro_batches if of.name in KEEPING else 1
            kept = live * own.activation_bytes / of.micro_batches / of.turns
            kept *= of.turns if of.name in KEEPING else 1
            if self._held(own, of.stages, of.micro_batches) + kept > self._limit:
                return True
        return False

    def _keep(self, of: _Prepared) -> None:
        best = self._candidate(of.name, of.stages, of.turns, of.micro_batches, of.sizes, of.send)
        key = of.name, of.stages
        known = self._best.get(key)
        self.least = min(best.peak_bytes, self.least or best.peak_bytes)
        if best.peak_bytes <= self._limit and (
            known is None or best.step_seconds < known.step_seconds
        ):
            self._best[key] = best

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
                    f"take {', '.join(map(str, _divisors(batch)))}",
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
        """``found`` with layers moved between chunks as long as that makes it faster; the number of
        evaluated cuts is limited by :data:`_MOST_TASKS`.
        """
        kind = found.schedule, found.stages, found.turns, found.micro_batches
        left = _MOST_TASKS // len(found.timeline.tasks)
        while True:
            better = found
            for sizes in neighbours(found.cut)[: max(left, 0)]:
                left -= 1
                each = self._candidate(*kind, sizes, found.send)
                if each.peak_bytes <= self._limit and each.step_seconds < better.step_seconds:
                    better = each
            if better.step_seconds >= found.step_seconds * (1 - 1e-6):
                return found
            found = better

    def _candidate(
        self, name: str, stages: int, turns: int, micro_batches: int, sizes: Cut, send: Transfer
    ) -> Candidate:
        self.tried += 1
        layers = self._layers.split(micro_batches)
        found = parts(layers, sizes)
        chunks = [chunk(part, micro_batches, send.achieved) for part in found]
        of_stages = [reduce(Part.__add__, found[stage::stages]) for stage in range(stages)]
        rest = layers.rest.seconds / stages
        timeline = run(
            name, chunks, stages, micro_batches, [part.update + rest for part in of_stages]
        )
        memory = tuple(
            self._held(part, stages, micro_batches) + kept
            for part, kept in zip(of_stages, timeline.peak_activations, strict=True)
        )
        devices = stages * self._own
        return Candidate(name, stages, turns, micro_batches, sizes, timeline, memory, send, devices)

    def _held(self, part: Part, stages: int, micro_batches: int) -> float:
        """Bytes of a stage besides the kept activations: parameters, gradients, temporaries, and
        receive buffers for both sides. Gathered parameters are as large for each micro-batch.
        """
        layers = self._layers
        received = 2 * layers.boundary_bytes if stages > 1 else 0
        working = max(layers.working_bytes - layers.gathered_bytes, 0)
        work = (working + received) / micro_batches + layers.gathered_bytes
        return part.parameter_bytes + part.gradient_bytes + layers.rest.parameter_bytes + work

    def _bound(self, name: str, sizes: Cut, stages: int, micro_batches: int, send: float) -> float:
        """Seconds of the step, at least: each stage computes what it has, after the first
        micro-batch has come through those before it, and before the last one has gone back."""
        found = parts(self._layers.split(micro_batches), sizes)
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


def _mesh(program: Module | Result) -> Mesh | None:
    """The program's mesh of several devices, if it has one."""
    module = program if isinstance(program, Module) else program.module
    own = [mesh for mesh in module.meshes.values() if mesh.num_devices > 1]
    return own[0] if own else None


def _limit(memory: float | str | None, hardware: Hardware) -> float:
    from shardcore.units import parse_bytes

    if memory is None:
        return hardware.hbm_bytes
    found = parse_bytes(int(memory) if isinstance(memory, float) else memory)
    if not found:
        raise ValueError(f"expected a number of bytes, 16GiB, got {shown(memory)}")
    return float(found)


def _divisors(batch: int | None) -> list[int]:
    """The powers of two that divide ``batch``."""
    found, count = [1], 2
    while batch is not None and batch % count == 0 and count <= _MOST_MICRO_BATCHES:
        found.append(count)
        count *= 2
    return found


def _list(given: Any, default: Sequence[Any]) -> list[Any]:
    if given is None:
        return list(default)
    return [given] if isinstance(given, (str, int)) else list(items(given, "choices"))
