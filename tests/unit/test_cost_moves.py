"""What moves without a sharding rule: between meshes, and for ops that are computed whole."""

from __future__ import annotations

import pytest
import shardcore
from shardcore import Cost, Module, PartitionError, Result

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
    "one device": f"%0 = sdy.sharding_constraint %arg0 <@last, []> : {T}",
}


SHARD = 4096 * 4096 * 4 // 8
SENT = {
    # Dim 0 is made whole in exchange for dim 1, whose shards then are in another order.
    "reshard": [("all_to_all", 2 * SHARD), ("collective_permute", SHARD)],
    "order": [("collective_permute", SHARD)],
    # XLA gathers the last dim first.
    "one device": [("all_gather", 4 * SHARD), ("all_gather", 8 * SHARD)],
}
SENT |= {
    "constraint": SENT["reshard"],
    "operand": SENT["reshard"],
    "order of an operand": SENT["order"],
}


@pytest.mark.parametrize("name", MOVES)
@pytest.mark.parametrize("hardware", ["tpu-v5p", "h100"])
def test_what_goes_to_another_mesh_or_order_is_counted(name: str, hardware: str) -> None:
    result = propagated(MOVES[name])
    cost = result.cost(hardware)
    assert [(row.kind, row.bytes) for row in cost.collectives] == SENT[name]
    assert all(row.seconds > 0 for row in cost.collectives)
    assert not cost.uncounted
    kinds = list(dict.fromkeys(kind for kind, _ in SENT[name]))
    forbidden = result.check({"collectives": {"forbid": kinds}})
    assert [failure.path[-1] for failure in forbidden.failures] == list(range(len(kinds)))


