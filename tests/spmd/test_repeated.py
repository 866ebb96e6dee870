"""Ops that are lowered like earlier ones, and copies of the ops that were made for others."""

from __future__ import annotations

import re

import numpy as np
import pytest
import shardcore

COPIES = 6

LAYER = """
  %t{n} = stablehlo.transpose %{x}, dims = [1, 0] : (tensor<16x16xf32>) -> tensor<16x16xf32>
  %s{n} = stablehlo.tanh %t{n}
      {{sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{{"y"}}, {{"x"}}]>]>}} : tensor<16x16xf32>
  %d{n} = stablehlo.dot_general %s{n}, %{x}, contracting_dims = [1] x [0]
      : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
  %p{n} = stablehlo.pad %d{n}, %{fill}, low = [2, 0], high = [-2, 0], interior = [0, 0]
      {{sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{{"x"}}, {{}}]>]>}}
      : (tensor<16x16xf32>, tensor<f32>) -> tensor<16x16xf32>
  %m{n} = stablehlo.reduce(%p{n} init: %one) applies stablehlo.{reducer} across dimensions = [0]
      : (tensor<16x16xf32>, tensor<f32>) -> tensor<16xf32>
  %b{n} = stablehlo.broadcast_in_dim %m{n}, dims = [1]
      : (tensor<16xf32>) -> tensor<16x16xf32>
  %r{n} = stablehlo.subtract %p{n}, %b{n}
      {{sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{{"x"}}, {{"y"}}]>]>}} : tensor<16x16xf32>
"""


def layers(first: str, prefix: str, reducers: list[str]) -> tuple[str, str]:
    """Layers in a row, and the name of what the last one makes."""
    text, value = "", first
    for number, reducer in enumerate(reducers):
        n = f"{prefix}{number}"
        fill = "one" if number % 2 else "fill"
        text += LAYER.format(n=n, x=value, reducer=reducer, fill=fill)
        value = f"r{n}"
    return text, value


def program(reducers: list[str]) -> shardcore.Module:
    """Layers in the main function, in a loop, and behind that."""
    before, start = layers("a", "u", reducers)
    inside, made = layers("w", "v", reducers)
    behind, end = layers("l#1", "z", reducers)
    return shardcore.Module.parse(f"""
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<16x16xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}, {{"y"}}]>}},
                %fill: tensor<f32>) -> tensor<16x16xf32> {{
  %one = stablehlo.constant dense<1.0> : tensor<f32>
  %none = stablehlo.constant dense<0> : tensor<i32>
  %step = stablehlo.constant dense<1> : tensor<i32>
  %most = stablehlo.constant dense<2> : tensor<i32>
  {before}
  %l:2 = stablehlo.while(%k = %none, %w = %{start}) : tensor<i32>, tensor<16x16xf32>
    cond {{
      %c = stablehlo.compare LT, %k, %most : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %c : tensor<i1>
    }} do {{
      %q = stablehlo.add %k, %step : tensor<i32>
      {inside}
      stablehlo.return %q, %{made} : tensor<i32>, tensor<16x16xf32>
    }}
  {behind}
  return %{end} : tensor<16x16xf32>
}}""")


PRODUCT = """
  %e{n} = stablehlo.exponential %{x} : tensor<6x{k}xf32>
  %v{n} = stablehlo.cosine %w
      {{sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{axes}, {{}}]>]>}} : tensor<{k}x{k}xf32>
  %h{n} = stablehlo.dot_general %e{n}, %v{n}, contracting_dims = [1] x [0]
      : (tensor<6x{k}xf32>, tensor<{k}x{k}xf32>) -> tensor<6x{k}xf32>
  %g{n} = stablehlo.tanh %h{n} : tensor<6x{k}xf32>
  %c{n} = stablehlo.cosine %g{n}
      {{sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{{}}, {axes}]>]>}} : tensor<6x{k}xf32>
"""


