"""Random plans of small models: the axes that each argument is sharded along, drawn by a seed."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

from tests.shardy.programs import layers
from tests.shardy.programs.registry import Tree, f32, i32, lower, mesh
from tests.shardy.xla.models.llama import Size, layer_shapes, loss_of

MESH = mesh(x=2, y=4)
SIZE = Size(depth=1, batch=16, time=64, width=128, heads=8, kv_heads=4, inner=256, vocab=512)


def perceptron() -> tuple[Callable[..., Any], tuple[Tree, ...]]:
    """Three layers with biases."""

    def loss(params: Tree, x: jax.Array, labels: jax.Array) -> jax.Array:
        for p in params[:-1]:
            x = jax.nn.relu(layers.dense(x, p))
        return layers.cross_entropy(layers.dense(x, params[-1]), labels)

    params = [layers.dense_shapes(*pair) for pair in ((256, 512), (512, 512), (512, 64))]
    return jax.grad(loss), (params, f32(512, 256), i32(512))


def decoder() -> tuple[Callable[..., Any], tuple[Tree, ...]]:
    """A layer with attention and gated units, between a table and a head."""
    params = {
        "embedding": f32(SIZE.vocab, SIZE.width),
        "layers": [layer_shapes(SIZE)],
        "norm": f32(SIZE.width),
        "head": f32(SIZE.width, SIZE.vocab),
    }
    tokens = i32(SIZE.batch, SIZE.time)
    return jax.grad(loss_of(lambda x: x, False, False)), (params, tokens, tokens)


def attention() -> tuple[Callable[..., Any], tuple[Tree, ...]]:
    """Attention to another sequence, forward and backward."""

    def loss(p: Tree, x: jax.Array, memory: jax.Array) -> jax.Array:
        return jnp.sum(jnp.square(layers.attend(x, memory, p)))

    return jax.grad(loss), (layers.attention_shapes(256, 8), f32(16, 64, 256), f32(16, 128, 256))


def experts() -> tuple[Callable[..., Any], tuple[Tree, ...]]:
    """Products over a dim of experts, forward and backward."""

    def loss(p: Tree, x: jax.Array, gates: jax.Array) -> jax.Array:
        y = jax.nn.relu(jnp.einsum("td,edf->etf", x, p["up"]))
        y = jnp.einsum("etf,efd->etd", y, p["down"])
        return jnp.sum(jnp.square(jnp.einsum("etd,te->td", y, jax.nn.softmax(gates))))

    params = {"up": f32(8, 128, 256), "down": f32(8, 256, 128)}
    return jax.grad(loss), (params, f32(512, 128), f32(512, 8))


def classifier() -> tuple[Callable[..., Any], tuple[Tree, ...]]:
    """A network over several products of one input, as in gated units."""

    def loss(p: Tree, x: jax.Array, labels: jax.Array) -> jax.Array:
        y = layers.layer_norm(x, p["norm"])
        y = x + (jax.nn.silu(y @ p["gate"]) * (y @ p["up"])) @ p["down"]
        return layers.cross_entropy(y @ p["head"], labels)

    params = {
        "norm": layers.norm_shapes(256),
        "gate": f32(256, 512),
        "up": f32(256, 512),
        "down": f32(512, 256),
        "head": f32(256, 1024),
    }
    return jax.grad(loss), (params, f32(1024, 256), i32(1024))


MODELS = {model.__name__: model for model in (perceptron, decoder, attention, experts, classifier)}


def unannotated(model: str) -> str:
    """The text of a model without annotations, with the paths of its arguments."""
    function, arguments = MODELS[model]()
    specs = jax.tree.map(lambda _: P(), arguments)
    return str(lower(function, MESH, arguments, specs).as_text(debug_info=True))


def plans(model: str, count: int) -> Iterator[str]:
    """The text of a model under each of `count` plans, which depend on its name alone."""
    draw = random.Random(model)
    function, arguments = MODELS[model]()
    for _ in range(count):
        specs = jax.tree.map(lambda shape: _spec(draw, shape.shape), arguments)
        yield str(lower(function, MESH, arguments, specs).as_text())


def _spec(draw: random.Random, shape: tuple[int, ...]) -> P:
    """Each axis is on one of the dims that it divides, or on none."""
    dims: list[Any] = [None] * len(shape)
    for axis, size in (("x", 2), ("y", 4)):
        free = [dim for dim in range(len(shape)) if dims[dim] is None and shape[dim] % size == 0]
        if free and draw.random() < 0.7:
            dims[draw.choice(free)] = axis
    return P(*dims)
