"""Ops without a sharding rule, at which propagation stops."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from shardcore.diagnose.places import first_of, warning
from shardcore.errors import Diagnostic, ShardcoreError

if TYPE_CHECKING:
    from shardcore._core import Module, Op, Result, Value

_KNOWN = ("stablehlo.", "sdy.", "func.", "builtin.")
"""Dialects whose ops have rules, or need none, but for those below."""

_MAY_LACK_RULES = frozenset({"stablehlo.custom_call"})


def op_diagnostics(result: Result) -> list[Diagnostic]:
    """Return warnings about ops whose operands are sharded and whose results are not."""
    return first_of(list(_without_rule(result)))


def _without_rule(result: Result) -> Iterator[Diagnostic]:
    # XLA legalizes CHLO before it propagates.
    module = result._legalized()
    seen: set[tuple[str, str | None]] = set()
    for op in module.ops():
        if op.name.startswith(_KNOWN) and op.name not in _MAY_LACK_RULES:
            continue
        if not any(map(_is_sharded, op.operands)) or any(map(_is_sharded, op.results)):
            continue
        tensors = [value for value in op.results if value.shape]
        if not tensors or _has_rule(module, op):
            continue
        name = _name(op)
        key = (name, op.location)
        if key in seen:
            continue
        seen.add(key)
        lost = tensors[0].qualified_name
        message = f"propagation stops at {name}, which has no sharding rule: {lost} is replicated"
        what = "a target" if op.name in _MAY_LACK_RULES else "an op"
        hint = (
            f'give it one: @shardcore.rule("{name}"), or for {what} that is elementwise '
            f'shardcore.rule("{name}", "i j -> i j")'
        )
        yield warning("no-rule", message, hint, lost, tensors[0].location)


def _is_sharded(value: Value) -> bool:
    sharding = value.sharding
    return sharding is not None and any(dim.axes for dim in sharding.dims)


def _has_rule(module: Module, op: Op) -> bool:
    try:
        return bool(module.factor_table(op.results[0]).factors)
    except (ShardcoreError, KeyError):
        return False


def _name(op: Op) -> str:
    """The name that a rule is registered under: of a custom call, its target."""
    target = op.attributes.get("call_target_name") if op.name in _MAY_LACK_RULES else None
    return op.name if target is None else str(target).strip('"')
