"""Images: transformers over patches, residual networks, U-Nets."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import AbstractMesh
from jax.sharding import PartitionSpec as P

from tests.shardy.programs import layers
from tests.shardy.programs.registry import Tree, f32, i32, lower, mesh
from tests.shardy.xla.models.catalog import adam, adam_state, models


def conv(x: jax.Array, w: jax.Array, stride: int = 1) -> jax.Array:
    return jax.lax.conv_general_dilated(
        x, w, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )


@models(
    data={"on": mesh(data=8), "batch": "data"},
    fsdp={"on": mesh(data=8), "batch": "data", "width": "data"},
    tensor={"on": mesh(data=2, tensor=4), "batch": "data", "heads": "tensor"},
)
def patches(
    on: AbstractMesh, batch: Any, width: Any = None, heads: Any = None
) -> jax.stages.Lowered:
    """A vision transformer of two layers, trained."""
    patch, size, depth = 16, 384, 2

    def loss(params: Tree, images: jax.Array, labels: jax.Array) -> jax.Array:
        b, h, w, c = images.shape
        x = images.reshape(b, h // patch, patch, w // patch, patch, c)
        x = x.transpose(0, 1, 3, 2, 4, 5).reshape(b, -1, patch * patch * c)
        x = layers.dense(x, params["patch"]) + params["position"]
        for p in params["layers"]:
            y = layers.layer_norm(x, p["norm1"])
            x = x + layers.attend(y, y, p["attention"])
            y = jax.nn.gelu(layers.dense(layers.layer_norm(x, p["norm2"]), p["up"]))
            x = x + layers.dense(y, p["down"])
        return layers.cross_entropy(layers.dense(x.mean(axis=1), params["head"]), labels)

    layer = {
        "norm1": layers.norm_shapes(size),
        "norm2": layers.norm_shapes(size),
        "attention": layers.attention_shapes(size, 8),
        "up": layers.dense_shapes(size, 4 * size),
        "down": layers.dense_shapes(4 * size, size),
    }
    layer_specs = {
        "norm1": layers.norm_specs(),
        "norm2": layers.norm_specs(),
        "attention": layers.attention_specs(width, heads),
        "up": {"w": P(width, heads), "b": P(heads)},
        "down": {"w": P(heads, width), "b": P()},
    }
    params = {
        "patch": layers.dense_shapes(patch * patch * 3, size),
        "position": f32(64, size),
        "layers": [layer] * depth,
        "head": layers.dense_shapes(size, 1024),
    }
    specs = {
        "patch": {"w": P(None, width), "b": P()},
        "position": P(),
        "layers": [layer_specs] * depth,
        "head": {"w": P(width, heads), "b": P(heads)},
    }
    state_specs = adam_state(specs, P())
    return lower(
        adam(loss),
        on,
        (adam_state(params, i32()), f32(64, 128, 128, 3), i32(64)),
        (state_specs, P(batch), P(batch)),
        (state_specs, None),
        donate=0,
    )


def _normalized(x: jax.Array, p: Tree) -> jax.Array:
    """Batch normalization over all but channels."""
    mean = x.mean((0, 1, 2))
    var = jnp.square(x - mean).mean((0, 1, 2))
    return (x - mean) * jax.lax.rsqrt(var + 1e-5) * p["scale"] + p["bias"]


@models(
    data={"on": mesh(data=8), "images": P("data")},
    rows={"on": mesh(data=2, rows=4), "images": P("data", "rows")},
    forward={"on": mesh(data=8), "images": P("data"), "train": False},
)
def residual(on: AbstractMesh, images: P, train: bool = True) -> jax.stages.Lowered:
    """A stem, two residual blocks, the second one with a stride; batch normalization."""

    def predict(params: Tree, x: jax.Array) -> jax.Array:
        x = jax.nn.relu(_normalized(conv(x, params["stem"]), params["norm"]))
        for p, stride in zip(params["blocks"], (1, 2), strict=True):
            y = jax.nn.relu(_normalized(conv(x, p["w1"], stride), p["norm1"]))
            y = _normalized(conv(y, p["w2"]), p["norm2"])
            x = jax.nn.relu(y + conv(x, p["skip"], stride))
        return layers.dense(x.mean((1, 2)), params["head"])

    def loss(params: Tree, x: jax.Array, labels: jax.Array) -> jax.Array:
        return layers.cross_entropy(predict(params, x), labels)

    def block(inner: int, outer: int) -> Tree:
        return {
            "w1": f32(3, 3, inner, outer),
            "w2": f32(3, 3, outer, outer),
            "skip": f32(1, 1, inner, outer),
            "norm1": layers.norm_shapes(outer),
            "norm2": layers.norm_shapes(outer),
        }

    params = {
        "stem": f32(3, 3, 3, 32),
        "norm": layers.norm_shapes(32),
        "blocks": [block(32, 32), block(32, 64)],
        "head": layers.dense_shapes(64, 128),
    }
    x = f32(64, 64, 64, 3)
    specs = jax.tree.map(lambda _: P(), params)
    if not train:
        return lower(predict, on, (params, x), (specs, images), P("data"))
    return lower(
        layers.sgd_momentum(loss),
        on,
        (params, params, x, i32(64)),
        (specs, specs, images, P("data")),
        (specs, specs, None),
        donate=(0, 1),
    )


@models(
    data={"on": mesh(data=8), "images": P("data")},
    rows={"on": mesh(data=2, rows=4), "images": P("data", "rows")},
)
def denoise(on: AbstractMesh, images: P) -> jax.stages.Lowered:
    """A small U-Net that learns to tell the noise in its input: down, attention, up, skips."""

    def predict(params: Tree, x: jax.Array) -> jax.Array:
        top = jax.nn.silu(conv(x, params["in"]))
        low = jax.nn.silu(conv(top, params["down"], 2))
        b, h, w, c = low.shape
        flat = low.reshape(b, h * w, c)
        low = (flat + layers.attend(flat, flat, params["attention"])).reshape(low.shape)
        up = jax.image.resize(low, (b, 2 * h, 2 * w, c), "nearest")
        up = jax.nn.silu(conv(jnp.concatenate([up, top], axis=-1), params["up"]))
        return conv(up, params["out"])

    def loss(params: Tree, x: jax.Array, noise: jax.Array) -> jax.Array:
        return jnp.mean(jnp.square(predict(params, 0.8 * x + 0.6 * noise) - noise))

    params = {
        "in": f32(3, 3, 4, 32),
        "down": f32(3, 3, 32, 64),
        "attention": layers.attention_shapes(64, 4),
        "up": f32(3, 3, 96, 32),
        "out": f32(3, 3, 32, 4),
    }
    state_specs = adam_state(jax.tree.map(lambda _: P(), params), P())
    x = f32(32, 32, 32, 4)
    return lower(
        adam(loss),
        on,
        (adam_state(params, i32()), x, x),
        (state_specs, images, images),
        (state_specs, None),
        donate=0,
    )


@models(data={"on": mesh(data=8)})
def encoded(on: AbstractMesh) -> jax.stages.Lowered:
    """A variational autoencoder of convolutions, trained."""

    def wider(x: jax.Array, w: jax.Array) -> jax.Array:
        numbers = ("NHWC", "HWIO", "NHWC")
        return jax.lax.conv_transpose(x, w, (2, 2), "SAME", dimension_numbers=numbers)

    def loss(p: Tree, images: jax.Array, noise: jax.Array) -> jax.Array:
        y = jax.nn.relu(conv(jax.nn.relu(conv(images, p["c1"], 2)), p["c2"], 2))
        y = y.reshape(len(y), -1)
        mean, log = y @ p["mean"], y @ p["log"]
        y = jax.nn.relu((mean + jnp.exp(log / 2) * noise) @ p["up"]).reshape(-1, 8, 8, 64)
        y = wider(jax.nn.relu(wider(y, p["u1"])), p["u2"])
        prior = jnp.mean(1 + log - mean**2 - jnp.exp(log)) / 2
        return jnp.mean(jnp.square(y - images)) - prior

    params = {"c1": f32(3, 3, 3, 32), "c2": f32(3, 3, 32, 64), "up": f32(128, 4096)}
    params |= {"mean": f32(4096, 128), "log": f32(4096, 128)}
    params |= {"u1": f32(3, 3, 64, 32), "u2": f32(3, 3, 32, 3)}
    state_specs = adam_state(dict.fromkeys(params, P()), P())
    return lower(
        adam(loss),
        on,
        (adam_state(params, i32()), f32(64, 32, 32, 3), f32(64, 128)),
        (state_specs, P("data"), P("data")),
        (state_specs, None),
        donate=0,
    )


@models(fsdp={"on": mesh(data=8), "width": "data"})
def separable(on: AbstractMesh, width: str) -> jax.stages.Lowered:
    """Two blocks of a convolution of each channel and products over them, trained."""
    size, depth = 64, 2

    def loss(params: Tree, images: jax.Array, labels: jax.Array) -> jax.Array:
        x = jax.lax.conv_general_dilated(
            images, params["patch"], (4, 4), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )
        for p in params["blocks"]:
            y = jax.lax.conv_general_dilated(
                x,
                p["spatial"],
                (1, 1),
                "SAME",
                dimension_numbers=("NHWC", "HWIO", "NHWC"),
                feature_group_count=size,
            )
            x = x + jax.nn.gelu(y @ p["up"]) @ p["down"]
        return layers.cross_entropy(x.mean(axis=(1, 2)) @ params["head"], labels)

    block = {
        "spatial": f32(7, 7, 1, size),
        "up": f32(size, 4 * size),
        "down": f32(4 * size, size),
    }
    block_specs = {"spatial": P(None, None, None, width), "up": P(None, width), "down": P(width)}
    params = {
        "patch": f32(4, 4, 3, size),
        "blocks": [block] * depth,
        "head": f32(size, 16),
    }
    specs = {
        "patch": P(None, None, None, width),
        "blocks": [block_specs] * depth,
        "head": P(width),
    }
    arguments = (params, f32(16, 32, 32, 3), i32(16))
    shardings = (specs, P(width), P(width))
    return lower(jax.grad(loss), on, arguments, shardings, specs)


@models(rows={"on": mesh(data=2, rows=4)})
def shifted_windows(on: AbstractMesh) -> jax.stages.Lowered:
    """Attention within windows of images, then within shifted ones, trained on rows of images."""
    size, side, edge = 32, 32, 4

    def loss(params: Tree, images: jax.Array) -> jax.Array:
        x, count = images, side // edge
        for shift in (0, edge // 2):
            y = jnp.roll(x, (-shift, -shift), (1, 2))
            y = y.reshape(-1, count, edge, count, edge, size).transpose(0, 1, 3, 2, 4, 5)
            y = y.reshape(-1, edge * edge, size)
            weights = jax.nn.softmax((y @ params["query"]) @ (y @ params["key"]).mT)
            y = weights @ (y @ params["value"])
            y = y.reshape(-1, count, count, edge, edge, size).transpose(0, 1, 3, 2, 4, 5)
            x = x + jnp.roll(y.reshape(x.shape), (shift, shift), (1, 2))
        return (x**2).mean()

    params = dict.fromkeys(("query", "key", "value"), f32(size, size))
    specs = dict.fromkeys(params, P())
    arguments, shardings = (params, f32(4, side, side, size)), (specs, P("data", "rows"))
    return lower(jax.grad(loss), on, arguments, shardings, specs)
