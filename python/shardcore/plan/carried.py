"""Annotations of values, carried over to a program of the same code that keeps other values."""

from __future__ import annotations

from collections.abc import Mapping

from shardcore._core import Module, TensorSharding, Value
from shardcore.plan.expressions import Expressions


def carried(
    annotations: Mapping[str, TensorSharding], given: Module, other: Module
) -> dict[str, TensorSharding]:
    """Return annotations of values of ``given`` for ``other``, in which values may have other names
    and be computed more often or less: those of what the same lines constrain. Values without a
    location keep their names, where ``other`` has the same op and type by that name. Constraints
    are not in the programs, where they would be values of these lines."""
    values, its = _by_name(given), _by_name(other)
    known = {values[name]: at for name, at in annotations.items() if name in values}
    lines, own = Expressions(given), Expressions(other)
    found: dict[str, TensorSharding] = {}
    for value, at in known.items():
        line = next((e for e in lines.lines(value) if known.keys() >= {*e.values}), None)
        if line is not None and line.location:
            found |= {each.qualified_name: at for each in own.again(line) if _fits(each, value)}
        elif _key(its.get(value.qualified_name)) == _key(value):
            found[value.qualified_name] = at
    return found


def _by_name(module: Module) -> dict[str, Value]:
    return {value.qualified_name: value for value in module.values()}


def _fits(one: Value, other: Value) -> bool:
    return len(one.shape or ()) == len(other.shape or ())


def _key(value: Value | None) -> tuple[str | None, str] | None:
    return value and (value.op, value.type)
