"""Steps of training of Flax and Optax as they are released, if they are installed."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import shardcore.jax
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
pytest.importorskip("flax", reason="Flax is not installed")
optax = pytest.importorskip("optax", reason="Optax is not installed")

SIZES = {"data": 4, "model": 2}
X = jax.ShapeDtypeStruct((8, 32), jnp.float32)
Y = jax.ShapeDtypeStruct((8, 16), jnp.float32)


def test_a_step_of_linen_and_optax() -> None:
    from flax import linen

    class Model(linen.Module):
        @linen.compact
        def __call__(self, x: Any) -> Any:
            return linen.Dense(16)(linen.relu(linen.Dense(64)(x)))

    model, optimizer = Model(), optax.adamw(1e-3)

    def init(key: Any) -> Any:
        params = model.init(key, jnp.ones(X.shape))
        return params, optimizer.init(params)

    def step(params: Any, state: Any, x: Any, y: Any) -> Any:
        def loss(params: Any) -> Any:
            return jnp.mean((model.apply(params, x) - y) ** 2)

        value, gradient = jax.value_and_grad(loss)(params)
        updates, state = optimizer.update(gradient, state, params)
        return optax.apply_updates(params, updates), state, value

    mesh = Mesh(np.array(jax.devices()[:8]).reshape(4, 2), tuple(SIZES))
    state = init(jax.random.key(0))
    shardings = (None, None, P("data"), P("data"))
    shapes = jax.eval_shape(init, jax.random.key(0))
    lowered = shardcore.jax.lower(step, *shapes, X, Y, mesh=mesh, in_shardings=shardings)
    batch = np.ones(X.shape, X.dtype), np.ones(Y.shape, Y.dtype)
    found = shardcore.jax.compile(lowered)(*state, *batch)
    wanted = jax.jit(step)(*state, *batch)
    assert jax.tree.structure(found) == jax.tree.structure(wanted)
    for mine, theirs in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=2e-4, atol=2e-3)


def test_a_step_of_nnx() -> None:
    from flax import nnx

    class Model(nnx.Module):
        def __init__(self, rngs: nnx.Rngs) -> None:
            self.first = nnx.Linear(32, 64, rngs=rngs)
            self.drop = nnx.Dropout(0.1, rngs=rngs)
            self.second = nnx.Linear(64, 16, rngs=rngs)

        def __call__(self, x: Any) -> Any:
            return self.second(self.drop(nnx.relu(self.first(x))))

    def step(model: Any, optimizer: Any, x: Any, y: Any) -> Any:
        value, gradient = nnx.value_and_grad(lambda model: jnp.mean((model(x) - y) ** 2))(model)
        optimizer.update(model, gradient)
        return value

    model = Model(nnx.Rngs(0))
    optimizer = nnx.Optimizer(model, optax.adam(1e-3), wrt=nnx.Param)
    lowered = shardcore.jax.lower(nnx.jit(step), model, optimizer, X, Y, mesh=SIZES)
    session = lowered.session()
    batch = next(port for port in lowered.module.arguments() if port.shape == X.shape)
    session.set(batch.label or batch.name, P("data"))
    assert "all_reduce" in str(session.result.cost("tpu-v5p"))
