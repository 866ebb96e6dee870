"""The point estimate of a step: schedules, bounds, shares of the peak, slices, kernels."""

from __future__ import annotations

import json
import math
import pickle
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import shardcore
from shardcore import AxisRef, CalculusError, Cost, CostEstimate, Mesh, PartitionError
from shardcore.calculus.achieved import Achieved
from shardcore.calculus.collective_time import TimeOptions, rates_of
from shardcore.calculus.hardware import Hardware, hardware, hardware_names
from shardcore.calculus.measured import ASSUMED_SPREAD, Measured
from shardcore.calculus.topology import Topology
from shardcore.cli import main
from shardcore.costs.rates import Rates
from shardcore.rules import Signature, unregister_cost_rule

IDEAL = """
[ideal]
kind = "torus"
flops = { bf16 = 1e12 }
link_bytes_per_second = 1e9
physical_axes = 2
pod = [4, 4]
dcn_bytes_per_second = 1e8
"""
"""A chip on which only FLOPs and links take time."""


@pytest.fixture
def ideal(tmp_path: Path) -> Path:
    path = tmp_path / "ideal.toml"
    path.write_text(IDEAL)
    return path


def program(body: str, mesh: str = '"x"=2', result: str = "tensor<1024x1024xbf16>") -> str:
    return f"""
sdy.mesh @mesh = <[{mesh}]>
func.func @main(
    %x: tensor<1024x1024xbf16>,
    %w: tensor<1024x1024xbf16> {{sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}, {{}}]>}})
    -> ({result} {{sdy.sharding = #sdy.sharding<@mesh, [{{}}, {{}}]>}}) {{
{body}
}}"""


PRODUCT = """  {out} = stablehlo.dot_general {a}, {b}, contracting_dims = [1] x [0]
      : (tensor<1024x1024xbf16>, tensor<1024x1024xbf16>) -> tensor<1024x1024xbf16>
"""
GATHERED = """  %g = sdy.sharding_constraint %w <@mesh, [{}, {}]> : tensor<1024x1024xbf16>
"""
FLOPS_SECONDS = 2 * 1024**3 / 1e12
GATHER_SECONDS = 1024 * 1024 / 1e9


def cost_of(text: str, chip: str | Hardware = "ideal", **options: object) -> Cost:
    return shardcore.cost(shardcore.Module.parse(text), chip, **options)  # type: ignore[arg-type]


def product(out: str, a: str, b: str) -> str:
    return PRODUCT.format(out=out, a=a, b=b)


def test_each_product_of_a_batch_may_be_launched() -> None:
    text = """func.func @main(%a: tensor<16x256x256xbf16>) -> tensor<16x256x256xbf16> {
  %0 = stablehlo.dot_general %a, %a, batching_dims = [0] x [0], contracting_dims = [2] x [1]
      : (tensor<16x256x256xbf16>, tensor<16x256x256xbf16>) -> tensor<16x256x256xbf16>
  return %0 : tensor<16x256x256xbf16>
}"""
    chip = hardware("h100")
    slow = replace(chip, achieved=replace(chip.achieved, group_seconds=1e-5))
    seconds = [
        shardcore.cost(shardcore.Module.parse(text), one).step_seconds for one in (chip, slow)
    ]
    assert seconds[1] - seconds[0] == pytest.approx(15e-5)


def test_an_interval_of_a_chip_that_nobody_measured_says_so(ideal: Path) -> None:
    body = product("%0", "%x", "%x") + "  return %0 : tensor<1024x1024xbf16>"
    cost = cost_of(program(body), hardware_file=ideal)
    factor = math.exp(1.645 * ASSUMED_SPREAD)
    assert cost.confidence.runs == 0
    assert cost.step_seconds_upper == pytest.approx(factor * cost.step_seconds)
    # No step is below the bound, which this one reaches.
    assert cost.confidence.low == cost.step_seconds_lower == pytest.approx(cost.step_seconds)
    assert "no step on many chips of ideal is known" in str(cost)


def test_more_runs_make_an_interval_narrower() -> None:
    factors = [Measured(runs, 0.1, "").factor for runs in (1, 2, 5, 9, 40)]
    assert factors == sorted(factors, reverse=True)
    assert factors[-1] == pytest.approx(math.exp(1.645 * 0.1 * math.sqrt(41 / 40)))


