"""Bytes sent where ops move elements across the borders of shards, and what comes out."""

from __future__ import annotations

import numpy as np
import pytest
import shardcore
from shardcore.partition.policies import POLICIES


def reshape(operand: str, result: str, axes: int, before: str, after: str) -> shardcore.Module:
    return shardcore.Module.parse(f"""
sdy.mesh @mesh = <["x"={axes}, "y"=2]>
func.func @main(%a: tensor<{operand}xf32>) -> tensor<{result}xf32> {{
  %c = sdy.sharding_constraint %a <@mesh, [{before}]> : tensor<{operand}xf32>
  %0 = stablehlo.negate %c : tensor<{operand}xf32>
  %1 = stablehlo.reshape %0 : (tensor<{operand}xf32>) -> tensor<{result}xf32>
  %2 = sdy.sharding_constraint %1 <@mesh, [{after}]> : tensor<{result}xf32>
  %3 = stablehlo.negate %2 : tensor<{result}xf32>
  %4 = sdy.sharding_constraint %3 <@mesh, [{after}]> : tensor<{result}xf32>
  return %4 : tensor<{result}xf32>
}}""")


def sent_for(partitioned: shardcore.Partitioned, name: str) -> int:
    """Bytes that a device sends for ops called ``name``."""
    rows = (row for row in partitioned.collectives if row.cause == name)
    return sum(row.total_wire_bytes for row in rows)


RESHAPES = [
    ("24x5", "4x6x5", 3, '{"x"}, {}', '{"x"}, {}, {}'),
    ("4x6x5", "24x5", 3, '{"x"}, {}, {"y"}', '{"x"}, {"y"}'),
    ("8x3", "6x4", 3, '{"x"}, {}', '{"x"}, {}'),
    ("7x10", "35x2", 4, '{"x", "y"}, {}', '{"x", "y"}, {}'),
    ("1x9x4x6", "6x6x2x3", 2, '{}, {"x"}, {}, {"y"}', '{"x"}, {}, {"y"}, {}'),
]


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("case", RESHAPES)
def test_reshapes_across_borders_are_right(
    case: tuple[str, str, int, str, str], policy: str
) -> None:
    partitioned = reshape(*case).propagate().partition(policy)
    assert shardcore.prove(partitioned).is_proven


def test_reshapes_send_what_crosses_borders() -> None:
    """Shards of 4 rows of 256, of which the last has one, become shards of 512 elements."""
    partitioned = reshape("13x256", "26x128", 4, '{"x"}, {}', '{"x"}, {}').propagate().partition()
    outcome = next(row for row in partitioned.outcomes if row.name == "stablehlo.reshape")
    assert outcome.kind == "collective"
    assert "operand 0 along dim 0" in outcome.reason
    assert shardcore.prove(partitioned).is_proven
    moved = [row for row in partitioned.collectives if row.kind == "collective_permute"]
    assert 0 < sum(row.total_wire_bytes for row in moved) <= 4 * 256 * 4


def top_k(shape: str, dtype: str, count: int, before: str, rank: int) -> shardcore.Module:
    """The largest elements along the last dim of a tensor that is sharded by ``before``."""
    kept = f"{shape.rpartition('x')[0]}x" if rank > 1 else ""
    values, indices = f"tensor<{kept}{count}x{dtype}>", f"tensor<{kept}{count}xi32>"
    return shardcore.Module.parse(f"""
sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func @main(%a: tensor<{shape}x{dtype}>) -> ({values}, {indices}) {{
  %0 = sdy.sharding_constraint %a <@mesh, [{before}]> : tensor<{shape}x{dtype}>
  %1:2 = chlo.top_k(%0, k = {count}) : tensor<{shape}x{dtype}> -> ({values}, {indices})
  return %1#0, %1#1 : {values}, {indices}
}}""")


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(
    ("shape", "dtype", "count", "before"),
    [
        ("4x64", "f32", 3, '{}, {"y", "x"}'),
        ("3x13", "i32", 5, '{"x"}, {"y"}'),
        ("17", "bf16", 4, '{"x", "y"}'),
        ("2x3x19", "ui8", 6, '{"x"}, {}, {"y"}'),
        ("2x9", "f32", 9, '{}, {"x", "y"}'),
    ],
)
def test_top_k_of_shards_is_that_of_all(
    shape: str, dtype: str, count: int, before: str, policy: str
) -> None:
    """Data of few different numbers: equal ones are in the order of their indices."""
    module = top_k(shape, dtype, count, before, shape.count("x") + 1)
    partitioned = module.propagate().partition(policy)
    assert shardcore.prove(partitioned).is_proven


