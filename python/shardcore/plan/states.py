"""Arguments that are optimizer states: nothing but elementwise ops computes from them.

The moments of Adam are read by the update alone, each element for the same element of the parameter
and of its next state. So they can be sharded where the parameter is not, as ZeRO does: then
gradients are reduced to the shards of the moments, and the new parameters are gathered.
"""

from __future__ import annotations

from collections.abc import Callable

from shardcore._core import Module, Op, OpShardingRule
from shardcore.errors import ShardcoreError
from shardcore.pipeline.units import taken


def states(module: Module) -> frozenset[int]:
    """Return the numbers of the arguments of ``module``, in which calls are inlined, that only
    elementwise ops compute from."""
    entry = module.entry
    [main] = (op for op in module.ops() if op.name == "func.func" and op.function == entry)
    [block] = main.regions[0]
    found = {number for number, value in enumerate(block.arguments) if value.shape}
    of = {block.arguments[number].name: frozenset([number]) for number in found}
    is_elementwise = _elementwise(module)
    for op in block.ops[:-1]:
        sources = [of[name] for name in taken(op) if name in of]
        if not sources:
            continue
        every = frozenset[int]().union(*sources) & found
        if is_elementwise(op):
            of |= {value.name: every for value in op.results}
        else:
            found -= every
    return frozenset(found)


def _elementwise(module: Module) -> Callable[[Op], bool]:
    """Whether an op computes each element of its result from those at the same place."""
    known: dict[object, OpShardingRule | None] = {}

    def rule_of(op: Op) -> OpShardingRule | None:
        if op.signature not in known:
            try:
                known[op.signature] = module.rule(op.results[0])
            except ShardcoreError:
                known[op.signature] = None
        return known[op.signature]

    def is_elementwise(op: Op) -> bool:
        if op.regions or not op.results or op.signature is None:
            return False
        shape = op.results[0].shape
        if any(value.shape and value.shape != shape for value in (*op.operands, *op.results)):
            return False
        rule = rule_of(op)
        if rule is None or rule.need_replication or rule.permutation or rule.reduction:
            return False
        dims = [[factor] for factor in range(len(rule.factor_sizes))]
        mappings = (*rule.operand_mappings, *rule.result_mappings)
        return all(not each or [*map(list, each)] == dims for each in mappings)

    return is_elementwise
