"""Passes on the program of one device: what they take out, and that devices compute the same."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
import shardcore
from shardcore import Module, PassManager

from tests.spmd.texts import SCANNED

COUNT = 8
HEAD = "module attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {"
ROWS = "replica_groups = dense<[[0, 1, 2, 3], [4, 5, 6, 7]]> : tensor<2x4xi64>"
MIXED = "replica_groups = dense<[[2, 0, 3, 1], [4, 5, 6, 7]]> : tensor<2x4xi64>"
PAIRS = "replica_groups = dense<[[0, 1], [2, 3], [4, 5], [6, 7]]> : tensor<4x2xi64>"
ACROSS = "replica_groups = dense<[[0, 2], [1, 3], [4, 6], [5, 7]]> : tensor<4x2xi64>"
ALL = "replica_groups = dense<[[0, 1, 2, 3, 4, 5, 6, 7]]> : tensor<1x8xi64>"
SMALL, WHOLE = "tensor<2x3xf32>", "tensor<8x3xf32>"
CHANNEL = "channel_handle = #stablehlo.channel_handle<handle = {}, type = 1>"
ADD = """({
    ^bb0(%p: tensor<f32>, %q: tensor<f32>):
      %s = stablehlo.add %p, %q : tensor<f32>
      stablehlo.return %s : tensor<f32>
    })"""
OFFSET = """
    %id = stablehlo.partition_id : tensor<ui32>
    %n = stablehlo.convert %id : (tensor<ui32>) -> tensor<i32>
    %c4 = stablehlo.constant dense<4> : tensor<i32>
    %c2 = stablehlo.constant dense<2> : tensor<i32>
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %rest = stablehlo.remainder %n, %c4 : tensor<i32>
    %start = stablehlo.multiply %rest, %c2 : tensor<i32>"""


def gather(name: str, of: str, channel: int, groups: str = ROWS) -> str:
    return (
        f'    %{name} = "stablehlo.all_gather"(%{of}) {{all_gather_dim = 0 : i64, {groups}, '
        f"{CHANNEL.format(channel)}, use_global_device_ids}} : ({SMALL}) -> {WHOLE}\n"
    )


def reduce(name: str, of: str, channel: int, groups: str = ROWS) -> str:
    return (
        f'    %{name} = "stablehlo.all_reduce"(%{of}) {ADD} {{{groups}, '
        f"{CHANNEL.format(channel)}, use_global_device_ids}} : ({WHOLE}) -> {WHOLE}\n"
    )


def scatter(name: str, of: str, channel: int) -> str:
    return (
        f'    %{name} = "stablehlo.reduce_scatter"(%{of}) {ADD} {{scatter_dimension = 0 : i64, '
        f"{ROWS}, {CHANNEL.format(channel)}, use_global_device_ids}} : ({WHOLE}) -> {SMALL}\n"
    )


def scattered(name: str, of: str, dim: int, before: str, after: str) -> str:
    text = scatter(name, of, 1).replace("scatter_dimension = 0", f"scatter_dimension = {dim}")
    return text.replace("8x3x", f"{before}x").replace("2x3x", f"{after}x")


def gathered(name: str, of: str, channel: int, dim: int, types: str, groups: str = ROWS) -> str:
    return (
        f'    %{name} = "stablehlo.all_gather"(%{of}) {{all_gather_dim = {dim} : i64, {groups}, '
        f"{CHANNEL.format(channel)}, use_global_device_ids}} : {types}\n"
    )


def loop(carried: str, body: str, returned: str) -> str:
    """A loop of four trips, `%i` from 0 to 3, that carries `%k` of type `carried`."""
    return f"""
    %c1 = stablehlo.constant dense<1> : tensor<i32>
    %first = stablehlo.constant dense<1.0> : {carried}
    %w:2 = "stablehlo.while"(%zero, %first) ({{
    ^bb0(%i: tensor<i32>, %k: {carried}):
      %l = stablehlo.compare LT, %i, %c4 : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %l : tensor<i1>
    }}, {{
    ^bb0(%i: tensor<i32>, %k: {carried}):
      %f = stablehlo.convert %i : (tensor<i32>) -> tensor<f32>
      %g = stablehlo.broadcast_in_dim %f, dims = [] : (tensor<f32>) -> {WHOLE}
      %t = stablehlo.multiply %x, %g : {WHOLE}
{body}      %j = stablehlo.add %i, %c1 : tensor<i32>
      stablehlo.return %j, %{returned} : tensor<i32>, {carried}
    }}) : (tensor<i32>, {carried}) -> (tensor<i32>, {carried})
