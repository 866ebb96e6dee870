"""Memory on TPUs beside that of XLA's compiler for TPUs."""

from __future__ import annotations

import pytest
import shardcore

from tests.accelerators.tpus import (
    HARDWARE,
    cost,
    kept,
    large,
    models,
    near,
    of_reserved,
    ratios,
    text,
)
from tests.deep import deep, sampled
from tests.shardy.xla.measured import key

# XLA lays out these arguments as single ops want them, not with the least padding.
LAID_OUT = (
    "encoder-decoder-tensor",
    "llama-train-constrained",
    "state-space-width",
)
# How many peaks are so near to XLA's. It is not enough: the aim is 90 % within a twentieth.
MODELS = {0.05: 74, 0.1: 80, 0.25: 89}
LARGE = {0.05: 12, 0.1: 15, 0.25: 17}
RESERVED = {0.05: 13, 0.1: 16, 0.25: 17}

MESH = 'sdy.mesh @mesh = <["data"=2, "model"=4]>'
# A parameter that is updated in its own buffer, if the result is laid out like it.
UPDATE = (
    MESH
    + """
func.func public @main(%w: tensor<2048x32000xf32> {
    jax.buffer_donor = true, sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {"model"}]>
}) -> (tensor<2048x32000xf32> {RESULT}) {
  %0 = stablehlo.add %w, %w : tensor<2048x32000xf32>
  return %0 : tensor<2048x32000xf32>
}
"""
)
# A loop of products, and weights that are gathered and read after it.
BESIDE = (
    MESH
    + """
func.func public @main(%y: tensor<16384x16384xf32>, %w: tensor<16384x16384xf32> {
    sdy.sharding = #sdy.sharding<@mesh, [{"model"}, {}]>
}) -> tensor<f32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %trips = stablehlo.constant dense<4> : tensor<i32>
  %none = stablehlo.constant dense<0.0> : tensor<f32>
  %loop:2 = stablehlo.while(%i = %zero, %x = %y) : tensor<i32>, tensor<16384x16384xf32>
  cond {
    %more = stablehlo.compare LT, %i, %trips : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %more : tensor<i1>
  } do {
    %next = stablehlo.add %i, %one : tensor<i32>
    %new = stablehlo.dot_general %x, %x, contracting_dims = [1] x [0]
      : (tensor<16384x16384xf32>, tensor<16384x16384xf32>) -> tensor<16384x16384xf32>
    stablehlo.return %next, %new : tensor<i32>, tensor<16384x16384xf32>
  }
  %all = sdy.sharding_constraint %w <@mesh, [{}, {}]> : tensor<16384x16384xf32>
  %both = stablehlo.multiply %loop#1, %all : tensor<16384x16384xf32>
  %sum = stablehlo.reduce(%both init: %none) applies stablehlo.add across dimensions = [0, 1]
    : (tensor<16384x16384xf32>, tensor<f32>) -> tensor<f32>
  return %sum : tensor<f32>
}
"""
)


def cost_of(text: str) -> shardcore.Cost:
    return shardcore.Module.parse(text).propagate().cost(HARDWARE)


@pytest.mark.parametrize("name", sampled([*models(), *large()], 8))
def test_arguments_take_as_many_tiles_as_under_xla(name: str) -> None:
    theirs = kept()[name]
    assert theirs.key == key(text(name))
    ours = cost(name)
    assert ours.compiler == "xla-tpu"
    assert (ours.argument_bytes == theirs.argument) == (name not in LAID_OUT)
    assert sum(value.bytes for value in ours.live_at_peak) == ours.peak_bytes
    assert max(point.bytes for point in ours.memory_timeline().points) == ours.peak_bytes


def test_a_result_of_open_sharding_is_laid_out_as_the_whole_array() -> None:
    given = 'sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {"model"}]>'
    is_open, is_given = (cost_of(UPDATE.replace("RESULT", it)) for it in ("", given))
    # 8,000 columns take no padding as rows of tiles, but 63 tiles of 128 as columns.
    assert (is_given.output_bytes, is_given.alias_bytes) == (1024 * 8000 * 4, 1024 * 8000 * 4)
    assert (is_open.output_bytes, is_open.alias_bytes) == (1024 * 8064 * 4, 0)


def test_what_only_products_read_is_sent_as_they_round_it() -> None:
    exact = text("fp32").replace("DEFAULT", "HIGHEST")
    assert cost_of(exact).peak_bytes - cost("fp32").peak_bytes == 4096 * 8192 * 2


def test_weights_are_gathered_beside_the_loop_before_their_use() -> None:
    held = {value.op: value.bytes for value in cost_of(BESIDE).live_at_peak if value.op}
    assert held["stablehlo.all_gather"] == 16384 * 16384 * 4
    assert held["stablehlo.dot_general"] == 16384 * 16384 * 4


@deep
def test_peaks_are_near_those_of_xla() -> None:
    for programs, rows in ((models(), MODELS), (large(), LARGE)):
        found = ratios(programs)
        for within, most in rows.items():
            assert near(found, within) >= most, within
    reserved = of_reserved(found)
    assert len(reserved) == len(large())
    for within, most in RESERVED.items():
        assert near(reserved, within) >= most, within
