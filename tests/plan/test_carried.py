"""Constraints of values, carried over to a program whose layers keep something else."""

from __future__ import annotations

from typing import Any

import pytest

jax = pytest.importorskip("jax")

import jax.numpy as jnp  # noqa: E402
import shardcore.jax  # noqa: E402
from shardcore import Module  # noqa: E402
from shardcore.plan.carried import carried  # noqa: E402

X, UP, DOWN = ((8, 16, 32), (4, 32, 64), (4, 64, 32))


def layer(x: Any, w: Any) -> Any:
    hidden = jnp.tanh(x @ w["up"])
    return x + hidden @ w["down"], None


def program(keeps: bool) -> shardcore.jax.Lowered:
    """The gradients of four scanned layers that keep what they need for them, or nothing."""
    one = layer if keeps else jax.checkpoint(layer)

    def loss(w: Any, x: Any) -> Any:
        return jnp.mean(jax.lax.scan(one, x, w)[0] ** 2)

    up, down, x = (jax.ShapeDtypeStruct(shape, jnp.float32) for shape in (UP, DOWN, X))
    given = {"up": up, "down": down}, x
    return shardcore.jax.lower(jax.grad(loss), *given, mesh={"x": 2, "y": 2}, platform="cpu")


def hidden(module: Module) -> set[str]:
    return {
        value.qualified_name
        for value in module.values()
        if value.op == "stablehlo.tanh" and value.shape == (8, 16, 64)
    }


def test_a_line_within_a_loop_is_constrained_each_time_that_it_runs() -> None:
    session = program(True).session()
    kept, nothing = session.module, program(False).session().module
    [name] = hidden(kept)
    session.set(name, "P('x', None, 'y')")
    sharding = session.annotations[name]
    found = carried({name: sharding}, kept, nothing)
    assert len(found) == 2
    assert found.keys() == hidden(nothing)
    assert {*found.values()} == {sharding}
    assert {*carried(found, nothing, kept)} == {name}


def test_values_without_a_place_keep_their_names_where_these_mean_the_same() -> None:
    def text(first: str) -> Module:
        return Module.parse(f"""
        sdy.mesh @mesh = <["x"=2]>
        func.func @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {{
          %0 = stablehlo.{first} %arg0 : tensor<8xf32>
          %1 = stablehlo.sine %0 : tensor<8xf32>
          return %1 : tensor<8xf32>
        }}""")

    module = text("tanh")
    session = module.session()
    session.set({"%0": "P('x')", "%1": "P('x')"})
    annotations = {name: session.annotations[name] for name in ("%0", "%1")}
    assert carried(annotations, module, text("tanh")).keys() == {"%0", "%1"}
    assert carried(annotations, module, text("cosine")).keys() == {"%1"}