def test_a_collective_overlaps_with_what_does_not_need_it(ideal: Path) -> None:
    body = product("%0", "%x", "%x") + GATHERED + product("%1", "%0", "%g")
    cost = cost_of(program(body + "  return %1 : tensor<1024x1024xbf16>"), hardware_file=ideal)
    assert cost.comm_seconds == pytest.approx(GATHER_SECONDS)
    assert cost.step_seconds == pytest.approx(2 * FLOPS_SECONDS)
    assert cost.exposed_seconds == 0
    assert cost.step_seconds_lower == pytest.approx(2 * FLOPS_SECONDS)


def test_a_collective_that_is_needed_at_once_is_exposed(ideal: Path) -> None:
    body = GATHERED + product("%0", "%x", "%g") + "  return %0 : tensor<1024x1024xbf16>"
    cost = cost_of(program(body), hardware_file=ideal)
    assert cost.step_seconds == pytest.approx(FLOPS_SECONDS + GATHER_SECONDS)
    (row,) = cost.collectives
    assert row.exposed_seconds == pytest.approx(GATHER_SECONDS) == cost.exposed_seconds
    assert cost.by_kind()["all_gather"].exposed_seconds == row.exposed_seconds


def test_a_split_collective_overlaps_with_its_product(ideal: Path) -> None:
    ideal.write_text(IDEAL + "[ideal.achieved]\nsplits_collectives = true\n")
    body = GATHERED + product("%0", "%x", "%g") + "  return %0 : tensor<1024x1024xbf16>"
    cost = cost_of(program(body), hardware_file=ideal)
    # The product starts with the first of two chunks, and takes longer than the other.
    assert cost.step_seconds == pytest.approx(FLOPS_SECONDS + GATHER_SECONDS / 2)


@pytest.mark.parametrize("in_products", [False, True])
def test_products_may_take_the_steps_of_collectives(ideal: Path, in_products: bool) -> None:
    flag = f"steps_in_products = {str(in_products).lower()}"
    ideal.write_text(IDEAL + f"[ideal.achieved]\nvector_flops = 2e9\n{flag}\n")
    other = "  %e = stablehlo.exponential %x : tensor<1024x1024xbf16>\n"
    other_seconds = 1024 * 1024 / 2e9
    for work in (other, other + product("%p", "%e", "%e")):
        last = "%p" if "%p" in work else "%e"
        body = work + GATHERED + product("%0", last, "%g")
        text = program(body + "  return %0 : tensor<1024x1024xbf16>")
        cost = cost_of(text, hardware_file=ideal, compiler="none")
        hidden = FLOPS_SECONDS if "%p" in work else 0
        hidden += 0 if in_products else other_seconds
        exposed = max(0, GATHER_SECONDS - hidden)
        assert cost.exposed_seconds == pytest.approx(exposed)
        ops = other_seconds + FLOPS_SECONDS * work.count("dot_general") + FLOPS_SECONDS
        assert cost.step_seconds == pytest.approx(ops + exposed)


def test_overlap_takes_a_share_of_the_memory(ideal: Path) -> None:
    ideal.write_text(IDEAL + "[ideal.achieved]\ncontention = 0.5\n")
    body = product("%0", "%x", "%x") + GATHERED + product("%1", "%0", "%g")
    cost = cost_of(program(body + "  return %1 : tensor<1024x1024xbf16>"), hardware_file=ideal)
    assert cost.step_seconds == pytest.approx(2 * FLOPS_SECONDS + GATHER_SECONDS / 2)
    assert cost.step_seconds_lower <= cost.step_seconds <= cost.step_seconds_upper


