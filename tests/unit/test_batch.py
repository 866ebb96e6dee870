"""Tokens and examples of a step: what its arguments tell of them, and what is said otherwise."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
import shardcore
from shardcore import Module
from shardcore.cli import main

from tests.page.test_page import data_of

W = "params['w']", "64x64xf32"


def program(*arguments: tuple[str, str], product: bool = True) -> str:
    """A program with arguments of these paths and types, which multiplies the first by itself."""
    shown = ", ".join(
        f'%arg{n}: tensor<{kind}> loc("{path}")' for n, (path, kind) in enumerate(arguments)
    )
    kind = f"tensor<{arguments[0][1]}>"
    op = (
        f"stablehlo.dot_general %arg0, %arg0, contracting_dims = [1] x [0] : ({kind}, {kind}) -> "
        if product
        else "stablehlo.tanh %arg0 : "
    )
    return f"func.func @main({shown}) -> {kind} {{\n  %0 = {op}{kind}\n  return %0 : {kind}\n}}"


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        # Sequences, and several batches of them whose gradients are accumulated.
        ([("tokens", "8x16xi32")], (128, None, "tokens")),
        ([("mask", "8x16xi1"), ("tokens", "8x16xui16")], (128, None, "tokens")),
        ([("batch['inputs']", "4x2x16xi32")], (128, None, "batch['inputs']")),
        # An encoder and a decoder: the first one's.
        ([("batch[0]", "8x24xi32"), ("batch[1]", "8x16xi32")], (192, None, "batch[0]")),
        # Packed sequences of different lengths.
        ([("positions", "96xi32"), ("tokens", "96xi32")], (96, None, "positions")),
        # A key of random numbers is neither.
        ([("key", "2xui32"), ("x", "8x32xf32")], (None, 8, "x")),
        ([("keys", "8x2xui32"), ("tokens", "8x16xi32")], (128, None, "tokens")),
        # Images with labels, of bytes, and in several batches.
        ([("images", "8x32x32x3xf32"), ("labels", "8xi32")], (None, 8, "images")),
        ([("images", "8x32x32xui8")], (None, 8, "images")),
        ([("images", "4x8x32x32x3xbf16"), ("labels", "4x8xi32")], (None, 32, "images")),
        # Images, noise and times of diffusion; features over time.
        ([("x", "8x32x32x3xf32"), ("e", "8x32x32x3xf32"), ("t", "8xf32")], (None, 8, "x")),
        ([("x", "8x16x32xf32"), ("y", "8x16x32xf32")], (None, 8, "x")),
        # What is beside the parameters in one tree is no batch.
        ([("params['table']", "96xi32"), ("x", "8x32xf32")], (None, 8, "x")),
        # Not known: no rows in common, nothing but parameters.
        ([("a", "8x32xf32"), ("b", "4x32xf32")], (None, None, None)),
        ([], (None, None, None)),
        ([("x", "?x32xf32")], (None, None, None)),
    ],
)
def test_what_arguments_tell(
    arguments: list[tuple[str, str]], wanted: tuple[int | None, int | None, str | None]
) -> None:
    text = program(W, *arguments)
    cost = shardcore.cost(Module.parse(text).propagate(), "tpu-v5p")
    used = cost.usage
    assert (used.tokens, used.examples, used.counted_in) == wanted
    rates = used.tokens_per_second, used.examples_per_second
    for count, rate in zip(wanted[:2], rates, strict=True):
        assert rate == (None if count is None else pytest.approx(count / cost.step_seconds))
    assert pickle.loads(pickle.dumps(cost)).usage == used
    given = shardcore.cost(Module.parse(text).propagate(), "tpu-v5p", tokens=7).usage
    assert (given.tokens, given.examples, given.counted_in) == (7, None, None)


def test_without_paths_examples_are_not_known() -> None:
    text = program(("w", "64x64xf32"), ("x", "8x32xf32"))
    assert shardcore.cost(Module.parse(text).propagate()).usage.examples is None


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        ([("tokens", "8x16xi32")], " tokens/s (counted in tokens)"),
        ([("images", "8x32x32x3xf32")], " examples/s (counted in images)"),
        ([], ", tokens/s unknown without --tokens"),
    ],
)
def test_what_is_said(arguments: list[tuple[str, str]], wanted: str) -> None:
    text = str(shardcore.cost(Module.parse(program(W, *arguments)).propagate(), "tpu-v5p"))
    [line] = [line for line in text.splitlines() if line.startswith("  use ")]
    assert line.endswith(wanted)


def test_a_step_without_products_asks_for_nothing() -> None:
    text = str(shardcore.cost(Module.parse(program(W, product=False)).propagate(), "tpu-v5p"))
    assert "tokens" not in text


def test_a_page_takes_tokens_too(tmp_path: Path) -> None:
    path = tmp_path / "step.mlir"
    path.write_text(program(W))
    page = tmp_path / "out.html"
    for options, wanted in ([], None), (["--tokens", "64"], 64):
        assert main(["report", str(path), "-o", str(page), "--edits", "0", *options]) == 0
        cost = data_of(page.read_text())["cost"]
        assert cost["tokens"] == (wanted and pytest.approx(wanted / cost["step"]))
