"""Whether two programs compute the same: equations of a block, up to the names of values.

JAX differentiates and lowers a program once however often it is called, if it is the same object.
"""

from __future__ import annotations

from typing import Any

from jax.extend.core import ClosedJaxpr, Jaxpr, Literal


def are_alike(one: Any, other: Any) -> bool:
    """Return whether two jaxprs without constants are equal but for the names of their values."""
    if one is other:
        return True
    if len(one.eqns) != len(other.eqns) or one.constvars or other.constvars:
        return False
    names: dict[Any, Any] = {}
    if not _bound(one.invars, other.invars, names):
        return False
    for left, right in zip(one.eqns, other.eqns, strict=True):
        if (
            left.primitive is not right.primitive
            or not _are_equal(left.params, right.params)
            or not _used(left.invars, right.invars, names)
            or not _bound(left.outvars, right.outvars, names)
        ):
            return False
    return _used(one.outvars, other.outvars, names)


def _bound(ones: Any, others: Any, names: dict[Any, Any]) -> bool:
    """Note that ``ones`` are called ``others``; return whether their types are equal."""
    if len(ones) != len(others):
        return False
    names.update(zip(ones, others, strict=True))
    return all(one.aval == other.aval for one, other in zip(ones, others, strict=True))


def _used(ones: Any, others: Any, names: dict[Any, Any]) -> bool:
    return len(ones) == len(others) and all(
        _are_equal(one.val, other.val) and one.aval == other.aval
        if isinstance(one, Literal) and isinstance(other, Literal)
        else not isinstance(one, Literal) and names.get(one) is other
        for one, other in zip(ones, others, strict=True)
    )


def _are_equal(one: Any, other: Any) -> bool:
    """Whether two parameters are equal; those that do not say it are not."""
    if one is other:
        return True
    if type(one) is not type(other):
        return False
    if isinstance(one, ClosedJaxpr):
        return not one.consts and not other.consts and are_alike(one.jaxpr, other.jaxpr)
    if isinstance(one, Jaxpr):
        return are_alike(one, other)
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(_are_equal(one[key], other[key]) for key in one)
    if isinstance(one, (tuple, list)):
        return len(one) == len(other) and all(map(_are_equal, one, other))
    try:
        return bool(one == other)
    except (TypeError, ValueError):
        # Arrays of several elements, for one.
        return False