def test_iterations_of_a_loop_follow_each_other(ideal: Path) -> None:
    text = """
sdy.mesh @mesh = <["x"=2]>
func.func @main(
    %x: tensor<1024x1024xbf16>,
    %w: tensor<1024x1024xbf16> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>})
    -> (tensor<1024x1024xbf16> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) {
  %c0 = stablehlo.constant dense<0> : tensor<i32>
  %0:2 = stablehlo.while(%i = %c0, %y = %x) : tensor<i32>, tensor<1024x1024xbf16>
  cond {
    %n = stablehlo.constant dense<5> : tensor<i32>
    %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %j = stablehlo.add %i, %one : tensor<i32>
    %s = stablehlo.negate %w : tensor<1024x1024xbf16>
    %g = sdy.sharding_constraint %s <@mesh, [{}, {}]> : tensor<1024x1024xbf16>
    %z = stablehlo.dot_general %y, %g, contracting_dims = [1] x [0]
        : (tensor<1024x1024xbf16>, tensor<1024x1024xbf16>) -> tensor<1024x1024xbf16>
    stablehlo.return %j, %z : tensor<i32>, tensor<1024x1024xbf16>
  }
  return %0#1 : tensor<1024x1024xbf16>
}"""
    cost = cost_of(text, hardware_file=ideal)
    assert [row.trips for row in cost.loops] == [5]
    assert cost.exposed_seconds == pytest.approx(5 * GATHER_SECONDS, rel=1e-3)
    assert cost.step_seconds == pytest.approx(5 * (FLOPS_SECONDS + GATHER_SECONDS), rel=1e-3)


def test_small_products_reach_less() -> None:
    shares = Achieved(tile=(128, 128, 1), units=4)
    assert shares.shape_share(1, 512, 128, 4096) == 1.0
    assert shares.shape_share(1, 640, 128, 4096) == 5 / 8
    assert shares.shape_share(1, 1, 512, 4096) == 1 / 128
    assert shares.shape_share(4, 128, 128, 8) == 1.0
    assert Achieved(message_bytes=1e6).message_share(3e6) == 0.75
    assert pickle.loads(pickle.dumps(hardware("h100"))) == hardware("h100")


def test_types_have_shares_of_their_own() -> None:
    text = program(product("%0", "%x", "%x") + "  return %0 : tensor<1024x1024xbf16>")
    times = {}
    for dtype in ("bf16", "f32", "f8E4M3FN"):
        times[dtype] = cost_of(text.replace("xbf16", f"x{dtype}"), "h100").step_seconds
    assert times["f8E4M3FN"] < times["bf16"] < times["f32"]


@pytest.mark.parametrize(
    "line",
    [
        "memory = 2",
        "links = 0",
        "tile = [1, 2]",
        "units = 0.5",
        "products = { bf17 = 0.5 }",
        "splits_collectives = 1",
        "contention = -1",
        "op_seconds = -1",
        "speed = 1",
    ],
)
def test_shares_are_checked(ideal: Path, line: str) -> None:
    ideal.write_text(f"{IDEAL}[ideal.achieved]\n{line}\n")
    with pytest.raises(CalculusError) as caught:
        hardware("ideal", ideal)
    assert caught.value.code == "hardware-file"


def test_a_user_overrides_one_share(ideal: Path) -> None:
    ideal.write_text("[h100.achieved]\nmemory = 0.5\nproducts = { f32 = 0.1 }\n")
    found, known = hardware("h100", ideal).achieved, hardware("h100").achieved
    assert (found.memory, found.products["fp32"]) == (0.5, 0.1)
    assert (found.links, found.products["bf16"]) == (known.links, known.products["bf16"])


@pytest.mark.parametrize("name", hardware_names())
def test_every_chip_has_a_step_between_bounds(name: str) -> None:
    body = product("%0", "%x", "%x") + GATHERED + product("%1", "%0", "%g")
    cost = cost_of(program(body + "  return %1 : tensor<1024x1024xbf16>"), name)
    assert 0 < cost.step_seconds_lower < cost.step_seconds < cost.step_seconds_upper


def test_default_places() -> None:
    pod = Topology.of(Mesh({"fsdp": 256}), hardware("tpu-v5e"))
    assert [part.size for part in pod.along(["fsdp"])] == [16, 16]
    assert not pod.notes
    cube = Topology.of(Mesh({"fsdp": 16, "tensor": 4}), hardware("tpu-v5p"))
    assert [part.size for part in cube.along(["fsdp"])] == [4, 4]
    long = Topology.of(Mesh({"fsdp": 64, "tensor": 8}), hardware("tpu-v5p"))
    assert [part.size for part in long.along(["fsdp", "tensor"])] == [8, 8, 8]


