"""The memory of all-reduces: XLA for TPUs and GPUs writes their results over their operands."""

from __future__ import annotations

from dataclasses import replace

import pytest
import shardcore
from shardcore.calculus.hardware import hardware

MIB = 1 << 20
ARRAY = "tensor<8192x8192xf32>"
PEAKS = {"xla-tpu": 2, "xla-gpu": 2, "none": 3}
"""The arrays of 256 MiB at the peak, the argument included."""


def program(count: int) -> str:
    """A program of one device in which `count` products are added up over two devices."""
    lines = [
        f"""
  %p{k} = stablehlo.dot_general %a, %b{k}, contracting_dims = [1] x [0]
    : ({ARRAY}, {ARRAY}) -> {ARRAY}
  %r{k} = "stablehlo.all_reduce"(%p{k}) <{{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>,
    channel_handle = #stablehlo.channel_handle<handle = {k + 1}, type = 1>,
    use_global_device_ids}}> ({{
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %s = stablehlo.add %x, %y : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }}) : ({ARRAY}) -> {ARRAY}
  %t{k} = stablehlo.reduce(%r{k} init: %zero) applies stablehlo.add across dimensions = [0, 1]
    : ({ARRAY}, tensor<f32>) -> tensor<f32>"""
        for k in range(count)
    ]
    arguments = ", ".join(f"%b{k}: {ARRAY}" for k in range(1, count))
    types, names = ", ".join(["tensor<f32>"] * count), ", ".join(f"%t{k}" for k in range(count))
    return f"""
func.func @main(%a: {ARRAY}{", " * (count > 1)}{arguments}) -> ({types}) {{
  %zero = stablehlo.constant dense<0.0> : tensor<f32>{"".join(lines).replace("%b0", "%a")}
  return {names} : {types}
}}"""


def arrays_at_the_peak(count: int, compiler: str) -> int:
    result = shardcore.Module.parse(program(count)).propagate()
    # Kernels beside collectives would take memory too.
    chip = replace(hardware("tpu-v5e"), hides_latency=False)
    # Each result and scalar takes a tile of its own.
    return result.cost(chip, compiler=compiler).peak_bytes // (256 * MIB)


@pytest.mark.parametrize("compiler", PEAKS)
def test_results_are_written_over_operands_by_accelerators(compiler: str) -> None:
    assert arrays_at_the_peak(1, compiler) == PEAKS[compiler]


@pytest.mark.parametrize("count", [2, 3])
def test_so_are_those_of_several_that_are_too_large_to_be_combined(count: int) -> None:
    for compiler in ("xla-tpu", "xla-gpu"):
        assert arrays_at_the_peak(count, compiler) == count + 1, compiler
    assert arrays_at_the_peak(count, "none") == 3 * count
