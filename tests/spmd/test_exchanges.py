"""Exchanges along several dims in one all-to-all, and ops that keep nothing from being sent so."""

from __future__ import annotations

import numpy as np
import pytest
import shardcore

from tests.spmd import generate

MESH = 'sdy.mesh @mesh = <["x"=2, "y"=4]>'


def sharding(text: str) -> str:
    return f"{{sdy.sharding = #sdy.sharding<@mesh, {text}>}}"


def resharded(ty: str, before: str, after: str) -> shardcore.Partitioned:
    text = f"""{MESH}
func.func @main(%a: tensor<{ty}> {sharding(before)}) -> (tensor<{ty}> {sharding(after)}) {{
  return %a : tensor<{ty}>
}}"""
    return shardcore.Module.parse(text).propagate().partition()


def sent(partitioned: shardcore.Partitioned) -> dict[str, int]:
    """The bytes sent, by kind."""
    found: dict[str, int] = {}
    for row in partitioned.collectives:
        found[row.kind] = found.get(row.kind, 0) + int(row.wire_bytes) * row.count
    return found


@pytest.mark.parametrize(
    ("before", "after", "elements"),
    [
        # Of 128 elements all but those that a device keeps. One after the other: 64 + 96.
        ('[{"x"}, {}, {"y"}, {}]', '[{}, {"x"}, {}, {"y"}]', 112),
        # Onto one dim, in both orders.
        ('[{"x"}, {}, {"y"}, {}]', '[{}, {"x", "y"}, {}, {}]', 112),
        ('[{"x"}, {}, {"y"}, {}]', '[{}, {"y", "x"}, {}, {}]', 112),
        # Off one dim, also a part of an axis.
        ('[{"x", "y"}, {}, {}, {}]', '[{}, {"y"}, {"x"}, {}]', 112),
        ('[{"y"}, {}, {"x"}, {}]', '[{"y":(1)2}, {"y":(2)2}, {}, {"x"}]', 96),
    ],
)
def test_digits_of_several_dims_move_at_once(before: str, after: str, elements: int) -> None:
    partitioned = resharded("8x8x4x4xf32", before, after)
    assert sent(partitioned) == {"all_to_all": 4 * elements}
    assert len(partitioned.collectives) == 1
    assert shardcore.prove(partitioned).is_proven


@pytest.mark.parametrize("seed", range(40))
def test_random_reshards(seed: int) -> None:
    """Of tensors of up to five dims, of which some are padded."""
    rng = np.random.RandomState(seed)
    mesh = generate.MESHES[seed % len(generate.MESHES)]
    shape = tuple(int(rng.choice([2, 3, 4, 6, 8])) for _ in range(rng.randint(3, 6)))
    ty = f"tensor<{'x'.join(map(str, shape))}xi32>"
    entry = generate.sharding(mesh, shape, rng, even=True)
    lines = [
        f"  %v{at + 1} = sdy.sharding_constraint %b{at}"
        f" {generate.sharding(mesh, shape, rng)} : {ty}\n"
        f"  %b{at + 1} = stablehlo.optimization_barrier %v{at + 1} : {ty}\n"
        for at in range(4)
    ]
    text = (
        f"sdy.mesh @mesh = {mesh.text}\n"
        f"func.func @main(%b0: {ty} {{sdy.sharding = #sdy.sharding{entry}}}) -> {ty} {{\n"
        f"{''.join(lines)}  return %b4 : {ty}\n}}"
    )
    partitioned = shardcore.Module.parse(text).propagate().partition()
    assert shardcore.prove(partitioned).is_proven
