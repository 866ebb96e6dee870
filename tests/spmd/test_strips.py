"""Slices and pads along a sharded dim, whose windows are cut out of parts side by side."""

from __future__ import annotations

import itertools

import pytest
import shardcore


def program(op: str, size: int, out: int, axes: int) -> str:
    """`op`, of `%c`, whose last dim of `size` becomes one of `out`, both sharded."""
    return f"""
sdy.mesh @mesh = <["x"={axes}]>
func.func @main(%a: tensor<2x{size}xf32>) -> tensor<2x{out}xf32> {{
  %c = sdy.sharding_constraint %a <@mesh, [{{}}, {{"x"}}]> : tensor<2x{size}xf32>
  %z = stablehlo.constant dense<7.0> : tensor<f32>
  %0 = {op}
  %1 = sdy.sharding_constraint %0 <@mesh, [{{}}, {{"x"}}]> : tensor<2x{out}xf32>
  return %1 : tensor<2x{out}xf32>
}}"""


def check(text: str) -> shardcore.Partitioned:
    partitioned = shardcore.Module.parse(text).propagate().partition("xla")
    assert shardcore.prove(partitioned).is_proven, text
    return partitioned


@pytest.mark.parametrize(("size", "axes"), [(16, 4), (24, 4), (32, 8), (18, 4), (12, 2), (15, 4)])
def test_slices_are_right(size: int, axes: int) -> None:
    bounds = itertools.combinations(range(0, size + 1, 3), 2)
    for start, limit in [*bounds, (0, axes), (axes, 2 * axes), (size - axes, size), (1, size)]:
        out = limit - start
        types = f"(tensor<2x{size}xf32>) -> tensor<2x{out}xf32>"
        check(program(f"stablehlo.slice %c [0:2, {start}:{limit}] : {types}", size, out, axes))


@pytest.mark.parametrize(("size", "axes"), [(16, 4), (8, 8), (10, 4)])
def test_pads_are_right(size: int, axes: int) -> None:
    for low, high in itertools.product((-5, -3, 0, 1, 6, size), (-2, 0, 3, size)):
        out = size + low + high
        if out > 0:
            types = f"(tensor<2x{size}xf32>, tensor<f32>) -> tensor<2x{out}xf32>"
            pad = f"stablehlo.pad %c, %z, low = [0, {low}], high = [0, {high}], interior = [0, 0]"
            check(program(f"{pad} : {types}", size, out, axes))


def test_parts_of_slices_are_chosen_as_xla_does() -> None:
    """The first half of 64 elements of 4 shards: two shards have what all four get."""
    slice_ = "stablehlo.slice %c [0:2, 0:32] : (tensor<2x64xf32>) -> tensor<2x32xf32>"
    text = str(check(program(slice_, 64, 32, 4)).module)
    # XLA sends whole shards, and half of one, which it pads; each shard then keeps its half.
    assert text.count("collective_permute") == 2
    assert "tensor<2x16xf32>) -> tensor<2x16xf32>" in text
    assert text.count("stablehlo.pad") == 1
    assert text.count("stablehlo.iota") == 0


def test_parts_of_slices_are_side_by_side_as_xla_has_them() -> None:
    """The middle of 64 elements of 4 shards: halos on both sides, and one window in each."""
    slice_ = "stablehlo.slice %c [0:2, 16:48] : (tensor<2x64xf32>) -> tensor<2x32xf32>"
    text = str(check(program(slice_, 64, 32, 4)).module)
    assert text.count("collective_permute") == 2
    assert text.count("stablehlo.concatenate") == 1
    assert text.count("stablehlo.select") == 0
