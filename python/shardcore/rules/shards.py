"""Registers how custom calls are computed on shards."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple, TypeVar, overload

from shardcore import _core
from shardcore.rules.registry import Signature
from shardcore.rules.targets import TargetRules

if TYPE_CHECKING:
    ShardFunction = Callable[[Signature], "PartitionRule | _core.OpShardingRule | str | None"]

__all__ = ["PartitionRule", "partition_rule", "unregister_partition_rule"]


class PartitionRule(NamedTuple):
    """How a custom call is computed on shards."""

    rule: _core.OpShardingRule | str
    """The dims that may stay sharded. Along pass-through factors, shards are computed
    independently. Along reduction factors, devices compute terms, which are then added; the padding
    of operands is zero there. Along all other factors, tensors are replicated."""
    target: str | None = None
    """The target to call on shards; ``None`` for the original target."""
    attributes: Mapping[str, str] = {}
    """Attributes of the call on shards, as MLIR text, replacing original ones of the same name:
    ``{"mhlo.backend_config": "{rows = 8 : i32}"}``."""


_rules: TargetRules[PartitionRule | _core.OpShardingRule | str] = TargetRules("partition rule")

F = TypeVar("F", bound="ShardFunction")


@overload
def partition_rule(target: str) -> Callable[[F], F]: ...
@overload
def partition_rule(target: str, rule: PartitionRule | str) -> None: ...
def partition_rule(target: str, rule: PartitionRule | str | None = None) -> Callable[[F], F] | None:
    """Register how custom calls of ``target`` are computed on shards, for :meth:`Result.partition`.

    A program with calls of targets that are neither registered nor built in is refused. ``rule`` is
    in the notation of :func:`rule`, with the meaning given in :class:`PartitionRule`. Without it,
    this is a decorator: the function gets the :class:`Signature` of a call, with global types, and
    returns a rule, a :class:`PartitionRule`, or ``None`` if it has no rule for that signature.

    How shardings propagate through the call is stated separately, with :func:`rule`.
    """
    return _rules.register(target, rule)


def unregister_partition_rule(target: str) -> None:
    """Remove the partition rule of custom calls of ``target``."""
    _rules.unregister(target)


def registered_shard_rules() -> tuple[tuple[str, ShardFunction], ...]:
    """Return the registered functions, with their targets."""
    return _rules.registered()


_Row = tuple[int, "_core.OpShardingRule", "str | None", list[tuple[str, str]]]


def shard_rules(module: _core.Module) -> list[_Row] | None:
    """Return the partition rules of the custom calls of ``module``, one for each signature.

    Raises:
        PartitionError: a function fails, or a rule does not fit a call (``invalid-rule``).
    """
    return _rules.rows(module, _row) if _rules.registered() else None


def _row(
    number: int, signature: Signature, answer: PartitionRule | _core.OpShardingRule | str
) -> _Row:
    given = answer if isinstance(answer, PartitionRule) else PartitionRule(answer)
    types = (signature.operand_types, signature.result_types)
    shapes = [[() if ty is None else ty.shape for ty in each] for each in types]
    rule = given.rule
    if isinstance(rule, str):
        rule = _core.OpShardingRule.parse(rule, *shapes)
    rule.check_shapes(*shapes)
    texts = [(str(name), str(text)) for name, text in given.attributes.items()]
    return number, rule, given.target, texts
