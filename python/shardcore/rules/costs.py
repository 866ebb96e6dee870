"""Registers the costs of custom calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, TypeVar, overload

from shardcore import _core
from shardcore.bounded import shown
from shardcore.rules.registry import Signature
from shardcore.rules.targets import TargetRules

if TYPE_CHECKING:
    CostFunction = Callable[[Signature], "CostEstimate | None"]

__all__ = ["CostEstimate", "cost_rule", "unregister_cost_rule"]


class CostEstimate(NamedTuple):
    """The cost of one run of a custom call on one device."""

    flops: int
    transcendentals: int = 0
    bytes: int | None = None
    """Bytes read from and written to memory; ``None`` for the bytes of operands and results."""


_rules: TargetRules[CostEstimate] = TargetRules(
    "cost rule", "return shardcore.CostEstimate(flops=..., bytes=...), or None"
)

F = TypeVar("F", bound="CostFunction")


@overload
def cost_rule(target: str) -> Callable[[F], F]: ...
@overload
def cost_rule(target: str, rule: CostEstimate) -> None: ...
def cost_rule(target: str, rule: CostEstimate | None = None) -> Callable[[F], F] | None:
    """Register the cost of custom calls of ``target``, for :func:`shardcore.cost`.

    Without ``rule``, this is a decorator: the function gets the :class:`Signature` of a call, with
    types on one device, and returns a :class:`CostEstimate`, or ``None`` for no estimate. It has
    precedence over the estimate that the call itself carries, as calls of Pallas kernels do.
    """
    return _rules.register(target, rule)


def unregister_cost_rule(target: str) -> None:
    """Remove the cost rule of custom calls of ``target``."""
    _rules.unregister(target)


def registered_cost_rules() -> tuple[tuple[str, CostFunction], ...]:
    """Return the registered functions, with their targets."""
    return _rules.registered()


def cost_estimates(module: _core.Module) -> list[tuple[int, int, int, int | None]]:
    """Return signature, flops, transcendentals and bytes of the custom calls of ``module``, a
    per-device program, that have a cost rule.

    Raises:
        PartitionError: a function fails, or returns no estimate (``invalid-rule``).
    """
    return _rules.rows(module, _row)


def _row(number: int, _: Signature, answer: CostEstimate) -> tuple[int, int, int, int | None]:
    flops, transcendentals, moved = CostEstimate(*answer)
    counts = _count(flops), _count(transcendentals)
    return number, *counts, None if moved is None else _count(moved)


def _count(value: object) -> int:
    """``value`` as a non-negative integer."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 2**127:
        raise ValueError(f"{shown(value)} is no number of at least 0")
    return int(value)
