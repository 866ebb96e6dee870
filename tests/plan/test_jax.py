"""Plans of JAX functions run, and send what they promise."""

from __future__ import annotations

from typing import Any

import pytest

jax = pytest.importorskip("jax")

import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
import shardcore  # noqa: E402
import shardcore.jax  # noqa: E402

from tests.shardy.programs import registry as registry  # noqa: E402 - makes eight devices


def train(params: Any, x: Any, y: Any) -> Any:
    """One step of gradient descent of a residual network."""

    def loss(params: Any) -> Any:
        h = x
        for p in params["layers"]:
            h = h + jnp.tanh(h @ p["up"]) @ p["down"]
        return jnp.mean((h - y) ** 2)

    value, grads = jax.value_and_grad(loss)(params)
    return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads), value


def arguments() -> tuple[Any, Any, Any]:
    keys = iter(jax.random.split(jax.random.key(0), 16))
    layers = [
        {
            "up": jax.random.normal(next(keys), (64, 256)) / 8,
            "down": jax.random.normal(next(keys), (256, 64)) / 16,
        }
        for _ in range(2)
    ]
    x, y = (jax.random.normal(next(keys), (512, 64)) for _ in range(2))
    return {"layers": layers}, x, y


@pytest.mark.parametrize("memory", [None, "700KiB"])
def test_a_plan_gives_the_results_of_the_function(memory: str | None) -> None:
    given = arguments()
    lowered = shardcore.jax.lower(train, *given, platform="cpu")
    plan = shardcore.plan(lowered, "tpu-v5e", memory, mesh={"data": 4, "model": 2}, seconds=3)
    assert plan.cost.peak_bytes <= plan.limit
    assert all("*" in name or "layers" not in name for name in plan.specs)
    compiled = shardcore.jax.compile(plan.result)
    params, value = compiled(*given)
    wanted, wanted_value = train(*given)
    np.testing.assert_allclose(value, wanted_value, rtol=1e-5)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5), params, wanted)
    specs = plan.result.in_specs[0]["layers"]
    assert specs[0] == specs[1]
