"""What is decided of an op holds for all that are alike, and for no others."""

from __future__ import annotations

import numpy as np
import pytest
import shardcore

REDUCE = """
  %{name}:2 = stablehlo.reduce(%a init: %zero), (%i init: %none) across dimensions = [0]
      : (tensor<64x4xf32>, tensor<64x4xi32>, tensor<f32>, tensor<i32>)
      -> (tensor<4xf32>, tensor<4xi32>)
    reducer(%x: tensor<f32>, %y: tensor<f32>) (%k: tensor<i32>, %l: tensor<i32>) {{
      {body}
      stablehlo.return %v, %w : tensor<f32>, tensor<i32>
    }}"""
LARGEST = """%p = stablehlo.compare GT, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %v = stablehlo.select %p, %x, %y : tensor<i1>, tensor<f32>
      %w = stablehlo.select %p, %k, %l : tensor<i1>, tensor<i32>"""
SUMS = """%v = stablehlo.add %x, %y : tensor<f32>
      %w = stablehlo.add %k, %l : tensor<i32>"""


def test_reductions_with_other_regions_are_not_alike() -> None:
    """Their texts are equal but for the regions, and so are their types and shardings."""
    module = shardcore.Module.parse(f"""
sdy.mesh @mesh = <["x"=4]>
func.func @main(%a: tensor<64x4xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}, {{}}]>}},
                %i: tensor<64x4xi32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}, {{}}]>}})
    -> (tensor<4xf32>, tensor<4xi32>, tensor<4xf32>, tensor<4xi32>) {{
  %zero = stablehlo.constant dense<1.0> : tensor<f32>
  %none = stablehlo.constant dense<0> : tensor<i32>
  {REDUCE.format(name="m", body=LARGEST)}
  {REDUCE.format(name="s", body=SUMS)}
  return %m#0, %m#1, %s#0, %s#1
      : tensor<4xf32>, tensor<4xi32>, tensor<4xf32>, tensor<4xi32>
}}""")
    rng = np.random.default_rng(0)
    values = rng.permutation(256).reshape(64, 4).astype(np.float32)
    places = np.arange(256, dtype=np.int32).reshape(64, 4)
    partitioned = module.propagate().partition()
    found = partitioned.simulate(values, places)
    for mine, whole in zip(found, module.simulate(values, places), strict=True):
        np.testing.assert_array_equal(mine, whole)
    reductions = [entry for entry in partitioned.outcomes if entry.name == "stablehlo.reduce"]
    assert reductions[0].reason == "moved: what shards are reduced to"
    assert "what shards are reduced to" not in reductions[1].reason


def test_ops_of_other_placements_are_not_alike() -> None:
    """An op between two that are alike is sharded along another dim."""
    module = shardcore.Module.parse("""
sdy.mesh @mesh = <["x"=4]>
func.func @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>},
                %b: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>})
    -> (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>) {
  %0 = stablehlo.tanh %a : tensor<8x8xf32>
  %1 = stablehlo.tanh %b : tensor<8x8xf32>
  %2 = stablehlo.tanh %0 : tensor<8x8xf32>
  return %0, %1, %2 : tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>
}""")
    for policy in ("least", "shardy", "xla"):
        partitioned = module.propagate().partition(policy)
        assert partitioned.count_outcomes() == {"local": 3}
        assert not partitioned.collectives


KINDS = [("add", "zero"), ("maximum", "low"), ("add", "one"), ("maximum", "zero")]
"""Reducers and initial values, which are identities or not."""


@pytest.mark.parametrize("policy", ["least", "shardy", "xla"])
@pytest.mark.parametrize("rows", [16, 13])
def test_reductions_that_start_elsewhere_are_not_alike(rows: int, policy: str) -> None:
    """Of equal types and shardings, they differ in reducers, and in initial values."""
    operand, result = f"tensor<{rows}x8xf32>", "tensor<8xf32>"
    reductions = [
        f"%r{n} = stablehlo.reduce(%{'ab'[n // 4 % 2]} init: %{init}) applies stablehlo.{reducer} "
        f"across dimensions = [0] : ({operand}, tensor<f32>) -> {result}"
        for n, (reducer, init) in enumerate(4 * KINDS)
    ]
    values, types = [f"%r{n}" for n in range(16)], ", ".join(16 * [result])
    module = shardcore.Module.parse(f"""
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%whole: {operand}, %other: {operand}) -> ({types}) {{
  %a = sdy.sharding_constraint %whole <@mesh, [{{"x"}}, {{"y"}}]> : {operand}
  %b = sdy.sharding_constraint %other <@mesh, [{{}}, {{"x"}}]> : {operand}
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %one = stablehlo.constant dense<1.0> : tensor<f32>
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  {"  ".join(line + chr(10) for line in reductions)}
  return {", ".join(values)} : {types}
}}""")
    rng = np.random.default_rng(0)
    given = [-rng.integers(1, 9, (rows, 8)).astype(np.float32) for _ in range(2)]
    found = module.propagate().partition(policy).simulate(*given)
    for mine, whole in zip(found, module.simulate(*given), strict=True):
        np.testing.assert_array_equal(mine, whole)