def test_shardings_of_what_goes_to_another_order_are_over_both_meshes() -> None:
    [row] = propagated(MOVES["order"]).cost().collectives
    assert (row.operand_sharding, row.result_sharding) == (
        '<@grid, [{"a"}, {"b"}]>',
        '<@turned, [{"a"}, {"b"}]>',
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
    body = f"%0 = sdy.reshard %arg0 <@line, [{{}}, {{}}]> : {T}"
    cost = propagated(body, '<@line, [{"x"}, {}]>').cost(topology="2x4", mapping="a=0 b=1")
    assert [row.seconds for row in cost.collectives] == [0.0]
    [row] = cost.uncounted
    assert (row.name, row.missing, row.bytes) == ("all_gather", "communication", 8 * SHARD)
    assert "does not lie on the topology" in row.reason


def test_collectives_that_run_as_one_on_such_a_mesh_are_listed() -> None:
    square = "tensor<64x64xf32>"
    product = f": ({square}, {square}) -> {square}"
    body = f"""%1 = stablehlo.negate %arg0 : {square}
    %2 = stablehlo.dot_general %arg0, %1, contracting_dims = [1] x [0] {product}
    %3 = stablehlo.dot_general %1, %arg0, contracting_dims = [1] x [0] {product}
    %0 = stablehlo.add %2, %3 : {square}"""
    result = propagated(body, '<@line, [{}, {"x"}]>', square)
    cost = result.cost(topology="2x4", mapping="a=0 b=1", policy="shardy")
    assert len(cost.collectives) > 1
    assert {row.combined for row in cost.collectives} == {1}
    assert {row.name for row in cost.uncounted} == {row.kind for row in cost.collectives}


def gathered(cost: Cost) -> list[tuple[str, tuple[str, ...], int, str | None]]:
    return [(row.kind, row.axes, row.bytes, row.cause) for row in cost.collectives]


SMALL = "tensor<64x16xf32>"


def test_an_op_without_a_rule_gathers_its_operands_and_slices_its_results() -> None:
    body = f'%0 = "my.op"(%arg0, %arg0) {on(BY_A)} : ({SMALL}, {SMALL}) -> {SMALL}'
    result = propagated(body, '<@grid, [{"a"}, {"b"}]>', SMALL)
    cost = result.cost()
    whole = 64 * 16 * 4
    assert gathered(cost) == [
        ("all_gather", ("b",), whole // 2, "my.op"),
        ("all_gather", ("a",), whole, "my.op"),
    ]
    assert "stablehlo.dynamic_slice" in [row.name for row in cost.ops]
    assert [(row.name, row.missing, row.bytes) for row in cost.uncounted] == [
        ("my.op", "compute", 3 * whole)
    ]
    # To run the program is another matter.
    with pytest.raises(PartitionError, match=r"'my\.op' op cannot be partitioned"):
        result.partition("xla")
    # A rule makes the difference.
    shardcore.rule("my.op", "i j, i j -> i j")
    try:
        ruled = propagated(body, '<@grid, [{"a"}, {"b"}]>', SMALL).cost()
    finally:
        shardcore.rules.unregister("my.op")
    assert "all_gather" not in [row.kind for row in ruled.collectives if row.bytes == whole]


@pytest.mark.parametrize("target", ["my_kernel", "my_callback", "Sharding"])
def test_custom_calls_of_unknown_targets_gather(target: str) -> None:
    body = f"%0 = stablehlo.custom_call @{target}(%arg0) : ({SMALL}) -> {SMALL}"
    cost = propagated(body, '<@grid, [{"a"}, {}]>', SMALL).cost()
    # A call of @Sharding is a reshard, here to no axes.
    assert [row.kind for row in cost.collectives] == ["all_gather"]
    assert [row.reason for row in cost.uncounted] == (
        [] if target == "Sharding" else ["its target is not known"]
    )


@pytest.mark.parametrize("policy", ["xla", "shardy", "least"])
def test_ops_that_talk_to_the_host_and_unknown_callees_are_listed(policy: str) -> None:
    text = f"""{MESHES}
    func.func @main(%arg0: {SMALL} {{sdy.sharding = #sdy.sharding<@grid, [{{"a"}}, {{}}]>}},
        %token: !stablehlo.token) -> {SMALL} {{
      %0 = "stablehlo.outfeed"(%arg0, %token) : ({SMALL}, !stablehlo.token) -> !stablehlo.token
      %1 = stablehlo.negate %arg0 : {SMALL}
      return %1 : {SMALL}
    }}"""
    cost = Module.parse(text).propagate().cost(policy=policy)
    assert [row.name for row in cost.uncounted] == ["stablehlo.outfeed"]
    assert [row.kind for row in cost.collectives] == ["all_gather"]
    assert cost.policy == policy


def test_an_fft_is_computed_whole_where_its_batch_is_sharded() -> None:
    ty = "tensor<8x16xcomplex<f32>>"
    body = f"%0 = stablehlo.fft %arg0, type = FFT, length = [16] : ({ty}) -> {ty}"
    cost = propagated(body, '<@grid, [{"a"}, {}]>', ty).cost()
    assert gathered(cost)[0] == ("all_gather", ("a",), 8 * 16 * 8, "stablehlo.fft")
    alone = Module.parse(f"func.func @main(%arg0: {ty}) -> {ty} {{ {body} return %0 : {ty} }}")
    # To find its slice of the result a device converts its id, divides and multiplies.
    assert cost.flops == alone.propagate().cost().flops + 3


def test_ops_that_hand_values_on_do_not_gather() -> None:
    text = f"""{MESHES}
    func.func @main(
        %arg0: {SMALL} {{sdy.sharding = #sdy.sharding<@grid, [{{"a"}}, {{}}]>}},
        %p: tensor<i32>) -> {SMALL} {{
      %0 = stablehlo.optimization_barrier %arg0 : {SMALL}
      %1 = "stablehlo.case"(%p) ({{
        %3 = stablehlo.negate %0 : {SMALL}
        stablehlo.return %3 : {SMALL}
      }}, {{
        stablehlo.return %0 : {SMALL}
      }}) : (tensor<i32>) -> {SMALL}
      %2 = func.call @f(%1) : ({SMALL}) -> {SMALL}
      return %2 : {SMALL}
    }}
    func.func private @f(%a: {SMALL}) -> {SMALL} {{
      %0 = stablehlo.tanh %a : {SMALL}
      return %0 : {SMALL}
    }}"""
    assert not Module.parse(text).propagate().cost().collectives


def test_the_summary_says_what_is_not_in_the_step() -> None:
    body = f"""
      %1 = sdy.manual_computation(%arg0) in_shardings=[<@grid, [{{"a"}}, {{}}]>]
          out_shardings=[<@grid, [{{"a"}}, {{}}]>] manual_axes={{"a", "b"}}
          (%2: tensor<32x16xf32>) {{
        %3 = "stablehlo.all_reduce"(%2) ({{
          ^bb0(%p: tensor<f32>, %q: tensor<f32>):
            %s = stablehlo.add %p, %q : tensor<f32>
            stablehlo.return %s : tensor<f32>
        }}) {{replica_groups = dense<[[0, 5], [1, 4], [2, 7], [3, 6]]> : tensor<4x2xi64>}}
            : (tensor<32x16xf32>) -> tensor<32x16xf32>
        sdy.return %3 : tensor<32x16xf32>
      }} : ({SMALL}) -> {SMALL}
      %0 = "my.op"(%1) : ({SMALL}) -> {SMALL}"""
    cost = propagated(body, '<@grid, [{"a"}, {}]>', SMALL).cost()
    whole = 64 * 16 * 4
    assert cost.record()["not_in_step"] == {
        "compute_ops": 1,
        "compute_bytes": 2 * whole,
        "communication_ops": 1,
        "communication_bytes": whole // 2,
    }
    assert "not in step  1 exchange of data, up to 2.0 KiB; the work of 1 op on 8.0 KiB" in str(
        cost
    )
    complete = propagated(f"%0 = stablehlo.negate %arg0 : {SMALL}", '<@grid, [{"a"}, {}]>', SMALL)
    assert "not in step" not in str(complete.cost())
