"""What is computed from parameters alone, and kept where that is done once a step.

A stage may gather and convert its parameters for each pass of each micro-batch, or once a step and
keep them until its end, as libraries do that keep parameters in a narrow type.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from shardcore._core import Op, Value
from shardcore.pipeline.labels import PARAMETER, Assigned, Labels
from shardcore.pipeline.units import taken

_VIEWS = (
    "stablehlo.dynamic_slice",
    "stablehlo.slice",
    "stablehlo.reshape",
    "stablehlo.transpose",
    "stablehlo.optimization_barrier",
)
"""Ops whose results need no memory of their own: what uses them reads their operand."""
_GATHER = "stablehlo.all_gather"


class _Source(NamedTuple):
    """What a value is computed from."""

    key: tuple[object, ...]
    """Equal for values that are computed alike, as in both passes."""
    elements: int
    """The elements of the largest parameter, or gathered parameter, in it."""
    is_computed: bool
    """Whether it needs memory of its own."""


def prepared(labels: Labels) -> dict[int | None, int]:
    """Return for each label the bytes of what ops on activations take that is computed from
    parameters alone. What both passes compute alike counts once; what is broadcast from a smaller
    parameter does not count, as it is fused into what takes it."""
    body = labels.body
    found: dict[tuple[int | None, object], int] = {}
    roots = {each.name: _root(each, each.name) for each in body.arguments}
    roots = {name: root for name, root in roots.items() if name in labels.state}
    at_places = [labels.ops.get(place) for place in range(len(body.ops))]
    for label, value, key in _taken(body.ops, at_places, labels.kinds, roots):
        found[label, key] = value.bytes or 0
    inside = zip(labels.kinds_inside, labels.inner, labels.loops, strict=True)
    for (ops, kinds), assigned, place in inside:
        loop, number = body.ops[place], labels.loop_at(place)
        assert number is not None, "it is a loop of layers"
        given = zip(loop.regions[-1][0].arguments, loop.operands, strict=True)
        roots = {
            argument.name: _root(argument, operand.name)
            for argument, operand in given
            if labels.kinds.get(operand.name) == PARAMETER
        }
        at_ops = [assigned[op.results[0].name] if op.results else None for op in ops]
        for label, value, key in _taken(ops, at_ops, kinds, roots):
            found[label, key] = (value.bytes or 0) * body.units[number].count
    sums: dict[int | None, int] = defaultdict(int)
    for (label, _), num_bytes in found.items():
        sums[label] += num_bytes
    return sums


def _root(value: Value, name: str) -> _Source:
    return _Source((name,), _elements(value), False)


def _taken(
    ops: Sequence[Op],
    assigned: Sequence[Assigned | None],
    kinds: Mapping[str, str],
    roots: Mapping[str, _Source],
) -> Iterator[tuple[int | None, Value, object]]:
    """Yield what ops on activations of a block take that needs memory of its own: the label, the
    value, and what it is computed from."""
    known = dict(roots)
    made: dict[str, tuple[int | None, Value]] = {}
    for op, at in zip(ops, assigned, strict=True):
        if at is None or not at.is_fixed:
            for name in taken(op):
                if name in made and known[name].is_computed:
                    yield *made[name], known[name].key
            continue
        sources = [known[value.name] for value in op.operands if value.name in known]
        if not sources:
            continue
        for value in op.results:
            if kinds.get(value.name) == PARAMETER:
                source = _computed(op, value, sources)
                made[value.name] = at.label, value
                known[value.name] = source


def _computed(op: Op, value: Value, sources: Sequence[_Source]) -> _Source:
    """What a result of an op is computed from."""
    elements = _elements(value)
    if op.name in _VIEWS:
        [first, *_] = sources
        return first._replace(key=(*first.key, value.shape), elements=elements)
    most = max(source.elements for source in sources)
    if op.name == _GATHER:
        most = max(most, elements)
    keys = (source.key for source in sources)
    return _Source((op.name, value.type, *keys), most, elements <= most)


def _elements(value: Value) -> int:
    return math.prod(size or 1 for size in value.shape or ())