@pytest.mark.parametrize("policy", ["least", "shardy", "xla"])
def test_ops_whose_operands_move_are_lowered_like_the_first_one(policy: str) -> None:
    """Each of equal ops, with the reshards before and behind it, is as a single one is."""
    layers = 5

    def program(count: int) -> shardcore.Module:
        body, value = "", "a"
        for n in range(count):
            body += f"""
  %s{n} = stablehlo.add %{value}, %b
      {{sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{{}}, {{"x"}}]>]>}} : tensor<8x8xf32>
  %t{n} = stablehlo.multiply %s{n}, %b
      {{sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{{"x"}}, {{}}]>]>}} : tensor<8x8xf32>"""
            value = f"t{n}"
        return shardcore.Module.parse(f"""
sdy.mesh @mesh = <["x"=4]>
func.func @main(%a: tensor<8x8xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}, {{}}]>}},
                %b: tensor<8x8xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}, {{}}]>}})
    -> (tensor<8x8xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}, {{}}]>}}) {{{body}
  return %{value} : tensor<8x8xf32>
}}""")

    one, two, many = (program(n).propagate().partition(policy) for n in (1, 2, layers))
    more = len(two.collectives) - len(one.collectives)
    assert len(many.collectives) == len(one.collectives) + (layers - 1) * more
    assert more > 0 or policy != "xla"
    given = [np.arange(64, dtype=np.float32).reshape(8, 8) % k for k in (5, 3)]
    found = many.simulate(*given)
    for mine, whole in zip(found, program(layers).simulate(*given), strict=True):
        np.testing.assert_array_equal(mine, whole)


@pytest.mark.parametrize("starts", [(0, 2), (2, 0)])
def test_updates_that_start_elsewhere_are_not_alike(starts: tuple[int, int]) -> None:
    """XLA's partitioner leaves an update in one shard to the device that holds it; one over two
    shards of four rows it gathers the operand for."""
    sharding = '{sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}'
    updates = "".join(
        f"""
  %s{start} = stablehlo.constant dense<{start}> : tensor<i32>
  %{start} = stablehlo.dynamic_update_slice %a{start}, %u, %s{start}, %zero
      : (tensor<16x8xf32>, tensor<3x8xf32>, tensor<i32>, tensor<i32>) -> tensor<16x8xf32>"""
        for start in starts
    )
    module = shardcore.Module.parse(f"""
sdy.mesh @mesh = <["x"=4]>
func.func @main(%a0: tensor<16x8xf32> {sharding}, %a2: tensor<16x8xf32> {sharding},
                %u: tensor<3x8xf32>)
    -> (tensor<16x8xf32> {sharding}, tensor<16x8xf32> {sharding}) {{
  %zero = stablehlo.constant dense<0> : tensor<i32>{updates}
  return %0, %2 : tensor<16x8xf32>, tensor<16x8xf32>
}}""")
    partitioned = module.propagate().partition("xla")
    assert partitioned.sent_bytes == 16 * 8 * 4 * 3 // 4
    assert shardcore.prove(partitioned).is_proven


@pytest.mark.parametrize("policy", ["least", "shardy", "xla"])
def test_reductions_of_several_tensors_are_told_apart_by_each_initial_value(policy: str) -> None:
    sharding = '{sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}'
    starts = [(first, second) for first in ("zero", "one") for second in ("zero", "one")]

    def program(inits: list[tuple[str, str]]) -> shardcore.Module:
        reductions = "".join(
            f"""
  %r{n}:2 = stablehlo.reduce(%a init: %{first}), (%b init: %{second}) across dimensions = [0]
      : (tensor<13x8xf32>, tensor<13x8xf32>, tensor<f32>, tensor<f32>)
      -> (tensor<8xf32>, tensor<8xf32>)
    reducer(%x: tensor<f32>, %y: tensor<f32>) (%k: tensor<f32>, %l: tensor<f32>) {{
      %v = stablehlo.add %x, %y : tensor<f32>
      %w = stablehlo.add %k, %l : tensor<f32>
      stablehlo.return %v, %w : tensor<f32>, tensor<f32>
    }}"""
            for n, (first, second) in enumerate(inits)
        )
        values = ", ".join(f"%r{n}#{k}" for n in range(len(inits)) for k in range(2))
        types = ", ".join(2 * len(inits) * ["tensor<8xf32>"])
        return shardcore.Module.parse(f"""
sdy.mesh @mesh = <["x"=4]>
func.func @main(%a: tensor<13x8xf32> {sharding}, %b: tensor<13x8xf32> {sharding}) -> ({types}) {{
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %one = stablehlo.constant dense<1.0> : tensor<f32>{reductions}
  return {values} : {types}
}}""")

    alone = [program([start]).propagate().partition(policy).sent_bytes for start in starts]
    for order in (starts, starts[::-1]):
        module = program(order)
        partitioned = module.propagate().partition(policy)
        assert partitioned.sent_bytes == sum(alone)
        assert shardcore.prove(partitioned).is_proven
