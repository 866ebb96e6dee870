"""Dots that become multiplications and sums: which ones, and that the results are the same."""

from __future__ import annotations

from math import prod

import ml_dtypes
import numpy as np
import pytest
from shardcore import Module, PassManager

PIPELINE = "builtin.module(dot-strength-reduction)"


def dot(
    left: str,
    right: str,
    result: str,
    dims: str,
    attributes: str = "",
) -> str:
    """A program of one ``dot_general`` of two arguments; ``dims`` in the pretty form."""
    return f"""func.func @main(%a: tensor<{left}>, %b: tensor<{right}>) -> tensor<{result}> {{
  %0 = stablehlo.dot_general %a, %b, {dims}{attributes}
    : (tensor<{left}>, tensor<{right}>) -> tensor<{result}>
  return %0 : tensor<{result}>
}}"""


HIGH = ", precision = [HIGHEST, HIGHEST]"
REDUCED = {
    "vectors": dot("48xf32", "48xf32", "f32", "contracting_dims = [0] x [0]"),
    "outer": dot("5x1xf32", "1x7xf32", "5x7xf32", "contracting_dims = [1] x [0]"),
    "outer of a batch": dot(
        "5x3xf32", "3x7xf32", "3x5x7xf32", "batching_dims = [1] x [0], contracting_dims = [] x []"
    ),
    "matrix by vector": dot("6x48xf32", "48xf32", "6xf32", "contracting_dims = [1] x [0]"),
    "row by matrix": dot("1x48xf32", "48x6xf32", "1x6xf32", "contracting_dims = [1] x [0]"),
    "queries by keys": dot(
        "2x3x8xbf16",
        "2x16x3x8xbf16",
        "2x3x16xbf16",
        "batching_dims = [0, 1] x [0, 2], contracting_dims = [2] x [3]",
    ),
    "weights by values, as f32": dot(
        "16x3x2x1xbf16",
        "2x3x8x16xbf16",
        "2x3x1x8xf32",
        "batching_dims = [2, 1] x [0, 1], contracting_dims = [0] x [3]",
    ),
    "several contracting dims": dot(
        "1x4x6xi32", "6x5x4xi32", "1x5xi32", "contracting_dims = [1, 2] x [2, 0]"
    ),
    "large batch of vectors": dot(
        "2x2x4000xf32",
        "2x2x3000x4000xf32",
        "2x2x3000xf32",
        "batching_dims = [0, 1] x [0, 1], contracting_dims = [2] x [3]",
    ),
    "large of high precision": dot(
        "4000xf32", "4000x3000xf32", "3000xf32", "contracting_dims = [0] x [0]", HIGH
    ),
}
KEPT = {
    "matrices": dot("6x48xf32", "48x7xf32", "6x7xf32", "contracting_dims = [1] x [0]"),
    "large matrix by vector": dot(
        "4000xf32", "4000x3000xf32", "3000xf32", "contracting_dims = [0] x [0]"
    ),
    "groups of queries": dot(
        "2x3x4x8xf32",
        "2x16x3x8xf32",
        "2x3x4x16xf32",
        "batching_dims = [0, 1] x [0, 2], contracting_dims = [3] x [3]",
    ),
}


def reduced(text: str) -> Module:
    module = Module.parse(text)
    PassManager.parse(PIPELINE).run(module)
    return Module.parse(str(module))


def names(module: Module) -> list[str]:
    return [op.name.removeprefix("stablehlo.") for op in module.ops()]


@pytest.mark.parametrize("name", [name for name in REDUCED if not name.startswith("large")])
def test_the_sums_are_the_same(name: str) -> None:
    text, chance = REDUCED[name], np.random.default_rng(0)
    before, after = Module.parse(text), reduced(text)
    assert "dot_general" not in names(after)
    given = [
        chance.integers(-4, 5, tuple(size or 0 for size in one.shape or ())).astype(
            {"bf16": ml_dtypes.bfloat16, "f32": np.float32, "i32": np.int32}[one.dtype]
        )
        for one in before.arguments()
    ]
    wanted, found = before.simulate(*given), after.simulate(*given)
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("name", [name for name in REDUCED if name.startswith("large")])
def test_large_ones_without_a_kernel_are_reduced(name: str) -> None:
    assert "dot_general" not in names(reduced(REDUCED[name]))


@pytest.mark.parametrize("name", KEPT)
def test_products_of_matrices_stay(name: str) -> None:
    assert str(reduced(KEPT[name])) == str(Module.parse(KEPT[name]))


def test_what_is_large_is_not_transposed() -> None:
    for name in ("queries by keys", "matrix by vector", "row by matrix"):
        ops = [op for op in reduced(REDUCED[name]).ops() if op.name == "stablehlo.transpose"]
        assert all(prod(op.results[0].shape) < 100 for op in ops), name
    back = """func.func @main(%a: tensor<8xf32>, %b: tensor<6x8xf32>) -> tensor<6xf32> {
  %0 = stablehlo.transpose %b, dims = [1, 0] : (tensor<6x8xf32>) -> tensor<8x6xf32>
  %1 = stablehlo.dot_general %a, %0, contracting_dims = [0] x [0]
    : (tensor<8xf32>, tensor<8x6xf32>) -> tensor<6xf32>
  return %1 : tensor<6xf32>
}"""
    multiplied = [op for op in reduced(back).ops() if op.name == "stablehlo.multiply"]
    assert [op.operands[0].shape for op in multiplied] == [(6, 8)]


def test_only_gpus_have_no_product_then() -> None:
    result = Module.parse(REDUCED["row by matrix"]).propagate()
    rows = {chip: {row.name for row in result.cost(chip).ops} for chip in ("h100", "tpu-v5p")}
    assert "stablehlo.dot_general" in rows["tpu-v5p"]
    assert "stablehlo.dot_general" not in rows["h100"]
    assert {"stablehlo.multiply", "stablehlo.reduce"} <= rows["h100"]
