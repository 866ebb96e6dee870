"""The order in which ops run adds up to the time of a step and to the peak memory."""

from __future__ import annotations

import copy
import pickle

import pytest
import shardcore
from shardcore import Module

MESH = 'sdy.mesh @mesh = <["x"=2, "y"=4]>\n'
SHARDED = '{sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>}'
MATRIX = "tensor<64x64xf32>"
PRODUCT = f"""contracting_dims = [1] x [0]
      : ({MATRIX}, {MATRIX}) -> {MATRIX}"""

PROGRAMS = {
    "line": f"""func.func @main(%a: {MATRIX} {SHARDED}) -> {MATRIX} {{
  %0 = stablehlo.dot_general %a, %a, {PRODUCT}
  %1 = stablehlo.tanh %0 : {MATRIX}
  return %1 : {MATRIX}
}}""",
    "loop": f"""func.func @main(%a: {MATRIX} {SHARDED}) -> {MATRIX} {{
  %c = stablehlo.constant dense<0> : tensor<i32>
  %0:2 = stablehlo.while(%i = %c, %x = %a) : tensor<i32>, {MATRIX}
  cond {{
    %n = stablehlo.constant dense<7> : tensor<i32>
    %1 = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  }} do {{
    %one = stablehlo.constant dense<1> : tensor<i32>
    %1 = stablehlo.add %i, %one : tensor<i32>
    %2 = stablehlo.dot_general %x, %x, {PRODUCT}
    stablehlo.return %1, %2 : tensor<i32>, {MATRIX}
  }}
  return %0#1 : {MATRIX}
}}""",
    "calls": f"""func.func @main(%a: {MATRIX} {SHARDED}) -> {MATRIX} {{
  %0 = call @twice(%a) : ({MATRIX}) -> {MATRIX}
  %1 = call @twice(%0) : ({MATRIX}) -> {MATRIX}
  return %1 : {MATRIX}
}}
func.func private @twice(%a: {MATRIX}) -> {MATRIX} {{
  %0 = call @once(%a) : ({MATRIX}) -> {MATRIX}
  %1 = call @once(%0) : ({MATRIX}) -> {MATRIX}
  return %1 : {MATRIX}
}}
func.func private @once(%a: {MATRIX}) -> {MATRIX} {{
  %0 = stablehlo.dot_general %a, %a, {PRODUCT}
  return %0 : {MATRIX}
}}""",
}
DEEP = 18
PROGRAMS["calls that are not inlined"] = "\n".join(
    [
        f"""func.func @main(%a: {MATRIX} {SHARDED}) -> {MATRIX} {{
  %0 = call @f0(%a) : ({MATRIX}) -> {MATRIX}
  return %0 : {MATRIX}
}}""",
        *(
            f"""func.func private @f{n}(%a: {MATRIX}) -> {MATRIX} {{
  %0 = call @f{n + 1}(%a) : ({MATRIX}) -> {MATRIX}
  %1 = call @f{n + 1}(%0) : ({MATRIX}) -> {MATRIX}
  return %1 : {MATRIX}
}}"""
            for n in range(DEEP)
        ),
        f"""func.func private @f{DEEP}(%a: {MATRIX}) -> {MATRIX} {{
  %0 = stablehlo.tanh %a : {MATRIX}
  return %0 : {MATRIX}
}}""",
    ]
)


@pytest.mark.parametrize("name", PROGRAMS)
def test_steps_add_up(name: str) -> None:
    result = Module.parse(MESH + PROGRAMS[name]).propagate(dedup_functions_fully="not" in name)
    cost = result.cost("tpu-v5e")
    steps = cost.rows.steps
    assert steps
    total = sum(step.seconds for step in steps)
    assert total == pytest.approx(cost.step_seconds)
    assert max(step.live_bytes for step in steps) + cost.argument_bytes == cost.peak_bytes
    sent = [step.collective for step in steps if step.collective is not None]
    assert sorted(sent) == list(range(len(cost.collectives)))
    for step in steps:
        if step.collective is not None:
            row = cost.collectives[step.collective]
            assert (step.value, step.count, step.link) == (row.op, row.count, ", ".join(row.axes))
            assert step.seconds == row.exposed_seconds


def test_steps_survive_pickling() -> None:
    cost = Module.parse(MESH + PROGRAMS["loop"]).propagate().cost()
    for other in (copy.copy(cost), pickle.loads(pickle.dumps(cost))):
        assert other == cost
        assert other.rows.steps == cost.rows.steps
    assert {step.count for step in cost.rows.steps} >= {7}
    assert shardcore.cost(Module.parse("func.func @main() { return }")).rows.steps == ()
