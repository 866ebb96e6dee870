"""What moves without a sharding rule: between meshes, and for ops that are computed whole."""

from __future__ import annotations

import pytest
import shardcore
from shardcore import Cost, Module, Result

MESHES = """
sdy.mesh @grid = <["a"=2, "b"=4]>
sdy.mesh @line = <["x"=8]>
sdy.mesh @turned = <["a"=2, "b"=4], device_ids=[7, 6, 5, 4, 3, 2, 1, 0]>
sdy.mesh @last = <[], device_ids=[7]>
"""
T = "tensor<4096x4096xf32>"


def propagated(body: str, sharding: str = '<@grid, [{"a"}, {"b"}]>', ty: str = T) -> Result:
    return Module.parse(
        f"{MESHES}func.func @main("
        f"%arg0: {ty} {{sdy.sharding = #sdy.sharding{sharding}}}) -> {ty} {{"
        f"{body}\nreturn %0 : {ty}\n}}"
    ).propagate()


def on(sharding: str) -> str:
    return f"{{sdy.sharding = #sdy.sharding_per_value<[{sharding}]>}}"


BY_X = '<@line, [{}, {"x"}]>'
TURNED = '<@turned, [{"a"}, {"b"}]>'
BY_A = '<@grid, [{}, {"a"}]>'
MOVES = {
    "reshard": f"%0 = sdy.reshard %arg0 {BY_X} : {T}",
    "constraint": f"%0 = sdy.sharding_constraint %arg0 {BY_X} : {T}",
    "operand": f"%0 = stablehlo.negate %arg0 {on(BY_X)} : {T}",
    "order": f"%0 = sdy.reshard %arg0 {TURNED} : {T}",
    "order of an operand": f"%0 = stablehlo.negate %arg0 {on(TURNED)} : {T}",
    "one device": f"%0 = stablehlo.negate %arg0 {on('<@last, []>')} : {T}",
}


@pytest.mark.parametrize("body", MOVES.values(), ids=MOVES)
@pytest.mark.parametrize("hardware", ["tpu-v5p", "h100"])
def test_what_goes_to_another_mesh_or_order_is_counted(body: str, hardware: str) -> None:
    result = propagated(body)
    cost = result.cost(hardware)
    [row] = cost.collectives
    assert row.kind in ("reshard", "collective_permute")
    assert row.bytes == 4096 * 4096 * 4 // 8
    assert row.seconds > 0 or [each.missing for each in cost.uncounted] == ["communication"]
    forbidden = result.check({"collectives": {"forbid": ["all_gather", row.kind]}})
    assert [failure.path[-1] for failure in forbidden.failures] == (
        [0, 1] if row.kind == "reshard" else [1]
    )


@pytest.mark.parametrize(
    ("sharding", "body"),
    [
        ('<@grid, [{"a", "b"}, {}]>', f'%0 = sdy.reshard %arg0 <@line, [{{"x"}}, {{}}]> : {T}'),
        ("<@grid, [{}, {}]>", MOVES["operand"]),
        ("<@line, [{}, {}]>", f"%0 = sdy.reshard %arg0 <@turned, [{{}}, {{}}]> : {T}"),
    ],
)
def test_what_every_device_has_already_does_not_move(sharding: str, body: str) -> None:
    cost = propagated(body, sharding).cost()
    assert sum(row.total_wire_bytes for row in cost.collectives) == 0
    assert cost.comm_seconds == 0
    assert not cost.uncounted


def test_a_mesh_that_does_not_lie_on_the_topology_is_listed() -> None:
    cost = propagated(MOVES["reshard"]).cost("tpu-v5p", topology="2x4", mapping="a=0 b=1")
    [row] = cost.uncounted
    assert (row.name, row.missing, row.bytes) == ("reshard", "communication", 8 << 20)
    assert "does not lie on the topology" in row.reason


def gathered(cost: Cost) -> list[tuple[str, tuple[str, ...], int, str | None]]:
    return [(row.kind, row.axes, row.bytes, row.cause) for row in cost.collectives]


SMALL = "tensor<64x16xf32>"