def test_slices_share_a_network(ideal: Path) -> None:
    mesh = Mesh({"data": 2, "x": 2})
    chip = hardware("ideal", ideal)
    two = Topology.of(mesh, chip, slices=2)
    assert two.slices_of(["data"]) == (2, 1)
    assert two.slices_of(["data", "x"]) == (2, 2)
    assert [part.size for part in two.along(["data", "x"])] == [2]
    # 32 pods of v5e, without being told.
    assert Topology.of(Mesh({"data": 32, "fsdp": 256}), hardware("tpu-v5e")).slices == 32
    for slices in (0, 3, 8):
        with pytest.raises(CalculusError) as caught:
            Topology.of(mesh, chip, slices=slices)
        assert caught.value.code == "invalid-topology"


def test_groups_of_listed_devices_that_share_a_slice() -> None:
    # Along "a" are devices 0 and 1, in one slice, though slices divide that axis.
    mesh = Mesh([("a", 2), ("b", 4)], [0, 2, 4, 6, 1, 3, 5, 7])
    topology = Topology.of(mesh, hardware("tpu-v5e"), slices=2)
    assert topology.slices_of(["a"]) == (1, 2)
    for op in ("all_gather", "reduce_scatter", "all_reduce", "all_to_all", "permute"):
        one = rates_of(op, (AxisRef("a"),), topology, TimeOptions())
        line = Topology.of(Mesh({"a": 2}), hardware("tpu-v5e"))
        other = rates_of(op, (AxisRef("a"),), line, TimeOptions())
        assert one.seconds_per_byte == other.seconds_per_byte > 0
        both = rates_of(op, (AxisRef("a"), AxisRef("b")), topology, TimeOptions())
        assert both.seconds_per_byte > 0


def test_bandwidth_between_slices(ideal: Path) -> None:
    body = product("%0", "%x", "%w") + "  return %0 : tensor<1024x1024xbf16>"
    text = program(body).replace(
        "%x: tensor<1024x1024xbf16>,",
        '%x: tensor<1024x1024xbf16> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>},',
    )
    reduced = 2 * 1024 * 1024
    inside = cost_of(text, hardware_file=ideal)
    across = cost_of(text, hardware_file=ideal, slices=2)
    faster = cost_of(text, hardware_file=ideal, slices=2, dcn=2e8)
    assert inside.comm_seconds == pytest.approx(reduced / 1e9)
    assert across.comm_seconds == pytest.approx(reduced / 1e8)
    assert faster.comm_seconds == pytest.approx(reduced / 2e8)
    with pytest.raises(CalculusError):
        cost_of(text, hardware_file=ideal, dcn=0)


CALL = """  %0 = stablehlo.custom_call @kernel(%x) {CONFIG} :
      (tensor<1024x1024xbf16>) -> tensor<1024x1024xbf16>
  return %0 : tensor<1024x1024xbf16>"""


@pytest.fixture
def no_rule() -> Iterator[None]:
    yield
    unregister_cost_rule("kernel")


def test_a_kernel_says_what_it_costs() -> None:
    estimate = {"flops": 1000, "transcendentals": 7, "bytes_accessed": 64}
    config = json.dumps({"custom_call_config": {"cost_estimate": estimate}}).replace('"', '\\"')
    cost = cost_of(program(CALL.replace("CONFIG", f'backend_config = "{config}"')), "tpu-v5p")
    assert (cost.flops, cost.transcendentals, cost.hbm_bytes) == (1000, 7, 64)
    assert cost.uncounted == ()
    assert cost.usage.model_flops == 1000


def test_a_cost_rule(no_rule: None) -> None:
    text = program(CALL.replace("CONFIG", ""))
    (row,) = cost_of(text, "tpu-v5p").uncounted
    assert row.name == "stablehlo.custom_call @kernel"

    @shardcore.cost_rule("kernel")
    def estimate(call: Signature) -> CostEstimate:
        (operand,) = call.operand_types
        assert operand is not None
        return CostEstimate(flops=2 * math.prod(operand.shape), bytes=100)

    cost = cost_of(text, "tpu-v5p")
    assert (cost.flops, cost.hbm_bytes, cost.uncounted) == (2 * 1024 * 1024, 100, ())
    shardcore.cost_rule("kernel", CostEstimate(5))
    assert cost_of(text, "tpu-v5p").flops == 5
    shardcore.cost_rule("kernel", CostEstimate(-1))
    with pytest.raises(PartitionError) as caught:
        cost_of(text, "tpu-v5p")
    assert caught.value.code == "invalid-rule"


