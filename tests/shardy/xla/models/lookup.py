"""Tables: embeddings and classifiers sharded over their rows, losses over what they give."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AbstractMesh
from jax.sharding import PartitionSpec as P

from tests.shardy.programs import layers
from tests.shardy.programs.registry import Tree, f32, i32, lower, mesh
from tests.shardy.xla.models.catalog import adam, adam_state, models


@models(
    vocabulary={"on": mesh(data=2, tensor=4), "table": P("tensor", None)},
    features={"on": mesh(data=2, tensor=4), "table": P(None, "tensor")},
    fsdp={"on": mesh(data=8), "table": P("data", None)},
)
def embedding(on: AbstractMesh, table: P) -> jax.stages.Lowered:
    """A lookup and a small head, trained."""

    def loss(params: Tree, tokens: jax.Array, wanted: jax.Array) -> jax.Array:
        x = params["table"][tokens].mean(axis=1)
        return jnp.mean(jnp.square(x @ params["head"] - wanted))

    state = adam_state({"table": f32(32768, 256), "head": f32(256, 64)}, i32())
    state_specs = adam_state({"table": table, "head": P()}, P())
    return lower(
        adam(loss),
        on,
        (state, i32(512, 32), f32(512, 64)),
        (state_specs, P("data"), P("data")),
        (state_specs, None),
        donate=0,
    )


@models(
    vocabulary={"on": mesh(data=2, tensor=4), "picked": "take"},
    one_hot={"on": mesh(data=2, tensor=4), "picked": "one_hot"},
    all_devices={"on": mesh(tensor=8), "picked": "take", "batch": None},
)
def classify(on: AbstractMesh, picked: str, batch: Any = "data") -> jax.stages.Lowered:
    """Cross-entropy over a sharded vocabulary, with gradients."""

    def loss(w: jax.Array, x: jax.Array, labels: jax.Array) -> jax.Array:
        logits = x @ w
        if picked == "take":
            chosen = jnp.take_along_axis(logits, labels[:, None], axis=-1)[:, 0]
        else:
            chosen = jnp.sum(logits * jax.nn.one_hot(labels, logits.shape[-1]), axis=-1)
        return jnp.mean(jax.nn.logsumexp(logits, axis=-1) - chosen)

    step = jax.value_and_grad(loss, argnums=(0, 1))
    arguments = (f32(512, 16384), f32(2048, 512), i32(2048))
    weight = P(None, "tensor")
    return lower(step, on, arguments, (weight, P(batch), P(batch)), (None, (weight, P(batch))))


@models(tables={"on": mesh(data=8)})
def recommend(on: AbstractMesh) -> jax.stages.Lowered:
    """Tables of categories sharded over rows, a replicated MLP, products of all pairs."""
    tables = [f32(rows, 64) for rows in (65536, 16384, 4096)]

    def loss(params: Tree, dense: jax.Array, ids: jax.Array, clicks: jax.Array) -> jax.Array:
        x = jax.nn.relu(layers.dense(dense, params["bottom"]))
        rows = [table[ids[:, at]] for at, table in enumerate(params["tables"])]
        all_rows = jnp.stack([x, *rows], axis=1)
        pairs = jnp.einsum("bid,bjd->bij", all_rows, all_rows).reshape(len(dense), -1)
        y = jax.nn.relu(layers.dense(jnp.concatenate([x, pairs], axis=-1), params["top"]))
        logits = layers.dense(y, params["out"])[:, 0]
        return jnp.mean(jnp.logaddexp(0, logits) - clicks * logits)

    params = {
        "tables": tables,
        "bottom": layers.dense_shapes(16, 64),
        "top": layers.dense_shapes(80, 256),
        "out": layers.dense_shapes(256, 1),
    }
    whole = layers.dense_specs(None, None)
    specs = {"tables": [P("data", None)] * 3, "bottom": whole, "top": whole, "out": whole}
    state_specs = adam_state(specs, P())
    return lower(
        adam(loss),
        on,
        (adam_state(params, i32()), f32(4096, 16), i32(4096, 3), f32(4096)),
        (state_specs, P("data"), P("data"), P("data")),
        (state_specs, None),
        donate=0,
    )


@models(data={"on": mesh(data=8)})
def contrast(on: AbstractMesh) -> jax.stages.Lowered:
    """Pairs of images and texts: each is told from all others of the global batch."""

    def loss(params: Tree, images: jax.Array, texts: jax.Array) -> jax.Array:
        a, b = layers.dense(images, params["image"]), layers.dense(texts, params["text"])
        a, b = (x * jax.lax.rsqrt(jnp.sum(x * x, -1, keepdims=True) + 1e-6) for x in (a, b))
        logits = a @ b.T * 14.0
        own = jnp.diagonal(logits)
        both = jax.nn.logsumexp(logits, axis=0) + jax.nn.logsumexp(logits, axis=1)
        return jnp.mean(both / 2 - own)

    params = {"image": layers.dense_shapes(768, 512), "text": layers.dense_shapes(512, 512)}
    whole = layers.dense_specs(None, None)
    state_specs = adam_state({"image": whole, "text": whole}, P())
    return lower(
        adam(loss),
        on,
        (adam_state(params, i32()), f32(2048, 768), f32(2048, 512)),
        (state_specs, P("data"), P("data")),
        (state_specs, None),
        donate=0,
    )


@models(edges={"on": mesh(data=8), "nodes": P()}, nodes={"on": mesh(data=8), "nodes": P("data")})
def graph(on: AbstractMesh, nodes: P) -> jax.stages.Lowered:
    """Messages along edges, summed at nodes; forward and backward."""

    def loss(w: jax.Array, x: jax.Array, sender: jax.Array, receiver: jax.Array) -> jax.Array:
        messages = jax.nn.relu(x[sender] @ w)
        y = jax.ops.segment_sum(messages, receiver, num_segments=x.shape[0])
        return jnp.mean(jnp.square(y))

    arguments = (f32(128, 128), f32(4096, 128), i32(32768), i32(32768))
    in_specs = (P(), nodes, P("data"), P("data"))
    return lower(jax.value_and_grad(loss), on, arguments, in_specs)


@models(pooled={"on": mesh(data=2, table=4)})
def click(on: AbstractMesh) -> jax.stages.Lowered:
    """Several categories of each kind, summed; tables are sharded over one axis, rows over both."""
    rows = P(("data", "table"))
    row, column = np.triu_indices(5, 1)

    def loss(p: Tree, dense: jax.Array, ids: jax.Array, clicks: jax.Array) -> jax.Array:
        x = jax.nn.relu(dense @ p["bottom"])
        sums = [table[ids[:, at]].sum(axis=1) for at, table in enumerate(p["tables"])]
        every = jnp.stack([x, *sums], axis=1)
        pairs = jnp.einsum("bid,bjd->bij", every, every)[:, row, column]
        y = jax.nn.relu(jnp.concatenate([x, pairs], axis=-1) @ p["top"])
        logits = (y @ p["out"])[:, 0]
        return jnp.mean(jnp.logaddexp(0, logits) - clicks * logits)

    def step(p: Tree, *batch: jax.Array) -> tuple[Tree, jax.Array]:
        value, grads = jax.value_and_grad(loss)(p, *batch)
        return jax.tree.map(lambda p, g: p - 0.1 * g, p, grads), value

    params = {
        "bottom": f32(16, 64),
        "tables": [f32(count, 64) for count in (65536, 32768, 8192, 4096)],
        "top": f32(74, 256),
        "out": f32(256, 1),
    }
    specs = {"bottom": P(), "tables": [P("table", None)] * 4, "top": P(), "out": P()}
    arguments = (params, f32(2048, 16), i32(2048, 4, 8), f32(2048))
    return lower(step, on, arguments, (specs, rows, rows, rows), (specs, None), donate=0)


@models(grid={"on": mesh(data=4, tensor=2)})
def paired(on: AbstractMesh) -> jax.stages.Lowered:
    """Images and captions, each told from all others, with weights sharded, too."""

    def loss(p: Tree, images: jax.Array, words: jax.Array) -> jax.Array:
        a = jax.nn.gelu(images @ p["image_in"]) @ p["image_out"]
        b = jax.nn.gelu(p["words"][words].mean(axis=1) @ p["text_in"]) @ p["text_out"]
        a, b = (x / jnp.linalg.norm(x, axis=-1, keepdims=True) for x in (a, b))
        logits = a @ b.T * jnp.exp(p["scale"])
        own = jnp.arange(len(logits))[:, None]

        def one_way(logits: jax.Array) -> jax.Array:
            return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), own, 1))

        return (one_way(logits) + one_way(logits.T)) / 2

    params = {"image_in": f32(768, 2048), "text_in": f32(512, 2048), "words": f32(8192, 512)}
    params |= {"image_out": f32(2048, 512), "text_out": f32(2048, 512), "scale": f32()}
    specs = {"image_in": P(None, "tensor"), "text_in": P(None, "tensor"), "words": P("tensor")}
    specs |= {"image_out": P("tensor"), "text_out": P("tensor"), "scale": P()}
    state_specs = adam_state(specs, P())
    return lower(
        adam(loss),
        on,
        (adam_state(params, i32()), f32(1024, 768), i32(1024, 32)),
        (state_specs, P("data"), P("data")),
        (state_specs, None),
        donate=0,
    )


@models(fsdp={"on": mesh(fsdp=8)})
def chunked(on: AbstractMesh) -> jax.stages.Lowered:
    """Cross-entropy over chunks of the time, recomputed, in batches that follow each other."""
    batch, time, width, vocab, chunks = 16, 128, 256, 4096, 4

    def loss(p: Tree, tokens: jax.Array, labels: jax.Array) -> jax.Array:
        x = p["table"][tokens]
        x = x + jax.nn.gelu(x @ p["up"]) @ p["down"]
        xs = jnp.moveaxis(x.reshape(-1, chunks, time // chunks, width), 1, 0)
        ys = jnp.moveaxis(labels.reshape(-1, chunks, time // chunks), 1, 0)

        @jax.checkpoint
        def add(total: jax.Array, chunk: Any) -> tuple[jax.Array, None]:
            logits = chunk[0] @ p["head"]
            chosen = jnp.take_along_axis(logits, chunk[1][..., None], axis=-1)[..., 0]
            return total + jnp.sum(jax.nn.logsumexp(logits, axis=-1) - chosen), None

        return jax.lax.scan(add, jnp.zeros(()), (xs, ys))[0] / labels.size

    columns = P(None, "fsdp")
    specs = {"table": columns, "up": P("fsdp"), "down": columns, "head": P("fsdp")}
    inner, tokens = 4 * width, i32(batch, time)
    shapes = {"table": f32(vocab, width), "up": f32(width, inner), "down": f32(inner, width)}
    state = adam_state(shapes | {"head": f32(width, vocab)}, i32())
    state_specs = adam_state(specs, P())
    batches = (state_specs, P("fsdp"), P("fsdp"))
    step = adam(loss, micro=2)
    return lower(step, on, (state, tokens, tokens), batches, (state_specs, None), donate=0)
