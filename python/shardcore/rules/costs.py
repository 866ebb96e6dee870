"""Registers what custom calls cost."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, TypeVar, overload

from shardcore import _core
from shardcore.bounded import shown
from shardcore.errors import Diagnostic, PartitionError
from shardcore.rules.registry import Signature
from shardcore.rules.shards import tensor_types

if TYPE_CHECKING:
    CostFunction = Callable[[Signature], "CostEstimate | None"]

__all__ = ["CostEstimate", "cost_rule", "unregister_cost_rule"]


class CostEstimate(NamedTuple):
    """What one run of a custom call costs a device."""

    flops: int
    transcendentals: int = 0
    bytes: int | None = None
    """Bytes read from and written to memory; ``None`` for those of operands and results."""


_rules: dict[str, CostFunction] = {}

F = TypeVar("F", bound="CostFunction")


@overload
def cost_rule(target: str) -> Callable[[F], F]: ...
@overload
def cost_rule(target: str, rule: CostEstimate) -> None: ...
def cost_rule(target: str, rule: CostEstimate | None = None) -> Callable[[F], F] | None:
    """Register what custom calls of ``target`` cost, for :func:`shardcore.cost`.

    Without ``rule`` this is a decorator: the function gets the :class:`Signature` of a call, with
    the types on one device, and returns a :class:`CostEstimate`, or ``None`` if it has none. It is
    asked before the estimate that the call itself carries, as Pallas kernels do.
    """
    if rule is not None:
        answer = rule
        _rules[target] = lambda _: answer
        return None

    def register(function: F) -> F:
        _rules[target] = function
        return function

    return register


def unregister_cost_rule(target: str) -> None:
    """Remove the cost rule of custom calls of ``target``."""
    _rules.pop(target, None)


def cost_estimates(module: _core.Module) -> list[tuple[int, int, int, int | None]]:
    """Return signature, flops, transcendentals and bytes of the custom calls of ``module``, a
    per-device program, that have a cost rule.

    Raises:
        PartitionError: a function fails, or returns no estimate (``invalid-rule``).
    """
    rules = dict(_rules)
    if not rules:
        return []
    found: dict[int, tuple[int, int, int, int | None] | None] = {}
    for op in module.ops():
        number = op.signature
        if op.name != "stablehlo.custom_call" or number is None or number in found:
            continue
        target = str(op.attributes.get("call_target_name"))
        found[number] = _row(module, op, number, rules[target]) if target in rules else None
    return [row for row in found.values() if row is not None]


def _row(
    module: _core.Module, op: _core.Op, number: int, function: CostFunction
) -> tuple[int, int, int, int | None] | None:
    operands, results = tensor_types(op.operands), tensor_types(op.results)
    try:
        answer = function(Signature(op.name, operands, results, dict(op.attributes)))
        if answer is None:
            return None
        flops, transcendentals, moved = CostEstimate(*answer)
        return (
            number,
            _count(flops),
            _count(transcendentals),
            moved if moved is None else _count(moved),
        )
    # A user's function may raise any exception.
    except Exception as error:
        target = op.attributes.get("call_target_name")
        message = (
            f'cost rule of custom call target "{target}": the function raised '
            f"{type(error).__name__}: {error}"
        )
        hint = "return shardcore.CostEstimate(flops=..., bytes=...), or None"
        place = Diagnostic("invalid-rule", message, hint, module.filename, op.place)
        raise PartitionError(place) from error


def _count(value: object) -> int:
    """``value`` as a whole number that is not negative."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 2**127:
        raise ValueError(f"{shown(value)} is no number of at least 0")
    return int(value)
