"""Registers sharding rules of ops at run time.

A function is called once for each distinct signature, before propagation starts, and not again for
other programs with that signature: it must not depend on anything else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, overload

from shardcore import _core
from shardcore.rules.given import note

if TYPE_CHECKING:
    from collections.abc import Callable

    RuleFunction = Callable[["Signature"], "_core.OpShardingRule | str | None"]

__all__ = ["Signature", "TensorType", "registered", "rule", "unregister"]


class TensorType(NamedTuple):
    """The type of an operand or result."""

    shape: tuple[int, ...]
    dtype: str
    """The element type as MLIR writes it: ``"f32"``, ``"complex<f64>"``."""


class Signature(NamedTuple):
    """The properties of an op that its rule may depend on."""

    name: str
    """The op, ``"stablehlo.add"``."""
    operand_types: tuple[TensorType | None, ...]
    """``None`` for types that are no tensors, such as tokens."""
    result_types: tuple[TensorType | None, ...]
    attributes: dict[str, Any]
    """The op's own attributes by their names in MLIR's generic form, as plain values: numbers,
    strings, lists, dictionaries; enumerations and types as strings."""
    conservative: bool = False
    """Whether propagation is conservative."""


F = TypeVar("F", bound="RuleFunction")


@overload
def rule(name: str) -> Callable[[F], F]: ...
@overload
def rule(name: str, notation: str) -> None: ...
def rule(name: str, notation: str | None = None) -> Callable[[F], F] | None:
    """Give the op ``name`` a sharding rule, in place of the one that it has.

    With ``notation`` the rule is that string for any shape: operands ``->`` results, separated by
    commas, dims by spaces. ``"i k, k j -> i j"`` is a matmul; factors that no result has are
    reductions. ``(i j)`` is one dim of two factors, ``...`` any number of dims, ``_`` a dim with a
    factor of its own. ``reduction={k}``, ``need_replication={k}``, ``permutation={k}``,
    ``blocked={k}`` may follow, and sizes that do not follow from the shapes, ``{i=8}``.

    Without it this is a decorator. The function gets a :class:`Signature` and returns an
    :class:`~shardcore.OpShardingRule`, a string as above, a ``#sdy.op_sharding_rule<...>``, or
    ``None`` for no rule.
    """
    if notation is not None:
        _core.set_rule(name, notation)
        note("rule", name, notation)
        return None

    def register(function: F) -> F:
        def call(
            op: str,
            operands: list[tuple[list[int], str] | None],
            results: list[tuple[list[int], str] | None],
            attributes: dict[str, Any],
            conservative: bool,
        ) -> _core.OpShardingRule | str | None:
            return function(
                Signature(
                    op, tensor_types(operands), tensor_types(results), attributes, conservative
                )
            )

        _core.set_rule(name, call)
        note("rule", name, function)
        return function

    return register


def tensor_types(types: list[tuple[list[int], str] | None]) -> tuple[TensorType | None, ...]:
    """Return the types of operands or results as a :class:`Signature` has them."""
    return tuple(ty and TensorType(tuple(ty[0]), ty[1]) for ty in types)


def unregister(name: str) -> None:
    """Remove the registered rule of the op ``name``; a built-in rule applies again."""
    _core.set_rule(name, None)
    note("rule", name, None)


def registered() -> dict[str, str]:
    """Return the family of every op that has a rule; ``"user"`` for rules given at run time."""
    return _core.registered_rules()
