"""A step whose plan constrains a value: an embedding that is looked up, and layers after it."""

from __future__ import annotations

import inspect
from dataclasses import replace
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import shardcore
import shardcore.jax
from shardcore.plan.stated import constraints_of, statements

CHIP = "tpu-v5p"
MESH = {"data": 4, "model": 2}


def loss(params: Any, tokens: jax.Array) -> jax.Array:
    x = params["table"][tokens]
    for layer in params["layers"]:
        x = x + jnp.tanh(x @ layer["up"]) @ layer["down"]
    return jnp.mean(jax.nn.logsumexp(x @ params["head"], -1))


def step(params: Any, tokens: jax.Array) -> Any:
    value, grads = jax.value_and_grad(loss)(params, tokens)
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), value


def arguments() -> tuple[Any, Any]:
    keys = iter(jax.random.split(jax.random.key(0), 16))

    def weights(*shape: int) -> jax.Array:
        return jax.random.normal(next(keys), shape) / shape[0] ** 0.5

    layers = [{"up": weights(64, 256), "down": weights(256, 64)} for _ in range(2)]
    params = {"table": weights(512, 64), "head": weights(64, 512), "layers": layers}
    return params, jnp.arange(64 * 8).reshape(64, 8) % 512


@cache
def plan() -> shardcore.Plan:
    """A plan, with a constraint of what is looked up in place of its annotations."""
    program = shardcore.jax.lower(step, *arguments(), platform="cpu")
    found = shardcore.plan(program, CHIP, mesh=MESH, seconds=1)
    session = program.session(mesh=MESH)
    # What `x` is first made of.
    place = f"{__file__}:{embedding_line()[1]}:"
    value = next(
        each
        for each in session.module.values()
        if each.op == "stablehlo.gather" and (each.location or "").startswith(place)
    )
    specs = {value.name: "P('data', None, 'model')", "tokens": "P('data')"}
    session.set(specs)
    constraints = constraints_of(session, program.module, [value.name])
    [most, *_] = statements(session, specs, constraints)
    session.set(most.edit())
    places = {value.name: value.location or ""}
    cost = session.cost(CHIP)
    return replace(found, specs=specs, places=places, session=session, cost=cost, stated=most)


def embedding_line() -> tuple[str, int]:
    """How a plan names the value that is constrained, and its line in this file."""
    lines, first = inspect.getsourcelines(loss)
    at = next(number for number, text in enumerate(lines) if "[tokens]" in text) + first
    return f"x at {__file__}:{at}", at
