"""What products that tensor parallelism cuts compute from the residual stream.

With sequence parallelism, what a layer computes on the residual stream is divided along tokens over
the axes that cut its products. Propagation from the first activation may keep that within a
product, and gather weights instead. A constraint on what products make of the stream, such as
heads, hidden units, and in the backward pass their gradients, to be cut as the weights are, has
tokens gathered there; what products give back to the stream has its terms scattered along tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator

from shardcore._core import Op, Value
from shardcore.plan.product_values import PRODUCT, Classes, Place


def streamed(
    ops: Iterable[Op],
    of: Callable[[Value], Classes],
    batch: int,
    widths: Collection[int],
) -> Iterator[Place]:
    """Yield values that are ``"cut"``: the results of products that sum over the width of the
    residual stream.

    Args:
        ops: the ops of the program propagated as XLA does.
        of: a function from a value to the classes of its dims.
        batch: the class of the batch.
        widths: the classes of the widths of residual streams.
    """
    for op in ops:
        if op.name != PRODUCT:
            continue
        own = [of(value) for value in op.operands]
        result = of(op.results[0])
        activations = [number for number, classes in enumerate(own) if batch in classes]
        if len(activations) == 1 and batch in result:
            width = set(own[0]).intersection(own[1]).intersection(widths)
            if width and width.isdisjoint(result):
                yield Place("cut", op, len(own))
