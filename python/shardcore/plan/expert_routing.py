"""Values between tokens and experts: what is sent to the experts, and what comes back.

If the batch and the experts are sharded along one axis, tokens are exchanged by all-to-alls: to the
experts, back, and both again for the gradients. Propagation alone keeps the batch on the axis and
gathers the experts' weights. A constraint on the operand of a product with these weights puts the
experts on the axis, as users do who constrain the dispatched tokens; a constraint on the operand of
a sum over the experts puts the batch back.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator

from shardcore._core import Op, Value
from shardcore.plan.product_values import PRODUCT, Classes, Place


def routed(
    ops: Iterable[Op], of: Callable[[Value], Classes], batch: int, experts: Collection[int]
) -> Iterator[Place]:
    """Yield values: ``"sent"`` to experts, and ``"returned"`` from them.

    Args:
        ops: the ops of the program propagated as XLA does, in order.
        of: a function from a value to the classes of its dims.
        batch: the class of the batch.
        experts: the classes of weight dims that count experts.
    """
    wanted = set(experts)
    inside: set[Value] = set()
    """Values computed from products with the weights of experts."""
    for op in ops if wanted else ():
        own = [of(value) for value in op.operands]
        result = of(op.results[0])
        if op.name != PRODUCT:
            has_both = batch in result and not wanted.isdisjoint(result)
            if has_both and not inside.isdisjoint(op.operands):
                inside.update(op.results)
            continue
        tokens = [place for place, classes in enumerate(own) if batch in classes]
        common = wanted.intersection(own[0]).intersection(own[1])
        if len(tokens) == 1 and common.intersection(result):
            if op.operands[tokens[0]] not in inside:
                yield Place("sent", op, tokens[0])
            inside.update(op.results)
        elif common.difference(result):
            for place in tokens:
                if op.operands[place] in inside:
                    yield Place("returned", op, place)
