"""The order in which XLA for GPUs and TPUs runs kernels, so that collectives run beside others."""

from __future__ import annotations

from dataclasses import replace

import pytest
import shardcore
from shardcore.calculus.hardware import Hardware, hardware

from tests.accelerators.measured import text

H100 = hardware("h100")
V5E = hardware("tpu-v5e")
IN_ORDER = replace(H100, hides_latency=False)
MESH = 'sdy.mesh @mesh = <["x"=8]>'
# Rows are gathered before the first product; the second one needs no collective.
PRODUCTS = (
    MESH
    + """
func.func public @main(
    %a: tensor<8192x8192xbf16> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>},
    %b: tensor<8192x8192xbf16>,
    %c: tensor<8192x8192xbf16>
) -> (tensor<8192x8192xbf16>, tensor<8192x8192xbf16>) {
  %g = sdy.sharding_constraint %a <@mesh, [{}, {}]> : tensor<8192x8192xbf16>
  %p = stablehlo.dot_general %g, %b, contracting_dims = [1] x [0]
      : (tensor<8192x8192xbf16>, tensor<8192x8192xbf16>) -> tensor<8192x8192xbf16>
  %q = stablehlo.dot_general %b, %c, contracting_dims = [1] x [0]
      : (tensor<8192x8192xbf16>, tensor<8192x8192xbf16>) -> tensor<8192x8192xbf16>
  return %p, %q : tensor<8192x8192xbf16>, tensor<8192x8192xbf16>
}
"""
)
# A loop that sums over devices in each trip, and a gathered array that is read after it.
LOOP = (
    MESH
    + """
func.func public @main(
    %a: tensor<8192x8192xbf16> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>},
    %b: tensor<8192x8192xbf16> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>},
    %c: tensor<8192x8192xbf16>
) -> tensor<8192x8192xbf16> {
  %g = sdy.sharding_constraint %a <@mesh, [{}, {}]> : tensor<8192x8192xbf16>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %trips = stablehlo.constant dense<{TRIPS}> : tensor<i32>
  %r:2 = stablehlo.while(%i = %zero, %x = %c) : tensor<i32>, tensor<8192x8192xbf16>
  cond {
    %more = stablehlo.compare LT, %i, %trips : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %more : tensor<i1>
  } do {
    %next = stablehlo.add %i, %one : tensor<i32>
    %y = stablehlo.dot_general %x, %b, contracting_dims = [1] x [0]
        : (tensor<8192x8192xbf16>, tensor<8192x8192xbf16>) -> tensor<8192x8192xbf16>
    %z = sdy.sharding_constraint %y <@mesh, [{}, {}]> : tensor<8192x8192xbf16>
    stablehlo.return %next, %z : tensor<i32>, tensor<8192x8192xbf16>
  }
  %p = stablehlo.dot_general %r#1, %g, contracting_dims = [1] x [0]
      : (tensor<8192x8192xbf16>, tensor<8192x8192xbf16>) -> tensor<8192x8192xbf16>
  return %p : tensor<8192x8192xbf16>
}
"""
)


def places(text: str, chip: Hardware) -> dict[str, list[int]]:
    """When ops run, by name."""
    cost = shardcore.Module.parse(text).propagate().cost(chip)
    found: dict[str, list[int]] = {}
    for place, point in enumerate(cost.memory_timeline().points):
        found.setdefault(point.name, []).append(place)
    return found


@pytest.mark.parametrize("chip", [H100, V5E])
def test_a_product_runs_beside_a_gather_that_another_one_waits_for(chip: Hardware) -> None:
    found = places(PRODUCTS, chip)
    [gather], [beside, reads] = (
        found["stablehlo.all_gather"],
        found["stablehlo.dot_general"],
    )
    assert gather < beside < reads
    timeline = shardcore.Module.parse(PRODUCTS).propagate().cost(chip).memory_timeline()
    assert [timeline.points[place].value for place in (beside, reads)] == ["%q", "%p"]


def test_nothing_runs_between_a_gather_and_its_user_where_latency_is_not_hidden() -> None:
    found = places(PRODUCTS, IN_ORDER)
    [gather] = found["stablehlo.all_gather"]
    assert gather + 1 in found["stablehlo.dot_general"]
    timeline = shardcore.Module.parse(PRODUCTS).propagate().cost(IN_ORDER).memory_timeline()
    assert timeline.points[gather + 1].value == "%p"


def test_a_gather_does_not_run_beside_a_loop_with_collectives() -> None:
    found = places(LOOP.replace("{TRIPS}", "4"), H100)
    assert max(found["stablehlo.reduce_scatter"]) < found["stablehlo.all_gather"][-1]


def test_a_gather_does_not_run_beside_a_loop_with_gathers_on_tpus() -> None:
    # A TPU runs one all-gather at a time; other collectives are none of its business.
    with_gather = LOOP.replace("{TRIPS}", "4")
    without = with_gather.replace(
        '%b: tensor<8192x8192xbf16> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}',
        "%b: tensor<8192x8192xbf16>",
    ).replace("%z = sdy.sharding_constraint %y <@mesh, [{}, {}]>", "%z = stablehlo.negate %y")
    for program, is_before in ((without, True), (with_gather, False)):
        found = places(program, V5E)
        assert (found["stablehlo.all_gather"][-1] < found["stablehlo.while"][0]) is is_before


@pytest.mark.parametrize("chip", ["h100", "h200", "b200", "gb200", "tpu-v5e"])
def test_latency_is_hidden_from_hopper_on(chip: str) -> None:
    assert hardware(chip).hides_latency
    assert hardware(chip).facts[2] == int(hardware(chip).hbm_bytes)


@pytest.mark.parametrize("chip", ["a100", "l4", "mi300x", "tpu-v5p", "tpu-v6e"])
def test_others_do_not_hide_it_so(chip: str) -> None:
    assert hardware(chip).facts[2] is None


@pytest.mark.parametrize("name", ["gpt-fsdp", "llama-scan-fsdp", "experts-data", "pipeline-train"])
def test_all_kernels_run_whatever_memory_there_is(name: str) -> None:
    result = shardcore.Module.parse(text(name)).propagate(legalize_chlo=True)
    ops = [
        sorted(str(point.value) for point in result.cost(chip).memory_timeline().points)
        for chip in (IN_ORDER, H100, *(replace(H100, hbm_bytes=size) for size in (1.0, 1e6, 1e7)))
    ]
    assert all(found == ops[0] for found in ops)


def test_little_memory_decides_the_order() -> None:
    cost = shardcore.Module.parse(PRODUCTS).propagate().cost(H100)
    small = replace(H100, hbm_bytes=cost.peak_bytes)
    held = shardcore.Module.parse(PRODUCTS).propagate().cost(small)
    assert held.peak_bytes <= cost.peak_bytes
