"""Registers sharding rules of ops at run time.

A function is called once for each distinct signature, before propagation starts, and not again for
other programs with that signature; so it must not depend on anything else.
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
    """The op, such as ``"stablehlo.add"``."""
    operand_types: tuple[TensorType | None, ...]
    """``None`` for types that are no tensors, such as tokens."""
    result_types: tuple[TensorType | None, ...]
    attributes: dict[str, Any]
    """The op's attributes, by name in MLIR's generic form, as plain values: numbers, strings,
    lists, dictionaries; enums and types as strings."""
    conservative: bool = False
    """Whether propagation is conservative."""


F = TypeVar("F", bound="RuleFunction")


@overload
def rule(name: str) -> Callable[[F], F]: ...
@overload
def rule(name: str, notation: str) -> None: ...
def rule(name: str, notation: str | None = None) -> Callable[[F], F] | None:
    """Give the op ``name`` a sharding rule, replacing the one that it has.

    With ``notation``, the rule is that string for all shapes: operands ``->`` results, separated by
    commas, with dims separated by spaces. ``"i k, k j -> i j"`` is a matmul; factors that no result
    has are reduction factors. ``(i j)`` is one dim with two factors, ``...`` any number of dims,
    ``_`` a dim with a factor of its own. ``reduction={k}``, ``need_replication={k}``,
    ``permutation={k}`` and ``blocked={k}`` may follow, and factor sizes that the shapes do not
    determine, ``{i=8}``.

    Without ``notation``, this is a decorator. The function gets a :class:`Signature` and returns an
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
    """Return the types of operands or results in the form of a :class:`Signature`."""
    return tuple(ty and TensorType(tuple(ty[0]), ty[1]) for ty in types)


def unregister(name: str) -> None:
    """Remove the registered rule of the op ``name``; its built-in rule applies again."""
    _core.set_rule(name, None)
    note("rule", name, None)


def registered() -> dict[str, str]:
    """Return the family of every op with a rule; ``"user"`` for registered rules."""
    return _core.registered_rules()
