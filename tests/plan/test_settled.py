"""Plans say what XLA would decide otherwise, and keep state as it is sharded."""

from __future__ import annotations

import pytest
import shardcore
from shardcore import Module

from tests.plan.ports import unlike
from tests.plan.programs import mlp_step

CHIP = "tpu-v5e"


@pytest.mark.parametrize("minimize", ["time", "memory", "bytes"])
@pytest.mark.parametrize("memory", [None, "60MiB"])
def test_donated_arguments_are_sharded_as_the_results(memory: str | None, minimize: str) -> None:
    step = mlp_step(4096, 2048, 8192)
    plan = shardcore.plan(step, CHIP, memory, mesh={"a": 2, "b": 4}, minimize=minimize)
    assert unlike(plan) == []


@pytest.mark.parametrize("minimize", ["time", "memory", "bytes"])
def test_a_state_of_which_nothing_is_stored_in_shards_stays_whole(minimize: str) -> None:
    """The update is computed in shards, which the next step would have to gather."""
    w, x = "tensor<512x512xf32>", "tensor<4096x512xf32>"
    module = Module.parse(f"""
func.func @main(
    %w: {w} {{tf.aliasing_output = 0 : i32}} loc("state['w']"), %x: {x} loc("x"),
    %y: {x} loc("y")) -> ({w} {{jax.result_info = "result['w']"}}) {{
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : ({x}, {w}) -> {x}
  %1 = stablehlo.subtract %0, %y : {x}
  %2 = stablehlo.dot_general %x, %1, contracting_dims = [0] x [0] : ({x}, {x}) -> {w}
  %3 = stablehlo.subtract %w, %2 : {w}
  return %3 : {w}
}}""")
    plan = shardcore.plan(module, CHIP, mesh={"a": 2, "b": 4}, keep="state/*", minimize=minimize)
    assert unlike(plan) == []
    free = shardcore.plan(module, CHIP, mesh={"a": 2, "b": 4}, minimize=minimize)
    assert unlike(free) == []
    assert len(free.specs) <= 3
