"""Steps that differentiate a loss themselves, whose layers keep something else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import shardcore.jax
from shardcore import PlanError
from shardcore.remat.choices import Choice, Setting, uniform
from shardcore.remat.step import Step

LAYERS, WIDTH = 4, 16
NAMES = Choice.of_names({"inner"}, ())


def layer(x: jax.Array, w: jax.Array) -> tuple[jax.Array, None]:
    inner = x @ w
    outer = jnp.tanh(inner) @ w.T
    return x + jnp.tanh(outer), None


def loss(weights: jax.Array, x: jax.Array, scan: Callable[..., Any], scale: str) -> jax.Array:
    out, _ = scan(layer, x, weights)
    return jnp.mean(out**2) * float(scale)


def step(weights: jax.Array, x: jax.Array) -> Any:
    # What is no array is passed through the derivative, too.
    value, gradient = jax.value_and_grad(loss)(weights, x, jax.lax.scan, "2.0")
    return value, weights - gradient


ARRAYS = (
    np.ones((LAYERS, WIDTH, WIDTH), np.float32) / WIDTH,
    np.ones((8, WIDTH), np.float32),
)


@pytest.fixture(scope="module")
def found() -> Step:
    return Step(shardcore.jax.lower(step, *ARRAYS, platform="cpu"))


def of(choice: Choice) -> Setting:
    return uniform(choice, [LAYERS])


def products(lowered: Any) -> int:
    return sum(op.name == "stablehlo.dot_general" for op in lowered.module.ops())


def test_layers_of_the_loss_are_found(found: Step) -> None:
    [stack] = found.layers.stacks
    assert (stack.count, stack.is_scan) == (LAYERS, True)
    assert {"inner", "outer"} <= {value.name for value in found.layers.values[0]}


def test_what_is_not_kept_is_computed_anew(found: Step) -> None:
    counts = {
        name: products(found.lowered(of(choice)))
        for name, choice in {
            "none": Choice("none"),
            "nothing": Choice("nothing_saveable"),
            "inner": NAMES,
        }.items()
    }
    assert counts == {"none": 6, "nothing": 8, "inner": 7}
    assert products(found.given) == 6
    assert jax.grad.__module__.startswith("jax")


@pytest.mark.parametrize("choice", [Choice("nothing_saveable"), NAMES])
def test_the_step_computes_the_same(found: Step, choice: Choice) -> None:
    run = found.lowered(of(choice)).applied(shardcore.Mesh({"x": 1}), (None, None))
    for one, other in zip(step(*ARRAYS), run(*ARRAYS), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)


@pytest.mark.parametrize("choice", [Choice("none"), Choice("nothing_saveable"), NAMES])
def test_the_function_of_a_scan_keeps_the_same(found: Step, choice: Choice) -> None:
    wrapped = found.layers.wrapped(layer, of(choice))

    def other(weights: jax.Array, x: jax.Array) -> Any:
        def scan(_: Any, x: jax.Array, weights: jax.Array) -> Any:
            return jax.lax.scan(wrapped, x, weights)

        value, gradient = jax.value_and_grad(loss)(weights, x, scan, "2.0")
        return value, weights - gradient

    lowered = shardcore.jax.lower(other, *ARRAYS, platform="cpu")
    assert products(lowered) == products(found.lowered(of(choice)))
    for one, two in zip(step(*ARRAYS), other(*ARRAYS), strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-6)


def test_what_differentiates_nothing_is_refused() -> None:
    with pytest.raises(PlanError, match="no-layers"):
        Step(shardcore.jax.lower(lambda x: x * 2, jnp.ones(4), platform="cpu"))
