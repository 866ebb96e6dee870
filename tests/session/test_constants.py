"""Equal constants become one where edits shard their uses alike, and stay apart elsewhere."""

from __future__ import annotations

from random import Random

import pytest
from shardcore import Module

from tests.session.edits import new_outcome, outcome
from tests.session.test_sparse import TYPE, sharding

LINES = [
    f"%one = stablehlo.constant dense<1.0> : {TYPE}",
    f"%same = stablehlo.constant dense<1.000000e+00> : {TYPE}",
    f"%two = stablehlo.constant {{note = 1 : i32}} dense<1.0> : {TYPE}",
    "%scalar = stablehlo.constant dense<3.0> : tensor<f32>",
    f"%wide = stablehlo.broadcast_in_dim %scalar, dims = [] : (tensor<f32>) -> {TYPE}",
    f"%far = stablehlo.broadcast_in_dim %scalar, dims = [] : (tensor<f32>) -> {TYPE}",
    f"%0 = stablehlo.add %a, %one : {TYPE}",
    f"%1 = stablehlo.add %b, %one : {TYPE}",
    f"%2 = stablehlo.multiply %c, %same : {TYPE}",
    f"%3 = stablehlo.multiply %0, %wide : {TYPE}",
    f"%4 = stablehlo.multiply %1, %wide : {TYPE}",
    f"%5 = stablehlo.multiply %2, %far : {TYPE}",
    f"%6 = stablehlo.subtract %5, %two : {TYPE}",
]
FAR = "%far = stablehlo.broadcast_in_dim %scalar, dims = []"
RULE = "([])->([i, j]) {i=4, j=4}"
FAR_WITH_RULE = f"{FAR} {{sdy.sharding_rule = #sdy.op_sharding_rule<{RULE}>}}"
CALL = f"%7 = call @double(%6) : ({TYPE}) -> {TYPE}"
CALLED = f"""
func.func private @double(%x: {TYPE}) -> {TYPE} {{
  %0 = stablehlo.constant dense<2.0> : {TYPE}
  %1 = stablehlo.multiply %x, %0 : {TYPE}
  return %1 : {TYPE}
}}"""


@pytest.mark.parametrize("rules", [False, True])
@pytest.mark.parametrize("calls", [False, True])
def test_constants_of_edited_programs(calls: bool, rules: bool) -> None:
    lines = [*LINES, *[CALL] * calls]
    if rules:
        # The rule that such an op has anyway.
        lines = [line.replace(FAR, FAR_WITH_RULE) for line in lines]
    body = "\n".join(f"  {line}" for line in lines)
    module = Module.parse(f"""
sdy.mesh @mesh = <["a"=2, "b"=2]>
func.func @main(%a: {TYPE}, %b: {TYPE}, %c: {TYPE}) -> ({TYPE}, {TYPE}, {TYPE}) {{
{body}
  return %3, %4, {"%7" if calls else "%6"} : {TYPE}, {TYPE}, {TYPE}
}}{CALLED if calls else ""}""")
    rng, session = Random(0), module.session()
    counts = set()
    for _ in range(40):
        session.set({f"%{rng.choice('abc')}": sharding(rng)})
        text = outcome(session)
        assert text == new_outcome(session)
        counts.add(text.count("stablehlo.constant") + text.count("broadcast_in_dim"))
    assert len(counts) > 2
