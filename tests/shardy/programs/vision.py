"""Vision transformers and U-Nets."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax.sharding import AbstractMesh
from jax.sharding import PartitionSpec as P

from tests.shardy.programs import layers
from tests.shardy.programs.registry import Tree, constrain, f32, i32, lower, mesh, variants

BATCH, IMAGE, PATCH, WIDTH, HEADS, CLASSES = 8, 32, 8, 32, 4, 16


def _encoder_block(x: jax.Array, p: Tree) -> jax.Array:
    y = layers.layer_norm(x, p["norms"][0])
    x = x + layers.attend(y, y, p["attention"])
    y = jax.nn.gelu(layers.dense(layers.layer_norm(x, p["norms"][1]), p["up"]), approximate=False)
    return x + layers.dense(y, p["down"])


def _patches(images: jax.Array) -> jax.Array:
    side = IMAGE // PATCH
    x = images.reshape(BATCH, side, PATCH, side, PATCH, 3)
    return x.transpose(0, 1, 3, 2, 4, 5).reshape(BATCH, side * side, PATCH * PATCH * 3)


@variants(
    data={"on": mesh(data=8)},
    tensor={"on": mesh(data=2, tensor=4), "tensor": "tensor"},
    conv_patches={"on": mesh(data=2, tensor=4), "tensor": "tensor", "conv": True},
    sequence={"on": mesh(data=2, sequence=4), "sequence": "sequence"},
)
def vision_transformer(
    on: AbstractMesh,
    tensor: str | None = None,
    sequence: str | None = None,
    conv: bool = False,
    depth: int = 2,
) -> jax.stages.Lowered:
    tokens = (IMAGE // PATCH) ** 2

    def loss(params: Tree, images: jax.Array, labels: jax.Array) -> jax.Array:
        if conv:
            dims = ("NHWC", "HWIO", "NHWC")
            stride = (PATCH, PATCH)
            kernel = params["patch"]["w"].reshape(PATCH, PATCH, 3, WIDTH)
            x = jax.lax.conv_general_dilated(
                images, kernel, stride, "VALID", dimension_numbers=dims
            )
            x = x.reshape(BATCH, tokens, WIDTH)
        else:
            x = layers.dense(_patches(images), params["patch"])
        first = jnp.broadcast_to(params["class"], (BATCH, 1, WIDTH))
        x = jnp.concatenate([first, x], axis=1) + params["positions"]
        x = constrain(x, on, "data", None, None)
        for p in params["blocks"]:
            x = _encoder_block(x, p)
        return layers.cross_entropy(layers.dense(x[:, 0], params["head"]), labels)

    block = {
        "norms": [layers.norm_shapes(WIDTH)] * 2,
        "attention": layers.attention_shapes(WIDTH, HEADS),
        "up": layers.dense_shapes(WIDTH, 4 * WIDTH),
        "down": layers.dense_shapes(4 * WIDTH, WIDTH),
    }
    block_specs = {
        "norms": [layers.norm_specs()] * 2,
        "attention": layers.attention_specs(None, tensor),
        "up": layers.dense_specs(None, tensor),
        "down": {"w": P(tensor, None), "b": P()},
    }
    params = {
        "patch": layers.dense_shapes(PATCH * PATCH * 3, WIDTH),
        "class": f32(WIDTH),
        "positions": f32(tokens + 1, WIDTH),
        "blocks": [block] * depth,
        "head": layers.dense_shapes(WIDTH, CLASSES),
    }
    specs = {
        "patch": None,
        "class": None,
        "positions": None,
        "blocks": [block_specs] * depth,
        "head": layers.dense_specs(None, tensor),
    }
    arguments = (params, params, f32(BATCH, IMAGE, IMAGE, 3), i32(BATCH))
    in_specs = (specs, specs, P("data", sequence), P("data"))
    step = layers.sgd_momentum(loss)
    return lower(step, on, arguments, in_specs, (specs, specs, None), donate=(0, 1))


def _conv(x: jax.Array, w: jax.Array, stride: int = 1) -> jax.Array:
    dims = ("NHWC", "HWIO", "NHWC")
    return jax.lax.conv_general_dilated(x, w, (stride, stride), "SAME", dimension_numbers=dims)


def _group_norm(x: jax.Array, p: Tree, groups: int = 4) -> jax.Array:
    batch, height, width, channels = x.shape
    x = x.reshape(batch, height, width, groups, channels // groups)
    mean = x.mean((1, 2, 4), keepdims=True)
    var = x.var((1, 2, 4), keepdims=True)
    x = ((x - mean) * jax.lax.rsqrt(var + 1e-5)).reshape(batch, height, width, channels)
    return x * p["scale"] + p["bias"]


def _unet(params: Tree, x: jax.Array, up_sampling: str) -> jax.Array:
    skips = []
    for p in params["down"]:
        x = jax.nn.silu(_group_norm(_conv(x, p["conv"]), p["norm"]))
        skips.append(x)
        x = jax.lax.reduce_window(x, 0.0, jax.lax.add, (1, 2, 2, 1), (1, 2, 2, 1), "VALID") / 4
    x = jax.nn.silu(_group_norm(_conv(x, params["middle"]["conv"]), params["middle"]["norm"]))
    for p, skip in zip(params["up"], reversed(skips), strict=True):
        if up_sampling == "transposed":
            x = jax.lax.conv_transpose(x, p["grow"], (2, 2), "SAME")
        elif up_sampling == "resize":
            x = jax.image.resize(x, (*skip.shape[:3], x.shape[-1]), "bilinear")
        else:
            x = x.repeat(2, axis=1).repeat(2, axis=2)
        x = jnp.concatenate([x, skip], axis=-1)
        x = jax.nn.silu(_group_norm(_conv(x, p["conv"]), p["norm"]))
    return _conv(x, params["out"])


@variants(
    data={"on": mesh(data=8)},
    channels={"on": mesh(data=2, channel=4), "channel": "channel"},
    rows={"on": mesh(data=2, rows=4), "rows": "rows"},
    transposed={"on": mesh(data=2, channel=4), "channel": "channel", "up_sampling": "transposed"},
    resize={"on": mesh(data=2, rows=4), "rows": "rows", "up_sampling": "resize"},
)
def unet(
    on: AbstractMesh,
    channel: str | None = None,
    rows: str | None = None,
    up_sampling: str = "repeat",
    channels: tuple[int, ...] = (8, 16),
) -> jax.stages.Lowered:
    def loss(params: Tree, clean: jax.Array, noise: jax.Array, level: jax.Array) -> jax.Array:
        level = level[:, None, None, None]
        noisy = jnp.sqrt(1 - level) * clean + jnp.sqrt(level) * noise
        return jnp.mean(jnp.square(_unet(params, noisy, up_sampling) - noise))

    def block(inputs: int, outputs: int) -> Tree:
        return {"conv": f32(3, 3, inputs, outputs), "norm": layers.norm_shapes(outputs)}

    bottom = 2 * channels[-1]
    params = {
        "down": [block(a, b) for a, b in zip((3, *channels), channels, strict=False)],
        "middle": block(channels[-1], bottom),
        "up": [],
        "out": f32(1, 1, channels[0], 3),
    }
    inputs = bottom
    for outputs in reversed(channels):
        grow = {"grow": f32(2, 2, inputs, inputs)} if up_sampling == "transposed" else {}
        params["up"].append(block(inputs + outputs, outputs) | grow)
        inputs = outputs
    specs = jax.tree.map(lambda s: P(None, None, None, channel) if s.ndim == 4 else None, params)
    specs["out"] = None
    image, image_spec = f32(BATCH, IMAGE, IMAGE, 3), P("data", rows)
    arguments = (params, params, image, image, f32(BATCH))
    in_specs = (specs, None, image_spec, None, P("data"))
    return lower(layers.sgd_momentum(loss), on, arguments, in_specs, donate=(0, 1))
