"""How a model of this package is named, lowered and found again.

These are apart from `tests.shardy.programs`: they have the sizes of real layers, and are there to
be compiled by XLA.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

from tests.shardy.programs.registry import Tree

_BUILDERS: dict[str, Callable[[], jax.stages.Lowered]] = {}


def models(**named: dict[str, Any]) -> Callable[[Callable[..., jax.stages.Lowered]], Any]:
    """Registers the decorated family once for each name, with the arguments given for it."""

    def register(family: Callable[..., jax.stages.Lowered]) -> Any:
        for name, arguments in named.items():
            _BUILDERS[f"{family.__name__}-{name}".replace("_", "-")] = partial(family, **arguments)
        return family

    return register


def names() -> list[str]:
    """Every model, in the order of its definition."""
    return list(_BUILDERS)


@cache
def text(name: str) -> str:
    """The model as JAX prints it."""
    return str(_BUILDERS[name]().as_text())


def located(name: str) -> str:
    """The model as JAX prints it, with the places and paths that its values come from."""
    return str(_BUILDERS[name]().as_text(debug_info=True))


def stacked(shapes: Tree, layers: int) -> Tree:
    """Shapes of the parameters of `layers` equal layers in one array each."""
    return jax.tree.map(lambda s: jax.ShapeDtypeStruct((layers, *s.shape), s.dtype), shapes)


def stacked_specs(specs: Tree) -> Tree:
    """Specs of stacked parameters: layers are not sharded."""
    return jax.tree.map(lambda s: P(None, *s), specs, is_leaf=lambda x: isinstance(x, P))


def adam_state(tree: Tree, step: Any) -> Tree:
    """Parameters with the moments of Adam: shapes or specs."""
    return {"params": tree, "m": tree, "v": tree, "step": step}


def adam(loss: Callable[..., jax.Array], micro: int = 1) -> Callable[..., Any]:
    """A step `(state, *batch) -> (state, loss)`; gradients of `micro` batches are summed."""
    value_and_grad = accumulated(jax.value_and_grad(loss), micro)

    def step(state: Tree, *batch: Any) -> tuple[Tree, jax.Array]:
        value, grads = value_and_grad(state["params"], *batch)
        t = state["step"] + 1
        m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, state["m"], grads)
        v = jax.tree.map(lambda v, g: 0.99 * v + 0.01 * g * g, state["v"], grads)
        rate = 1e-3 * jnp.sqrt(1 - 0.99 ** t.astype(jnp.float32))

        def update(p: jax.Array, m: jax.Array, v: jax.Array) -> jax.Array:
            return p - rate * (m / (jnp.sqrt(v) + 1e-8) + 0.1 * p)

        params = jax.tree.map(update, state["params"], m, v)
        return {"params": params, "m": m, "v": v, "step": t}, value

    return step


def accumulated(value_and_grad: Callable[..., Any], micro: int) -> Callable[..., Any]:
    """Gradients summed over `micro` parts of the batch, one after the other."""
    if micro == 1:
        return value_and_grad

    def run(params: Tree, *batch: jax.Array) -> Any:
        def one(total: Tree, part: Any) -> tuple[Tree, None]:
            return jax.tree.map(jnp.add, total, value_and_grad(params, *part)), None

        parts = tuple(x.reshape(micro, -1, *x.shape[1:]) for x in batch)
        zeros = (jnp.zeros(()), jax.tree.map(jnp.zeros_like, params))
        return jax.lax.scan(one, zeros, parts)[0]

    return run