def test_usage() -> None:
    text = """
func.func @main(%t: tensor<4x8xi32>, %x: tensor<512x512xbf16>) -> tensor<512x512xbf16> {
  %0 = stablehlo.dot_general %x, %x, contracting_dims = [1] x [0]
      : (tensor<512x512xbf16>, tensor<512x512xbf16>) -> tensor<512x512xbf16>
      loc("jit(f)/dot_general"("a.py":1:1))
  %1 = stablehlo.dot_general %0, %x, contracting_dims = [1] x [0]
      : (tensor<512x512xbf16>, tensor<512x512xbf16>) -> tensor<512x512xbf16>
      loc("jit(f)/transpose(jvp(f))/rematted_computation/dot_general"("a.py":1:1))
  return %1 : tensor<512x512xbf16>
}"""
    cost = cost_of(text, "tpu-v5p")
    used = cost.usage
    assert used.model_flops == used.recomputed_flops == 2 * 512**3
    assert used.recomputed_share == 0.5
    assert used.mfu == pytest.approx(2 * 512**3 / cost.step_seconds / 4.59e14)
    assert used.hfu == pytest.approx(2 * used.mfu)
    assert (used.tokens, cost_of(text, "tpu-v5p", tokens=7).usage.tokens) == (32, 7)
    assert used.tokens_per_second == pytest.approx(32 / cost.step_seconds)
    assert cost.record()["usage"] == used.record()
    assert pickle.loads(pickle.dumps(cost)) == cost
    assert pickle.loads(pickle.dumps(cost)).usage == used
    assert "50.0% recomputed" in str(cost)


SHARDED = """sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%x: tensor<512x512xf32> {sdy.sharding = #sdy.sharding<@mesh, [AXES, {}]>},
    %w: tensor<512x512xf32>)
    -> (tensor<512x512xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
      : (tensor<512x512xf32>, tensor<512x512xf32>) -> tensor<512x512xf32>
  return %0 : tensor<512x512xf32>
}"""


@pytest.mark.parametrize(("axes", "shards"), [("", 1), ('"x"', 4), ('"x", "y"', 8)])
def test_what_devices_compute_alike_is_no_model_flops(axes: str, shards: int) -> None:
    used = cost_of(SHARDED.replace("AXES", f"{{{axes}}}"), "tpu-v5p").usage
    flops = 2 * 512**3
    assert used.model_flops == flops // 8
    assert used.replicated_flops == flops // shards - flops // 8
    assert used.replicated_share == pytest.approx(1 - shards / 8)
    assert used.mfu == pytest.approx(used.hfu * shards / 8)


