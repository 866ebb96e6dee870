"""Plain networks and mixtures of experts that dispatch by products."""

from __future__ import annotations

import itertools
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import AbstractMesh
from jax.sharding import PartitionSpec as P

from tests.shardy.programs import layers
from tests.shardy.programs.registry import Tree, constrain, f32, i32, lower, mesh
from tests.shardy.xla.models.catalog import adam, adam_state, models

GROUPS, TOKENS, WIDTH, INNER, EXPERTS = 16, 256, 256, 512, 8
CAPACITY = 2 * TOKENS // EXPERTS


def _dispatch(gates: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Masks of (group, token, expert, slot): where tokens go, and their weights on the way back."""
    probabilities = jax.nn.softmax(gates)
    chosen = jax.nn.one_hot(jnp.argmax(gates, -1), EXPERTS)
    place = jnp.cumsum(chosen, axis=1) * chosen - 1
    slots = jax.nn.one_hot(place.astype(jnp.int32), CAPACITY)
    return slots, slots * jnp.sum(probabilities * chosen, -1)[..., None, None]


@models(
    experts={"on": mesh(expert=8), "batch": "expert"},
    experts_tensor={"on": mesh(expert=4, tensor=2), "batch": "expert", "tensor": "tensor"},
    data={"on": mesh(data=2, expert=4), "batch": ("data", "expert")},
)
def experts(on: AbstractMesh, batch: Any, tensor: Any = None) -> jax.stages.Lowered:
    """Tokens go to one expert each, by products with one-hot masks; trained."""

    def loss(params: Tree, x: jax.Array, wanted: jax.Array) -> jax.Array:
        send, back = _dispatch(x @ params["gate"])
        inside = jnp.einsum("gtec,gtw->egcw", send, x)
        inside = constrain(inside, on, "expert", None, None, None)
        y = jax.nn.relu(jnp.einsum("egcw,ewi->egci", inside, params["up"]))
        y = jnp.einsum("egci,eiw->egcw", y, params["down"])
        y = constrain(y, on, "expert", None, None, None)
        y = jnp.einsum("gtec,egcw->gtw", back, y)
        y = constrain(y, on, batch, None, None)
        return jnp.mean(jnp.square(x + y - wanted))

    params = {
        "gate": f32(WIDTH, EXPERTS),
        "up": f32(EXPERTS, WIDTH, INNER),
        "down": f32(EXPERTS, INNER, WIDTH),
    }
    specs = {"gate": P(), "up": P("expert", None, tensor), "down": P("expert", tensor, None)}
    state_specs = adam_state(specs, P())
    x = f32(GROUPS, TOKENS, WIDTH)
    return lower(
        adam(loss),
        on,
        (adam_state(params, i32()), x, x),
        (state_specs, P(batch), P(batch)),
        (state_specs, None),
        donate=0,
    )


@models(
    data={"on": mesh(data=8), "batch": "data"},
    fsdp={"on": mesh(data=8), "batch": "data", "rows": "data"},
    grid={"on": mesh(data=2, tensor=4), "batch": "data", "rows": "data", "columns": "tensor"},
    weights={"on": mesh(x=2, y=4), "rows": "x", "columns": "y"},
)
def perceptron(
    on: AbstractMesh, batch: Any = None, rows: Any = None, columns: Any = None
) -> jax.stages.Lowered:
    """Four layers with biases; SGD with momentum."""
    sizes = (784, 1024, 1024, 1024, 16)

    def loss(params: Tree, x: jax.Array, labels: jax.Array) -> jax.Array:
        for p in params[:-1]:
            x = jax.nn.gelu(layers.dense(x, p))
        return layers.cross_entropy(layers.dense(x, params[-1]), labels)

    shapes = [layers.dense_shapes(a, b) for a, b in itertools.pairwise(sizes)]
    specs = [layers.dense_specs(rows, columns)] * len(shapes)
    return lower(
        layers.sgd_momentum(loss),
        on,
        (shapes, shapes, f32(512, sizes[0]), i32(512)),
        (specs, specs, P(batch), P(batch)),
        (specs, specs, None),
        donate=(0, 1),
    )


@models(data={"on": mesh(data=8)})
def autoencoder(on: AbstractMesh) -> jax.stages.Lowered:
    """A variational autoencoder; noise is drawn on devices."""

    def loss(params: Tree, x: jax.Array, seed: jax.Array) -> jax.Array:
        h = jax.nn.relu(layers.dense(x, params["in"]))
        mean, log = jnp.split(layers.dense(h, params["code"]), 2, axis=-1)
        z = mean + jnp.exp(log / 2) * jax.random.normal(jax.random.key(seed), mean.shape)
        y = layers.dense(jax.nn.relu(layers.dense(z, params["out"])), params["pixels"])
        likelihood = jnp.sum(jnp.logaddexp(0, y) - x * y, -1)
        return jnp.mean(likelihood + jnp.sum(jnp.exp(log) + mean**2 - 1 - log, -1) / 2)

    sizes = {"in": (784, 512), "code": (512, 128), "out": (64, 512), "pixels": (512, 784)}
    shapes = {name: layers.dense_shapes(*pair) for name, pair in sizes.items()}
    state_specs = adam_state(dict.fromkeys(sizes, layers.dense_specs(None, None)), P())
    seed = jax.ShapeDtypeStruct((), jnp.uint32)
    return lower(
        adam(loss),
        on,
        (adam_state(shapes, i32()), f32(1024, 784), seed),
        (state_specs, P("data"), P()),
        (state_specs, None),
        donate=0,
    )


@models(capacity={"on": mesh(data=2, expert=4)})
def routed(on: AbstractMesh) -> jax.stages.Lowered:
    """Tokens go to the best two experts as far as there is room; imbalance counts, too."""
    tokens, capacity = 2048, 640

    def loss(p: Tree, x: jax.Array) -> jax.Array:
        gates = jax.nn.softmax(x @ p["gate"])
        weights, best = jax.lax.top_k(gates, 2)
        chosen = jax.nn.one_hot(best, EXPERTS)
        place = jnp.cumsum(chosen.reshape(-1, EXPERTS), 0).reshape(chosen.shape) - 1
        slots = jax.nn.one_hot(place.astype(jnp.int32), capacity)
        kept = (place < capacity) * chosen
        inside = jnp.einsum("tke,tkec,tw->ecw", kept, slots, x)
        y = jax.nn.silu(jnp.einsum("ecw,ewi->eci", inside, p["up"]))
        y = jnp.einsum("eci,eiw->ecw", y, p["down"])
        y = jnp.einsum("tk,tke,tkec,ecw->tw", weights, kept, slots, y)
        balance = jnp.sum(gates.mean(0) * chosen[:, 0].mean(0)) * EXPERTS
        return jnp.mean(jnp.square(x + y)) + 0.01 * balance

    params = {"gate": f32(WIDTH, EXPERTS)}
    params |= {"up": f32(EXPERTS, WIDTH, INNER), "down": f32(EXPERTS, INNER, WIDTH)}
    specs = {"gate": P(), "up": P("expert"), "down": P("expert")}
    step = jax.value_and_grad(loss)
    return lower(step, on, (params, f32(tokens, WIDTH)), (specs, P("data")), (None, specs))
