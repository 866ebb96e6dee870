"""Top-k without a kernel for it is a sort of whole rows."""

from __future__ import annotations

import numpy as np
import pytest
from shardcore import Module, PassManager


def top_k(shape: str, count: int, element: str = "f32") -> str:
    rows = shape.rpartition("x")[0]
    out = f"{rows}x{count}" if rows else str(count)
    return f"""func.func @main(%a: tensor<{shape}x{element}>)
    -> (tensor<{out}x{element}>, tensor<{out}xi32>) {{
  %0:2 = chlo.top_k(%a, k = {count})
    : tensor<{shape}x{element}> -> (tensor<{out}x{element}>, tensor<{out}xi32>)
  return %0#0, %0#1 : tensor<{out}x{element}>, tensor<{out}xi32>
}}"""


def decomposed(text: str) -> Module:
    module = Module.parse(text)
    PassManager.parse("builtin.module(topk-decomposer)").run(module)
    return Module.parse(str(module))


@pytest.mark.parametrize(
    ("shape", "count", "element"),
    [("4x2000", 17, "f32"), ("7", 2, "f32"), ("3x40", 40, "i32"), ("2x3x1100", 5, "f32")],
)
def test_the_largest_are_the_same(shape: str, count: int, element: str) -> None:
    text = top_k(shape, count, element)
    before, after = Module.parse(text), decomposed(text)
    names = [op.name for op in after.ops()]
    assert "chlo.top_k" not in names
    assert names.count("stablehlo.sort") == 1
    sizes = tuple(int(size) for size in shape.split("x"))
    # Several elements are equal: the first of them is selected first.
    given = np.random.default_rng(0).integers(-50, 50, sizes)
    given = given.astype(np.int32 if element == "i32" else np.float32)
    for mine, theirs in zip(after.simulate(given), before.simulate(given), strict=True):
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize(("shape", "count"), [("4x2000", 16), ("1024", 1)])
def test_few_of_long_rows_have_a_kernel(shape: str, count: int) -> None:
    text = top_k(shape, count)
    assert str(decomposed(text)) == str(Module.parse(text))


def test_sorted_rows_are_in_memory() -> None:
    """The rows, and their indices, as long as they are sorted."""
    peaks = []
    for count in (16, 17):
        cost = Module.parse(top_k("64x32768", count)).propagate().cost("h100")
        peaks.append(cost.peak_bytes)
    assert peaks[1] - peaks[0] > 2 * 4 * 64 * 32768