def test_top_k_gathers_the_largest_elements_of_shards() -> None:
    module = top_k("4x4096", "f32", 3, '{}, {"x", "y"}', 2)
    partitioned = module.propagate().partition()
    # Values and indices, three of each row from each of the other seven shards.
    assert partitioned.sent_bytes == 7 * 4 * 3 * (4 + 4)


def test_top_k_orders_what_is_not_a_number_as_the_whole_program_does() -> None:
    module = top_k("13", "f32", 13, '{"y", "x"}', 1)
    bits = np.array([0xFFC00000, 0x7FC00000, 0xFFFFFFFF, 0x80000000, 0xFF800000], np.uint32)
    data = np.resize(bits, 13).view(np.float32)
    found = module.propagate().partition().simulate(data)
    for mine, whole in zip(found, module.simulate(data), strict=True):
        np.testing.assert_array_equal(mine.view(np.uint32), whole.view(np.uint32))


LOG_ADD_EXP = """
    %l = stablehlo.maximum %p, %q : tensor<f32>
    %d = stablehlo.subtract %p, %q : tensor<f32>
    %n = stablehlo.compare NE, %d, %d : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %s = stablehlo.add %p, %q : tensor<f32>
    %b = stablehlo.abs %d : tensor<f32>
    %m = stablehlo.negate %b : tensor<f32>
    %e = stablehlo.exponential %m : tensor<f32>
    %o = stablehlo.log_plus_one %e : tensor<f32>
    %t = stablehlo.add %l, %o : tensor<f32>
    %r = stablehlo.select %n, %s, %t : tensor<i1>, tensor<f32>
    stablehlo.return %r : tensor<f32>
"""


def cumulative(low: int, high: int, body: str, init: str = "0xFF800000") -> shardcore.Module:
    return shardcore.Module.parse(f"""
sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func @main(%a: tensor<13x3xf32>) -> tensor<3xf32> {{
  %c = sdy.sharding_constraint %a <@mesh, [{{"y"}}, {{}}]> : tensor<13x3xf32>
  %0 = stablehlo.abs %c : tensor<13x3xf32>
  %z = stablehlo.constant dense<{init}> : tensor<f32>
  %1 = "stablehlo.reduce_window"(%0, %z) <{{
      padding = dense<[[{low}, {high}], [0, 0]]> : tensor<2x2xi64>,
      window_dimensions = array<i64: 13, 1>}}> ({{
  ^bb0(%p: tensor<f32>, %q: tensor<f32>):{body}
  }}) : (tensor<13x3xf32>, tensor<f32>) -> tensor<13x3xf32>
  %2 = sdy.sharding_constraint %1 <@mesh, [{{"y"}}, {{}}]> : tensor<13x3xf32>
  %3 = stablehlo.negate %2 : tensor<13x3xf32>
  %n = stablehlo.constant dense<0.0> : tensor<f32>
  %4 = stablehlo.reduce(%3 init: %n) applies stablehlo.add across dimensions = [0]
      : (tensor<13x3xf32>, tensor<f32>) -> tensor<3xf32>
  return %4 : tensor<3xf32>
}}""")


@pytest.mark.parametrize(("low", "high"), [(12, 0), (0, 12)])
def test_cumulative_sums_of_exponentials_gather_the_totals_of_shards(low: int, high: int) -> None:
    partitioned = cumulative(low, high, LOG_ADD_EXP).propagate().partition()
    assert shardcore.prove(partitioned, tolerance=1e-6).is_proven
    # Three totals of a row are sent, then the result is added up.
    assert partitioned.sent_bytes == 3 * 3 * 4 + 2 * 3 * 4 * 3 // 4


