"""Layouts worth an exact evaluation, ranked by the model: for each mesh and each kind."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from shardcore._core import Mesh
from shardcore.plan.classes import NO_CLASS
from shardcore.plan.kinds import Meanings
from shardcore.plan.layouts import Layout
from shardcore.plan.model import Estimate, Model

_KEPT = 10
"""How many layouts of the first axes are extended by another axis (beam width)."""
_MOST_FSDP = 3
"""How many classes of dims are tried for storing parameters along, together with the batch."""
_MOST_USUAL_AXES = 4
"""How many axes of a mesh the commonly written layouts shard at most."""
_USUAL = 16
"""How many layouts are evaluated because people commonly write them."""
_FIRST = 12
"""How many layouts are evaluated because the model ranks them first."""
_FASTEST = 6
"""How many layouts are evaluated because the model finds them fast, even if it says that they do
not fit."""
_EACH_KIND = 2
"""How many layouts of each kind are evaluated."""
_UNIFORM = 6
"""How many layouts are evaluated in which all axes shard the same classes."""
_EXCHANGED = 4
"""How many layouts are evaluated in which tokens are exchanged with experts along an axis."""
_EACH_MESH = 1
"""How many layouts of each of these sorts are evaluated for each mesh."""


@dataclass(frozen=True)
class Candidate:
    """A layout with the model's estimate."""

    layout: Layout
    kind: str
    estimate: Estimate
    is_usual: bool = False
    """Whether it is a commonly written layout."""

    def rank(self, limit: float) -> tuple[float, float]:
        """A sort key: layouts that fit first, then by step time."""
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
        limit: bytes of memory of a device.
        is_late: whether the time for ranking is over.
    """
    found: dict[Layout, Candidate] = {}
    for mesh in meshes:
        for layout in _usual(mesh, meanings):
            found[layout] = replace(_candidate(layout, model, meanings), is_usual=True)
            if is_late():
                break
        for layout in _layouts(mesh, model, meanings, limit, is_late):
            if layout not in found:
                found[layout] = _candidate(layout, model, meanings)
        if is_late():
            break
    return sorted(found.values(), key=lambda each: each.rank(limit))


def chosen(
    ranked: Sequence[Candidate], meanings: Meanings, *, every_usual: bool = False
) -> list[Candidate]:
    """Return the layouts to evaluate: the commonly written ones, the first, the fastest, the first
    of each kind and of each mesh, those whose axes all shard the same, and those with the batch and
    experts along one axis, also for each mesh; with ``every_usual`` commonly written ones of all
    kinds for each mesh, though the model ranks them last."""
    usual = list(_apart(each for each in ranked if each.is_usual))
    fastest = sorted(ranked, key=lambda each: each.estimate.seconds)[:_FASTEST]
    found = list(dict.fromkeys((*usual[:_USUAL], *ranked[:_FIRST], *fastest)))
    count: dict[object, int] = {}
    for each in ranked:
        mesh = each.layout.mesh
        most: dict[object, int] = {each.kind: _EACH_KIND, mesh: _EACH_KIND}
        if each.is_usual:
            most["usual", mesh] = _EACH_MESH
        if each.is_usual and every_usual:
            most["usual", mesh, meanings.kinds(each.layout)] = _EACH_MESH
        is_uniform = len(set(each.layout.axes)) == 1 and len(mesh.axes) > 1
        if is_uniform:
            most["uniform"] = _UNIFORM
            most["uniform", mesh] = _EACH_MESH
        if any(meanings.exchanges(classes) for classes in each.layout.axes):
            most["exchanged"] = _EXCHANGED
            most["exchanged", mesh, is_uniform] = _EACH_MESH
        for key, number in most.items():
            if count.setdefault(key, 0) < number and each not in found:
                found.append(each)
            count[key] += 1
    return found


def _apart(ranked: Iterable[Candidate]) -> Iterator[Candidate]:
    """Those that differ in more than the mesh: if all axes shard the same, that is one axis."""
    seen: set[tuple[int, ...]] = set()
    for each in ranked:
        if len({*each.layout.axes}) == 1:
            [classes] = {*each.layout.axes}
            if classes in seen:
                continue
            seen.add(classes)
        yield each


def _candidate(layout: Layout, model: Model, meanings: Meanings) -> Candidate:
    return Candidate(layout, meanings.kind(layout), model.estimate(layout))


def _usual(mesh: Mesh, meanings: Meanings) -> Iterator[Layout]:
    """The commonly written layouts: each axis is for data parallelism, fully sharded or not, for
    tensor parallelism, or for experts; weights have two of these along two of their dims."""
    batch, inner = meanings.batch, meanings.inner()
    experts = tuple(number for number in inner if number in meanings.experts)
    within = tuple(number for number in inner if number not in experts)
    choices = [(batch,), (batch, *meanings.stored()), within, (*experts, *within)]
    choices = [each for each in dict.fromkeys(choices) if each and NO_CLASS not in each]
    each_axis = [choices if axis.size > 1 else [()] for axis in mesh.axes[:_MOST_USUAL_AXES]]
    rest = ((),) * (len(mesh.axes) - len(each_axis))
    for axes in itertools.product(*each_axis):
        yield Layout(mesh, (*axes, *rest))


def _layouts(
    mesh: Mesh, model: Model, meanings: Meanings, limit: float, is_late: Callable[[], bool]
) -> Iterator[Layout]:
    """Layouts over ``mesh``, built axis by axis by a beam search."""
    count = len(mesh.axes)
    kept = [Layout(mesh, ((),) * count)]
    for axis in range(count):
        if mesh.axes[axis].size == 1:
            continue
        if is_late():
            return
        choices = list(dict.fromkeys(_of_axis(mesh, axis, model, meanings)))
        tried = [_with(each, axis, choice) for each in kept for choice in choices]
        tried = list(dict.fromkeys([*kept, *tried]))
        ranked = []
        for layout in tried:
            if is_late():
                return
            ranked.append(_candidate(layout, model, meanings))
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
    """The class lists that an axis may shard, by precedence."""
    considered, batch = meanings.considered, meanings.batch
    for number in considered:
        yield (number,)
    weights = meanings.of_most_weights()
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
    """``start`` with further classes that make it faster, the most useful first."""
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
