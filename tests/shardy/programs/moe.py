"""Mixture-of-experts transformers: top-k routing, capacity, dispatch by einsum or by scatter."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
from jax.sharding import AbstractMesh
from jax.sharding import PartitionSpec as P

from tests.shardy.programs import layers
from tests.shardy.programs.registry import Tree, constrain, f32, i32, lower, mesh, variants

BATCH, TIME, WIDTH, HEADS, HIDDEN, EXPERTS, VOCAB = 8, 16, 32, 4, 64, 8, 128
CAPACITY = 8


def _route(x: jax.Array, router: jax.Array, choices: int) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Each token's weights and experts, and the loss that keeps the experts evenly loaded."""
    probabilities = jax.nn.softmax(x @ router)
    weights, experts = jax.lax.top_k(probabilities, choices)
    load = jax.nn.one_hot(experts[..., 0], EXPERTS).mean((0, 1))
    balance = EXPERTS * jnp.sum(load * probabilities.mean((0, 1)))
    return weights / weights.sum(-1, keepdims=True), experts, balance


def _einsum_experts(x: jax.Array, p: Tree, on: AbstractMesh, choices: int) -> tuple[Tree, Tree]:
    """Tokens go to their place in an expert's queue by a product with a one-hot mask."""
    weights, experts, balance = _route(x, p["router"], choices)
    chosen = jax.nn.one_hot(experts, EXPERTS)
    place = jnp.cumsum(chosen.reshape(BATCH, TIME * choices, EXPERTS), axis=1) - 1
    place = place.reshape(BATCH, TIME, choices, EXPERTS)
    kept = chosen * (place < CAPACITY)
    slots = jax.nn.one_hot(place.astype(jnp.int32), CAPACITY) * kept[..., None]
    combine = jnp.einsum("btk,btkec->btec", weights, slots)
    queues = jnp.einsum("btec,btw->ebcw", (combine > 0).astype(x.dtype), x)
    queues = constrain(queues, on, "expert", "data", None, None)
    h = jax.nn.silu(jnp.einsum("ebcw,ewh->ebch", queues, p["gate"]))
    h = h * jnp.einsum("ebcw,ewh->ebch", queues, p["up"])
    y = jnp.einsum("ebch,ehw->ebcw", h, p["down"])
    return jnp.einsum("btec,ebcw->btw", combine, y), balance


def _scatter_experts(x: jax.Array, p: Tree, on: AbstractMesh, choices: int) -> tuple[Tree, Tree]:
    """Tokens are sorted by expert, and come back to their place by a scatter-add."""
    weights, experts, balance = _route(x, p["router"], choices)
    order = jnp.argsort(experts.reshape(-1), stable=True)
    tokens = order // choices
    size = BATCH * TIME * choices // EXPERTS
    queues = x.reshape(-1, WIDTH)[tokens].reshape(EXPERTS, size, WIDTH)
    queues = constrain(queues, on, "expert", None, None)
    h = jax.nn.silu(jnp.einsum("ecw,ewh->ech", queues, p["gate"]))
    h = h * jnp.einsum("ecw,ewh->ech", queues, p["up"])
    y = jnp.einsum("ech,ehw->ecw", h, p["down"]).reshape(-1, WIDTH)
    y = y * weights.reshape(-1)[order][:, None]
    return jnp.zeros_like(x.reshape(-1, WIDTH)).at[tokens].add(y).reshape(x.shape), balance


def _ragged_experts(x: jax.Array, p: Tree, on: AbstractMesh, choices: int) -> tuple[Tree, Tree]:
    """Sorted tokens in groups of any size, one grouped product for all experts."""
    weights, experts, balance = _route(x, p["router"], choices)
    order = jnp.argsort(experts.reshape(-1), stable=True)
    sizes = jnp.bincount(experts.reshape(-1), length=EXPERTS)
    queues = constrain(x.reshape(-1, WIDTH)[order // choices], on, "data", None)
    h = jax.nn.silu(jax.lax.ragged_dot(queues, p["gate"], sizes))
    h = h * jax.lax.ragged_dot(queues, p["up"], sizes)
    y = jax.lax.ragged_dot(h, p["down"], sizes) * weights.reshape(-1)[order][:, None]
    return jax.ops.segment_sum(y, order // choices, BATCH * TIME).reshape(x.shape), balance


EXPERT_LAYERS = {
    "einsum": _einsum_experts,
    "scatter": _scatter_experts,
    "ragged": _ragged_experts,
}


def _shapes(depth: int) -> Tree:
    block = {
        "norms": [layers.norm_shapes(WIDTH)] * 2,
        "attention": layers.attention_shapes(WIDTH, HEADS),
        "experts": {
            "router": f32(WIDTH, EXPERTS),
            "gate": f32(EXPERTS, WIDTH, HIDDEN),
            "up": f32(EXPERTS, WIDTH, HIDDEN),
            "down": f32(EXPERTS, HIDDEN, WIDTH),
        },
    }
    return {"embedding": f32(VOCAB, WIDTH), "blocks": [block] * depth}


def _specs(depth: int, tensor: str | None) -> Tree:
    block = {
        "norms": [layers.norm_specs()] * 2,
        "attention": layers.attention_specs(None, tensor),
        "experts": {
            "router": P(),
            "gate": P("expert", None, tensor),
            "up": P("expert", None, tensor),
            "down": P("expert", tensor, None),
        },
    }
    return {"embedding": P(tensor, None), "blocks": [block] * depth}


@variants(
    einsum={"kind": "einsum"},
    einsum_no_tensor={"kind": "einsum", "on": mesh(data=4, expert=8), "tensor": None},
    scatter={"kind": "scatter"},
    ragged={"kind": "ragged"},
    top_1={"kind": "einsum", "choices": 1},
    forward={"kind": "einsum", "train": False},
)
def moe(
    kind: str,
    on: AbstractMesh | None = None,
    tensor: str | None = "tensor",
    choices: int = 2,
    depth: int = 2,
    train: bool = True,
) -> jax.stages.Lowered:
    on = on or mesh(data=2, expert=4, tensor=2)
    experts = partial(EXPERT_LAYERS[kind], on=on, choices=choices)

    def loss(params: Tree, tokens: jax.Array, targets: jax.Array) -> jax.Array:
        x = params["embedding"][tokens]
        causal = jnp.tril(jnp.ones((TIME, TIME), bool))
        balance = jnp.zeros(())
        for p in params["blocks"]:
            y = layers.layer_norm(x, p["norms"][0])
            x = x + layers.attend(y, y, p["attention"], causal)
            y, extra = experts(layers.layer_norm(x, p["norms"][1]), p["experts"])
            x, balance = x + y, balance + extra
        logits = x @ params["embedding"].T
        return layers.cross_entropy(logits, targets) + 0.01 * balance

    params, specs = _shapes(depth), _specs(depth, tensor)
    batch, batch_specs = (i32(BATCH, TIME),) * 2, (P("data"),) * 2
    if not train:
        return lower(loss, on, (params, *batch), (specs, *batch_specs))
    step = layers.sgd_momentum(loss)
    arguments, in_specs = (params, params, *batch), (specs, specs, *batch_specs)
    return lower(step, on, arguments, in_specs, (specs, specs, None), donate=(0, 1))