@pytest.mark.parametrize("axes", ['{"x"}', '{"y"}', '{"y", "x"}'])
@pytest.mark.parametrize("size", [8, 10])
@pytest.mark.parametrize("policy", ["xla", "least", "shardy"])
def test_products_add_up_no_padding(policy: str, size: int, axes: str) -> None:
    """Shards of a dim of 10 have padding, which each of the products that are alike masks."""
    text, value = "", "a"
    for n in range(4):
        text += PRODUCT.format(n=n, x=value, k=size, axes=axes)
        value = f"c{n}"
    module = shardcore.Module.parse(f"""
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(
    %a: tensor<6x{size}xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{}}, {{}}]>}},
    %w: tensor<{size}x{size}xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{}}, {{}}]>}})
    -> tensor<6x{size}xf32> {{
  {text}
  return %{value} : tensor<6x{size}xf32>
}}""")
    rng = np.random.default_rng(0)
    given = [rng.normal(size=shape).astype(np.float32) for shape in ((6, size), (size, size))]
    found = module.propagate().partition(policy).simulate(*given)
    for mine, whole in zip(found, module.simulate(*given), strict=True):
        np.testing.assert_allclose(mine, whole, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("policy", ["xla", "least", "shardy"])
def test_layers_compute_what_the_global_program_does(policy: str) -> None:
    """Reducers, what is behind the border, and blocks differ from one to the next."""
    module = program(["add", "maximum", "add", "maximum", "maximum", "add", "add"])
    rng = np.random.default_rng(0)
    given = rng.normal(size=(16, 16)).astype(np.float32), np.float32(3)
    found = module.propagate().partition(policy).simulate(*given)
    for mine, whole in zip(found, module.simulate(*given), strict=True):
        np.testing.assert_allclose(mine, whole, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("policy", ["xla", "shardy"])
def test_layers_that_are_alike_have_equal_ops(policy: str) -> None:
    """Nothing tells from the third layer on which ops were made, and which copied."""
    text = str(program(["add"] * COPIES).propagate().partition(policy).module)
    main = text[: text.index("stablehlo.while")]
    assert main.count("stablehlo.partition_id") == 1
    channels = re.findall(r"handle = (\d+)", text)
    assert len(set(channels)) == len(channels) > COPIES
    plain = re.sub(r"handle = \d+|\^bb\d+|%[\w#]+(:\d+)?", "", main)
    parts = re.split(r"(?= = stablehlo.transpose)", plain)[1:]
    assert len(parts) == COPIES
    assert (parts[1], parts[2]) == (parts[3], parts[4])


def test_ops_sharded_along_axes_of_one_size_are_not_alike() -> None:
    """Types of shards are equal, placements are not."""
    x, y = '<@mesh, [{"x"}, {}]>', '<@mesh, [{"y"}, {}]>'
    ops = [("a", x), ("a", y), ("b", x), ("b", y), ("a", x), ("b", x), ("a", y), ("b", y)]
    lines = [
        f"%{number} = stablehlo.tanh %{value} "
        f"{{sdy.sharding = #sdy.sharding_per_value<[{sharding}]>}} : tensor<8x8xf32>"
        for number, (value, sharding) in enumerate(ops)
    ]
    names = ", ".join(f"%{number}" for number in range(len(ops)))
    types = ", ".join(["tensor<8x8xf32>"] * len(ops))
    module = shardcore.Module.parse(f"""
sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @main(%a: tensor<8x8xf32> {{sdy.sharding = #sdy.sharding{x}}},
                %b: tensor<8x8xf32> {{sdy.sharding = #sdy.sharding{y}}}) -> ({types}) {{
  {chr(10).join(lines)}
  return {names} : {types}
}}""")
    rng = np.random.default_rng(0)
    given = [rng.normal(size=(8, 8)).astype(np.float32) for _ in range(2)]
    for policy in ("xla", "least", "shardy"):
        found = module.propagate().partition(policy).simulate(*given)
        for mine, whole in zip(found, module.simulate(*given), strict=True):
            np.testing.assert_array_equal(mine, whole)


def test_ops_that_are_alike_are_counted_or_listed_each() -> None:
    """Ops whose cost is not known are listed with their number, others counted."""
    module = shardcore.Module.parse("""
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.tanh %a : tensor<8xf32>
  %1 = stablehlo.tanh %0 : tensor<8xf32>
  %2 = stablehlo.tanh %1 : tensor<8xf32>
  %3 = "my.op"(%2) : (tensor<8xf32>) -> tensor<8xf32>
  %4 = "my.op"(%3) : (tensor<8xf32>) -> tensor<8xf32>
  %5 = "my.op"(%4) : (tensor<8xf32>) -> tensor<8xf32>
  return %5 : tensor<8xf32>
}""")
    cost = shardcore.cost(module, "tpu-v5e")
    assert cost.transcendentals == 3 * 8
    # The first two of the three in a row are fused with the next one; arrays are in tiles.
    assert cost.hbm_bytes == (1 + 3) * 2 * 512
    assert [(row.name, row.count) for row in cost.uncounted] == [("my.op", 3)]


def test_windows_that_are_alike_are_filled_each() -> None:
    """What is in front of the first element differs from one pad to the next."""
    pads = "\n".join(
        f"%{number + 1} = stablehlo.pad %{number}, %{fill}, low = [2], high = [-2], interior = [0] "
        '{sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} '
        ": (tensor<16xf32>, tensor<f32>) -> tensor<16xf32>"
        for number, fill in enumerate("fgfgf")
    )
    module = shardcore.Module.parse(f"""
sdy.mesh @mesh = <["x"=4]>
func.func @main(%a: tensor<16xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}]>}},
                %f: tensor<f32>, %g: tensor<f32>) -> tensor<16xf32> {{
  %0 = stablehlo.tanh %a : tensor<16xf32>
  {pads}
  return %5 : tensor<16xf32>
}}""")
    given = np.arange(16, dtype=np.float32), np.float32(3), np.float32(5)
    for policy in ("xla", "least", "shardy"):
        (mine,) = module.propagate().partition(policy).simulate(*given)
        (whole,) = module.simulate(*given)
        np.testing.assert_array_equal(mine, whole)
