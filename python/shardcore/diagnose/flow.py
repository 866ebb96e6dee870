"""For a dim of a value, the dims that it is computed from: those with the same factor of the op,
through calls, loops and other regions."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from shardcore.cached_property import cached_property
from shardcore.errors import ShardcoreError

if TYPE_CHECKING:
    from shardcore._core import Module, Op, OpShardingRule, Value

_MOST_DIMS = 20_000
"""How many dims are followed from one dim."""

_PASSES = ("sdy.sharding_constraint", "sdy.reshard")
"""Ops whose result equals their operand, with another sharding."""


class Loss(NamedTuple):
    """An op at which an axis is lost: an operand dim has it, the corresponding result dim does
    not."""

    op: Op
    operand: Value
    operand_dim: int
    value: Value
    dim: int
    axis: str


class Flow:
    """The data flow of a propagated program; computed when needed."""

    def __init__(self, module: Module) -> None:
        self._module = module
        self._rules: dict[int, OpShardingRule | None] = {}
        self._known: dict[tuple[str, int], list[tuple[Op, Value, str, int]]] = {}

    def losses(self, name: str, axis: str) -> list[Loss]:
        """Return where the value ``name`` lost ``axis``: the ops upstream of each dim without the
        axis whose operands have it, the nearest first."""
        value = self._values.get(name)
        if value is None:
            return []
        dims = range(len(value.shape or ()))
        left = deque((value, name, dim) for dim in dims if not has_axis(value, dim, axis))
        seen = {(name, dim) for _, name, dim in left}
        found: dict[tuple[str, int], Loss] = {}
        while left and len(seen) < _MOST_DIMS:
            value, name, dim = left.popleft()
            for op, operand, other, place in self._before(name, dim):
                if (other, place) in seen:
                    continue
                if not has_axis(operand, place, axis):
                    seen.add((other, place))
                    left.append((operand, other, place))
                elif op.name not in _PASSES:
                    # Here the user removes the axis.
                    loss = Loss(op, operand, place, value, dim, axis)
                    found.setdefault((name, dim), loss)
        return list(found.values())

    def _before(self, name: str, dim: int) -> list[tuple[Op, Value, str, int]]:
        """The dims that ``dim`` of the value ``name`` is computed from, with the ops in between."""
        key = name, dim
        if key not in self._known:
            self._known[key] = [
                (op, operand, operand.qualified_name, place)
                for op, operand, place in self._sought(name, dim)
            ]
        return self._known[key]

    def _sought(self, name: str, dim: int) -> Iterator[tuple[Op, Value, int]]:
        if name in self._sources:
            for op, source in self._sources[name]:
                yield op, source, dim
            return
        if name not in self._makers:
            return
        op, number = self._makers[name]
        if op.name in _PASSES:
            yield op, op.operands[0], dim
            return
        rule = self._rule(op)
        if rule is None:
            return
        factors = rule.result_mappings[number][dim]
        for operand, mapping in zip(op.operands, rule.operand_mappings, strict=True):
            for place, others in enumerate(mapping):
                if factors and others and factors[0] == others[0]:
                    yield op, operand, place

    def _rule(self, op: Op) -> OpShardingRule | None:
        signature = op.signature
        if signature is None:
            return None
        if signature not in self._rules:
            try:
                self._rules[signature] = self._module.rule(op.results[0])
            except (ShardcoreError, KeyError):
                self._rules[signature] = None
        return self._rules[signature]

    @cached_property
    def _ops(self) -> list[Op]:
        return self._module.ops()

    @cached_property
    def _makers(self) -> dict[str, tuple[Op, int]]:
        return {
            value.qualified_name: (op, number)
            for op in self._ops
            for number, value in enumerate(op.results)
        }

    @cached_property
    def _values(self) -> dict[str, Value]:
        return {value.qualified_name: value for value in self._module.values()}

    @cached_property
    def _sources(self) -> dict[str, list[tuple[Op, Value]]]:
        """Values that are passed on unchanged: into and out of functions, around loops, out of
        regions."""
        found: dict[str, list[tuple[Op, Value]]] = defaultdict(list)
        functions = {op.function: op for op in self._ops if op.name == "func.func"}
        for op in self._ops:
            if op.name != "func.call":
                continue
            callee = functions.get(str(op.attributes["callee"]).strip("@"))
            for block in () if callee is None else callee.regions[0]:
                for operand, argument in zip(op.operands, block.arguments, strict=False):
                    found[argument.qualified_name].append((op, operand))
                for result, returned in zip(op.results, block.ops[-1].operands, strict=False):
                    found[result.qualified_name].append((op, returned))
        for edge in self._module.edges():
            if edge.op == "sdy.manual_computation":
                # Dims inside a manual computation differ from those outside.
                continue
            maker = self._makers.get(edge.owner.qualified_name)
            if maker is not None:
                for target in edge.targets:
                    found[target.qualified_name] += [(maker[0], each) for each in edge.sources]
        return found


def has_axis(value: Value, dim: int, axis: str) -> bool:
    """Whether ``dim`` of the value ``name`` is sharded over ``axis``, or a part of it."""
    sharding = value.sharding
    if sharding is None or dim >= sharding.rank:
        return False
    return any(each.name == axis for each in sharding.dims[dim].axes)
