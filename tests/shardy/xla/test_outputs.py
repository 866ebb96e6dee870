"""What XLA for hosts keeps in the memory of outputs, and which outputs are copies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest
import shardcore
from jax import lax
from jax.sharding import PartitionSpec as P

from tests.shardy.programs.registry import Tree, f32, i32, lower, mesh
from tests.shardy.xla.compare import costed
from tests.shardy.xla.measured import measure

DATA = mesh(data=8)
WIDTH, DEPTH = 256, 2


def perceptron(x: jax.Array, w: Tree) -> jax.Array:
    return x + jax.nn.gelu(x @ w["up"]) @ w["down"]


def gated(x: jax.Array, w: Tree) -> jax.Array:
    return x + (jax.nn.silu(x @ w["up"]) * (x @ w["gate"])) @ w["down"]


def same(x: jax.Array, _: Tree) -> jax.Array:
    return x


def chosen(*branches: Any) -> Callable[..., Any]:
    """Gradients of layers, each of which is one of the `branches`."""

    def loss(weights: Tree, x: jax.Array, which: jax.Array) -> jax.Array:
        for w in weights:
            x = lax.switch(which, branches, x, w)
        return jnp.square(x).mean()

    return jax.grad(loss)


def recomputed(block: Any) -> Any:
    return jax.checkpoint(block)


def returned(x: jax.Array, y: jax.Array) -> tuple[jax.Array, ...]:
    """Arguments, one of them twice, and something else."""
    return x, y, x, x + y


def doubled(x: jax.Array) -> tuple[jax.Array, jax.Array]:
    """One product as two outputs."""
    y = x @ x
    return y, y


UP, DOWN = f32(WIDTH, 4 * WIDTH), f32(4 * WIDTH, WIDTH)
LAYERS = [{"up": UP, "gate": UP, "down": DOWN}]
WHOLE = [dict.fromkeys(LAYERS[0], P())] * DEPTH
MODEL = (LAYERS * DEPTH, f32(2048, WIDTH), i32())
MODEL_SPECS = (WHOLE, P("data"), P())
SQUARE = f32(256, 256)
CASES: dict[str, tuple[Callable[..., Any], Tree, Tree]] = {
    "branches": (chosen(perceptron, gated), MODEL, MODEL_SPECS),
    "branches, recomputed": (
        chosen(recomputed(perceptron), recomputed(gated)),
        MODEL,
        MODEL_SPECS,
    ),
    "skipped": (chosen(perceptron, same), MODEL, MODEL_SPECS),
    "skipped, recomputed": (chosen(recomputed(perceptron), gated, same), MODEL, MODEL_SPECS),
    "arguments": (returned, (SQUARE, SQUARE), (P(), P())),
    "twice": (doubled, (SQUARE,), (P(),)),
}


@pytest.mark.parametrize("case", CASES)
def test_peaks_are_those_of_xla(case: str) -> None:
    function, arguments, specs = CASES[case]
    text, cost = costed(function, DATA, arguments, specs)
    assert cost.xla_cpu_peak_bytes == pytest.approx(measure(text).peak, rel=0.1)


@pytest.mark.parametrize("donate", [(), (0, 1)])
def test_arguments_that_are_returned_are_copied_unless_they_are_given_back(
    donate: tuple[int, ...],
) -> None:
    swapped = lower(
        lambda x, y: (y, x), DATA, (SQUARE,) * 2, (P(), P()), donate=donate, platform="cpu"
    )
    kept = lower(lambda x, y: (x, y), DATA, (SQUARE,) * 2, (P(), P()), donate=donate)
    for program in (swapped, kept):
        text = str(program.as_text())
        cost = shardcore.Module.parse(text).propagate().cost(compiler="none")
        assert cost.xla_cpu_peak_bytes == pytest.approx(measure(text).peak, rel=0.01)
        assert cost.peak_bytes == cost.xla_cpu_peak_bytes
        timeline = cost.memory_timeline()
        assert max(point.bytes for point in timeline.points) == cost.peak_bytes
