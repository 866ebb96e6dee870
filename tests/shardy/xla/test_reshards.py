"""Under policy ``xla`` a value goes from one sharding to another as XLA's partitioner moves it."""

from __future__ import annotations

import itertools
import random
from collections import Counter

import pytest
import shardcore

from tests.shardy.xla.sent import sent_bytes

PROGRAM = """module attributes {{mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32}} {{
  sdy.mesh @mesh = <[{mesh}]>
  func.func public @main(%arg0: {type} {{sdy.sharding = #sdy.sharding<@mesh, {before}>}})
      -> ({type} {{sdy.sharding = #sdy.sharding<@mesh, {after}>}}) {{
    %0 = stablehlo.sine %arg0 : {type}
    %1 = sdy.sharding_constraint %0 <@mesh, {after}> : {type}
    %2 = stablehlo.cosine %1 : {type}
    return %2 : {type}
  }}
}}"""
MESHES = {"two axes": {"a": 2, "b": 4}, "three axes": {"a": 2, "b": 2, "c": 2}}
SHAPES = {"matrix": (64, 64), "cube": (16, 32, 8)}
WARNING = "Involuntary full rematerialization"


def shardings(axes: tuple[str, ...], rank: int) -> list[str]:
    """All shardings of a tensor over some of ``axes``, each dim's in every order."""
    found = set()
    for places in itertools.product(range(-1, rank), repeat=len(axes)):
        for order in itertools.permutations(range(len(axes))):
            dims: list[list[str]] = [[] for _ in range(rank)]
            for axis in order:
                if places[axis] >= 0:
                    dims[places[axis]].append(f'"{axes[axis]}"')
            found.add("[" + ", ".join("{" + ", ".join(dim) + "}" for dim in dims) + "]")
    return sorted(found)


def program(mesh: dict[str, int], shape: tuple[int, ...], before: str, after: str) -> str:
    axes = ", ".join(f'"{axis}"={size}' for axis, size in mesh.items())
    dims = "x".join(map(str, shape))
    return PROGRAM.format(mesh=axes, type=f"tensor<{dims}xf32>", before=before, after=after)


@pytest.mark.parametrize("mesh", MESHES)
@pytest.mark.parametrize("shape", SHAPES)
def test_what_is_sent(mesh: str, shape: str, capfd: pytest.CaptureFixture[str]) -> None:
    sizes, dims = MESHES[mesh], SHAPES[shape]
    pairs = list(itertools.permutations(shardings(tuple(sizes), len(dims)), 2))
    random.Random(f"{mesh} {shape}").shuffle(pairs)
    warned = 0
    for before, after in pairs[:20]:
        text = program(sizes, dims, before, after)
        capfd.readouterr()
        theirs = {kind: sent for kind, sent in sent_bytes(text).items() if sent}
        warns = WARNING in capfd.readouterr().err
        warned += warns
        ours: Counter[str] = Counter()
        result = shardcore.Module.parse(text).propagate()
        rows = result.cost("tpu-v5p").collectives
        for row in rows:
            ours[row.kind.replace("_", "-")] += row.total_wire_bytes
        assert ours == theirs, (before, after)
        assert any(row.rematerializes for row in rows) == warns, (before, after)
    assert mesh == "three axes" or warned


@pytest.mark.parametrize("mesh", MESHES)
def test_the_program_is_right(mesh: str) -> None:
    sizes, dims = MESHES[mesh], (8, 8)
    pairs = list(itertools.permutations(shardings(tuple(sizes), 2), 2))
    random.Random(mesh).shuffle(pairs)
    for before, after in pairs[:25]:
        text = program(sizes, dims, before, after)
        partitioned = shardcore.Module.parse(text).propagate().partition("xla")
        assert shardcore.prove(partitioned).is_proven, (before, after)
