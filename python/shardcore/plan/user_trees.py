"""A plan in the user's own trees: shardings, name rules, and the function that runs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from shardcore._core import Port
from shardcore.calculus.partition_spec import Spec, jax_spec
from shardcore.plan.name_rules import name_rules
from shardcore.plan.stated import specs_of
from shardcore.session.paths import steps

if TYPE_CHECKING:
    from shardcore.plan.answer import Plan

_RESULT = re.compile(r"^result(?=[\[.]|$)")
"""The prefix that JAX puts before the path of a result."""


def in_shardings(result: Any, specs: Mapping[str, Spec]) -> tuple[Any, ...]:
    """Return ``specs``, given by argument name, in the trees of the positional arguments of the JAX
    function of ``result``; for other programs as a flat tuple."""
    if not _has_trees(result):
        return tuple(specs.get(port.name) for port in result.arguments())
    positional, _ = result.map_inputs(lambda port: _of_jax(specs.get(port.name)))
    return positional  # type: ignore[no-any-return]


def out_shardings(result: Any, specs: Mapping[str, Spec]) -> Any:
    """Return ``specs``, given by result name, in the tree of the JAX function's results."""
    if not _has_trees(result):
        return tuple(specs.get(port.name) for port in result.results())
    return result.map_outputs(lambda port: _of_jax(specs.get(port.name)))


def rules(result: Any) -> dict[str, Any]:
    """Return the name rules for the arguments of ``result``."""
    found = port_rules(result.arguments())
    return {rule: _of_jax(spec) for rule, spec in found.items()} if _has_trees(result) else found


def port_rules(ports: Sequence[Port]) -> dict[str, Spec]:
    """Return the name rules for ``ports``, arguments or results."""
    specs = specs_of(ports)
    by_path = {path(port): specs[port.name] for port in ports if port.name in specs}
    return name_rules(by_path, Spec(()))


def path(port: Port) -> str:
    """Return the path of an argument with ``/`` between its steps, or its name; for a result the
    path within the function's return value."""
    return "/".join(steps(_RESULT.sub("", port.label))) if port.label else port.name


def apply(plan: Plan, devices: Sequence[Any] | None) -> Any:
    """Return the function of ``plan``; see :meth:`shardcore.Plan.apply`."""
    if not _has_trees(plan.result):
        return plan.result.partition("xla").simulate
    wanted = [
        (each.location, each.primitive, each.shape, _of_jax(each.spec)) for each in plan.constraints
    ]
    return plan.program.applied(
        plan.mesh,
        (plan.in_shardings, plan.out_shardings),
        wanted,
        devices=devices,
        keeps_constraints=plan.keeps_constraints,
    )


def _has_trees(result: Any) -> bool:
    """Whether ``result`` is a ``JaxResult``, which has trees."""
    return hasattr(result, "map_inputs")


def _of_jax(spec: Spec | None) -> Any:
    return None if spec is None else jax_spec(spec)
