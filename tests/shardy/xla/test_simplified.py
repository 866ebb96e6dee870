"""Under policy ``xla`` ops that XLA simplifies before it propagates send nothing."""

from __future__ import annotations

import pytest
import shardcore

from tests.shardy.xla.model_rows import as_all_reduce, sent_by_kind
from tests.shardy.xla.sent import sent_bytes

PROGRAM = """module attributes {{mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32}} {{
  sdy.mesh @mesh = <["x"=2, "y"=4]>
  func.func public @main(
      %a: tensor<32x64xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{}}, {{"y"}}]>}},
      %b: tensor<32x64xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}, {{}}]>}})
      -> (tensor<{shape}xf32> {{sdy.sharding = #sdy.sharding<@mesh, {result}>}}) {{
    {body}
    return %out : tensor<{shape}xf32>
  }}
}}"""
HALVES = """%0 = stablehlo.concatenate %a, %b, dim = 1
        : (tensor<32x64xf32>, tensor<32x64xf32>) -> tensor<32x128xf32>
    %1 = stablehlo.slice %0 [0:32, 0:64] : (tensor<32x128xf32>) -> tensor<32x64xf32>
    %2 = stablehlo.slice %0 [0:32, 64:128] : (tensor<32x128xf32>) -> tensor<32x64xf32>
    %out = stablehlo.multiply %1, %2 : tensor<32x64xf32>"""
PART = """%0 = stablehlo.concatenate %a, %b, %a, dim = 1
        : (tensor<32x64xf32>, tensor<32x64xf32>, tensor<32x64xf32>) -> tensor<32x192xf32>
    %out = stablehlo.slice %0 [0:32, 64:192] : (tensor<32x192xf32>) -> tensor<32x128xf32>"""
TURNED = """%0 = stablehlo.transpose %a, dims = [1, 0] : (tensor<32x64xf32>) -> tensor<64x32xf32>
    %1 = stablehlo.reshape %0 : (tensor<64x32xf32>) -> tensor<8x8x32xf32>
    %2 = stablehlo.reshape %1 : (tensor<8x8x32xf32>) -> tensor<2048xf32>
    %3 = stablehlo.reshape %2 : (tensor<2048xf32>) -> tensor<64x32xf32>
    %4 = stablehlo.transpose %3, dims = [1, 0] : (tensor<64x32xf32>) -> tensor<32x64xf32>
    %out = stablehlo.add %4, %b : tensor<32x64xf32>"""
JOINED = """%0 = stablehlo.concatenate %a, %b, dim = 0
        : (tensor<32x64xf32>, tensor<32x64xf32>) -> tensor<64x64xf32>
    %out = stablehlo.concatenate %0, %a, dim = 0
        : (tensor<64x64xf32>, tensor<32x64xf32>) -> tensor<96x64xf32>"""
SPREAD = """%0 = stablehlo.slice %a [0:32, 0:1] : (tensor<32x64xf32>) -> tensor<32x1xf32>
    %1 = stablehlo.reshape %0 : (tensor<32x1xf32>) -> tensor<32xf32>
    %2 = stablehlo.broadcast_in_dim %1, dims = [1] : (tensor<32xf32>) -> tensor<64x32xf32>
    %3 = stablehlo.broadcast_in_dim %2, dims = [1, 2]
        : (tensor<64x32xf32>) -> tensor<2x64x32xf32>
    %out = stablehlo.transpose %3, dims = [2, 0, 1]
        : (tensor<2x64x32xf32>) -> tensor<32x2x64xf32>"""
CASES = {
    "halves": (HALVES, "32x64", '[{"x"}, {"y"}]'),
    "part": (PART, "32x128", '[{"x"}, {}]'),
    "turned": (TURNED, "32x64", '[{"x"}, {"y"}]'),
    "joined": (JOINED, "96x64", '[{"x"}, {"y"}]'),
    "spread": (SPREAD, "32x2x64", '[{"x"}, {}, {"y"}]'),
}


@pytest.mark.parametrize("case", CASES)
def test_ops_that_move_data_send_what_they_do_under_xla(case: str) -> None:
    body, shape, result = CASES[case]
    text = PROGRAM.format(body=body, shape=shape, result=result)
    completed = shardcore.Module.parse(text).propagate()
    assert {**sent_by_kind(completed.cost("tpu-v5p"))} == {**as_all_reduce(sent_bytes(text))}
    assert shardcore.prove(completed.partition("xla")).is_proven


def test_halves_that_are_put_together_and_split_are_not_sent_around() -> None:
    body, shape, result = CASES["halves"]
    text = PROGRAM.format(body=body, shape=shape, result=result)
    module = shardcore.Module.parse(text).propagate().partition("xla").module
    assert "concatenate" not in str(module)
