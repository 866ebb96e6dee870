"""Encoder-decoder transformers with cross attention and padding masks."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax.sharding import AbstractMesh
from jax.sharding import PartitionSpec as P

from tests.shardy.programs import layers
from tests.shardy.programs.registry import Tree, constrain, f32, i32, lower, mesh, variants

BATCH, SOURCE, TARGET, WIDTH, HEADS, VOCAB, PAD = 8, 24, 16, 32, 4, 96, 0


def _feed_forward(x: jax.Array, p: Tree) -> jax.Array:
    return layers.dense(jax.nn.relu(layers.dense(x, p["up"])), p["down"])


def _encode(params: Tree, source: jax.Array, mask: jax.Array) -> jax.Array:
    x = params["embedding"][source] + params["positions"][:SOURCE]
    for p in params["encoder"]:
        x = layers.layer_norm(x + layers.attend(x, x, p["self"], mask), p["norms"][0])
        x = layers.layer_norm(x + _feed_forward(x, p["mlp"]), p["norms"][1])
    return x


def _decode(params: Tree, target: jax.Array, memory: jax.Array, mask: jax.Array) -> jax.Array:
    x = params["embedding"][target] + params["positions"][:TARGET]
    causal = jnp.arange(TARGET)[:, None] >= jnp.arange(TARGET)
    for p in params["decoder"]:
        x = layers.layer_norm(x + layers.attend(x, x, p["self"], causal), p["norms"][0])
        x = layers.layer_norm(x + layers.attend(x, memory, p["cross"], mask), p["norms"][1])
        x = layers.layer_norm(x + _feed_forward(x, p["mlp"]), p["norms"][2])
    return x @ params["embedding"].T


def _loss(params: Tree, source: jax.Array, target: jax.Array, on: AbstractMesh) -> jax.Array:
    mask = (source != PAD)[:, None, None, :]
    memory = constrain(_encode(params, source, mask), on, "data", None, None)
    logits = _decode(params, target, memory, mask)[:, :-1]
    labels = target[:, 1:]
    seen = labels != PAD
    picked = jnp.take_along_axis(jax.nn.log_softmax(logits), labels[..., None], -1)[..., 0]
    return -jnp.sum(picked * seen) / jnp.maximum(seen.sum(), 1)


def _blocks(cross: bool, attention: Tree, mlp: Tree, norm: Tree) -> Tree:
    block = {"self": attention, "mlp": mlp, "norms": [norm] * (3 if cross else 2)}
    return block | ({"cross": attention} if cross else {})


@variants(
    tensor={"on": mesh(data=2, tensor=4), "heads": "tensor", "hidden": "tensor"},
    fsdp={"on": mesh(data=4, tensor=2), "heads": "tensor", "hidden": "tensor", "width": "data"},
    vocabulary={"on": mesh(data=2, vocab=4), "vocab": "vocab"},
)
def encoder_decoder(
    on: AbstractMesh,
    heads: str | None = None,
    hidden: str | None = None,
    width: str | None = None,
    vocab: str | None = None,
    depth: int = 2,
) -> jax.stages.Lowered:
    shapes = (
        layers.attention_shapes(WIDTH, HEADS),
        {"up": layers.dense_shapes(WIDTH, 64), "down": layers.dense_shapes(64, WIDTH)},
        layers.norm_shapes(WIDTH),
    )
    specs = (
        layers.attention_specs(width, heads),
        {"up": layers.dense_specs(width, hidden), "down": layers.dense_specs(hidden, width)},
        layers.norm_specs(),
    )

    def tree(parts: tuple[Tree, Tree, Tree], embedding: Tree, positions: Tree) -> Tree:
        return {
            "embedding": embedding,
            "positions": positions,
            "encoder": [_blocks(False, *parts)] * depth,
            "decoder": [_blocks(True, *parts)] * depth,
        }

    params = tree(shapes, f32(VOCAB, WIDTH), f32(SOURCE, WIDTH))
    param_specs = tree(specs, P(vocab, width), None)
    arguments = (params, params, i32(BATCH, SOURCE), i32(BATCH, TARGET))
    in_specs = (param_specs, None, P("data"), P("data"))

    def loss(params: Tree, source: jax.Array, target: jax.Array) -> jax.Array:
        return _loss(params, source, target, on)

    return lower(layers.sgd_momentum(loss), on, arguments, in_specs, donate=(0, 1))
