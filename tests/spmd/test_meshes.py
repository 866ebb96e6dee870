"""Reshards from any sharding to any other on the same devices: of one mesh or of two, with parts of
axes that do not nest, and with device ids in other orders."""

from __future__ import annotations

import random

import pytest
import shardcore
from shardcore.partition.policies import POLICIES

from tests.deep import IS_DEEP

MESHES = ({"x": 12}, {"a": 3, "b": 4}, {"a": 4, "b": 3}, {"a": 2, "b": 6}, {"a": 2, "b": 2, "c": 3})
SEEDS = 6000 if IS_DEEP else 60
SHARDS = 6


def parts(sizes: dict[str, int]) -> list[tuple[str, int, int, str]]:
    """The axes and their parts: name, size of what is major to it, size, text."""
    found = []
    for name, whole in sizes.items():
        found.append((name, 1, whole, f'"{name}"'))
        for before in range(1, whole):
            for size in range(2, whole):
                if whole % (before * size) == 0:
                    found.append((name, before, size, f'"{name}":({before}){size}'))
    return found


def go_together(first: tuple[str, int, int, str], second: tuple[str, int, int, str]) -> bool:
    """Whether one sharding can have both, apart from each other."""
    if first[0] != second[0]:
        return True
    major, minor = sorted((first, second), key=lambda part: part[1])
    return minor[1] % (major[1] * major[2]) == 0


def sharding(rng: random.Random, mesh: int, sizes: dict[str, int], rank: int) -> str:
    used: list[tuple[str, int, int, str]] = []
    dims: list[list[tuple[str, int, int, str]]] = [[] for _ in range(rank)]
    for _ in range(rng.randint(0, 4)):
        part = rng.choice(parts(sizes))
        dim = rng.choice(dims)
        is_merged = bool(dim) and dim[-1][0] == part[0] and dim[-1][1] * dim[-1][2] == part[1]
        if not is_merged and all(go_together(part, other) for other in used):
            used.append(part)
            dim.append(part)
    listed = ("{" + ", ".join(part[3] for part in dim) + "}" for dim in dims)
    return f"<@m{mesh}, [{', '.join(listed)}]>"


def program(rng: random.Random) -> str:
    """A chain of negations between constraints over two meshes."""
    meshes = [rng.choice(MESHES), rng.choice(MESHES)]
    if rng.random() < 0.4:
        meshes[1] = meshes[0]
    lines = []
    for number, sizes in enumerate(meshes):
        axes = ", ".join(f'"{name}"={size}' for name, size in sizes.items())
        ids = rng.sample(range(12), 12)
        order = f", device_ids={ids}" if rng.random() < 0.4 else ""
        lines.append(f"sdy.mesh @m{number} = <[{axes}]{order}>")
    shape = [rng.choice((24, 12, 7, 10, 1, 36)) for _ in range(rng.randint(1, 3))]
    type_ = f"tensor<{'x'.join(map(str, shape))}xi32>"
    lines.append(f"func.func @main(%n0: {type_}) -> {type_} {{")
    for step in range(3):
        mesh = rng.randrange(2)
        where = sharding(rng, mesh, meshes[mesh], len(shape))
        lines.append(f"  %c{step} = sdy.sharding_constraint %n{step} {where} : {type_}")
        lines.append(f"  %n{step + 1} = stablehlo.negate %c{step} : {type_}")
    return "\n".join([*lines, f"  return %n3 : {type_}", "}"])


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("shard", range(SHARDS))
def test_devices_reshard_between_all_shardings(shard: int, policy: str) -> None:
    for seed in range(shard, SEEDS, SHARDS):
        text = program(random.Random(seed))
        partitioned = shardcore.Module.parse(text).propagate().partition(policy)
        proof = shardcore.prove(partitioned, seed=seed)
        assert proof.is_proven, f"{proof}\n{text}"


