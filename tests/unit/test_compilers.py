"""Memory as different compilers assign it."""

from __future__ import annotations

import pytest
import shardcore
from shardcore import Module
from shardcore.compilers import COMPILERS

TWO_CHAINS = """
func.func @main(%x: tensor<64x64xf32>, %y: tensor<64x64xf32>, %w: tensor<64x4096xf32>,
                %v: tensor<4096x64xf32>) -> tensor<64x64xf32> {
  %0 = stablehlo.dot %x, %w : (tensor<64x64xf32>, tensor<64x4096xf32>) -> tensor<64x4096xf32>
  %1 = stablehlo.dot %y, %w : (tensor<64x64xf32>, tensor<64x4096xf32>) -> tensor<64x4096xf32>
  %2 = stablehlo.dot %0, %v : (tensor<64x4096xf32>, tensor<4096x64xf32>) -> tensor<64x64xf32>
  %3 = stablehlo.dot %1, %v : (tensor<64x4096xf32>, tensor<4096x64xf32>) -> tensor<64x64xf32>
  %4 = stablehlo.add %2, %3 : tensor<64x64xf32>
  return %4 : tensor<64x64xf32>
}
"""
LARGE = 64 * 4096 * 4


def test_the_default_is_the_compiler_of_the_chip() -> None:
    result = Module.parse(TWO_CHAINS).propagate()
    chips = {"tpu-v5e": "xla-tpu", "h100": "xla-gpu"}
    assert {chip: result.cost(chip).compiler for chip in chips} == chips
    assert {result.cost("h100", compiler=name).compiler for name in COMPILERS} == {*COMPILERS}


def test_an_unknown_compiler_is_refused() -> None:
    with pytest.raises(ValueError, match="no compiler 'gcc'; there are xla-tpu, xla-gpu"):
        Module.parse(TWO_CHAINS).propagate().cost(compiler="gcc")


def test_compilers_for_accelerators_run_one_chain_after_the_other() -> None:
    # Breadth first both large results are in memory at once; in post-order one of them.
    result = Module.parse(TWO_CHAINS).propagate()
    temporaries = {
        name: result.cost("tpu-v5e", compiler=name).memory.temp_size_in_bytes // LARGE
        for name in COMPILERS
    }
    # TPUs have what fits in vector memory.
    assert temporaries == {"xla-tpu": 0, "xla-gpu": 1, "xla-cpu": 2, "none": 2}


def test_memory_has_the_names_of_jax() -> None:
    cost = Module.parse(TWO_CHAINS).propagate().cost("tpu-v5e")
    memory = cost.memory
    # Rows of 64 take those of 128.
    assert memory.argument_size_in_bytes == 2 * LARGE + 2 * 64 * 128 * 4 == cost.argument_bytes
    assert memory.output_size_in_bytes == 64 * 128 * 4 == cost.output_bytes
    sums = memory.argument_size_in_bytes + memory.output_size_in_bytes + memory.temp_size_in_bytes
    assert sums - memory.alias_size_in_bytes == cost.peak_bytes
    # XLA's peak is of what is live, its temporary bytes have the holes between.
    assert memory.peak_memory_in_bytes == cost.peak_bytes - cost.hole_bytes
    assert memory.host_argument_size_in_bytes == memory.host_temp_size_in_bytes == 0


def test_small_products_are_split_on_gpus() -> None:
    # 128 rows and columns are one tile; what is contracted is split over the processors.
    text = """
func.func @main(%x: tensor<128x65536xbf16>, %y: tensor<65536x128xbf16>) -> tensor<128x128xbf16> {
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] :
      (tensor<128x65536xbf16>, tensor<65536x128xbf16>) -> tensor<128x128xbf16>
  return %0 : tensor<128x128xbf16>
}
"""
    result = Module.parse(text).propagate()
    one_sum = 128 * 128 * 4
    parts = shardcore.cost(result, "h100").memory.temp_size_in_bytes / one_sum
    assert parts > 8
    assert parts == round(parts)
    assert shardcore.cost(result, "h100", compiler="none").memory.temp_size_in_bytes == 0
