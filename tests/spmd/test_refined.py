"""Shards of uneven dims are cut into parts that they do not consist of, and put together from such
parts: few elements are sent."""

from __future__ import annotations

import itertools

import pytest
import shardcore

AXES = {"x": 3, "y": 2, "z": 2}
ORDERS = [order for count in (2, 3) for order in itertools.permutations(AXES, count)]


def partitioned(size: int, before: tuple[str, ...], after: tuple[str, ...], ids: str = ""):
    axes = ", ".join(f'"{axis}"={count}' for axis, count in AXES.items())
    own, wanted = (", ".join(f'"{axis}"' for axis in each) for each in (before, after))
    text = f"""
sdy.mesh @mesh = <[{axes}]{ids}>
func.func @main(%a: tensor<{size}x3xi32>) -> tensor<{size}x3xi32> {{
  %0 = sdy.sharding_constraint %a <@mesh, [{{{own}}}, {{}}]> : tensor<{size}x3xi32>
  %1 = stablehlo.optimization_barrier %0 : tensor<{size}x3xi32>
  %2 = sdy.sharding_constraint %1 <@mesh, [{{{wanted}}}, {{}}]> : tensor<{size}x3xi32>
  %3 = stablehlo.optimization_barrier %2 : tensor<{size}x3xi32>
  return %3 : tensor<{size}x3xi32>
}}"""
    return shardcore.Module.parse(text).propagate().partition()


@pytest.mark.parametrize("after", ORDERS, ids="".join)
def test_all_sizes_are_cut(after: tuple[str, ...]) -> None:
    for size in (1, 5, 6, 7, 10, 13, 23):
        for count in range(1, len(after)):
            found = partitioned(size, after[:count], after)
            assert shardcore.prove(found).is_proven, (size, after[:count], after)


def test_devices_may_be_in_any_order() -> None:
    ids = ", device_ids=[7, 8, 4, 0, 10, 2, 3, 6, 5, 1, 11, 9]"
    for after in ORDERS:
        assert shardcore.prove(partitioned(10, after[:1], after, ids)).is_proven


def test_only_what_a_part_lacks_is_sent() -> None:
    """Ten rows over two shards are 5 and 5; over six, the third has one row of either half."""
    found = partitioned(10, ("y",), ("y", "x"))
    kinds = [(row.kind, row.wire_bytes) for row in found.collectives]
    assert ("collective_permute", 3 * 4) in kinds
    assert [kind for kind, _ in kinds].count("all_gather") == 1


@pytest.mark.parametrize("before", ORDERS, ids="".join)
def test_all_sizes_are_gathered(before: tuple[str, ...]) -> None:
    for size in (1, 5, 6, 7, 10, 13, 23):
        for count in range(1, len(before)):
            found = partitioned(size, before, before[:count])
            assert shardcore.prove(found).is_proven, (size, before, before[:count])


def test_gathered_from_devices_in_any_order() -> None:
    ids = ", device_ids=[7, 8, 4, 0, 10, 2, 3, 6, 5, 1, 11, 9]"
    for before in ORDERS:
        assert shardcore.prove(partitioned(10, before, before[:1], ids)).is_proven


def test_only_what_a_shard_lacks_is_gathered() -> None:
    """Ten rows over six shards are two each: the second half gathers 6 to 9, and lacks row 5."""
    found = partitioned(10, ("y", "x"), ("y",))
    sent = [(row.kind, row.wire_bytes) for row in found.collectives]
    assert sent[-2:] == [("all_gather", 2 * 2 * 3 * 4), ("collective_permute", 3 * 4)]
