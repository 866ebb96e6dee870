"""shard_map inside jit: collectives by hand, manual over all or some axes, nested, in loops."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec as P

from tests.shardy.programs.registry import Tree, constrain, f32, lower, mesh, program, variants

MESH = mesh(x=4, y=2)
BATCH, WIDTH = 8, 16
_x, _w = f32(BATCH, WIDTH), f32(WIDTH, WIDTH)


@variants(
    pinned={"specs": (P("x"), P(None, "y"))},
    free={"specs": (None, None)},
    other={"specs": (P("y"), P("x"))},
)
def manual_matmul(specs: Tree) -> jax.stages.Lowered:
    """A product split over the contracted dim, summed by hand."""

    @partial(jax.shard_map, mesh=MESH, in_specs=(P("x", "y"), P("y", None)), out_specs=P("x", None))
    def product(x: jax.Array, w: jax.Array) -> jax.Array:
        return lax.psum(x @ w, "y")

    def run(x: jax.Array, w: jax.Array) -> jax.Array:
        return jnp.sin(product(jnp.cos(x), w)) @ w

    return lower(run, MESH, (_x, _w), specs)


@variants(
    free_axis_used={"spec": P("x", "y")},
    free_axis_on_weight={"spec": P("x"), "w_spec": P(None, "y")},
)
def partly_manual(spec: P, w_spec: P | None = None) -> jax.stages.Lowered:
    """Manual over one axis; the propagation still splits the body over the other."""

    @partial(jax.shard_map, mesh=MESH, in_specs=(P("x"), P()), out_specs=P("x"), axis_names={"x"})
    def body(x: jax.Array, w: jax.Array) -> jax.Array:
        h = jax.nn.relu(x @ w)
        return h @ w.T + lax.pmean(h.sum(), "x")

    return lower(body, MESH, (_x, _w), (spec, w_spec))


@program
def every_collective() -> jax.stages.Lowered:
    @partial(jax.shard_map, mesh=MESH, in_specs=P("x", "y"), out_specs=P("x", "y"), check_vma=False)
    def body(x: jax.Array) -> Tree:
        gathered = lax.all_gather(x, "y", axis=1, tiled=True)
        return {
            "scattered": lax.psum_scatter(gathered, "y", scatter_dimension=1, tiled=True),
            "swapped": lax.all_to_all(gathered, "y", 1, 1, tiled=True)[:, : x.shape[1]],
            "shifted": lax.ppermute(x, "x", [(i, (i + 1) % 4) for i in range(4)]),
            "maximum": x + lax.pmax(x, ("x", "y")) - lax.pmin(x, "x"),
            "place": x * (lax.axis_index("x") + lax.axis_index("y") * lax.axis_size("x")),
        }

    return lower(body, MESH, (_x,), (P("x"),))


@program
def ring_attention() -> jax.stages.Lowered:
    """Keys and values travel around the ring of sequence shards, with a running softmax."""
    on = mesh(data=2, ring=4)
    split = P("data", "ring", None, None)

    @partial(jax.shard_map, mesh=on, in_specs=(split,) * 3, out_specs=split)
    def attention(q: jax.Array, k: jax.Array, v: jax.Array) -> jax.Array:
        def turn(state: Tree, _: None) -> tuple[Tree, None]:
            k, v, best, total, out = state
            scores = jnp.einsum("bqhd,bkhd->bhqk", q, k)
            top = jnp.maximum(best, scores.max(-1))
            weights, kept = jnp.exp(scores - top[..., None]), jnp.exp(best - top)
            out = out * kept[..., None] + jnp.einsum("bhqk,bkhd->bhqd", weights, v)
            total = total * kept + weights.sum(-1)
            k, v = (lax.ppermute(y, "ring", [(i, (i + 1) % 4) for i in range(4)]) for y in (k, v))
            return (k, v, top, total, out), None

        zeros = jnp.zeros_like(q.swapaxes(1, 2))
        start = (k, v, zeros[..., 0] - 1e9, zeros[..., 0], zeros)
        (_, _, _, total, out), _ = lax.scan(turn, start, length=4)
        return (out / total[..., None]).swapaxes(1, 2)

    def loss(p: Tree, x: jax.Array) -> jax.Array:
        q, k, v = (jnp.einsum("btw,whd->bthd", x, p[name]) for name in "qkv")
        return jnp.sum(jnp.square(attention(q, k, v)))

    per_head = f32(WIDTH, 4, 4)
    params = dict.fromkeys("qkv", per_head)
    return lower(jax.value_and_grad(loss), on, (params, f32(4, 16, WIDTH)), (None, P("data")))


@program
def expert_all_to_all() -> jax.stages.Lowered:
    """Experts on their own devices, tokens sent to them and back by hand; tensor axis left free."""
    on = mesh(expert=4, tensor=2)

    @partial(
        jax.shard_map,
        mesh=on,
        in_specs=(P("expert"), P("expert"), P("expert")),
        out_specs=P("expert"),
        axis_names={"expert"},
    )
    def experts(x: jax.Array, up: jax.Array, down: jax.Array) -> jax.Array:
        queues = lax.all_to_all(x.reshape(4, -1, WIDTH), "expert", 0, 1, tiled=False)
        h = jax.nn.relu(queues.reshape(1, -1, WIDTH) @ up)
        y = (h @ down).reshape(x.shape[0] // 4, 4, WIDTH)
        return lax.all_to_all(y, "expert", 1, 0, tiled=False).reshape(x.shape)

    arguments = (f32(64, WIDTH), f32(4, WIDTH, 32), f32(4, 32, WIDTH))
    in_specs = (P("expert"), P("expert", None, "tensor"), P("expert", "tensor", None))
    return lower(experts, on, arguments, in_specs)


@program
def manual_in_manual() -> jax.stages.Lowered:
    """First manual over one axis, then, inside, over the other as well."""
    inner_spec = P(None, "y")

    @partial(jax.shard_map, mesh=MESH, in_specs=P("x"), out_specs=P("x"), axis_names={"x"})
    def outer(x: jax.Array) -> jax.Array:
        @partial(jax.shard_map, in_specs=inner_spec, out_specs=inner_spec, axis_names={"y"})
        def inner(x: jax.Array) -> jax.Array:
            return x * 2 + lax.psum(x, "y")

        return inner(jnp.sin(x)) + lax.pmean(x, "x")

    return lower(outer, MESH, (_x,), (P("x", "y"),))


@program
def manual_in_scan() -> jax.stages.Lowered:
    """A layer with a manual part, scanned and differentiated; constraints on both sides of it."""

    @partial(jax.shard_map, mesh=MESH, in_specs=(P("x"), P(None, "y")), out_specs=P("x", "y"))
    def product(x: jax.Array, w: jax.Array) -> jax.Array:
        return x @ w

    def loss(ws: jax.Array, x: jax.Array) -> jax.Array:
        def layer(x: jax.Array, w: jax.Array) -> tuple[jax.Array, None]:
            return constrain(jnp.tanh(product(x, w)), MESH, "x", None), None

        return jnp.sum(lax.scan(layer, x, ws)[0])

    arguments = (f32(3, WIDTH, WIDTH), _x)
    return lower(jax.value_and_grad(loss), MESH, arguments, (P(None, None, "y"), P("x")))


@program
def pipeline_stages() -> jax.stages.Lowered:
    """Stages on their own devices, micro-batches shifted from one to the next."""
    on = mesh(stage=4, data=2)
    stages = 4

    @partial(
        jax.shard_map,
        mesh=on,
        in_specs=(P("stage"), P(None, "data")),
        out_specs=P(None, "data"),
        check_vma=False,
    )
    def pipeline(w: jax.Array, batches: jax.Array) -> jax.Array:
        stage = lax.axis_index("stage")

        def tick(at: int, state: Tree) -> Tree:
            x, done = state
            x = jnp.where(stage == 0, batches[at % batches.shape[0]], x)
            x = jax.nn.relu(x @ w[0])
            done = jnp.where(stage == stages - 1, done.at[at % batches.shape[0]].set(x), done)
            return lax.ppermute(x, "stage", [(i, (i + 1) % stages) for i in range(stages)]), done

        start = (jnp.zeros_like(batches[0]), jnp.zeros_like(batches))
        return lax.psum(lax.fori_loop(0, batches.shape[0] + stages - 1, tick, start)[1], "stage")

    arguments = (f32(stages, WIDTH, WIDTH), f32(4, BATCH, WIDTH))
    return lower(pipeline, on, arguments, (P("stage"), P(None, "data")))
