"""What is computed from products keeps the order of their dims, and the same numbers."""

from __future__ import annotations

import numpy as np
import pytest
from shardcore import Module, PassManager

ADD, MAX = "stablehlo.add", "stablehlo.maximum"
SCORES = """func.func @main(%q: tensor<2x6x3x2x4xf32>, %k: tensor<2x5x3x4xf32>{more}) -> {result} {{
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %scale = stablehlo.constant dense<2.0> : tensor<2x3x2x6x5xf32>
  %p = stablehlo.dot_general %k, %q, batching_dims = [0, 2] x [0, 2], contracting_dims = [3] x [4]
    : (tensor<2x5x3x4xf32>, tensor<2x6x3x2x4xf32>) -> tensor<2x3x5x6x2xf32>
  %s = stablehlo.transpose %p, dims = [0, 1, 4, 3, 2]
    : (tensor<2x3x5x6x2xf32>) -> tensor<2x3x2x6x5xf32>
{body}
}}"""
FULL = "tensor<2x3x2x6x5xf32>"
ROWS = "tensor<2x3x2x6xf32>"


def scores(body: str, result: str = FULL, more: str = "") -> str:
    """A program that computes ``body`` of ``%s``, the products of queries and keys."""
    return SCORES.format(body=body, result=result, more=more)


def reduced(name: str, of: str, op: str = ADD, initial: str = "zero") -> str:
    return (
        f"  %{name} = stablehlo.reduce(%{of} init: %{initial}) applies {op} across "
        f"dimensions = [4] : ({FULL}, tensor<f32>) -> {ROWS}\n"
    )


def spread(name: str, of: str) -> str:
    ones = "tensor<2x3x2x6x1xf32>"
    return (
        f"  %{name}0 = stablehlo.broadcast_in_dim %{of}, dims = [0, 1, 2, 3] : ({ROWS}) -> {ones}\n"
        f"  %{name}1 = stablehlo.reshape %{name}0 : ({ones}) -> {ROWS}\n"
        f"  %{name}2 = stablehlo.reshape %{name}1 : ({ROWS}) -> {ones}\n"
        f"  %{name} = stablehlo.broadcast_in_dim %{name}2, dims = [0, 1, 2, 3, 4]"
        f" : ({ones}) -> {FULL}\n"
    )


MASKED = f"""  %i = stablehlo.iota dim = 3 : tensor<2x3x2x6x5xi32>
  %j = stablehlo.iota dim = 1 : tensor<6x5xi32>
  %jj = stablehlo.broadcast_in_dim %j, dims = [3, 4] : (tensor<6x5xi32>) -> tensor<2x3x2x6x5xi32>
  %m = stablehlo.compare GE, %i, %jj : (tensor<2x3x2x6x5xi32>, tensor<2x3x2x6x5xi32>)
    -> tensor<2x3x2x6x5xi1>
  %scaled = stablehlo.multiply %s, %scale : {FULL}
  %masked = stablehlo.select %m, %scaled, %scale : tensor<2x3x2x6x5xi1>, {FULL}
"""
SOFTMAX = (
    MASKED
    + reduced("top", "masked", MAX, "low")
    + spread("tops", "top")
    + f"  %d = stablehlo.subtract %masked, %tops : {FULL}\n"
    + reduced("sum", "d")
    + spread("sums", "sum")
    + f"  %n = stablehlo.multiply %d, %sums : {FULL}\n"
)
VALUES = """  %o = stablehlo.dot_general %n, %v, batching_dims = [0, 1] x [0, 2],
    contracting_dims = [4] x [1]
    : (tensor<2x3x2x6x5xf32>, tensor<2x5x3x7xf32>) -> tensor<2x3x2x6x7xf32>
  return %o : tensor<2x3x2x6x7xf32>"""
