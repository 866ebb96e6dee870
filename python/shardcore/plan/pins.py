"""Values inside the program that are worth a constraint: the first activations.

If an axis shards both the batch of activations and the stored parameters, propagation may give it
to a parameter dim of an activation before the batch reaches that activation. A constraint on the
first value of each kind of activation settles it for the batch, as users do who constrain the
output of an embedding; with it, what its line computes elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from shardcore._core import Module, Value
from shardcore.plan.classes import NO_CLASS
from shardcore.plan.expressions import Expressions, Line, role
from shardcore.plan.roles import Role

MOST_PINS = 3
"""How many values are considered."""
_LOOP = "stablehlo.while"
"""The op some of whose results have no name in the user's program, such as the buffers of residuals
of a scan."""


def pins(
    module: Module,
    expressions: Expressions,
    values: Iterable[tuple[Value, tuple[int, ...], float]],
    batch: int,
    is_inside: bool,
) -> Iterator[Role]:
    """Yield a role for the first value of each kind of activation, the most frequent kinds first.

    Args:
        module: the program without annotations.
        expressions: those of the program.
        values: for each kind, the first value in the program propagated as XLA does, its classes,
            and the bytes of all values of the kind.
        batch: the class of the batch, which an activation has.
        is_inside: whether values of all functions are considered, because no argument has the
            batch; otherwise only those of the entry function.
    """
    known: dict[tuple[object, ...], Value] = {}
    own = list(module.values())
    entry = own[0].function if own else ""
    loops = {value.location for value in own if value.op == _LOOP and value.location}
    for value in own:
        is_named = value.op == _LOOP or value.location not in loops
        if value.op is not None and is_named and (is_inside or value.function == entry):
            known.setdefault(_key(value), value)
    activations = [each for each in values if batch != NO_CLASS and batch in each[1]]
    activations.sort(key=lambda each: -each[2])
    lines: set[Line] = set()
    for value, classes, _ in activations:
        found = known.get(_key(value))
        if found is None or len(classes) < 2 or len(lines) == MOST_PINS:
            continue
        line = expressions.line(found)
        if line is not None and line not in lines:
            lines.add(line)
            yield role([line], classes, "begun")


def _key(value: Value) -> tuple[object, ...]:
    """A key by which a value is found again after calls are inlined."""
    return value.op, value.location, value.shape, value.dtype
