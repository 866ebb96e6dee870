"""Layouts worth an exact evaluation, ranked by the model: on each mesh, of each kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from shardcore._core import Mesh
from shardcore.plan.kinds import Meanings
from shardcore.plan.layouts import Layout
from shardcore.plan.model import Estimate, Model

_KEPT = 10
"""The layouts of the axes so far that are continued with another axis."""
_MOST_FSDP = 3
"""The classes that parameters are tried to be stored along, each with the batch."""


@dataclass(frozen=True)
class Candidate:
    """A layout with what the model says of it."""

    layout: Layout
    kind: str
    estimate: Estimate

    def rank(self, limit: float) -> tuple[float, float]:
        """Those that fit first, then the shorter step."""
        return max(self.estimate.bytes - limit, 0.0), self.estimate.seconds


def candidates(
    meshes: Sequence[Mesh],
    model: Model,
    meanings: Meanings,
    limit: float,
    is_late: Callable[[], bool],
) -> list[Candidate]:
    """Return layouts over each of ``meshes``, the best by the model first.

    Args:
        meshes: the meshes.
        model: estimates time and memory.
        meanings: the classes that are considered.
        limit: bytes that a device has.
        is_late: whether there is no time for more than what is found.
    """
    found: dict[Layout, Candidate] = {}
    for mesh in meshes:
        for layout in _layouts(mesh, model, meanings, limit):
            if layout not in found:
                found[layout] = _candidate(layout, model, meanings)
        if is_late():
            break
    return sorted(found.values(), key=lambda each: each.rank(limit))


def _candidate(layout: Layout, model: Model, meanings: Meanings) -> Candidate:
    return Candidate(layout, meanings.kind(layout), model.estimate(layout))


def _layouts(mesh: Mesh, model: Model, meanings: Meanings, limit: float) -> Iterator[Layout]:
    """Layouts over ``mesh``, axis by axis from the best of the axes before."""
    count = len(mesh.axes)
    kept = [Layout(mesh, ((),) * count)]
    for axis in range(count):
        if mesh.axes[axis].size == 1:
            continue
        choices = list(dict.fromkeys(_of_axis(mesh, axis, model, meanings)))
        tried = [_with(each, axis, choice) for each in kept for choice in choices]
        tried = list(dict.fromkeys([*kept, *tried]))
        ranked = [_candidate(layout, model, meanings) for layout in tried]
        ranked.sort(key=lambda each: each.rank(limit))
        yield from (each.layout for each in ranked)
        lean = sorted(ranked, key=lambda each: (each.estimate.bytes, each.estimate.seconds))
        best = [each.layout for each in (*_each_kind(ranked), *ranked[:_KEPT], *lean[:2])]
        kept = list(dict.fromkeys(best))


def _each_kind(ranked: Sequence[Candidate]) -> list[Candidate]:
    """The best of each kind."""
    first: dict[str, Candidate] = {}
    for each in ranked:
        first.setdefault(each.kind, each)
    return list(first.values())


def _of_axis(mesh: Mesh, axis: int, model: Model, meanings: Meanings) -> Iterator[tuple[int, ...]]:
    """What an axis may shard, by precedence."""
    considered, batch = meanings.considered, meanings.batch
    for number in considered:
        yield (number,)
    weights = [number for number in considered if number in meanings.of_weights]
    weights.sort(key=lambda number: -meanings.held.get(number, 0.0))
    if batch in considered and weights:
        stored = [number for number in weights if number in meanings.experts]
        for number in dict.fromkeys((*stored, *weights[:_MOST_FSDP])):
            yield (batch, number)
        yield (batch, *weights)
        yield (batch, *reversed(weights))
    for number in considered:
        if number != batch:
            yield _grown((number,), mesh, axis, model, considered)


def _grown(
    start: tuple[int, ...],
    mesh: Mesh,
    axis: int,
    model: Model,
    considered: Sequence[int],
) -> tuple[int, ...]:
    """``start`` with the classes that make it faster, the one that does most first."""
    empty = Layout(mesh, ((),) * len(mesh.axes))
    best = start
    seconds = model.estimate(_with(empty, axis, best)).seconds
    while True:
        longer = [(*best, number) for number in considered if number not in best]
        timed = [(model.estimate(_with(empty, axis, each)).seconds, each) for each in longer]
        if not timed or min(timed)[0] >= seconds:
            return best
        seconds, best = min(timed)


def _with(layout: Layout, axis: int, classes: tuple[int, ...]) -> Layout:
    axes = list(layout.axes)
    axes[axis] = classes
    return Layout(layout.mesh, tuple(axes))
