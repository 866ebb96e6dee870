"""Plans say what XLA would decide otherwise, and keep state as it is sharded."""

from __future__ import annotations

import random

import pytest
import shardcore
from shardcore import Mesh, Module
from shardcore.calculus.hardware import hardware
from shardcore.plan.fewest import patterns
from shardcore.plan.layouts import Dims
from shardcore.plan.objective import Wanted
from shardcore.plan.planner import Planner
from shardcore.plan.program import read
from shardcore.plan.reading import Reading
from shardcore.plan.roles import Role
from shardcore.plan.settled import open_ports, settled

from tests.plan.ports import unlike
from tests.plan.programs import mlp_step

CHIP = "tpu-v5e"


@pytest.mark.parametrize("minimize", ["time", "memory", "bytes"])
@pytest.mark.parametrize("memory", [None, "60MiB"])
def test_donated_arguments_are_sharded_as_the_results(memory: str | None, minimize: str) -> None:
    step = mlp_step(4096, 2048, 8192)
    plan = shardcore.plan(step, CHIP, memory, mesh={"a": 2, "b": 4}, minimize=minimize)
    assert unlike(plan) == []


def regression() -> Module:
    """A step of a linear regression, which gives its parameters back."""
    w, x = "tensor<512x512xf32>", "tensor<4096x512xf32>"
    return Module.parse(f"""
func.func @main(
    %w: {w} {{tf.aliasing_output = 0 : i32}} loc("state['w']"), %x: {x} loc("x"),
    %y: {x} loc("y")) -> ({w} {{jax.result_info = "result['w']"}}) {{
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : ({x}, {w}) -> {x}
  %1 = stablehlo.subtract %0, %y : {x}
  %2 = stablehlo.dot_general %x, %1, contracting_dims = [0] x [0] : ({x}, {x}) -> {w}
  %3 = stablehlo.subtract %w, %2 : {w}
  return %3 : {w}
}}""")


def planner_of(module: Module, mesh: Mesh) -> Planner:
    chip = hardware(CHIP)
    wanted = Wanted((mesh,), chip, chip.hbm_bytes, "time", 60.0, None, {}, None)
    return Planner(Reading(read(module, ()), wanted), wanted)


def test_donated_arguments_are_so_when_the_time_is_up() -> None:
    mesh = Mesh({"a": 8})
    planner = planner_of(regression(), mesh)
    trials, roles = planner._trials, planner._roles
    dims = {"state['w']": ((), ()), "x": ((), ("a",))}
    [trial] = trials.run(mesh, [tuple(dims.get(role.name) for role in roles)])
    trials.give(0.0)
    assert open_ports(trials.session(trial), trials.compiler)
    found = settled(trials, trial, roles)
    assert not open_ports(trials.session(found), trials.compiler)
    assert found.row.step_seconds != trial.row.step_seconds


def test_states_with_parts_that_propagation_shards_differently_are_settled_at_once() -> None:
    pytest.importorskip("jax")
    from tests.shardy.xla.models import catalog

    mesh, chosen = Mesh({"data": 8}), random.Random(0)
    planner = planner_of(Module.parse(catalog.located("llama-data")), mesh)
    trials, roles = planner._trials, planner._roles

    def dims_of(role: Role) -> Dims | None:
        divided = [dim for dim, size in enumerate(role.shape) if size % 8 == 0]
        if not divided or role.donor is not None or role.is_value or chosen.random() < 0.6:
            return None
        wanted = chosen.choice(divided)
        return tuple(("data",) if dim == wanted else () for dim in range(len(role.shape)))

    tried = trials.run(mesh, [tuple(map(dims_of, roles)) for _ in range(30)])
    trials.give(0.0)
    for trial in tried:
        assert not open_ports(trials.session(settled(trials, trial, roles)), trials.compiler)


@pytest.mark.parametrize("minimize", ["time", "memory", "bytes"])
def test_a_state_of_which_nothing_is_stored_in_shards_stays_whole(minimize: str) -> None:
    """The update is computed in shards, which the next step would have to gather."""
    module = regression()
    plan = shardcore.plan(module, CHIP, mesh={"a": 2, "b": 4}, keep="state/*", minimize=minimize)
    assert unlike(plan) == []
    free = shardcore.plan(module, CHIP, mesh={"a": 2, "b": 4}, minimize=minimize)
    assert unlike(free) == []
    assert len(free.specs) <= 3


def test_patterns_are_not_shortened_to_what_xla_refuses() -> None:
    """Arguments without paths are one role. One pattern for both results would leave the other to
    be sharded as the update is computed, which is cheaper, and not as the argument it replaces."""
    w, x = "tensor<512x512xf32>", "tensor<4096x512xf32>"
    dot = "stablehlo.dot_general"
    module = Module.parse(f"""
func.func @main(
    %0: {w} {{tf.aliasing_output = 0 : i32}}, %1: {w} {{tf.aliasing_output = 1 : i32}},
    %2: {x}, %3: {x}) -> (
    {w} {{jax.result_info = "result['n']"}}, {w} {{jax.result_info = "result['s']"}}) {{
  %4 = {dot} %2, %0, contracting_dims = [1] x [0] : ({x}, {w}) -> {x}
  %5 = {dot} %3, %1, contracting_dims = [1] x [0] : ({x}, {w}) -> {x}
  %6 = stablehlo.add %4, %5 : {x}
  %7 = {dot} %2, %6, contracting_dims = [0] x [0] : ({x}, {x}) -> {w}
  %8 = {dot} %3, %6, contracting_dims = [0] x [0] : ({x}, {x}) -> {w}
  %9 = stablehlo.subtract %0, %7 : {w}
  %10 = stablehlo.subtract %1, %8 : {w}
  return %9, %10 : {w}, {w}
}}""")
    mesh = Mesh({"a": 8})
    planner = planner_of(module, mesh)
    trials, roles = planner._trials, planner._roles
    dims = {"%0, %1": ((), ()), "%2, %3": ((), ("a",)), "result['n']": ((), ())}
    [trial] = trials.run(mesh, [tuple(dims.get(role.name) for role in roles)])
    names = [port.label or port.name for port in (*module.arguments(), *module.results())]
    found = patterns(trials, trial, roles, names)
    assert {"result['n']", "result['s']"} <= found.keys()
    assert not open_ports(trials.session(trial, found), trials.compiler)
