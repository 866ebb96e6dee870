"""MLP blocks: the smallest programs in which data, tensor and fully sharded parallelism meet."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax.sharding import AbstractMesh
from jax.sharding import PartitionSpec as P

from tests.shardy.programs import layers
from tests.shardy.programs.registry import Tree, f32, lower, mesh, variants

BATCH, WIDTH = 16, 32


def _forward(params: Tree, x: jax.Array) -> jax.Array:
    for up, down in params:
        x = x + jax.nn.relu(x @ up) @ down
    return x


@variants(
    megatron={"on": mesh(data=2, tensor=4), "batch": "data", "up": P(None, "tensor")},
    only_batch={"on": mesh(data=4), "batch": "data"},
    only_weight={"on": mesh(data=2, tensor=4), "up": P("data", "tensor")},
    only_last={"on": mesh(x=4, y=2), "out": P("x", "y")},
    batch_and_weight_compete={"on": mesh(x=8), "batch": "x", "up": P(None, "x")},
    two_axes_on_a_dim={"on": mesh(a=2, b=2, c=2), "batch": ("a", "b"), "up": P("c", ("b", "a"))},
    many_axes={"on": mesh(a=2, b=2, c=2, d=2), "batch": ("d", "a"), "up": P(("c", "b"), None)},
    size_one_axes={"on": mesh(a=1, b=4, c=1), "batch": ("a", "b"), "up": P("c", "a")},
    deep={"on": mesh(data=2, tensor=4), "batch": "data", "up": P(None, "tensor"), "depth": 24},
)
def mlp(
    on: AbstractMesh,
    batch: str | tuple[str, ...] | None = None,
    up: P | None = None,
    out: P | None = None,
    depth: int = 3,
) -> jax.stages.Lowered:
    """Forward; only the first block's first weight is annotated."""
    params = [(f32(WIDTH, 4 * WIDTH), f32(4 * WIDTH, WIDTH))] * depth
    specs: Tree = [(None, None)] * depth
    specs[0] = (up, None)
    batch_spec = None if batch is None else P(batch)
    return lower(_forward, on, (params, f32(BATCH, WIDTH)), (specs, batch_spec), out)


@variants(
    megatron={"on": mesh(data=2, tensor=4), "batch": "data", "up": P(None, "tensor")},
    fsdp={"on": mesh(data=8), "batch": "data", "up": P("data", None)},
    only_batch={"on": mesh(data=4), "batch": "data"},
    tensor_against_batch={"on": mesh(x=2, y=2), "batch": ("x", "y"), "up": P("y", "x")},
)
def mlp_train(on: AbstractMesh, batch: str, up: P | None = None) -> jax.stages.Lowered:
    def loss(params: Tree, x: jax.Array, y: jax.Array) -> jax.Array:
        return jnp.mean(jnp.square(_forward(params, x) - y))

    params = [(f32(WIDTH, 4 * WIDTH), f32(4 * WIDTH, WIDTH))] * 3
    down = None if up is None else P(*reversed(up))
    specs = [(up, down)] * 3
    x = f32(BATCH, WIDTH)
    arguments, in_specs = (params, params, x, x), (specs, None, P(batch), None)
    return lower(layers.sgd_momentum(loss), on, arguments, in_specs, donate=(0, 1))