def test_model_flops_in_a_manual_computation() -> None:
    """Its types are those of one device along the manual axes."""
    text = """sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%x: tensor<512x512xf32>, %w: tensor<512x512xf32>) -> tensor<512x512xf32> {
  %0 = sdy.manual_computation(%x, %w) in_shardings=[<@mesh, [{"x"}, {}]>, <@mesh, [{}, {}]>]
      out_shardings=[<@mesh, [{"x"}, {}]>] manual_axes={"x"}
      (%a: tensor<128x512xf32>, %b: tensor<512x512xf32>) {
    %1 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
        : (tensor<128x512xf32>, tensor<512x512xf32>) -> tensor<128x512xf32>
    sdy.return %1 : tensor<128x512xf32>
  } : (tensor<512x512xf32>, tensor<512x512xf32>) -> tensor<512x512xf32>
  return %0 : tensor<512x512xf32>
}"""
    used = cost_of(text, "tpu-v5p").usage
    assert (used.model_flops, used.replicated_flops) == (2 * 512**3 // 8, 2 * 512**3 // 8)


RAGGED = """
func.func @main(%t: tensor<4x8x16xi32>, %x: tensor<512x64xbf16>, %w: tensor<8x64x32xbf16>,
    %sizes: tensor<8xi32>) -> tensor<512x32xbf16> {
  %0 = "chlo.ragged_dot"(%x, %w, %sizes) <{
      precision_config = [#chlo<precision DEFAULT>, #chlo<precision DEFAULT>],
      ragged_dot_dimension_numbers = #chlo.ragged_dot<lhs_contracting_dimensions = [1],
          rhs_contracting_dimensions = [1], lhs_ragged_dimensions = [0],
          rhs_group_dimensions = [0]>}>
      : (tensor<512x64xbf16>, tensor<8x64x32xbf16>, tensor<8xi32>) -> tensor<512x32xbf16>
  %1 = stablehlo.add %0, %0 : tensor<512x32xbf16>
  return %1 : tensor<512x32xbf16>
}"""


def test_usage_of_ragged_products_and_accumulated_batches() -> None:
    cost = cost_of(RAGGED, "tpu-v5p")
    assert cost.usage.model_flops == 2 * 512 * 64 * 32
    assert cost.usage.tokens == 4 * 8 * 16
    assert cost.usage.other_flops == 512 * 32
    assert cost.usage.other_share == pytest.approx(1 / 129)
    [kind] = [kind for kind, *_ in cost.rows._work if kind.unit == "grouped"]
    assert kind.sizes == (8, 64, 32, 64)
    assert "tokens/s" in str(cost)


OVER_ROWS = """
func.func @main(%x: tensor<512x64xbf16>, %w: tensor<512x32xbf16>, %sizes: tensor<8xi32>)
    -> tensor<8x64x32xbf16> {
  %0 = "chlo.ragged_dot"(%x, %w, %sizes) <{
      precision_config = [#chlo<precision DEFAULT>, #chlo<precision DEFAULT>],
      ragged_dot_dimension_numbers = #chlo.ragged_dot<lhs_contracting_dimensions = [0],
          rhs_contracting_dimensions = [0], lhs_ragged_dimensions = [0]>}>
      : (tensor<512x64xbf16>, tensor<512x32xbf16>, tensor<8xi32>) -> tensor<8x64x32xbf16>
  return %0 : tensor<8x64x32xbf16>
}"""


@pytest.mark.parametrize(
    ("text", "unit"), [(RAGGED, "grouped"), (OVER_ROWS, "grouped-contraction")]
)
def test_groups_of_a_product_take_a_tile_more_than_they_fill(text: str, unit: str) -> None:
    chip = replace(hardware("tpu-v5p"), hbm_bytes_per_second=1e18)
    seconds = []
    for tile in (0, 64):
        shares = replace(chip.achieved, group_tile=tile, op_seconds=0.0)
        one = replace(chip, achieved=shares)
        [kind] = [kind for kind, *_ in cost_of(text, one).rows._work if kind.unit == unit]
        seconds.append(Rates(one, 1).times(kind).achieved)
    # A group has 64 rows.
    assert seconds[1] == pytest.approx(2 * seconds[0])


def test_three_dims_of_bytes_are_images() -> None:
    assert cost_of(RAGGED.replace("4x8x16xi32", "4x8x16xui8"), "tpu-v5p").usage.tokens is None


def test_calibrate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    body = product("%0", "%x", "%x") + "  return %0 : tensor<1024x1024xbf16>"
    (tmp_path / "step.mlir").write_text(program(body))
    known = cost_of(program(body), "tpu-v5p")
    measured = {"file": "step.mlir", "step_seconds": known.step_seconds * 1.2}
    path = tmp_path / "measurements.json"
    path.write_text(json.dumps({"hardware": "tpu-v5p", "runs": [measured]}))
    fitted = tmp_path / "fitted.toml"
    assert main(["calibrate", str(path), "-o", str(fitted)]) == 0
    assert "step.mlir" in capsys.readouterr().out
    found = cost_of(program(body), "tpu-v5p", hardware_file=fitted)
    # One run more than those that the chip is based on moves it by a part.
    assert 1.04 * known.step_seconds < found.step_seconds < 1.15 * known.step_seconds
    assert found.step_seconds_upper >= measured["step_seconds"]
    assert found.confidence.runs == known.confidence.runs + (known.confidence.runs > 0)
    assert "step.mlir" in found.hardware.source["achieved"]
    assert main(["calibrate", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["runs"][0]["held_out"] is False


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        '{"hardware": "tpu-v5p"}',
        '{"hardware": "tpu-v5p", "runs": [3]}',
        '{"hardware": "tpu-v5p", "runs": [{"file": "a.mlir", "step_seconds": 0}]}',
        '{"hardware": "tpu-v5p", "runs": [{"file": "a.mlir", "seconds": 1}]}',
    ],
)
def test_measurements_are_checked(
    tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "measurements.json"
    path.write_text(text)
    assert main(["calibrate", str(path)]) == 1
    assert "measurements" in capsys.readouterr().err
