"""A plan in the user's own trees: shardings, name rules, and the function that runs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from shardcore._core import Port
from shardcore.calculus.partition_spec import Spec, jax_spec
from shardcore.plan.name_rules import name_rules
from shardcore.session.paths import steps

if TYPE_CHECKING:
    from shardcore.plan.answer import Plan

STAGE = "stage"
"""The axis of stages."""
_IMPORTS = """
from functools import partial
import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P
"""
_STACKED = 2
"""Parameters of stacked layers have so many dims at least."""
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


def rules(plan: Plan) -> dict[str, Any]:
    """Return a rule for each kind of the arguments of ``plan``."""
    found = argument_rules(plan)
    return (
        {rule: _of_jax(spec) for rule, spec in found.items()} if _has_trees(plan.result) else found
    )


def argument_rules(plan: Plan) -> dict[str, Spec | None]:
    """Return a rule for each kind of the arguments; ``None`` for those left to propagation."""
    return _port_rules(plan, plan.result.arguments(), plan.stated.arguments)


def result_rules(plan: Plan) -> dict[str, Spec | None]:
    """Return a rule for each kind of the results; ``None`` for those left to propagation."""
    return _port_rules(plan, plan.result.results(), plan.stated.results)


def _port_rules(
    plan: Plan, ports: Sequence[Port], stated: Mapping[str, Spec]
) -> dict[str, Spec | None]:
    specs = staged(ports, stated, plan.stages, plan.layers)
    return name_rules({path(port): specs.get(port.name) for port in ports}, Spec(()))


def path(port: Port) -> str:
    """Return the path of an argument with ``/`` between its steps, or its name; for a result the
    path within the function's return value."""
    return "/".join(steps(_RESULT.sub("", port.label))) if port.label else port.name


def apply(plan: Plan, devices: Sequence[Any] | None) -> Any:
    """Return the function of ``plan``; see :meth:`shardcore.Plan.apply`."""
    from shardcore.plan.code import pipeline_code

    if not _has_trees(plan.result):
        return plan.result.partition("xla").simulate
    if plan.pipeline is not None:
        return _applied_stages(plan, pipeline_code(plan.pipeline), devices)
    return plan.program.applied(
        plan.mesh,
        (plan.in_shardings, plan.out_shardings),
        _wanted(plan),
        devices=devices,
        keeps_constraints=plan.keeps_constraints,
    )


def _wanted(plan: Plan) -> list[tuple[str, str, tuple[int | None, ...], Any]]:
    """The values to constrain."""
    return [
        (each.op_location, each.primitive, each.shape, _of_jax(each.spec))
        for each in plan.constraints
    ]


def _applied_stages(plan: Plan, code: str, devices: Sequence[Any] | None) -> Any:
    result, said = plan.result, plan.stated
    stages, layers = plan.stages, plan.layers
    specs = (
        in_shardings(result, staged(result.arguments(), said.arguments, stages, layers)),
        out_shardings(result, staged(result.results(), said.results, stages, layers)),
    )
    kept = plan.kept
    program = plan.program if kept is None else kept.step.given
    return program.applied(
        plan.whole_mesh,
        specs,
        _wanted(plan),
        devices=devices,
        keeps_constraints=plan.keeps_constraints,
        pipeline=(_IMPORTS + code, layers, plan.micro_batches),
        wrap=None if kept is None else kept.wrapped,
    )


def staged(
    ports: Sequence[Port], specs: Mapping[str, Spec], stages: int, layers: int
) -> dict[str, Spec]:
    """Return ``specs`` of ``ports`` with parameters of stacked layers over ``stage``, too."""
    found = dict(specs)
    for port in ports:
        spec = specs.get(port.name)
        if spec is None or stages == 1 or len(port.shape or ()) < _STACKED:
            continue
        first, *others = (*spec.dims, None)
        if port.shape and port.shape[0] == layers and layers % stages == 0 and first is None:
            rest = tuple(others[:-1]) if spec.dims else ()
            found[port.name] = spec._replace(dims=(STAGE, *rest))
    return found


def _has_trees(result: Any) -> bool:
    """Whether ``result`` is a ``JaxResult``, which has trees."""
    return hasattr(result, "map_inputs")


def _of_jax(spec: Spec | None) -> Any:
    return None if spec is None else jax_spec(spec)
