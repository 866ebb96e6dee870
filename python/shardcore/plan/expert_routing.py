"""Values between tokens and experts: what is sent to the experts, and what comes back.

If the batch and the experts are sharded along one axis, tokens are exchanged by all-to-alls: to the
experts, back, and both again for the gradients. Propagation alone keeps the batch on the axis and
gathers the experts' weights. A constraint on the operand of a product with these weights puts the
experts on the axis, as users do who constrain the dispatched tokens; a constraint on the operand of
a sum over the experts puts the batch back.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator

from shardcore._core import Module, Op, Value
from shardcore.plan.expressions import Expressions, Line, role
from shardcore.plan.roles import Role

Classes = tuple[int, ...]


def routed(
    module: Module,
    expressions: Expressions,
    ops: Iterable[Op],
    of: Callable[[Value], Classes],
    batch: int,
    experts: Iterable[int],
) -> Iterator[Role]:
    """Yield roles of values: ``"sent"`` to experts, and ``"returned"`` from them.

    Values of equal shape and classes, such as those of repeated layers, form one role.

    Args:
        module: the program without annotations.
        expressions: those of the program.
        ops: the ops of the program propagated as XLA does, in order.
        of: a function from a value to the classes of its dims.
        batch: the class of the batch.
        experts: the classes of weight dims that count experts.
    """
    wanted = set(experts)
    if not wanted:
        return
    found: dict[tuple[str, Classes], dict[tuple[object, ...], None]] = defaultdict(dict)
    for what, op, place in _places(ops, of, batch, wanted):
        found[what, of(op.operands[place])][_key(op, place)] = None
    places: dict[tuple[object, ...], list[Value]] = defaultdict(list)
    for op in module.ops():
        if op.name == "stablehlo.dot_general":
            for place, value in enumerate(op.operands):
                places[_key(op, place)].append(value)
    for (what, classes), keys in found.items():
        lines: dict[Classes, list[Line]] = defaultdict(list)
        for value in dict.fromkeys(value for key in keys for value in places[key]):
            given, own = expressions.incoming(value, classes)
            line = expressions.line(given)
            if line is not None:
                lines[own].append(line)
        for own, alike in lines.items():
            yield role(alike, own, what)


def _places(
    ops: Iterable[Op],
    of: Callable[[Value], Classes],
    batch: int,
    experts: set[int],
) -> Iterator[tuple[str, Op, int]]:
    """The operands of products that are sent to experts, and those that have come back."""
    inside: set[Value] = set()
    """Values computed from products with the weights of experts."""
    for op in ops:
        own = [of(value) for value in op.operands]
        result = of(op.results[0])
        if op.name != "stablehlo.dot_general":
            has_both = batch in result and not experts.isdisjoint(result)
            if has_both and not inside.isdisjoint(op.operands):
                inside.update(op.results)
            continue
        tokens = [place for place, classes in enumerate(own) if batch in classes]
        common = experts.intersection(own[0]).intersection(own[1])
        if len(tokens) == 1 and common.intersection(result):
            if op.operands[tokens[0]] not in inside:
                yield "sent", op, tokens[0]
            inside.update(op.results)
        elif common.difference(result):
            for place in tokens:
                if op.operands[place] in inside:
                    yield "returned", op, place


def _key(op: Op, place: int) -> tuple[object, ...]:
    """A key by which an operand is found again after calls are inlined."""
    shapes = tuple(value.shape for value in (*op.operands, *op.results))
    return op.location, shapes, op.results[0].dtype, place
