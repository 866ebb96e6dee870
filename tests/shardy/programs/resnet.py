"""ResNet training steps: convolutions, batch norm with running statistics, pooling, momentum."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax.sharding import AbstractMesh
from jax.sharding import PartitionSpec as P

from tests.shardy.programs import layers
from tests.shardy.programs.registry import Tree, f32, i32, lower, mesh, variants

LAYOUT = {"nhwc": ("NHWC", "HWIO", "NHWC"), "nchw": ("NCHW", "OIHW", "NCHW")}


class ResNet:
    """Bottleneck blocks in stages that halve the image and double the channels."""

    def __init__(self, depths: tuple[int, ...], width: int, layout: str, groups: int = 1) -> None:
        self.depths, self.width, self.layout, self.groups = depths, width, layout, groups
        self.channel_dim = LAYOUT[layout][0].index("C")
        self.spatial = tuple(LAYOUT[layout][0].index(dim) for dim in "HW")

    def conv(self, x: jax.Array, w: jax.Array, stride: int = 1, groups: int = 1) -> jax.Array:
        return jax.lax.conv_general_dilated(
            x,
            w,
            (stride, stride),
            "SAME",
            dimension_numbers=LAYOUT[self.layout],
            feature_group_count=groups,
        )

    def weight(self, size: int, inputs: int, outputs: int) -> jax.ShapeDtypeStruct:
        dims = {"H": size, "W": size, "I": inputs, "O": outputs}
        return f32(*(dims[dim] for dim in LAYOUT[self.layout][1]))

    def batch_norm(self, x: jax.Array, p: Tree, stats: Tree) -> tuple[jax.Array, Tree]:
        over = tuple(dim for dim in range(4) if dim != self.channel_dim)
        mean, mean_square = jnp.mean(x, over), jnp.mean(jnp.square(x), over)
        var = mean_square - jnp.square(mean)

        def spread(y: jax.Array) -> jax.Array:
            return jnp.expand_dims(y, over)

        y = (x - spread(mean)) * jax.lax.rsqrt(spread(var) + 1e-5)
        y = y * spread(p["scale"]) + spread(p["bias"])
        seen = {"mean": mean, "var": var}
        return y, jax.tree.map(lambda old, new: 0.9 * old + 0.1 * new, stats, seen)

    def max_pool(self, x: jax.Array) -> jax.Array:
        window = tuple(3 if dim in self.spatial else 1 for dim in range(4))
        strides = tuple(2 if dim in self.spatial else 1 for dim in range(4))
        return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, window, strides, "SAME")

    def block(self, x: jax.Array, p: Tree, stats: Tree, stride: int) -> tuple[jax.Array, Tree]:
        new = {}
        strides, groups = {"b": stride}, {"b": self.groups}
        y = x
        for name in "abc":
            y = self.conv(y, p[name], strides.get(name, 1), groups.get(name, 1))
            y, new[name] = self.batch_norm(y, p[f"norm_{name}"], stats[name])
            y = y if name == "c" else jax.nn.relu(y)
        if "project" in p:
            x = self.conv(x, p["project"], stride)
            x, new["project"] = self.batch_norm(x, p["norm_project"], stats["project"])
        return jax.nn.relu(x + y), new

    def block_shapes(self, inputs: int, middle: int) -> Tree:
        outputs = 4 * middle
        weights = {
            "a": self.weight(1, inputs, middle),
            "b": self.weight(3, middle // self.groups, middle),
            "c": self.weight(1, middle, outputs),
        }
        if inputs != outputs:
            weights["project"] = self.weight(1, inputs, outputs)
        channels = {"a": middle, "b": middle, "c": outputs, "project": outputs}
        norms = {f"norm_{name}": layers.norm_shapes(channels[name]) for name in weights}
        stats = {
            name: {"mean": f32(channels[name]), "var": f32(channels[name])} for name in weights
        }
        return {"params": weights | norms, "stats": stats}

    def shapes(self, classes: int) -> tuple[Tree, Tree]:
        blocks, inputs = [], self.width
        for stage, depth in enumerate(self.depths):
            for _ in range(depth):
                blocks.append(self.block_shapes(inputs, self.width << stage))
                inputs = (self.width << stage) * 4
        params = {
            "stem": self.weight(7, 3, self.width),
            "stem_norm": layers.norm_shapes(self.width),
            "blocks": [block["params"] for block in blocks],
            "head": layers.dense_shapes(inputs, classes),
        }
        stem = {"mean": f32(self.width), "var": f32(self.width)}
        return params, {"stem": stem, "blocks": [block["stats"] for block in blocks]}

    def apply(self, params: Tree, stats: Tree, images: jax.Array) -> tuple[jax.Array, Tree]:
        x = self.conv(images, params["stem"], 2)
        x, stem = self.batch_norm(x, params["stem_norm"], stats["stem"])
        x = self.max_pool(jax.nn.relu(x))
        new = []
        at = 0
        for stage, depth in enumerate(self.depths):
            for layer in range(depth):
                stride = 2 if stage > 0 and layer == 0 else 1
                x, seen = self.block(x, params["blocks"][at], stats["blocks"][at], stride)
                new.append(seen)
                at += 1
        logits = layers.dense(x.mean(self.spatial), params["head"])
        return logits, {"stem": stem, "blocks": new}


def _output_channels(shape: jax.ShapeDtypeStruct, axis: str | None, layout: str) -> P:
    """Splits a weight by its output channels, a vector as a whole."""
    if shape.ndim != 4:
        return P(*[None] * (shape.ndim - 1), axis)
    return P(*(axis if dim == "O" else None for dim in LAYOUT[layout][1]))


@variants(
    data={"on": mesh(data=8), "depths": (3, 4, 6, 3)},
    channels={"on": mesh(data=2, channel=4), "channel": "channel"},
    spatial={"on": mesh(data=2, rows=4), "rows": "rows"},
    nchw={"on": mesh(data=4, channel=2), "channel": "channel", "layout": "nchw"},
    grouped={"on": mesh(data=2, channel=4), "channel": "channel", "groups": 4},
)
def resnet(
    on: AbstractMesh,
    depths: tuple[int, ...] = (1, 2),
    width: int = 16,
    layout: str = "nhwc",
    groups: int = 1,
    channel: str | None = None,
    rows: str | None = None,
) -> jax.stages.Lowered:
    model = ResNet(depths, width, layout, groups)

    def step(state: Tree, images: jax.Array, labels: jax.Array) -> tuple[Tree, jax.Array]:
        def loss(params: Tree) -> tuple[jax.Array, Tree]:
            logits, stats = model.apply(params, state["stats"], images)
            return layers.cross_entropy(logits, labels), stats

        (value, stats), grads = jax.value_and_grad(loss, has_aux=True)(state["params"])
        velocity = jax.tree.map(lambda v, g: 0.9 * v + g, state["velocity"], grads)
        params = jax.tree.map(lambda p, v: p - 0.1 * (v + 1e-4 * p), state["params"], velocity)
        return {"params": params, "velocity": velocity, "stats": stats}, value

    params, stats = model.shapes(classes=1000)
    specs = jax.tree.map(lambda s: _output_channels(s, channel, layout), params)
    state = {"params": params, "velocity": params, "stats": stats}
    stats_specs = jax.tree.map(lambda s: P(channel), stats)
    state_specs = {"params": specs, "velocity": specs, "stats": stats_specs}
    sizes = {"N": 16, "H": 64, "W": 64, "C": 3}
    axes = {"N": "data", "H": rows}
    order = LAYOUT[layout][0]
    images, images_spec = f32(*(sizes[d] for d in order)), P(*(axes.get(d) for d in order))
    in_specs = (state_specs, images_spec, P("data"))
    return lower(step, on, (state, images, i32(16)), in_specs, (state_specs, P()), donate=0)