"""


def cut(name: str, of: str, start: str = "start") -> str:
    return (
        f"    %{name} = stablehlo.dynamic_slice %{of}, %{start}, %zero, sizes = [2, 3] : "
        "(tensor<8x3xf32>, tensor<i32>, tensor<i32>) -> tensor<2x3xf32>\n"
    )


def permute(name: str, of: str, channel: int, pairs: str) -> str:
    count = pairs.count("[") - 1
    return (
        f'    %{name} = "stablehlo.collective_permute"(%{of}) {{source_target_pairs = '
        f"dense<{pairs}> : tensor<{count}x2xi64>, {CHANNEL.format(channel)}}} : "
        "(tensor<2x3xf32>) -> tensor<2x3xf32>\n"
    )


def exchange(name: str, of: str, channel: int, split: int, types: str) -> str:
    return (
        f'    %{name} = "stablehlo.all_to_all"(%{of}) {{split_dimension = {split} : i64, '
        f"concat_dimension = {1 - split} : i64, split_count = 4 : i64, {ROWS}, "
        f"{CHANNEL.format(channel)}}} : {types}\n"
    )


def program(type_: str, body: str, returned: str, result: str) -> Module:
    return Module.parse(
        f"{HEAD}\n  func.func public @main(%x: {type_}) -> {result} {{{OFFSET}\n{body}"
        f"    return %{returned} : {result}\n  }}\n}}"
    )


TWO_GATHERS = (
    gather("a", "x", 1)
    + "    %y = stablehlo.reshape %x : (tensor<2x3xf32>) -> tensor<6xf32>\n"
    + "    %z = stablehlo.reshape %x : (tensor<2x3xf32>) -> tensor<6xf32>\n"
    + "    %u = stablehlo.reshape %y : (tensor<6xf32>) -> tensor<2x3xf32>\n"
    + "    %v = stablehlo.reshape %z : (tensor<6xf32>) -> tensor<2x3xf32>\n"
    + gather("b", "u", 2)
    + gather("c", "v", 3)
    + f"    %d = stablehlo.add %a, %b : {WHOLE}\n    %e = stablehlo.add %d, %c : {WHOLE}\n"
)
LOOP = f"""
    %w:3 = "stablehlo.while"(%zero, %x, %x) ({{
    ^bb0(%i: tensor<i32>, %k: {SMALL}, %m: {SMALL}):
      %l = stablehlo.compare LT, %i, %c4 : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %l : tensor<i1>
    }}, {{
    ^bb0(%i: tensor<i32>, %k: {SMALL}, %m: {SMALL}):
      %h = stablehlo.transpose %k, dims = [0, 1] : ({SMALL}) -> {SMALL}
{gather("g", "h", 1)}{gather("o", "m", 2)}{cut("p", "g", "zero")}{cut("q", "o", "c2")}
      %r = stablehlo.add %p, %q : {SMALL}
      %j = stablehlo.add %i, %c2 : tensor<i32>
      stablehlo.return %j, %k, %r : tensor<i32>, {SMALL}, {SMALL}
    }}) : (tensor<i32>, {SMALL}, {SMALL}) -> (tensor<i32>, {SMALL}, {SMALL})
