"""Arguments of regions are values like others: they are sharded, counted and drawn."""

from __future__ import annotations

import pytest
from shardcore import Module, PassManager

T = "tensor<64x16xf32>"
TEXT = f"""
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: {T} {{sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}, {{}}]>}}) -> {T} {{
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %n = stablehlo.constant dense<8> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %r:2 = stablehlo.while(%i = %zero, %s = %a) : tensor<i32>, {T}
  cond {{
    %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  }} do {{
    %j = stablehlo.add %i, %one : tensor<i32>
    %t = stablehlo.tanh %s : {T}
    stablehlo.return %j, %t : tensor<i32>, {T}
  }}
  %m = sdy.manual_computation(%r#1) in_shardings=[<@mesh, [{{"x"}}, {{"y"}}]>]
      out_shardings=[<@mesh, [{{"x"}}, {{"y"}}]>] manual_axes={{"x"}} (%p: tensor<16x16xf32>) {{
    %q = stablehlo.negate %p : tensor<16x16xf32>
    sdy.return %q : tensor<16x16xf32>
  }} : ({T}) -> {T}
  return %m : {T}
}}"""


@pytest.fixture(scope="module")
def module() -> Module:
    return Module.parse(TEXT).propagate().module


def test_arguments_of_a_loop_are_sharded_like_what_is_carried(module: Module) -> None:
    carried = [value for value in module.values() if value.shape == (64, 16) and value.op is None]
    _, *loops = carried
    assert len(loops) == 2
    for value in loops:
        assert str(value.sharding) == '<@mesh, [{"x"}, {"y"}]>'
        assert value.local_shape == (16, 8)
        assert value.bytes_per_device == 16 * 8 * 4
        assert "┌" in str(value.visualize())


def test_arguments_of_a_manual_computation_are_without_its_axes(module: Module) -> None:
    [value] = [value for value in module.values() if value.shape == (16, 16) and value.op is None]
    assert str(value.sharding) == '<@mesh, [{}, {"y"}]>'
    assert value.local_shape == (16, 8)
    assert value.visualize()


def test_totals_count_what_a_device_holds(module: Module) -> None:
    totals = module.totals()
    tensors = [value for value in module.values() if value.bytes_per_device is not None]
    assert totals["bytes_per_device"] == sum(value.bytes_per_device or 0 for value in tensors)
    [x] = [axis for axis in totals["axes"] if axis["name"] == "x"]
    assert x["values"] == len([v for v in tensors if v.sharding and '"x"' in str(v.sharding)])


def test_a_sharded_loop_is_not_replicated() -> None:
    result = Module.parse(TEXT).propagate()
    assert result.check({"replicated": {"max_bytes": 64 * 16 * 4 - 1}})
    assert not result.check({"replicated": {"max_bytes": 3}})


def test_every_sharded_value_can_be_drawn_at_any_stage() -> None:
    for pipeline in ("sdy-import-pipeline", "sdy-propagation-pipeline"):
        module = Module.parse(TEXT)
        PassManager.parse(f"builtin.module({pipeline})").run(module)
        drawn = [value.visualize() for value in module.values() if value.sharding is not None]
        assert len(drawn) >= 4
