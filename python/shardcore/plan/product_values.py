"""Roles of what products take and give: values of equal shape and classes form one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from shardcore._core import Module, Op, Value
from shardcore.plan.expressions import Expressions, Line, role
from shardcore.plan.roles import Role

PRODUCT = "stablehlo.dot_general"
Classes = tuple[int, ...]


class Place(NamedTuple):
    """An operand or a result of a product that is worth a constraint."""

    what: str
    """What it is, as :attr:`Role.what` says it."""
    op: Op
    number: int
    """Its number among the operands, followed by the results."""

    @property
    def value(self) -> Value:
        """The value."""
        return (*self.op.operands, *self.op.results)[self.number]


def product_values(
    module: Module,
    expressions: Expressions,
    places: Iterable[Place],
    of: Callable[[Value], Classes],
) -> Iterator[Role]:
    """Yield the roles of the values at ``places``, such as those of repeated layers.

    Args:
        module: the program without annotations.
        expressions: those of the program.
        places: those of the program propagated as XLA does.
        of: a function from a value there to the classes of its dims.
    """
    found: dict[tuple[str, Classes], dict[tuple[object, ...], None]] = defaultdict(dict)
    for place in places:
        found[place.what, of(place.value)][_key(place)] = None
    if not found:
        return
    known: dict[tuple[object, ...], list[Value]] = defaultdict(list)
    for op in module.ops():
        if op.name == PRODUCT:
            for number in range(len(op.operands) + len(op.results)):
                place = Place("", op, number)
                known[_key(place)].append(place.value)
    for (what, classes), keys in found.items():
        lines: dict[Classes, list[Line]] = defaultdict(list)
        values = dict.fromkeys(value for key in keys for value in known[key])
        incoming = [expressions.incoming(value, classes) for value in values]
        shapes = {given.shape for given, _ in incoming}
        for given, own in incoming:
            line = expressions.own_line(given, shapes)
            if line is not None:
                lines[own].append(line)
        for own, alike in lines.items():
            yield role(alike, own, what)


def _key(place: Place) -> tuple[object, ...]:
    """A key by which a value is found again after calls are inlined."""
    op = place.op
    shapes = tuple(value.shape for value in (*op.operands, *op.results))
    return op.location, shapes, op.results[0].dtype, place.number
