"""From an existing plan to the one that was found: what is worth changing, in order.

Each change takes something of the new plan into the old one: the annotation of a target, the
schedule, the number of micro-batches, or all of mesh, stages and annotations where these differ. In
each round every change that is left is tried on top of those before, and the best is taken.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from shardcore._core import Mesh
from shardcore.bounded import shown
from shardcore.errors import Diagnostic, PlanError, ShardcoreError
from shardcore.pipeline.layers import find_layers
from shardcore.pipeline.search import PipelineSearch, links_of
from shardcore.plan.program import Program, plain

if TYPE_CHECKING:
    from shardcore.pipeline.layers import Layers
    from shardcore.plan.answer import Plan

_WORTH = 1e-3
"""Changes that save less of the step are not taken alone."""
_MOST = 12
"""The changes that are told apart; the rest is one."""


@dataclass(frozen=True)
class Change:
    """One change, on top of those before."""

    what: str
    step_seconds: float | None
    """Seconds of the step with it; ``None`` where there is no such pipeline."""
    peak_bytes: float | None
    fits: bool

    def record(self) -> dict[str, Any]:
        """Return it as plain data."""
        return dict(vars(self))


@dataclass(frozen=True)
class _State:
    """What a plan says."""

    mesh: Mesh
    specs: tuple[tuple[str, str], ...]
    stages: int = 1
    schedule: str | None = None
    chunks: int = 1
    micro_batches: int = 1
    once: bool | None = None


class Changes:
    """Tries changes between two plans of one program."""

    def __init__(self, program: Program, plan: Plan, start: Mapping[str, Any]) -> None:
        """Take the plan that was found, and the record of another.

        Raises:
            PlanError: ``start`` is none (``no-mesh``).
        """
        self._program, self._plan = program, plan
        self._start = _read(start)
        self._layers: dict[tuple[Mesh, tuple[tuple[str, str], ...]], Layers] = {}

    def found(self) -> Iterator[Change]:
        """Yield the plan that is there, then changes, the one that saves most first; with all of
        them it is the plan that was found."""
        goal = _state(self._plan)
        current = self._start
        now = self._tried("as it is", current)
        yield now
        for count in range(_MOST):
            left = list(_steps(current, goal))
            tried = [(self._tried(what, state), state) for what, state in left]
            tried = [each for each in tried if each[0].step_seconds is not None]
            if not tried:
                break
            best, state = min(tried, key=lambda each: (not each[0].fits, each[0].step_seconds))
            is_better = best.fits and not now.fits
            if now.step_seconds is None or (
                best.fits >= now.fits and best.step_seconds is not None
            ):
                is_better |= now.step_seconds is None or (
                    (best.step_seconds or 0.0) < now.step_seconds * (1 - _WORTH)
                )
            if not is_better or count == _MOST - 1:
                if current != goal:
                    yield self._tried("the rest, together", goal)
                break
            now, current = best, state
            yield now

    def _tried(self, what: str, state: _State) -> Change:
        try:
            step, peak = self._figures(state)
        except ShardcoreError:
            return Change(what, None, None, False)
        return Change(what, step, peak, peak <= self._plan.limit)

    def _figures(self, state: _State) -> tuple[float, float]:
        """The seconds of a step, and the bytes at the peak."""
        chip, options = self._plan.cost.hardware, dict(self._plan.cost_options)
        session = self._program.session(state.mesh)
        session.set(dict(state.specs))
        if state.stages == 1:
            cost = session.cost(chip, **options)
            return cost.step_seconds, cost.peak_bytes
        key = state.mesh, state.specs
        if key not in self._layers:
            self._layers[key] = find_layers(plain(session), chip, **options)
        layers = self._layers[key]
        search = PipelineSearch(layers, float("inf"), links_of(chip, options), state.mesh)
        of = state.schedule or "", state.stages, state.chunks, state.micro_batches
        search.add(*of, once=state.once)
        best = search.answer().best
        return best.step_seconds, best.peak_bytes


def _steps(current: _State, goal: _State) -> Iterator[tuple[str, _State]]:
    """Each difference between two plans alone, in words, and what it makes of ``current``."""
    if (current.mesh, current.stages) != (goal.mesh, goal.stages):
        moved = replace(goal)
        yield f"{goal.stages} stages over {_shown(goal.mesh)}, with all that goes with it", moved
        return
    if (current.schedule, current.chunks) != (goal.schedule, goal.chunks):
        other = replace(current, schedule=goal.schedule, chunks=goal.chunks)
        chunks = f" of {goal.chunks} chunks" if goal.chunks > 1 else ""
        yield f"schedule {current.schedule} -> {goal.schedule}{chunks}", other
    if current.micro_batches != goal.micro_batches:
        other = replace(current, micro_batches=goal.micro_batches)
        yield f"micro-batches {current.micro_batches} -> {goal.micro_batches}", other
    if current.once != goal.once:
        how = "once a step" if goal.once else "for each micro-batch"
        yield f"parameters gathered and converted {how}", replace(current, once=goal.once)
    old, new = dict(current.specs), dict(goal.specs)
    for target in dict.fromkeys((*new, *old)):
        if old.get(target) != new.get(target):
            specs = {name: text for name, text in old.items() if name != target}
            if target in new:
                specs[target] = new[target]
            what = f"{target}: {old.get(target, 'nothing')} -> {new.get(target, 'nothing')}"
            yield what, replace(current, specs=tuple(specs.items()))


def _state(plan: Plan) -> _State:
    best = None if plan.pipeline is None else plan.pipeline.best
    specs = tuple(plan.specs.items())
    if best is None:
        return _State(plan.mesh, specs)
    kind = best.stages, best.schedule, best.turns, best.micro_batches, best.once
    return _State(plan.mesh, specs, *kind)


def _read(record: Mapping[str, Any]) -> _State:
    try:
        mesh = Mesh(dict(record["mesh"]))
        listed = record["annotations"]
        pairs = (
            listed.items()
            if isinstance(listed, Mapping)
            else ((each["target"], each["spec"]) for each in listed)
        )
        specs = tuple((str(target), str(spec)) for target, spec in pairs)
        best = (record.get("pipeline") or {}).get("best")
        if best is None:
            return _State(mesh, specs)
        return _State(
            mesh,
            specs,
            int(best["stages"]),
            str(best["schedule"]),
            int(best["chunks_per_stage"]),
            int(best["micro_batches"]),
            bool(best["prepares_once"]) if "prepares_once" in best else None,
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        message = f"{shown(record)} is not the record of a plan: {error}"
        hint = 'write one by shardcore plan --json, or {"mesh": {"x": 8}, "annotations": {}}'
        raise PlanError(Diagnostic("no-mesh", message, hint)) from error


def _shown(mesh: Mesh) -> str:
    return ",".join(f"{name}={size}" for name, size in mesh.shape.items())