@pytest.mark.parametrize("policy", POLICIES)
def test_digits_of_two_meshes_may_not_go_together(policy: str) -> None:
    """Of twelve devices, the halves that `"a"` numbers and the quarters that `"b"` does: not every
    quarter has devices of both halves."""
    text = """
sdy.mesh @m0 = <["a"=2, "c"=6]>
sdy.mesh @m1 = <["a"=3, "b"=4]>
func.func @main(%a: tensor<12x12xi32>) -> tensor<12x12xi32> {
  %0 = sdy.sharding_constraint %a <@m0, [{}, {"a"}]> : tensor<12x12xi32>
  %1 = stablehlo.negate %0 : tensor<12x12xi32>
  %2 = sdy.sharding_constraint %1 <@m1, [{"b"}, {}]> : tensor<12x12xi32>
  %3 = stablehlo.negate %2 : tensor<12x12xi32>
  return %3 : tensor<12x12xi32>
}"""
    partitioned = shardcore.Module.parse(text).propagate().partition(policy)
    assert shardcore.prove(partitioned).is_proven


@pytest.mark.parametrize("policy", POLICIES)
def test_collectives_of_the_reference_that_do_not_verify_are_not_needed(policy: str) -> None:
    """Shardy shards the barrier's result over one mesh and slices it from the other."""
    text = """
sdy.mesh @m0 = <["x"=2, "y"=4]>
sdy.mesh @m1 = <["x"=2, "y"=4], device_ids=[3, 0, 4, 2, 6, 1, 7, 5]>
func.func @main(
    %a: tensor<8xi32> {sdy.sharding = #sdy.sharding<@m1, [{"y":(2)2, "x", "y":(1)2}]>})
    -> tensor<8xi32> {
  %0 = stablehlo.negate %a : tensor<8xi32>
  %1 = sdy.sharding_constraint %0 <@m0, [{}]> : tensor<8xi32>
  %2 = sdy.propagation_barrier %1 allowed_direction=FORWARD : tensor<8xi32>
  %3 = sdy.sharding_constraint %2 <@m1, [{"y":(2)2}]> : tensor<8xi32>
  %4 = stablehlo.add %3, %1 : tensor<8xi32>
  return %4 : tensor<8xi32>
}"""
    result = shardcore.Module.parse(text).propagate()
    with pytest.raises(shardcore.ShardcoreError, match="does not match operand mesh"):
        _ = result.with_collectives
    assert shardcore.prove(result.partition(policy)).is_proven


@pytest.mark.parametrize("policy", POLICIES)
def test_shards_that_no_devices_hold_are_refused(policy: str) -> None:
    """The major and the minor half of an axis of 6 are at once the same for two of six devices."""
    text = """
sdy.mesh @m = <["x"=6]>
func.func @main(%a: tensor<12x12xi32>) -> tensor<12x12xi32> {
  %0 = sdy.sharding_constraint %a <@m, [{"x":(1)2}, {"x":(3)2}]> : tensor<12x12xi32>
  %1 = stablehlo.negate %0 : tensor<12x12xi32>
  return %1 : tensor<12x12xi32>
}"""
    result = shardcore.Module.parse(text).propagate()
    with pytest.raises(shardcore.PartitionError) as refused:
        result.partition(policy)
    assert refused.value.code == "unpartitionable"
    assert '[{"x":(1)2}, {"x":(3)2}]' in refused.value.message


@pytest.mark.parametrize("policy", POLICIES)
def test_an_argument_over_a_mesh_without_axes(policy: str) -> None:
    """As JAX writes of an argument without sharding beside those of a mesh."""
    text = """sdy.mesh @mesh = <["x"=4]>
sdy.mesh @empty = <[]>
func.func @main(%a: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>},
    %b: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@empty, [{}, {}]>}) -> tensor<8x4xf32> {
  %0 = stablehlo.add %a, %b : tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}"""
    partitioned = shardcore.Module.parse(text).propagate().partition(policy)
    assert shardcore.prove(partitioned).is_proven
