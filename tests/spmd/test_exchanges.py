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


def test_pads_and_slices_by_nothing_keep_no_value() -> None:
    """JAX puts them around the gradient of a max pool without padding of its own."""
    partitioned = (
        shardcore.Module.parse(f"""{MESH}
func.func @main(%a: tensor<16x16x16x8xf32> {sharding('[{}, {"y"}, {}, {"x"}]')},
                %b: tensor<16x8x8x8xf32> {sharding('[{}, {"x"}, {}, {}]')})
    -> (tensor<16x16x16x8xf32> {sharding('[{}, {"x", "y"}, {}, {}]')}) {{
  %i = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.pad %a, %i, low = [0, 0, 0, 0], high = [0, 0, 0, 0], interior = [0, 0, 0, 0]
      : (tensor<16x16x16x8xf32>, tensor<f32>) -> tensor<16x16x16x8xf32>
  %1 = "stablehlo.select_and_scatter"(%0, %b, %z) <{{
      window_dimensions = array<i64: 1, 2, 2, 1>, window_strides = array<i64: 1, 2, 2, 1>}}> ({{
  ^bb0(%p: tensor<f32>, %q: tensor<f32>):
    %3 = stablehlo.compare GE, %p, %q : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %3 : tensor<i1>
  }}, {{
  ^bb0(%p: tensor<f32>, %q: tensor<f32>):
    %3 = stablehlo.add %p, %q : tensor<f32>
    stablehlo.return %3 : tensor<f32>
  }}) : (tensor<16x16x16x8xf32>, tensor<16x8x8x8xf32>, tensor<f32>) -> tensor<16x16x16x8xf32>
  %2 = stablehlo.slice %1 [0:16, 0:16, 0:16, 0:8]
      : (tensor<16x16x16x8xf32>) -> tensor<16x16x16x8xf32>
  return %2 : tensor<16x16x16x8xf32>
}}""")
        .propagate()
        .partition()
    )
    # The operand moves to where the result is wanted; before, the result moved after the op.
    assert sent(partitioned) == {"all_to_all": 8192, "collective_permute": 16384}
    assert {outcome.name for outcome in partitioned.outcomes} >= {
        "stablehlo.pad",
        "stablehlo.slice",
    }
    assert shardcore.prove(partitioned).is_proven


def test_pads_by_as_much_as_they_cut_off_are_no_identities() -> None:
    partitioned = (
        shardcore.Module.parse(f"""{MESH}
func.func @main(%a: tensor<16xf32> {sharding('[{"x"}]')}) -> (tensor<16xf32> {sharding("[{}]")}) {{
  %z = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.pad %a, %z, low = [1], high = [-1], interior = [0]
      : (tensor<16xf32>, tensor<f32>) -> tensor<16xf32>
  return %0 : tensor<16xf32>
}}""")
        .propagate()
        .partition()
    )
    [found] = partitioned.simulate(np.arange(16, dtype=np.float32))
    np.testing.assert_array_equal(found, np.r_[0, np.arange(15)].astype(np.float32))


def test_average_pools_whose_gradient_starts_from_a_broadcast_scalar() -> None:
    """Each output element depends on one element of the shard that has it: nothing is sent."""
    partitioned = (
        shardcore.Module.parse(f"""{MESH}
func.func @main(%a: tensor<16x8x8x8xf32> {sharding('[{}, {}, {"y"}, {}]')})
    -> (tensor<16x16x16x8xf32> {sharding('[{"x"}, {}, {"y"}, {}]')}) {{
  %c = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.pad %a, %c, low = [0, 1, 1, 0], high = [0, 1, 1, 0], interior = [0, 1, 1, 0]
      : (tensor<16x8x8x8xf32>, tensor<f32>) -> tensor<16x17x17x8xf32>
  %d = stablehlo.constant dense<0.0> : tensor<f32>
  %z = stablehlo.broadcast_in_dim %d, dims = [] : (tensor<f32>) -> tensor<f32>
  %1 = "stablehlo.reduce_window"(%0, %z) <{{window_dimensions = array<i64: 1, 2, 2, 1>}}> ({{
  ^bb0(%p: tensor<f32>, %q: tensor<f32>):
    %2 = stablehlo.add %p, %q : tensor<f32>
    stablehlo.return %2 : tensor<f32>
  }}) : (tensor<16x17x17x8xf32>, tensor<f32>) -> tensor<16x16x16x8xf32>
  return %1 : tensor<16x16x16x8xf32>
}}""")
        .propagate()
        .partition()
    )
    assert sent(partitioned) == {}
    assert shardcore.prove(partitioned).is_proven
