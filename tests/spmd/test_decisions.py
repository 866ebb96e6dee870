"""What is decided of an op holds for all that are alike, and for no others."""

from __future__ import annotations

import numpy as np
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