def test_an_op_without_a_rule_gathers_its_operands_and_slices_its_results() -> None:
    body = f'%0 = "my.op"(%arg0, %arg0) {on(BY_A)} : ({SMALL}, {SMALL}) -> {SMALL}'
    cost = propagated(body, '<@grid, [{"a"}, {"b"}]>', SMALL).cost()
    whole = 64 * 16 * 4
    assert gathered(cost) == [
        ("all_gather", ("a", "b"), whole, "my.op"),
        ("all_slice", ("a",), whole, "my.op"),
    ]
    assert [(row.name, row.missing, row.bytes) for row in cost.uncounted] == [
        ("my.op", "compute", 3 * whole)
    ]
    # A rule makes the difference.
    shardcore.rule("my.op", "i j, i j -> i j")
    try:
        ruled = propagated(body, '<@grid, [{"a"}, {"b"}]>', SMALL).cost()
    finally:
        shardcore.rules.unregister("my.op")
    assert "all_gather" not in [row.kind for row in ruled.collectives if row.bytes == whole]


@pytest.mark.parametrize("target", ["my_kernel", "Sharding"])
def test_custom_calls_of_unknown_targets_gather(target: str) -> None:
    body = f"%0 = stablehlo.custom_call @{target}(%arg0) : ({SMALL}) -> {SMALL}"
    kinds = [row.kind for row in propagated(body, '<@grid, [{"a"}, {}]>', SMALL).cost().collectives]
    assert kinds == (["all_gather"] if target == "my_kernel" else [])


def test_an_fft_is_computed_whole_where_its_batch_is_sharded() -> None:
    ty = "tensor<8x16xcomplex<f32>>"
    body = f"%0 = stablehlo.fft %arg0, type = FFT, length = [16] : ({ty}) -> {ty}"
    cost = propagated(body, '<@grid, [{"a"}, {}]>', ty).cost()
    assert gathered(cost)[0] == ("all_gather", ("a",), 8 * 16 * 8, "stablehlo.fft")
    assert (
        cost.flops
        == Module.parse(f"func.func @main(%arg0: {ty}) -> {ty} {{ {body} return %0 : {ty} }}")
        .propagate()
        .cost()
        .flops
    )


def test_ops_that_hand_values_on_do_not_gather() -> None:
    text = f"""{MESHES}
    func.func @main(
        %arg0: {SMALL} {{sdy.sharding = #sdy.sharding<@grid, [{{"a"}}, {{}}]>}},
        %p: tensor<i1>) -> {SMALL} {{
      %0 = stablehlo.optimization_barrier %arg0 : {SMALL}
      %1 = "stablehlo.if"(%p) ({{
        %3 = stablehlo.negate %0 : {SMALL}
        stablehlo.return %3 : {SMALL}
      }}, {{
        stablehlo.return %0 : {SMALL}
      }}) : (tensor<i1>) -> {SMALL}
      %2 = func.call @f(%1) : ({SMALL}) -> {SMALL}
      return %2 : {SMALL}
    }}
    func.func private @f(%a: {SMALL}) -> {SMALL} {{
      %0 = stablehlo.tanh %a : {SMALL}
      return %0 : {SMALL}
    }}"""
    assert not Module.parse(text).propagate().cost().collectives


def test_the_summary_says_what_is_not_in_the_step() -> None:
    body = f"%0 = stablehlo.reverse %arg0, dims = [0] : {SMALL}"
    cost = propagated(body, '<@grid, [{"a"}, {}]>', SMALL).cost()
    half = 64 * 16 * 4 // 2
    assert cost.not_in_step.communication_ops == 1
    assert cost.not_in_step.communication_bytes == 2 * half
    assert cost.record()["not_in_step"] == {
        "compute_ops": 0,
        "compute_bytes": 0,
        "communication_ops": 1,
        "communication_bytes": 2 * half,
    }
    assert "not in step  1 exchange of data, up to 4.0 KiB" in str(cost)
    complete = propagated(f"%0 = stablehlo.negate %arg0 : {SMALL}", '<@grid, [{"a"}, {}]>', SMALL)
    assert "not in step" not in str(complete.cost())
