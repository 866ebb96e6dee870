"""Steps whose memory is in the cache when they begin, and steps whose memory hosts map anew."""

from __future__ import annotations

from dataclasses import replace

import pytest
from shardcore import Cost, Module
from shardcore.calculus.achieved import Achieved
from shardcore.calculus.hardware import Hardware, hardware

SUM = """
func.func @main(%x: tensor<1024x1024xf32>, %y: tensor<1024x1024xf32>) -> tensor<1024x1024xf32> {
  %0 = stablehlo.add %x, %y : tensor<1024x1024xf32>
  return %0 : tensor<1024x1024xf32>
}
"""
MIB = 1 << 20
HOST = replace(
    hardware("h100"),
    compiler="xla-cpu",
    hbm_bytes_per_second=1e11,
    cache_bytes=16.0 * MIB,
    cache_bytes_per_second=2e11,
    achieved=Achieved(memory=0.5),
)


def cost(chip: Hardware) -> Cost:
    return Module.parse(SUM).propagate().cost(chip)


def host(**shares: float) -> Hardware:
    return replace(HOST, achieved=replace(HOST.achieved, **shares))


def test_what_fits_in_the_cache_is_there_from_the_step_before() -> None:
    assert cost(HOST).step_seconds == pytest.approx(12 * MIB / 1e11 / 0.5)
    kept = cost(host(cache_persists=True))
    assert kept.step_seconds == pytest.approx(12 * MIB / 2e11)
    # A bound on traffic with the memory would not hold: there is none.
    assert kept.step_seconds_lower < 12 * MIB / 2e11
    smaller = replace(host(cache_persists=True), cache_bytes=11.0 * MIB)
    assert cost(smaller).step_seconds == cost(HOST).step_seconds


def test_large_results_are_mapped_in_each_step() -> None:
    least = cost(HOST).step_seconds
    for size, mapped in ((4.0 * MIB, 4 * MIB), (4.0 * MIB + 1, 0)):
        found = cost(host(mapped_bytes=size, mapped_bytes_per_second=1e9)).step_seconds
        assert found - least == pytest.approx(mapped / 1e9)


def test_donated_results_are_not() -> None:
    donated = SUM.replace(
        "%x: tensor<1024x1024xf32>", "%x: tensor<1024x1024xf32> {tf.aliasing_output = 0 : i32}"
    )
    found = Module.parse(donated).propagate()
    assert (
        found.cost(host(mapped_bytes_per_second=1e9)).step_seconds == found.cost(HOST).step_seconds
    )


def test_hosts_copy_out_of_order_for_what_they_fuse() -> None:
    text = """
func.func @main(%x: tensor<1024x1024xf32>) -> tensor<1024x1024xf32> {
  %0 = stablehlo.transpose %x, dims = [1, 0] : (tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
  %1 = stablehlo.add %0, %0 : tensor<1024x1024xf32>
  return %1 : tensor<1024x1024xf32>
}
"""
    result = Module.parse(text).propagate()
    found = result.cost(host(scattered=0.05))
    assert found.step_seconds == pytest.approx(8 * MIB / 1e11 / 0.05)
    assert found.step_seconds == pytest.approx(sum(k.seconds * k.count for k in found.kernels))
