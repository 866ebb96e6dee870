"""What gradients of parameters read, besides kept activations, if they are computed later than the
gradient of the input: what the backward pass computed on the way to it, or computed anew.

What elementwise ops compute may be computed again from what they read, if that is smaller.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from shardcore._core import Op, Value
from shardcore.pipeline.labels import ACTIVATION, BARRIER, Assigned, Labels, carried
from shardcore.pipeline.units import COLLECTIVES, taken

_STORED = (
    *COLLECTIVES,
    "stablehlo.convolution",
    "stablehlo.custom_call",
    "stablehlo.dot_general",
    "stablehlo.dynamic_update_slice",
    "stablehlo.gather",
    "stablehlo.reduce",
    "stablehlo.reduce_window",
    "stablehlo.scatter",
    "stablehlo.sort",
    "stablehlo.while",
)
"""Ops whose results are not computed again."""

_Sources = Mapping[str, Value]
"""Values of which something is computed elementwise, by name."""


class _Made(NamedTuple):
    """A value that a backward pass computes."""

    value: Value
    sources: _Sources


def delayed(labels: Labels) -> dict[int | None, int]:
    """Return for each label the bytes between the gradient of the input and those of the
    parameters, for the whole batch."""
    body = labels.body
    found: dict[int | None, int] = defaultdict(int)
    at_places = [labels.ops.get(place) for place in range(len(body.ops))]
    for label, num_bytes in _bytes(body.ops, at_places, labels.kinds, ()):
        found[label] += num_bytes
    inside = zip(labels.kinds_inside, labels.inner, labels.loops, strict=True)
    for (ops, kinds), assigned, place in inside:
        if place not in labels.backward:
            continue
        loop, unit = body.ops[place], body.units[labels.backward[place]]
        arguments = loop.regions[-1][0].arguments
        arrived = [arguments[at] for at in carried(loop, labels.kinds)]
        at_ops = [assigned[op.results[0].name] if op.results else None for op in ops]
        for label, num_bytes in _bytes(ops, at_ops, kinds, arrived):
            found[label] += num_bytes * unit.count
    return found


def _bytes(
    ops: Sequence[Op],
    assigned: Sequence[Assigned | None],
    kinds: Mapping[str, str],
    arrived: Iterable[Value],
) -> Iterator[tuple[int | None, int]]:
    """Yield labels of a block with bytes; ``arrived`` are the gradients that come from outside."""
    made = {value.name: _Made(value, {value.name: value}) for value in arrived}
    held: dict[int | None, set[str]] = defaultdict(set)
    for op, at in zip(ops, assigned, strict=True):
        if at is None or at.is_fixed:
            continue
        if at.phase == "B":
            for number, value in enumerate(op.results):
                if kinds.get(value.name) == ACTIVATION:
                    made[value.name] = _Made(value, _sources(op, number, made))
        elif at.phase == "W":
            known = held[at.label]
            for name in taken(op):
                if name in made and name not in known:
                    yield at.label, _hold(made[name], known)


def _sources(op: Op, number: int, made: Mapping[str, _Made]) -> _Sources:
    """What the result ``number`` of ``op`` is computed from."""
    if op.name in _STORED:
        value = op.results[number]
        return {value.name: value}
    given = [op.operands[number].name] if op.name == BARRIER else taken(op)
    return {name: at for own in given if own in made for name, at in made[own].sources.items()}


def _hold(made: _Made, known: set[str]) -> int:
    """Bytes that are held besides those ``known``, which gets what is held: the value, or what it
    is computed from."""
    others = {name: at for name, at in made.sources.items() if name not in known}
    size = sum(at.bytes or 0 for at in others.values())
    own = made.value.bytes or 0
    known |= {made.value.name} if own < size else others.keys()
    return min(own, size)