@pytest.mark.parametrize(
    ("body", "init"),
    [
        (LOG_ADD_EXP, "0.0"),
        (LOG_ADD_EXP.replace("subtract %p, %q", "subtract %p, %p"), "0xFF800000"),
        (LOG_ADD_EXP.replace("compare NE", "compare EQ"), "0xFF800000"),
        (LOG_ADD_EXP.replace("stablehlo.abs %d", "stablehlo.abs %p"), "0xFF800000"),
    ],
)
def test_reducers_that_look_alike_are_not_taken_for_it(body: str, init: str) -> None:
    partitioned = cumulative(12, 0, body, init).propagate().partition()
    assert "made whole" in str(partitioned.outcomes) or "operand 0" in str(partitioned.outcomes)
    assert shardcore.prove(partitioned, tolerance=1e-6).is_proven


def test_the_first_of_many_elements_is_added_to_zeros() -> None:
    """An all-reduce of 24 bytes sends less than a gather of four times as many."""
    module = shardcore.Module.parse("""
sdy.mesh @mesh = <["a"=2, "b"=4]>
func.func @main(%a: tensor<6x12xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"b"}]>})
    -> tensor<6xf32> {
  %0 = stablehlo.slice %a [0:6, 0:1] : (tensor<6x12xf32>) -> tensor<6x1xf32>
  %1 = stablehlo.reshape %0 : (tensor<6x1xf32>) -> tensor<6xf32>
  return %1 : tensor<6xf32>
}""")
    partitioned = module.propagate().partition()
    assert partitioned.sent_bytes == 2 * 24 * 3 // 4
    values = np.full((6, 12), np.nan, np.float32)
    values[1:, 0] = np.inf, 5, -4, 0, 2
    [found] = partitioned.simulate(values)
    np.testing.assert_array_equal(found, values[:, 0])


def test_a_value_that_was_sliced_is_not_gathered_again() -> None:
    """The argument is whole on all devices; the minimum so far of a dim needs all of it."""
    module = shardcore.Module.parse("""
sdy.mesh @mesh = <["x"=8]>
func.func @main(%a: tensor<5x12xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>})
    -> (tensor<5x12xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x":(1)2}]>}) {
  %0 = call @smallest(%a) : (tensor<5x12xf32>) -> tensor<5x12xf32>
  return %0 : tensor<5x12xf32>
}
func.func private @smallest(%a: tensor<5x12xf32>) -> tensor<5x12xf32> {
  %inf = stablehlo.constant dense<0x7F800000> : tensor<f32>
  %0 = "stablehlo.reduce_window"(%a, %inf) <{padding = dense<[[0, 0], [11, 0]]> : tensor<2x2xi64>,
      window_dimensions = array<i64: 1, 12>}> ({
    ^bb0(%p: tensor<f32>, %q: tensor<f32>):
      %1 = stablehlo.minimum %p, %q : tensor<f32>
      stablehlo.return %1 : tensor<f32>
    }) : (tensor<5x12xf32>, tensor<f32>) -> tensor<5x12xf32>
  return %0 : tensor<5x12xf32>
}""")
    partitioned = module.propagate().partition()
    assert partitioned.sent_bytes == 0
    assert shardcore.prove(partitioned).is_proven


def test_sums_of_no_elements_send_nothing() -> None:
    module = shardcore.Module.parse("""
sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func @main(%a: tensor<6x0xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x", "y"}]>},
                %b: tensor<0x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {"x"}]>},
                %n: tensor<f32>)
    -> (tensor<6x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>},
        tensor<6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
      : (tensor<6x0xf32>, tensor<0x8xf32>) -> tensor<6x8xf32>
  %1 = stablehlo.reduce(%a init: %n) applies stablehlo.maximum across dimensions = [1]
      : (tensor<6x0xf32>, tensor<f32>) -> tensor<6xf32>
  return %0, %1 : tensor<6x8xf32>, tensor<6xf32>
}""")
    partitioned = module.propagate().partition()
    assert partitioned.sent_bytes == 0
    assert shardcore.prove(partitioned).is_proven


