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


MESH_OF_8 = '<["a"=2, "b"=2, "c"=2]>'
ACROSS = [
    # Shape, sharding before, sharding after, and the bytes that XLA's partitioner sends.
    ((5,), '{"c", "b"}', '{"b"}', 20),
    ((9, 5, 6), '{"b", "a"}, {}, {}', '{"a"}, {}, {"c"}', 420),
    ((13, 10, 18), '{"a"}, {"c", "b"}, {}', '{"a", "b"}, {"c"}, {}', 1368),
    ((20, 18, 9), '{"a"}, {"c", "b"}, {}', '{"b", "a"}, {"c"}, {}', 2700),
    ((6, 3), '{"c", "b"}, {}', '{"b"}, {"c", "a"}', 24),
    ((7, 9), '{"a"}, {"b", "c"}', '{"b", "c"}, {"a"}', 72),
]


def moved(shape: tuple[int, ...], before: str, after: str) -> tuple[shardcore.Partitioned, int]:
    """The program that reshards a tensor, and the bytes that a device sends for that reshard."""
    ty = f"tensor<{'x'.join(map(str, shape))}xi32>"
    whole = ", ".join("{}" for _ in shape)

    def through(*shardings: str) -> shardcore.Partitioned:
        body = "".join(
            f"  %c{at} = sdy.sharding_constraint %{at} <@mesh, [{one}]> : {ty}\n"
            f"  %{at + 1} = stablehlo.optimization_barrier %c{at} : {ty}\n"
            for at, one in enumerate(shardings)
        )
        given = f"%a: {ty} {{sdy.sharding = #sdy.sharding<@mesh, [{whole}]>}}"
        text = (
            f"sdy.mesh @mesh = {MESH_OF_8}\nfunc.func @main({given}) -> {ty} {{\n"
            f"  %0 = stablehlo.optimization_barrier %a : {ty}\n{body}"
            f"  %r = sdy.sharding_constraint %{len(shardings)} <@mesh, [{whole}]> : {ty}\n"
            f"  return %r : {ty}\n}}"
        )
        return shardcore.Module.parse(text).propagate().partition()

    all_of_it = through(before, after)
    return all_of_it, all_of_it.sent_bytes - through(after).sent_bytes


@pytest.mark.parametrize(("shape", "before", "after", "xla"), ACROSS)
def test_shards_that_do_not_nest_are_exchanged(
    shape: tuple[int, ...], before: str, after: str, xla: int
) -> None:
    """Devices fetch what makes up whole parts before an all-to-all, and what they lack then."""
    found, sent = moved(shape, before, after)
    assert shardcore.prove(found).is_proven
    assert sent <= xla


def test_nothing_is_sent_to_cut_whole_dims() -> None:
    """5 elements over 4 devices are no parts of those over 2, but are cut from the whole."""
    _, sent = moved((5, 3), "{}, {}", '{"c", "b"}, {}')
    assert sent == 0