LOOP = f"""  %r:2 = stablehlo.while(%a = %s, %x = %s) : {FULL}, {FULL}
  cond {{
    %t = stablehlo.constant dense<false> : tensor<i1>
    stablehlo.return %t : tensor<i1>
  }} do {{
    %y = stablehlo.add %a, %s : {FULL}
    stablehlo.return %y, %s : {FULL}, {FULL}
  }}
  %z = stablehlo.add %s, %s : {FULL}
  %w = stablehlo.add %z, %r#0 : {FULL}
  return %w : {FULL}"""
CASES = {
    "softmax": (scores(SOFTMAX + f"  return %n : {FULL}"), 1),
    "values": (scores(SOFTMAX + VALUES, "tensor<2x3x2x6x7xf32>", ", %v: tensor<2x5x3x7xf32>"), 1),
    "sums alone": (scores(reduced("t", "s") + f"  return %t : {ROWS}", ROWS), 1),
    "what is stored": (
        scores(
            f"  %t = stablehlo.add %s, %x : {FULL}\n  return %t : {FULL}", FULL, f", %x: {FULL}"
        ),
        1,
    ),
    "another order": (
        scores(
            "  %u = stablehlo.dot_general %q, %k, batching_dims = [0, 2] x [0, 2],"
            " contracting_dims = [4] x [3]\n"
            "    : (tensor<2x6x3x2x4xf32>, tensor<2x5x3x4xf32>) -> tensor<2x3x6x2x5xf32>\n"
            "  %w = stablehlo.transpose %u, dims = [0, 1, 3, 2, 4]\n"
            f"    : (tensor<2x3x6x2x5xf32>) -> {FULL}\n"
            f"  %t = stablehlo.multiply %s, %w : {FULL}\n  return %t : {FULL}"
        ),
        2,
    ),
    "turned back": (
        scores(
            f"  %t = stablehlo.negate %s : {FULL}\n"
            "  %w = stablehlo.transpose %t, dims = [0, 1, 4, 3, 2]\n"
            f"    : ({FULL}) -> tensor<2x3x5x6x2xf32>\n  return %w : tensor<2x3x5x6x2xf32>",
            "tensor<2x3x5x6x2xf32>",
        ),
        0,
    ),
    "read inside a loop": (scores(LOOP), 3),
}


def assigned(text: str) -> Module:
    module = Module.parse(text)
    PassManager.parse("builtin.module(layout-assignment)").run(module)
    return Module.parse(str(module))


def moving(module: Module) -> int:
    """The number of transposes that move elements."""
    count = 0
    for op in module.ops():
        if op.name == "stablehlo.transpose":
            order = [int(dim) for dim in op.attributes["permutation"]]
            count += order != sorted(order)
    return count


@pytest.mark.parametrize("name", CASES)
def test_the_numbers_are_the_same(name: str) -> None:
    text, left = CASES[name]
    before, after = Module.parse(text), assigned(text)
    chance = np.random.default_rng(0)
    given = [
        chance.integers(-4, 5, tuple(size or 0 for size in one.shape or ())).astype(np.float32)
        for one in before.arguments()
    ]
    np.testing.assert_array_equal(after.simulate(*given), before.simulate(*given))
    assert moving(after) == left


def test_reductions_are_along_the_dim_of_the_product() -> None:
    """The keys are dim 2 of the product, and dim 4 of what the program computes."""
    for op in assigned(CASES["softmax"][0]).ops():
        if op.name == "stablehlo.reduce":
            assert op.operands[0].shape == (2, 3, 5, 6, 2)
            assert list(op.attributes["dimensions"]) == [2]


def test_a_swapped_product_stays() -> None:
    """XLA multiplies in the other order instead."""
    text = """func.func @main(%a: tensor<6x4xf32>, %b: tensor<4x5xf32>) -> tensor<5x6xf32> {
  %p = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
    : (tensor<6x4xf32>, tensor<4x5xf32>) -> tensor<6x5xf32>
  %t = stablehlo.transpose %p, dims = [1, 0] : (tensor<6x5xf32>) -> tensor<5x6xf32>
  %e = stablehlo.exponential %t : tensor<5x6xf32>
  return %e : tensor<5x6xf32>
}"""
    assert str(assigned(text)) == str(Module.parse(text))