def test_windows_that_are_not_divided_evenly_exchange_rows() -> None:
    """Seven windows of two rows: shards of seven rows share one, of which each fetches a row."""
    module = shardcore.Module.parse("""
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<14x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>},
                %b: tensor<7x6xf32>)
    -> (tensor<14x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = "stablehlo.select_and_scatter"(%a, %b, %zero) <{
      window_dimensions = array<i64: 2, 1>, window_strides = array<i64: 2, 1>}> ({
    ^bb0(%p: tensor<f32>, %q: tensor<f32>):
      %1 = stablehlo.compare GE, %p, %q : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
    }, {
    ^bb0(%p: tensor<f32>, %q: tensor<f32>):
      %1 = stablehlo.add %p, %q : tensor<f32>
      stablehlo.return %1 : tensor<f32>
    }) : (tensor<14x6xf32>, tensor<7x6xf32>, tensor<f32>) -> tensor<14x6xf32>
  return %0 : tensor<14x6xf32>
}""")
    partitioned = module.propagate().partition()
    assert partitioned.sent_bytes <= 2 * 6 * 4
    assert shardcore.prove(partitioned).is_proven


def test_pairs_that_read_as_groups_are_counted_apart() -> None:
    """A permute and an all-gather have the same list of pairs: one of eight devices, one of two."""
    module = shardcore.Module.parse("""
sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func @main(%a: tensor<32x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>})
    -> (tensor<16x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"y"}]>}) {
  %0 = stablehlo.slice %a [0:16, 0:64] : (tensor<32x64xf32>) -> tensor<16x64xf32>
  return %0 : tensor<16x64xf32>
}""")
    partitioned = module.propagate().partition()
    sent = {row.kind: row.wire_bytes for row in partitioned.collectives}
    assert sent == {"collective_permute": 512, "all_gather": 512}
    assert partitioned.sent_bytes == 1024


SHARDINGS_OF_TWO_DIMS = [
    ('{"y"}, {}', '{}, {"x"}'),
    ('{"y"}, {"x"}', '{}, {"x"}'),
    ('{"y"}, {}', '{"y"}, {"x"}'),
    ('{}, {"x"}', '{"y"}, {"x"}'),
    ('{"x"}, {"y"}', '{"y"}, {"x"}'),
]


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(("before", "after"), SHARDINGS_OF_TWO_DIMS)
@pytest.mark.parametrize("window", [1, 2, 3])
@pytest.mark.parametrize("low", [0, 1])
def test_windows_along_two_dims(
    low: int, window: int, before: str, after: str, policy: str
) -> None:
    """One dim is whole and cut, the other is sharded and its windows reach into other shards."""
    for size, stride, axes in [(4, 1, 3), (4, 1, 4), (6, 2, 3), (8, 2, 4)]:
        out = (size + low - window) // stride + 1
        module = shardcore.Module.parse(f"""
sdy.mesh @mesh = <["x"={axes}, "y"=2]>
func.func @main(%a: tensor<2x{size}xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{before}]>}})
    -> tensor<1x{out}xf32> {{
  %c = sdy.sharding_constraint %a <@mesh, [{before}]> : tensor<2x{size}xf32>
  %z = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %0 = "stablehlo.reduce_window"(%c, %z) <{{
      padding = dense<[[0, 0], [{low}, 0]]> : tensor<2x2xi64>,
      window_dimensions = array<i64: 2, {window}>, window_strides = array<i64: 1, {stride}>}}> ({{
  ^bb0(%p: tensor<f32>, %q: tensor<f32>):
    %m = stablehlo.maximum %p, %q : tensor<f32>
    stablehlo.return %m : tensor<f32>
  }}) : (tensor<2x{size}xf32>, tensor<f32>) -> tensor<1x{out}xf32>
  %1 = sdy.sharding_constraint %0 <@mesh, [{after}]> : tensor<1x{out}xf32>
  return %1 : tensor<1x{out}xf32>
}}""")
        assert shardcore.prove(module.propagate().partition(policy)).is_proven
