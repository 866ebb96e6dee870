"""Costs as values: pickled, copied, compared; and figures that are larger than what is counted."""

from __future__ import annotations

import copy
import json
import pickle

import pytest
import shardcore
from shardcore import Cost, Module
from shardcore.calculus.hardware import hardware, hardware_names

PROGRAM = """
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(
    %a: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>},
    %b: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x":(1)2}, {}]>}, %n: tensor<i32>)
    -> tensor<8x8xf32> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
      : (tensor<8x16xf32>, tensor<16x8xf32>) -> tensor<8x8xf32>
  %1 = stablehlo.tanh %0 : tensor<8x8xf32>
  %2 = stablehlo.fft %1, type = RFFT, length = [8] : (tensor<8x8xf32>) -> tensor<8x5xcomplex<f32>>
  %3 = stablehlo.abs %2 : (tensor<8x5xcomplex<f32>>) -> tensor<8x5xf32>
  return %1 : tensor<8x8xf32>
}
"""


def cost(chip: str = "tpu-v5p", text: str = PROGRAM) -> Cost:
    return Module.parse(text).propagate().cost(chip)


@pytest.mark.parametrize("chip", hardware_names())
def test_costs_are_values(chip: str) -> None:
    made = cost(chip)
    for other in (
        cost(chip),
        copy.copy(made),
        copy.deepcopy(made),
        *(pickle.loads(pickle.dumps(made, protocol)) for protocol in range(6)),
    ):
        assert other == made
        assert hash(other) == hash(made)
        assert str(other) == str(made)
        assert other.record() == made.record()
    assert made != cost(chip, PROGRAM.replace("tanh", "negate"))
    assert {made, cost(chip)} == {made}


@pytest.mark.parametrize("chip", hardware_names())
def test_chips_are_values(chip: str) -> None:
    made = hardware(chip)
    for other in (copy.copy(made), copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
        assert other == made
        assert hash(other) == hash(made)
        assert dict(other.flops) == dict(made.flops)


def test_comparisons_are_values() -> None:
    found = shardcore.compare(cost(), cost("h100"))
    assert isinstance(found, shardcore.Comparison)
    assert pickle.loads(pickle.dumps(found)) == copy.deepcopy(found) == found
    assert found != shardcore.compare(cost(), cost())
    with pytest.raises(TypeError, match=r"expected a shardcore\.Cost, not int"):
        shardcore.compare(cost(), 1)  # type: ignore[arg-type]


HUGE = """
func.func @main(%a: tensor<SIZExf32>) -> tensor<SIZExf32> {
  %0 = stablehlo.abs %a : tensor<SIZExf32>
  return %0 : tensor<SIZExf32>
}
"""
MAX = 2**63 - 1


@pytest.mark.parametrize(
    ("shape", "is_saturated"),
    [("8", False), (f"{2**32}x{2**32}x2", False), (f"{MAX}x{MAX}x{MAX}", True)],
)
def test_figures_beyond_what_is_counted_say_so(shape: str, is_saturated: bool) -> None:
    made = cost("h100", HUGE.replace("SIZE", shape))
    assert made.is_saturated == is_saturated
    assert json.loads(made.to_json())["is_saturated"] == is_saturated
    assert ("beyond what is counted" in str(made)) == is_saturated


def test_bytes_are_exact_as_long_as_they_can_be() -> None:
    result = Module.parse(HUGE.replace("SIZE", f"{2**62}x4")).propagate()
    assert result["%0"].bytes == result["%0"].bytes_per_device == 2**66
    assert result.summary()["after"]["bytes"] == 2 * 2**66
    assert not result.summary()["after"]["is_saturated"]
    exact = cost("h100", HUGE.replace("SIZE", f"{2**61}"))
    assert not exact.is_saturated
    assert exact.argument_bytes == 2**63
    huge = Module.parse(HUGE.replace("SIZE", f"{MAX}x{MAX}x{MAX}")).propagate()
    assert huge.summary()["after"]["is_saturated"]