"""
AROUND, BACK, ONWARD = "[[0, 1], [1, 2], [2, 0]]", "[[1, 0], [2, 1], [0, 2]]", "[[1, 5], [2, 6]]"
STACK = "tensor<4x8x3xf32>"
WRITE = f"""      %u = stablehlo.reshape %s : ({WHOLE}) -> tensor<1x8x3xf32>
      %n3 = stablehlo.constant dense<3> : tensor<i32>
      %last = stablehlo.subtract %n3, %i : tensor<i32>
      %v = stablehlo.dynamic_update_slice %k, %u, {{}}, %zero, %zero : ({STACK}, tensor<1x8x3xf32>,
        tensor<i32>, tensor<i32>, tensor<i32>) -> {STACK}
"""
SUM = f"      %v = stablehlo.add %k, %s : {WHOLE}\n"
BROADCAST = "    %b = stablehlo.broadcast_in_dim %x, dims = {} : ({}) -> {}\n"
TOP = """    %v, %p = chlo.top_k(%{}, k = 2) : {} -> (tensor<{}x2xf32>, tensor<{}x2xi32>)
    %q = stablehlo.convert %p : (tensor<{}x2xi32>) -> tensor<{}x2xf32>
    %r = stablehlo.add %v, %q : tensor<{}x2xf32>
