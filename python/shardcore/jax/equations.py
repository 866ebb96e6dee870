"""Replaces equations of traced programs, and of the jaxprs in their parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jax.extend.core import ClosedJaxpr, Jaxpr

from shardcore.jax.private import with_jaxpr

Replace = Callable[[Any], Any]
"""Returns the replacement of an equation; ``None`` if the equation stays."""


def replaced(traced: Any, replace: Replace) -> Any:
    """Return a ``jax.stages.Traced`` whose equations are replaced by ``replace``.

    Returns ``traced`` itself if nothing is replaced.
    """
    jaxpr = _replaced(traced.jaxpr, replace, {})
    return traced if jaxpr is traced.jaxpr else with_jaxpr(traced, jaxpr)


def _replaced(value: Any, replace: Replace, known: dict[int, Any]) -> Any:
    """An equation's parameter with equations of its jaxprs replaced; itself if none is replaced."""
    # Since JAX 0.11 there is one class for jaxprs with and without constants; its `.jaxpr` is
    # itself.
    if isinstance(value, ClosedJaxpr) and value.jaxpr is not value:
        inner = _replaced(value.jaxpr, replace, known)
        if inner is value.jaxpr:
            return value
        # Calls of one jaxpr remain calls of one function.
        return known.setdefault(id(value), ClosedJaxpr(inner, value.consts))
    if isinstance(value, (tuple, list)) and type(value) in (tuple, list):
        items = [_replaced(item, replace, known) for item in value]
        changed = any(new is not old for new, old in zip(items, value, strict=True))
        return type(value)(items) if changed else value
    return _program(value, replace, known) if isinstance(value, Jaxpr) else value


def _program(program: Any, replace: Replace, known: dict[int, Any]) -> Any:
    if id(program) not in known:
        equations = [_equation(equation, replace, known) for equation in program.eqns]
        pairs = zip(equations, program.eqns, strict=True)
        changed = any(new is not old for new, old in pairs)
        known[id(program)] = program.replace(eqns=equations) if changed else program
    return known[id(program)]


def _equation(equation: Any, replace: Replace, known: dict[int, Any]) -> Any:
    params = equation.params
    inside = {key: _replaced(value, replace, known) for key, value in params.items()}
    if any(inside[key] is not params[key] for key in params):
        equation = equation.replace(params=inside)
    other = replace(equation)
    return equation if other is None else other
