"""Registers how custom calls are computed on shards."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeVar, overload

from shardcore import _core
from shardcore.errors import Diagnostic, PartitionError, ShardcoreError
from shardcore.rules.registry import Signature, TensorType

if TYPE_CHECKING:
    ShardFunction = Callable[[Signature], "PartitionRule | _core.OpShardingRule | str | None"]

__all__ = ["PartitionRule", "partition_rule", "unregister_partition_rule"]


class PartitionRule(NamedTuple):
    """How a custom call is computed on shards."""

    rule: _core.OpShardingRule | str
    """Which dims may stay sharded. Along pass-through factors shards are computed independently.
    Along reduction factors devices compute terms, which are added; the padding of operands is zero
    there. Along all other factors tensors are replicated."""
    target: str | None = None
    """The target to call on shards; ``None`` for the target of the source program."""
    attributes: Mapping[str, str] = {}
    """Attributes of the call on shards, as MLIR text, in place of those of the same name:
    ``{"mhlo.backend_config": "{rows = 8 : i32}"}``."""


_rules: dict[str, ShardFunction] = {}

F = TypeVar("F", bound="ShardFunction")


@overload
def partition_rule(target: str) -> Callable[[F], F]: ...
@overload
def partition_rule(target: str, rule: PartitionRule | str) -> None: ...
def partition_rule(target: str, rule: PartitionRule | str | None = None) -> Callable[[F], F] | None:
    """Register how custom calls of ``target`` are computed on shards, for :meth:`Result.partition`.

    Programs with calls of targets that are neither registered nor known are refused. ``rule`` is in
    the notation of :func:`rule`, and means what :class:`PartitionRule` says. Without it this is a
    decorator: the function gets the :class:`Signature` of a call, with global types, and returns a
    rule, a :class:`PartitionRule`, or ``None`` if it has no rule for that signature.

    How shardings propagate through the call is stated separately, by :func:`rule`.
    """
    if rule is not None:
        answer = rule
        _rules[target] = lambda _: answer
        return None

    def register(function: F) -> F:
        _rules[target] = function
        return function

    return register


def unregister_partition_rule(target: str) -> None:
    """Remove the partition rule of custom calls of ``target``."""
    _rules.pop(target, None)


def registered_shard_rules() -> tuple[tuple[str, ShardFunction], ...]:
    """Return the functions that are registered, with their targets."""
    return tuple(_rules.items())


_Row = tuple[int, "_core.OpShardingRule", "str | None", list[tuple[str, str]]]


def shard_rules(module: _core.Module) -> list[_Row] | None:
    """Return the partition rules of the custom calls of ``module``, one for each signature.

    Raises:
        PartitionError: a function fails, or a rule does not fit a call (``invalid-rule``).
    """
    rules = dict(_rules)
    if not rules:
        return None
    found: dict[int, _Row | None] = {}
    for op in module.ops():
        number = op.signature
        if op.name != "stablehlo.custom_call" or number is None or number in found:
            continue
        target = str(op.attributes.get("call_target_name"))
        found[number] = _row(module, op, number, rules[target]) if target in rules else None
    return [row for row in found.values() if row is not None]


def _row(module: _core.Module, op: _core.Op, number: int, function: ShardFunction) -> _Row | None:
    operands, results = tensor_types(op.operands), tensor_types(op.results)
    signature = Signature(op.name, operands, results, dict(op.attributes))
    try:
        answer = function(signature)
        if answer is None:
            return None
        given = answer if isinstance(answer, PartitionRule) else PartitionRule(answer)
        shapes = [[() if ty is None else ty.shape for ty in types] for types in (operands, results)]
        rule = given.rule
        if isinstance(rule, str):
            rule = _core.OpShardingRule.parse(rule, *shapes)
        rule.check_shapes(*shapes)
        texts = [(str(name), str(text)) for name, text in given.attributes.items()]
        return number, rule, given.target, texts
    except ShardcoreError as error:
        raise _at(module, op, error.message, error.hint) from error
    # A user's function may raise any exception.
    except Exception as error:
        problem = f"the function raised {type(error).__name__}: {error}"
        raise _at(module, op, problem, None) from error


def _at(module: _core.Module, op: _core.Op, problem: str, hint: str | None) -> PartitionError:
    target = op.attributes.get("call_target_name")
    message = f'partition rule of custom call target "{target}": {problem}'
    return PartitionError(Diagnostic("invalid-rule", message, hint, module.filename, op.place))


def tensor_types(values: Sequence[_core.Value]) -> tuple[TensorType | None, ...]:
    return tuple(
        None
        if value.shape is None or value.dtype is None
        else TensorType(tuple(size or 0 for size in value.shape), value.dtype)
        for value in values
    )