"""
WIDE = "tensor<8x4xf32>"
THIN = "tensor<2x16xf32>"
CASES = {
    "merge": (
        "merge-equal-collectives",
        program(SMALL, TWO_GATHERS, "e", WHOLE),
        {"all_gather": 2},
    ),
    "reassociate": (
        "all-reduce-reassociate",
        program(WHOLE, reduce("a", "x", 1) + reduce("b", "x", 2) + reduce("c", "x", 3)
                + f"    %d = stablehlo.add %a, %b : {WHOLE}\n"
                + f"    %e = stablehlo.add %d, %c : {WHOLE}\n", "e", WHOLE),
        {"all_reduce": 1},
    ),
    "reassociate_reshaped": (
        "all-reduce-reassociate",
        program(WHOLE, reduce("a", "x", 1) + reduce("b", "x", 2)
                + f"    %c = stablehlo.reshape %a : ({WHOLE}) -> tensor<24xf32>\n"
                + f"    %d = stablehlo.reshape %b : ({WHOLE}) -> tensor<24xf32>\n"
                + "    %e = stablehlo.add %c, %d : tensor<24xf32>\n", "e", "tensor<24xf32>"),
        {"all_reduce": 1},
    ),
    "reassociate_not_what_is_used": (
        "all-reduce-reassociate",
        program(WHOLE, reduce("a", "x", 1) + reduce("b", "x", 2)
                + f"    %d = stablehlo.add %a, %b : {WHOLE}\n"
                + f"    %e = stablehlo.multiply %d, %b : {WHOLE}\n", "e", WHOLE),
        {"all_reduce": 2},
    ),
    "reassociate_not_other_ops": (
        "all-reduce-reassociate",
        program(WHOLE, reduce("a", "x", 1) + reduce("b", "x", 2)
                + f"    %d = stablehlo.maximum %a, %b : {WHOLE}\n", "d", WHOLE),
        {"all_reduce": 2},
    ),
    "reassociate_not_over_other_groups": (
        "all-reduce-reassociate",
        program(WHOLE, reduce("a", "x", 1) + reduce("b", "x", 2, MIXED)
                + f"    %d = stablehlo.add %a, %b : {WHOLE}\n", "d", WHOLE),
        {"all_reduce": 2},
    ),
    "reassociate_transposed": (
        "all-reduce-reassociate",
        program(WHOLE, reduce("a", "x", 1) + reduce("b", "x", 2)
                + f"    %c = stablehlo.transpose %a, dims = [1, 0] : ({WHOLE}) -> tensor<3x8xf32>\n"
                + f"    %d = stablehlo.transpose %b, dims = [1, 0] : ({WHOLE}) -> tensor<3x8xf32>\n"
                + "    %e = stablehlo.add %c, %d : tensor<3x8xf32>\n", "e", "tensor<3x8xf32>"),
        {"all_reduce": 1},
    ),
    "reassociate_scatters": (
        "all-reduce-reassociate",
        program(WHOLE, scatter("a", "x", 1) + scatter("b", "x", 2) + scatter("c", "x", 3)
                + f"    %d = stablehlo.add %a, %b : {SMALL}\n"
                + f"    %e = stablehlo.add %d, %c : {SMALL}\n", "e", SMALL),
        {"reduce_scatter": 1},
    ),
    "fold": (
        "all-reduce-folder",
        program(WHOLE, reduce("a", "x", 1, PAIRS) + reduce("b", "a", 2, ACROSS), "b", WHOLE),
        {"all_reduce": 1},
    ),
    "fold_not_what_counts_twice": (
        "all-reduce-folder",
        program(WHOLE, reduce("a", "x", 1, PAIRS) + reduce("b", "a", 2), "b", WHOLE),
        {"all_reduce": 2},
    ),
    "move_behind_the_loop": (
        "while-loop-all-reduce-code-motion",
        program(WHOLE, loop(WHOLE, reduce("s", "t", 1) + SUM, "v"), "w#1", WHOLE),
        {"all_reduce": 1},
    ),
    "move_slices_behind_the_loop": (
        "while-loop-all-reduce-code-motion",
        program(WHOLE, loop(STACK, reduce("s", "t", 1) + WRITE.format("%i"), "v"), "w#1", STACK),
        {"all_reduce": 1},
    ),
    "move_slices_that_are_written_backwards": (
        "while-loop-all-reduce-code-motion",
        program(WHOLE, loop(STACK, reduce("s", "t", 1) + WRITE.format("%last"), "v"), "w#1", STACK),
        {"all_reduce": 1},
    ),
    "move_not_what_is_written_over": (
        "while-loop-all-reduce-code-motion",
        program(WHOLE, loop(STACK, reduce("s", "t", 1) + WRITE.format("%zero"), "v"), "w#1", STACK),
        {"all_reduce": 1, "all_reduce in the loop": 1},
    ),
    "move_not_what_the_loop_reads": (
        "while-loop-all-reduce-code-motion",
        program(WHOLE, loop(WHOLE, reduce("s", "k", 1) + SUM, "v"), "w#1", WHOLE),
        {"all_reduce": 1, "all_reduce in the loop": 1},
    ),
    "gather_before_broadcast": (
        "all-gather-broadcast-reorder",
        program("tensor<2xf32>", BROADCAST.format("[0]", "tensor<2xf32>", SMALL)
                + gather("a", "b", 1), "a", WHOLE),
        {"all_gather": 1, "bytes": 32},
    ),
    "gather_along_what_is_broadcast": (
        "all-gather-broadcast-reorder",
        program("tensor<3xf32>", BROADCAST.format("[2]", "tensor<3xf32>", "tensor<2x5x3xf32>")
                + gathered("a", "b", 1, 0, "(tensor<2x5x3xf32>) -> tensor<8x5x3xf32>"),
                "a", "tensor<8x5x3xf32>"),
        {"all_gather": 1, "bytes": 48},
    ),
    "top_k": (
        "top-k-of-shards",
        program(SMALL, gathered("a", "x", 1, 1, f"({SMALL}) -> tensor<2x24xf32>", ALL)
                + TOP.format("a", "tensor<2x24xf32>", *[2] * 5), "r", "tensor<2x2xf32>"),
        {"all_gather": 2, "bytes": 256},
    ),
    "top_k_of_rows": (
        "top-k-of-shards",
        program(SMALL, gathered("a", "x", 1, 0, f"({SMALL}) -> tensor<16x3xf32>", ALL)
                + TOP.format("a", "tensor<16x3xf32>", *[16] * 5), "r", "tensor<16x2xf32>"),
        {"all_gather": 2, "bytes": 256},
    ),
    "top_k_not_of_copies": (
        "top-k-of-shards",
        program(SMALL, gathered("a", "x", 1, 1, f"({SMALL}) -> tensor<2x12xf32>")
                + TOP.format("a", "tensor<2x12xf32>", *[2] * 5), "r", "tensor<2x2xf32>"),
        {"all_gather": 1},
    ),
    "keep_other_groups": (
        "merge-equal-collectives",
        program(SMALL, gather("a", "x", 1) + gather("b", "x", 2, MIXED)
                + f"    %c = stablehlo.add %a, %b : {WHOLE}\n", "c", WHOLE),
        {"all_gather": 2},
    ),
    "unused": (
        "remove-unused-ops",
        program(SMALL, gather("a", "x", 1) + gather("b", "x", 2)
                + f"    %c = stablehlo.optimization_barrier %b : {WHOLE}\n", "a", WHOLE),
        {"all_gather": 1},
    ),
    "hoist": (
        "hoist-loop-invariant-collectives",
        program(SMALL, LOOP, "w#2", SMALL),
        {"all_gather": 2, "all_gather in the loop": 1},
    ),
    "hoist_none": (
        "hoist-loop-invariant-collectives{max-bytes=95}",
        program(SMALL, LOOP, "w#2", SMALL),
        {"all_gather": 2, "all_gather in the loop": 2},
    ),
    "scatter_of_few_bytes": (
        "reduce-scatter-decomposer",
        program(WHOLE, scatter("a", "x", 1), "a", SMALL),
        {"all_reduce": 1},
    ),
    "scatter_along_the_first_dim": (
        "reduce-scatter-decomposer",
        program("tensor<16x64x8xf32>", scattered("a", "x", 0, "16x64x8", "4x64x8"),
                "a", "tensor<4x64x8xf32>"),
        {"reduce_scatter": 1},
    ),
    "scatter_along_a_middle_dim": (
        "reduce-scatter-decomposer",
        program("tensor<8x64x16xf32>", scattered("a", "x", 1, "8x64x16", "8x16x16"),
                "a", "tensor<8x16x16xf32>"),
        {"all_reduce": 1},
    ),
    "scatter": (
        "all-reduce-to-reduce-scatter",
        program(WHOLE, reduce("a", "x", 1) + cut("b", "a"), "b", SMALL),
        {"reduce_scatter": 1},
    ),
    "scatter_in_order_of_parts": (
        "all-reduce-to-reduce-scatter",
        program(WHOLE, reduce("a", "x", 1, MIXED) + cut("b", "a"), "b", SMALL),
        {"reduce_scatter": 1},
    ),
    "no_scatter_of_equal_parts": (
        "all-reduce-to-reduce-scatter",
        program(WHOLE, reduce("a", "x", 1) + cut("b", "a", "c2"), "b", SMALL),
        {"all_reduce": 1},
    ),
    "no_scatter_of_what_is_used_whole": (
        "all-reduce-to-reduce-scatter",
        program(WHOLE, reduce("a", "x", 1) + cut("b", "a") + cut("c", "a")
                + f"    %d = stablehlo.add %b, %c : {SMALL}\n", "d", SMALL),
        {"all_reduce": 1},
    ),
    "own_shard_alone": (
        "all-gather-dynamic-slice-simplifier",
        program(SMALL, gather("a", "x", 1) + cut("b", "a"), "b", SMALL),
        {},
    ),
    "own_shard": (
        "fuse-reshards",
        program(SMALL, gather("a", "x", 1) + cut("b", "a"), "b", SMALL),
        {},
    ),
    "not_own_shard": (
        "fuse-reshards",
        program(SMALL, gather("a", "x", 1, MIXED) + cut("b", "a"), "b", SMALL),
        {"all_gather": 1},
    ),
    "permutes": (
        "fuse-reshards",
        program(SMALL, permute("a", "x", 1, AROUND) + permute("b", "a", 2, ONWARD), "b", SMALL),
        {"collective_permute": 1},
    ),
    "permutes_back": (
        "fuse-reshards",
        program(SMALL, permute("a", "x", 1, AROUND) + permute("b", "a", 2, BACK), "b", SMALL),
        {"collective_permute": 1},
    ),
    "inverse": (
        "fuse-reshards",
        program(WIDE, exchange("a", "x", 1, 0, f"({WIDE}) -> {THIN}")
                + exchange("b", "a", 2, 1, f"({THIN}) -> {WIDE}"), "b", WIDE),
        {},
    ),
}  # fmt: skip


def collectives(module: Module) -> dict[str, int]:
    """How many there are of each kind, and within loops."""
    found: dict[str, int] = {}
    inside: set[object] = set()
    for op in module.ops():
        if op.name == "stablehlo.while":
            inside |= {inner for region in op.regions for block in region for inner in block.ops}
    kinds = ("all_gather", "all_reduce", "all_to_all", "collective_permute", "reduce_scatter")
    for op in module.ops():
        kind = op.name.removeprefix("stablehlo.")
        if kind in kinds:
            found[kind] = found.get(kind, 0) + 1
            if op in inside:
                found[f"{kind} in the loop"] = found.get(f"{kind} in the loop", 0) + 1
    return found


def data(module: Module) -> np.ndarray:
    shape = tuple(size or 0 for size in module.arguments()[0].shape or ())
    return np.random.default_rng(0).integers(-4, 5, (COUNT, *shape)).astype(np.float32)


@pytest.mark.parametrize("name", CASES)
def test_devices_compute_the_same_with_fewer_collectives(name: str) -> None:
    pipeline, before, left = CASES[name]
    after = Module.parse(str(before))
    PassManager.parse(f"builtin.module({pipeline})").run(after)
    after = Module.parse(str(after))
    found = collectives(after)
    if "bytes" in left:
        gathers = (op for op in after.ops() if op.name == "stablehlo.all_gather")
        found["bytes"] = 4 * sum(prod(op.results[0].shape) for op in gathers)
    assert found == left
    given = data(before)
    wanted = before.simulate(given, devices=COUNT)
    for mine, theirs in zip(after.simulate(given, devices=COUNT), wanted, strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_xla_takes_what_is_hoisted() -> None:
    pytest.importorskip("jax")
    from tests.spmd import runtime

    _, module, _ = CASES["hoist"]
    given = data(module)
    PassManager.parse("builtin.module(hoist-loop-invariant-collectives)").run(module)
    found = runtime.run(str(module), [[part] for part in given], COUNT)
    wanted = module.simulate(given, devices=COUNT)[0]
    np.testing.assert_array_equal(np.stack([row[0] for row in found]), wanted)


def test_the_policy_of_fewest_bytes_uses_them_and_that_of_shardy_does_not() -> None:
    result = Module.parse(SCANNED).propagate()
    least, shardy = result.partition("least"), result.partition("shardy")
    assert shardcore.prove(least).is_proven
    assert shardcore.prove(shardy).is_proven
    assert least.sent_bytes < shardy.sent_bytes
    assert collectives(least.module) == {"all_gather": 1}
    assert collectives(shardy.module)["all_gather in the loop"] == 1


def test_nothing_is_sent_for_what_nothing_uses() -> None:
    """A slice without elements needs none of its operand."""
    text = """
sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func @main(%a: tensor<8x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {"x"}]>})
    -> (tensor<0x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>}) {
  %0 = sdy.sharding_constraint %a <@mesh, [{"x", "y"}, {}]> : tensor<8x6xf32>
  %1 = stablehlo.optimization_barrier %0 : tensor<8x6xf32>
  %2 = stablehlo.slice %1 [3:3, 0:6] : (tensor<8x6xf32>) -> tensor<0x6xf32>
  return %2 : tensor<0x6xf32>
}"""
    result = Module.parse(text).propagate()
    assert result.partition("least").sent_bytes == 0
    assert result.partition("shardy").sent_bytes > 0
