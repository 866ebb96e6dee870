"""Stages of a pipeline, searched together with the shardings of a stage.

For each number of stages that divides the devices, layouts of a stage on its share of them are
evaluated. Of the best of each kind over each mesh the layers are timed, on a program with fewer
layers where there is one, and cut into stages for each schedule and number of micro-batches, unless
no such pipeline can be faster than the best so far. Memory is that of the stages of these; how much
the whole batch would take without stages says nothing of it. The pipeline of the best is then
computed on the whole program.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

from shardcore._core import Mesh
from shardcore.bounded import items, shown
from shardcore.costs.links import links
from shardcore.errors import Diagnostic, PlanError
from shardcore.pipeline import Layers, Part, Pipeline
from shardcore.pipeline.cuts import seconds
from shardcore.pipeline.layers import find_layers
from shardcore.pipeline.search import PipelineSearch, links_of, tasks_of
from shardcore.plan import bounds
from shardcore.plan.answer import Plan
from shardcore.plan.keeping import without_stages
from shardcore.plan.meshes import meshes, parts_of
from shardcore.plan.objective import Wanted
from shardcore.plan.placement import Placement
from shardcore.plan.planner import Planner
from shardcore.plan.program import plain
from shardcore.plan.reading import Reading
from shardcore.plan.stage_policies import StagePolicies
from shardcore.plan.staged import Sharded, Staged, alternative, without
from shardcore.units import format_bytes, format_seconds

MOST_STAGES = 32
"""More stages than that are tried only where they are asked for."""
_LARGEST = 1 << 12
_MOST_MICRO_BATCHES = 256
_TURNS = (2, 4, 8)
"""The chunks a stage that are tried."""
_WITHOUT_SHARE = 0.3
"""The part of the time in which shardings without stages are planned."""
_SHARDINGS_SHARE = 0.6
"""The part of the time that is left then in which shardings of stages are found."""
_SEARCH_SHARE = 0.6
"""The part of that of a number of stages in which shardings are evaluated."""
_FINAL_SHARE = 0.1
"""The part of the time that is left for what is found at last."""
_LEAST_SECONDS = 1e-3
_LEAST_TRIALS = 6
"""The shardings of a stage whose layers are timed however late it is."""
_SLACK = 1 - 1e-9
_MOST_FINAL = 4
"""The plans whose pipelines are computed on the whole program, at most."""
_PLACED = ("topology", "mapping", "slices")
"""Options that say where a mesh of all devices lies."""
_NEAR = 1.15
"""Pipelines that take this many times as long as the best are not among the alternatives."""


class StagesPlanner:
    """Plans stages and shardings of one program on a number of devices."""

    def __init__(
        self,
        reading: Reading,
        wanted: Wanted,
        devices: int,
        stages: tuple[int, ...] | None,
    ) -> None:
        """Prepare; ``wanted`` is what a plan without stages is for, and ``stages`` are the numbers
        of them to choose from, ``None`` for all that divide ``devices``."""
        self.reading, self.wanted, self._limits = reading, wanted, wanted.limits
        self._stages = stages
        self._devices = devices
        self._slices = parts_of(devices, wanted.chip, wanted.links())
        self._links = links_of(wanted.chip, self._over_all)
        self._best: dict[tuple[int, str, bool], Staged] = {}
        self.most = math.inf
        self._layers: float = math.inf
        self.tried = 0
        self._least = math.inf
        """The least memory of the pipelines that were computed."""
        self._policies = StagePolicies(self)
        self._is_cut_short = False
        """Whether there was no time for all shardings of stages."""

    @property
    def _over_all(self) -> dict[str, Any]:
        """The options for meshes of all devices."""
        options = {k: v for k, v in self.wanted.options.items() if k not in _PLACED}
        if self.wanted.chip.is_torus and self._slices > 1:
            options["slices"] = self._slices
        return options

    def plan(self) -> Plan:
        """Return the best plan, with or without stages.

        Raises:
            PlanError: nothing that was found fits (``does-not-fit``), or there are no layers
                (``no-layers``).
        """
        wanted = self.wanted
        counts = list(self._counts())
        whole: Plan | None = None
        refused: PlanError | None = None
        if self._stages is None or 1 in self._stages:
            share = _WITHOUT_SHARE if counts else 1.0
            timed = replace(wanted, seconds=wanted.seconds * share)
            if counts and wanted.minimize == "time":
                # It is compared with stages by what overlaps, too.
                timed = replace(timed, minimize="step")
            try:
                whole = without_stages(self.reading, timed)
                self.most = whole.cost.step_seconds
            except PlanError as error:
                if error.code != "does-not-fit":
                    raise
                refused = error
        stopped = "done"
        try:
            refused = self._search(counts) or refused
        except KeyboardInterrupt:
            if whole is None and not self._best:
                raise
            stopped = "interrupted"
        if (self.left <= 0 or self._is_cut_short) and stopped == "done":
            stopped = "seconds"
        return self._chosen(whole, stopped, refused)

    def _search(self, counts: Sequence[int]) -> PlanError | None:
        """Find pipelines of each of ``counts`` stages; return why one of them has none."""
        refused: PlanError | None = None
        found: list[Sharded] = []
        end = self.left * _SHARDINGS_SHARE
        for at, count in enumerate(counts):
            self.report("shardings", at / len(counts))
            share = (end - self.wanted.seconds + self.left) / (len(counts) - at)
            try:
                for each in self._sharded(count, max(share, _LEAST_SECONDS)):
                    # What the first takes says which others are not worth their time.
                    if each.stages != (found[-1].stages if found else 1):
                        self._cut(each)
                    found.append(each)
            except PlanError as error:
                if error.code not in ("does-not-fit", "no-mesh"):
                    raise
                refused = refused or error
        found.sort(key=lambda each: each.estimate)
        for at, each in enumerate(found):
            if self.left < self.wanted.seconds * _FINAL_SHARE and self._best:
                break
            self.report("stages", at / len(found))
            self._cut(each)
        self._policies.search(found)
        return refused

    @property
    def left(self) -> float:
        """Seconds that are left."""
        return self.wanted.seconds - (time.monotonic() - self.reading.start)

    def _counts(self) -> Iterator[int]:
        """The numbers of stages above 1 that are tried: those that divide the devices, in which
        stages lie in slices, or on several whole ones."""
        given = self._stages
        for count in range(2, (max(given) if given else MOST_STAGES) + 1):
            if self._devices % count or (given is not None and count not in given):
                continue
            if self._slices % count == 0 or count % self._slices == 0:
                yield count

    def _wanted_for(self, stages: int, seconds: float) -> Wanted:
        """What a plan of the shardings of one of ``stages`` is for.

        Raises:
            PlanError: none can fit (``does-not-fit``).
        """
        wanted = self.wanted
        options = self._over_all
        if wanted.chip.is_torus:
            options["slices"] = max(self._slices // stages, 1)
        module = self.reading.program.given.module
        devices = self._devices // stages
        over = meshes(module, None, devices, wanted.chip, links(wanted.chip, options))
        least = bounds.least_bytes(self.reading.ports, over) / stages
        if least > wanted.limit:
            raise _too_large(least, wanted.limit)
        return replace(
            wanted,
            meshes=tuple(over),
            limit=math.inf,
            options=options,
            seconds=max(seconds, _LEAST_SECONDS),
            progress=None,
        )

    def _sharded(self, stages: int, seconds: float) -> Iterator[Sharded]:
        """Yield shardings of one of ``stages``, with layers.

        Raises:
            PlanError: no sharding fits (``does-not-fit``), or there are no layers (``no-layers``).
        """
        reading = self.reading
        is_best = reading.alone.compute_seconds / self._devices >= self.most
        if is_best or stages > self._layers:
            return
        start = time.monotonic()
        wanted = self._wanted_for(stages, seconds * _SEARCH_SHARE)
        planner = Planner(reading, wanted, start)
        finalists = planner.finalists()
        self._is_cut_short |= time.monotonic() > start + seconds * _SEARCH_SHARE
        for count, trial in enumerate(finalists):
            if count >= _LEAST_TRIALS and time.monotonic() > start + seconds:
                self._is_cut_short = True
                return
            # Micro-batches take no less than the whole batch.
            most = self.most * _NEAR * self._policies.longer
            if trial.step() / stages >= most:
                return
            layers = planner.layers(trial)
            self._layers = len(layers.layers)
            if stages > self._layers:
                return
            estimate = self._estimate(layers, stages)
            if estimate < most:
                yield Sharded(planner, trial, stages, layers, estimate, wanted.options)

    def _estimate(self, layers: Layers, stages: int) -> float:
        """Seconds of a step if nothing but the first micro-batch were waited for, with chunks;
        infinite where parameters do not fit."""
        whole = _all(layers)
        held = (whole.parameter_bytes + whole.gradient_bytes) / stages + layers.rest.parameter_bytes
        if held > self.wanted.limit:
            return math.inf
        return min(
            seconds(_all(layers.split(count, once=layers.are_prepared)), count)
            / stages
            * (1 + (stages - 1) / count / max(_TURNS))
            for count in self._batches(layers)
        )

    def _batches(self, layers: Layers) -> list[int]:
        """The numbers of micro-batches that divide the batch of a device, the most first."""
        batch, fewest = layers.batch or 1, self._limits.micro_batch
        most = min(batch, _MOST_MICRO_BATCHES)
        return [n for n in range(most, 0, -1) if batch % n == 0 and batch // n >= fewest] or [1]

    def _cut(self, of: Sharded) -> None:
        """Keep the best pipeline of shardings, if it is the best of its kind and stages."""
        most = self.most * _NEAR
        if of.estimate >= most:
            return
        search = self.searched(of.layers, of.trial.mesh, of.stages, most)
        if search.best is None:
            return
        self.take(Staged(of.planner, of.trial, search.best))

    def take(self, found: Staged) -> None:
        """Keep ``found`` if it is the best of its kind and stages."""
        key = found.found.stages, found.kind, found.setting is None
        known, step = self._best.get(key), found.found.step_seconds
        if known is None or step < known.found.step_seconds:
            self._best[key] = found
        self.most = min(self.most, step)

    def searched(
        self, layers: Layers, mesh: Mesh, stages: int, most: float, limit: float | None = None
    ) -> PipelineSearch:
        """All pipelines of ``stages`` for ``layers`` that may take less than ``most`` seconds."""
        search = PipelineSearch(layers, limit or self.wanted.limit, self._links, mesh)
        batches = self._batches(layers)
        search.add_fastest(tasks_of([stages], batches, self._limits.schedules, _TURNS), most)
        self.tried += search.tried
        self._least = min(self._least, search.least or math.inf)
        return search

    def _chosen(self, whole: Plan | None, stopped: str, refused: PlanError | None) -> Plan:
        """The best, of which the pipeline is computed on the whole program.

        Raises:
            PlanError: nothing fits.
        """
        ranked = sorted(self._best.values(), key=lambda each: each.found.step_seconds)
        chosen: Plan | None = None
        step = math.inf if whole is None else whole.cost.step_seconds
        exact: list[Staged] = []
        for each in ranked[:_MOST_FINAL]:
            if each.found.step_seconds >= step * _SLACK:
                break
            ranked = ranked[1:]
            plan = self._plan_of(each)
            pipeline = self._pipeline(plan, each.found.stages, step)
            # What is slower on the whole program is no alternative: it is not known how slow.
            if pipeline is not None and pipeline.best.step_seconds < step:
                chosen, step = self._staged(plan, pipeline, stopped), pipeline.best.step_seconds
                exact.append(replace(each, found=pipeline.best))
        if chosen is None:
            if whole is None:
                raise refused or _none_fits(self._least, self.wanted.limit)
            chosen = whole
        found = [alternative(each, step) for each in (*exact[:-1], *ranked)]
        if whole is not None and chosen is not whole:
            found.append(without(whole, step))
        found.sort(key=lambda each: each.figures.step_seconds or math.inf)
        return replace(chosen, alternatives=(*found, *chosen.alternatives))

    def _plan_of(self, each: Staged) -> Plan:
        if each.setting is None:
            return each.planner.plan_of(each.trial)
        return self._policies.plan_of(each)

    def _pipeline(self, plan: Plan, stages: int, most: float) -> Pipeline | None:
        """The pipeline of ``plan``, on the whole program; ``None`` if none of less than ``most``
        seconds fits."""
        layers = find_layers(plain(plan.session), self.wanted.chip, **plan.cost_options)
        search = self.searched(layers, plan.mesh, stages, most)
        return None if search.best is None else search.answer(1)

    def _staged(self, plan: Plan, pipeline: Pipeline, stopped: str) -> Plan:
        return replace(
            plan,
            pipeline=pipeline,
            placement=Placement.of(
                self.wanted.links().topology(
                    Mesh({"stage": pipeline.best.stages, **plan.mesh.shape})
                )
            ),
            limit=self.wanted.limit,
            bound=self.reading.alone.compute_seconds / self._devices,
            alternatives=(),
            evaluations=plan.evaluations + self.tried,
            stopped=stopped,
        )

    def report(self, what: str, fraction: float) -> None:
        """Report the best so far."""
        if self.wanted.progress is not None:
            best = "nothing fits yet" if self.most == math.inf else format_seconds(self.most)
            self.wanted.progress(f"{best}, {what}", fraction)


def counts(given: str | int | Iterable[int]) -> tuple[int, ...] | None:
    """Return the numbers of stages that ``given`` says; ``None`` for any.

    Raises:
        ValueError: it is something else.
    """
    if given == "any":
        return None
    listed = [given] if isinstance(given, int) else items(given, "numbers of stages")
    found = tuple(each for each in listed if type(each) is int and 1 <= each <= _LARGEST)
    if not found or len(found) < len(listed):
        raise ValueError(f'stages are "any" or numbers from 1 on, not {shown(given)}')
    return found


def _all(layers: Layers) -> Part:
    return reduce(Part.__add__, layers.layers, layers.before + layers.after)


def _none_fits(least: float, limit: float) -> PlanError:
    message = f"no pipeline that was found fits into the {format_bytes(limit)} of a device"
    if least < math.inf:
        message += f"; the least takes {format_bytes(least)}"
    return PlanError(Diagnostic("does-not-fit", message, "give more devices, memory or seconds"))


def _too_large(least: float, limit: float) -> PlanError:
    message = (
        f"the arguments alone take {format_bytes(least)} of a device of each stage, which has "
        f"{format_bytes(limit)}"
    )
    return PlanError(Diagnostic("does-not-fit", message, "give more devices or memory"))
