"""Small values that depend on no argument are computed whole where their shards would be sent."""

from __future__ import annotations

import pytest
import shardcore

PROGRAM = """
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<16x16xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"y"}}, {{}}]>}})
    -> (tensor<{result}> {{sdy.sharding = #sdy.sharding<@mesh, [{sharding}]>}}) {{
  %i = stablehlo.iota dim = 0 : tensor<16xi32>
  %s = sdy.sharding_constraint %i <@mesh, [{{"x"}}]> : tensor<16xi32>
{body}
}}"""
INDICES = """
  %r = stablehlo.reverse %s, dims = [0] : tensor<16xi32>
  %p = stablehlo.add %r, %r : tensor<16xi32>
  %n = stablehlo.constant dense<16> : tensor<16xi32>
  %m = stablehlo.remainder %p, %n : tensor<16xi32>
  %c = stablehlo.concatenate %m, %r, dim = 0 : (tensor<16xi32>, tensor<16xi32>) -> tensor<32xi32>
  %k = stablehlo.reshape %c : (tensor<32xi32>) -> tensor<32x1xi32>
  %0 = "stablehlo.gather"(%a, %k) <{dimension_numbers = #stablehlo.gather<offset_dims = [1],
      collapsed_slice_dims = [1], start_index_map = [1], index_vector_dim = 1>,
      slice_sizes = array<i64: 16, 1>}> : (tensor<16x16xf32>, tensor<32x1xi32>) -> tensor<32x16xf32>
  return %0 : tensor<32x16xf32>"""
SUMS = """
  %f = stablehlo.convert %s : (tensor<16xi32>) -> tensor<16xf32>
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %t = stablehlo.reduce(%f init: %z) applies stablehlo.add across dimensions = [0]
      : (tensor<16xf32>, tensor<f32>) -> tensor<f32>
  %b = stablehlo.broadcast_in_dim %t, dims = [] : (tensor<f32>) -> tensor<16x16xf32>
  %0 = stablehlo.add %a, %b : tensor<16x16xf32>
  return %0 : tensor<16x16xf32>"""
ONES = """
  %o = stablehlo.constant dense<1.0> : tensor<16x16xf32>
  %e = sdy.sharding_constraint %o <@mesh, [{"x", "y"}, {}]> : tensor<16x16xf32>
  %q = sdy.sharding_constraint %e <@mesh, [{"y"}, {}]> : tensor<16x16xf32>
  %0 = stablehlo.add %a, %q : tensor<16x16xf32>
  return %0 : tensor<16x16xf32>"""


def partitioned(result: str, sharding: str, body: str) -> shardcore.Partitioned:
    text = PROGRAM.format(result=result, sharding=sharding, body=body)
    return shardcore.Module.parse(text).propagate().partition()


@pytest.mark.parametrize(
    ("result", "sharding", "body"),
    [
        ("32x16xf32", '{}, {"y"}', INDICES),
        ("16x16xf32", '{"y"}, {}', SUMS),
        ("16x16xf32", '{"y"}, {}', ONES),
    ],
)
def test_nothing_is_sent_of_what_every_device_can_compute(
    result: str, sharding: str, body: str
) -> None:
    found = partitioned(result, sharding, body)
    assert found.sent_bytes == 0
    assert shardcore.prove(found).is_proven


def test_copies_that_nobody_uses_are_erased() -> None:
    text = """
sdy.mesh @mesh = <["x"=4]>
func.func @main(%a: tensor<16xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>})
    -> (tensor<16xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
  %i = stablehlo.iota dim = 0 : tensor<16xi32>
  %n = stablehlo.negate %i : tensor<16xi32>
  %0 = stablehlo.add %a, %n : tensor<16xi32>
  return %0 : tensor<16xi32>
}"""
    found = shardcore.Module.parse(text).propagate().partition()
    names = [op.name for op in found.module.ops()]
    assert names.count("stablehlo.negate") == 1
    assert "tensor<16xi32>" not in str(found.module)
