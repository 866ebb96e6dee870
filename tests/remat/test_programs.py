"""Layers are found, and values in them that can be named."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import pytest
from shardcore.calculus import hardware
from shardcore.remat.choices import Choice
from shardcore.remat.loss import Loss, Program
from shardcore.remat.model import seconds

from tests.remat import models

ROWS = jax.ShapeDtypeStruct((8, 16), jnp.float32)
SQUARE = jax.ShapeDtypeStruct((16, 16), jnp.float32)


def traced(loss: Callable[..., Any], *shapes: Any) -> Program:
    return Loss(loss).program(shapes, {})


def dense(x: jax.Array, w: jax.Array) -> jax.Array:
    return x @ w


def layer(x: jax.Array, w: jax.Array) -> jax.Array:
    inner = dense(x, w)
    outer = dense(jnp.tanh(inner), w.T)
    return x + jax.nn.softmax(outer)


WRAPS = {
    "plain": lambda layer: layer,
    "jitted": jax.jit,
    "checkpointed": jax.checkpoint,
    "both": lambda layer: jax.checkpoint(jax.jit(layer)),
}


@pytest.mark.parametrize("wrap", WRAPS)
@pytest.mark.parametrize("is_scan", [True, False])
def test_layers_are_found_however_they_are_wrapped(wrap: str, is_scan: bool) -> None:
    own = WRAPS[wrap](layer)

    def loss(x: jax.Array, weights: Any) -> jax.Array:
        # The sum before the layers is like the last one in each.
        return jnp.mean(models.run(own, x + x, weights))

    weights = models.stacked(4, {"w": SQUARE})["w"] if is_scan else [SQUARE] * 4
    program = traced(loss, ROWS, weights)
    [stack] = program.stacks
    assert (stack.is_scan, stack.count) == (is_scan, 4)
    [values] = program.values
    names = {value.name: value for value in values}
    assert {"inner", "outer"} <= names.keys()
    # Each is made by the call of `dense` that it is assigned in, not in `dense`.
    assert names["inner"].line == 'inner = checkpoint_name(inner, "inner")'
    lines = [int(names[name].location.split(":")[-2]) for name in ("inner", "outer")]
    assert lines[1] == lines[0] + 1
    assert names["inner"].bytes == 8 * 16 * 4
    # What a softmax makes on its way cannot be named, and what goes to the next layer is kept.
    assert "exp" not in {value.primitive for value in values}
    assert not any(value.line.startswith("x + ") for value in values)


def test_blocks_are_cut_where_least_goes_on() -> None:
    """One array goes from a block to the next, though the blocks repeat from any equation on."""
    model = models.gpt(4, is_scan=False)
    program = traced(model.plain, *model.shapes)
    block = program.layer(0)
    assert len(block.outvars) == 1
    assert block.outvars[0].aval.shape == (8, 512, 512)


def test_several_stacks() -> None:
    def loss(x: jax.Array, first: jax.Array, second: list[jax.Array]) -> jax.Array:
        x = models.run(layer, x, first)
        return jnp.mean(models.run(lambda x, w: jnp.sin(x @ w), x, second))

    program = traced(loss, ROWS, models.stacked(3, {"w": SQUARE})["w"], [SQUARE] * 5)
    assert [(stack.is_scan, stack.count) for stack in program.stacks] == [(True, 3), (False, 5)]


def test_names_that_are_there_are_used() -> None:
    model = models.mlp()
    [values] = traced(model.plain, *model.shapes).values
    given = [value.name for value in values if value.is_given]
    assert given == ["gate", "up"]
    # What is named is no value of its own besides.
    assert [value.type for value in values].count("bfloat16[8192,4096]") == 2 + 2


def test_one_line_in_a_loop_is_one_name() -> None:
    def three(x: jax.Array, w: jax.Array) -> jax.Array:
        parts = [x @ w for _ in range(3)]
        return jnp.tanh(parts[0] * parts[1]) + parts[2]

    def loss(x: jax.Array, weights: jax.Array) -> jax.Array:
        return jnp.mean(models.run(three, x, weights))

    [values] = traced(loss, ROWS, models.stacked(2, {"w": SQUARE})["w"]).values
    [product] = [value for value in values if value.primitive == "dot_general"]
    assert len(product.places) == 3
    assert product.bytes == 3 * 8 * 16 * 4
    # JAX names the arrays of a list, too.
    assert product.line == 'parts = checkpoint_name(parts, "parts")'


def test_what_comes_from_the_layer_before() -> None:
    """It has a name for the host to keep it; parameters and what all layers share have none."""

    def loss(x: jax.Array, shared: jax.Array, weights: list[jax.Array]) -> jax.Array:
        shared = jnp.sin(shared)
        for w in weights:
            x = jnp.tanh(x @ w) * shared
        return jnp.mean(x)

    program = traced(loss, ROWS, ROWS, [SQUARE] * 3)
    [value] = [value for value in program.values[0] if value.is_input]
    assert (value.name, value.type) == ("layer_input", "float32[8,16]")
    assert value.line == 'x = checkpoint_name(x, "layer_input")'
    model = models.gpt()
    [value] = [v for v in traced(model.plain, *model.shapes).values[0] if v.is_input]
    assert value.type == "bfloat16[8,512,512]"


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2", "float8_e4m3b11fnuz"])
def test_products_of_short_floats_take_the_time_of_their_type(dtype: str) -> None:
    chip = hardware("h100")

    def of(dtype: Any) -> float:
        square = jax.ShapeDtypeStruct((8192, 8192), dtype)
        traced = jax.make_jaxpr(lambda a, b: jnp.dot(a, b, preferred_element_type=jnp.bfloat16))
        return seconds(traced(square, square).eqns[0], chip)

    assert of(jnp.dtype(dtype)) == pytest.approx(of(jnp.bfloat16) / 2, rel=0.01)


def test_checkpoints_inside_of_checkpoints_are_taken_apart() -> None:
    @jax.checkpoint
    def inner(x: jax.Array) -> jax.Array:
        return jax.checkpoint(jnp.tanh)(x) * 2

    @jax.checkpoint
    def outer(x: jax.Array, w: jax.Array) -> tuple[jax.Array, None]:
        y = inner(x)
        return x + jnp.tanh(y @ w) @ w.T + y, None

    def loss(x: jax.Array, weights: jax.Array) -> jax.Array:
        return jnp.mean(jax.lax.scan(outer, x, weights)[0])

    arrays = jnp.ones((8, 16)), jnp.ones((4, 16, 16)) / 16
    found = Loss(loss).with_setting((((4, Choice("nothing_saveable")),),))
    assert found(*arrays) == loss(*arrays)
