"""A loss whose layers keep what is chosen has the value and the gradients of the loss as it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import shardcore.jax
from shardcore.remat.choices import NONE, OFFLOADING, Choice, Setting, uniform
from shardcore.remat.loss import Loss, has_aux
from shardcore.simulate import Simulator

from tests.remat import models

FLOAT = jnp.float32
SMALL = {
    "scanned": models.gpt(3, 16, 2, 2, 8, 32, FLOAT),
    "unrolled": models.gpt(2, 16, 2, 2, 8, 32, FLOAT, is_scan=False),
    "blocks with names": models.mlp(3, 8, 4, FLOAT),
    "experts": models.experts(2, 16, 4, 2, 8, FLOAT),
}


def settings(loss: Loss, shapes: Any) -> list[Setting]:
    """Two policies of JAX's, and every second name kept, the others offloaded."""
    program = loss.program(shapes, {})
    counts = [stack.count for stack in program.stacks]
    names = [value.name for values in program.values for value in values]
    assert len(names) > 3
    mixed = Choice(kept=frozenset(names[::2]), offloaded=frozenset(names[1::2]))
    found = [uniform(Choice(policy), counts) for policy in ("nothing_saveable", OFFLOADING)]
    found.append(uniform(mixed, counts))
    if not program.stacks[0].is_scan:
        found.append((((1, Choice()), (counts[0] - 1, Choice(NONE))),))
    return found


@pytest.mark.parametrize("name", SMALL)
def test_the_simulator_has_the_same_numbers(name: str) -> None:
    """In 64 bits, as gradients of what is used several times are added in another order."""
    model = SMALL[name]
    loss = Loss(model.plain)
    arguments = model.arrays()
    aux = has_aux(loss.program(model.shapes, {}))
    leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(arguments)]

    def simulated(one: Callable[..., Any]) -> tuple[Any, ...]:
        module = shardcore.jax.lower(jax.value_and_grad(one, has_aux=aux), *arguments).module
        return tuple(Simulator(module, dtype="f64")(*leaves))

    value, *gradients = simulated(model.plain)
    assert all(np.any(each) for each in gradients)
    for setting in settings(loss, model.shapes):
        other, *others = simulated(loss.with_setting(setting))
        assert other == value
        for one, changed in zip(gradients, others, strict=True):
            np.testing.assert_allclose(changed, one, rtol=1e-7, atol=0)


@pytest.mark.parametrize("name", ["unrolled", "experts"])
def test_jax_has_the_same_numbers(name: str) -> None:
    """On this host, but for what XLA adds up in another order; with a name for every second value
    that is kept, and the others computed anew."""
    model = SMALL[name]
    loss = Loss(model.plain)
    arguments = model.arrays(1)
    aux = has_aux(loss.program(model.shapes, {}))
    expected = jax.jit(jax.value_and_grad(model.plain, has_aux=aux))(*arguments)
    program = loss.program(model.shapes, {})
    kept = frozenset(value.name for value in program.values[0][::2])
    setting = uniform(Choice(kept=kept), [stack.count for stack in program.stacks])
    found = jax.jit(jax.value_and_grad(loss.with_setting(setting), has_aux=aux))(*arguments)
    assert jax.tree.structure(found) == jax.tree.structure(expected)
    for one, other in zip(jax.tree.leaves(expected), jax.tree.leaves(found), strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-5, atol=1e-6)


def test_what_is_computed_anew_is_in_the_program() -> None:
    """Products of the forward pass are there once more, but for those that are kept."""
    model = SMALL["blocks with names"]
    loss = Loss(model.plain)

    def products(choice: Choice) -> int:
        step = jax.value_and_grad(loss.with_setting(uniform(choice, [3])))
        return shardcore.jax.lower(step, *model.shapes).as_text().count("stablehlo.dot_general")

    # Three products of each layer, and two for the gradients of each, but for those of the input.
    whole = 3 * (3 + 6) - 2
    assert products(Choice(NONE)) == products(Choice("everything_saveable")) == whole
    assert products(Choice()) == whole + 3 * 3
    assert products(Choice(kept=frozenset({"gate"}))) == whole + 2 * 3
    assert products(Choice(kept=frozenset({"gate", "up"}))) == whole + 3


def test_layers_that_are_alike_are_one_program() -> None:
    """JAX then differentiates and lowers it once."""
    model = SMALL["unrolled"]
    program = Loss(model.plain).program(model.shapes, {})
    made = jax.make_jaxpr(program.with_setting(uniform(Choice(), [2])))(
        *jax.tree.leaves(model.shapes)
    )
    layers = [each for each in made.eqns if each.primitive.name in ("checkpoint", "remat2")]
    assert len(layers) == 2
    assert len({id(each.params["jaxpr"]) for each in layers}) == 1


def test_layers_with_other_constants_are_others() -> None:
    def layer(x: jax.Array, w: jax.Array, rate: float) -> jax.Array:
        return jnp.tanh(x @ w) * rate

    def loss(weights: list[jax.Array], x: jax.Array) -> jax.Array:
        for number, w in enumerate(weights):
            x = layer(x, w, 1.0 + number)
        return jnp.sum(x)

    x = jnp.ones((4, 4)) * 0.1
    own = Loss(loss)
    program = own.program(([x] * 3, x), {})
    assert program.stacks[0].count == 3
    changed = own.with_setting(uniform(Choice(), [3]))
    expected, found = (jax.value_and_grad(each)([x] * 3, x) for each in (loss, changed))
    assert jax.tree.all(jax.tree.map(lambda a, b: bool(jnp.array_equal(a, b)), expected, found))
