"""Lists of some ops of a module: by name, and by the size of a result on a device."""

from __future__ import annotations

import pytest
import shardcore
from shardcore._core import op_names, ops_named, ops_of_size

from tests.shardy.xla.models import catalog

TEXT = """
sdy.mesh @mesh = <["x"=4]>
func.func @main(%arg0: tensor<64x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>})
    -> tensor<64xf32> {
  %0 = stablehlo.add %arg0, %arg0 : tensor<64x64xf32>
  %1 = call @f(%0) : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %cst = stablehlo.constant dense<0.0> : tensor<f32>
  %2 = stablehlo.reduce(%1 init: %cst) applies stablehlo.add across dimensions = [0]
    : (tensor<64x64xf32>, tensor<f32>) -> tensor<64xf32>
  return %2 : tensor<64xf32>
}
func.func private @f(%arg0: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %0 = stablehlo.negate %arg0 : tensor<64x64xf32>
  return %0 : tensor<64x64xf32>
}
"""


def names(ops: list[shardcore.Op]) -> list[str]:
    return [f"{op.function}: {op.name}" for op in ops]


def test_ops_are_listed_by_name_in_the_order_of_all_ops() -> None:
    module = shardcore.Module.parse(TEXT)
    listed = ops_named(module, ["stablehlo.negate", "stablehlo.add", "no.such_op"])
    # The body of the reduction has an addition of its own.
    expected = ["main: stablehlo.add", "main: stablehlo.add", "f: stablehlo.negate"]
    assert names(listed) == expected
    assert ops_named(module, []) == []


def test_ops_are_listed_by_the_bytes_that_a_device_holds_of_a_result() -> None:
    module = shardcore.Module.parse(TEXT).propagate().module
    quarter = 64 * 64 * 4 // 4
    assert names(ops_of_size(module, quarter)) == [
        "main: stablehlo.add",
        "main: func.call",
        "f: stablehlo.negate",
    ]
    assert ops_of_size(module, quarter + 1) == []


@pytest.mark.parametrize("name", ["llama-fsdp", "llama-scan-fsdp", "experts-experts"])
def test_lists_are_those_of_all_ops(name: str) -> None:
    module = shardcore.Module.parse(catalog.text(name)).propagate().module
    ops = module.ops()
    assert set(op_names(module)) == {op.name for op in ops}
    for wanted in (["stablehlo.dot_general", "func.return"], ["stablehlo.while"]):
        assert ops_named(module, wanted) == [op for op in ops if op.name in wanted]
    sizes = [max((value.bytes_per_device or 0 for value in op.results), default=0) for op in ops]
    for least in (1, 1 << 10, 1 << 16, max(sizes), max(sizes) + 1):
        assert ops_of_size(module, least) == [
            op for op, size in zip(ops, sizes, strict=True) if size >= least
        ]
