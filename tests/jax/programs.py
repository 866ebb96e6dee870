"""Functions as users write them, with the shardings they give: one for each thing JAX can do.

Run as a program it compiles each on eight host devices and prints the shardings of what it returns
as JSON, which is what the tests hold ours against.
"""

from __future__ import annotations

import functools
import json
import os
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

from tests.jax.versions import set_mesh, spec_of

AUTO = AbstractMesh((2, 4), ("data", "model"), axis_types=(AxisType.Auto,) * 2)
EXPLICIT = AbstractMesh((2, 4), ("data", "model"), axis_types=(AxisType.Explicit,) * 2)
MIXED = AbstractMesh((2, 4), ("data", "model"), axis_types=(AxisType.Auto, AxisType.Explicit))


class Case(NamedTuple):
    """A function, shapes of its arguments, and how they are sharded."""

    fn: Callable[..., Any]
    args: tuple[Any, ...]
    in_shardings: Any = None
    out_shardings: Any = None
    mesh: AbstractMesh = AUTO
    jit: dict[str, Any] = {}  # noqa: RUF012


def f32(*shape: int) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, jnp.float32)


def i32(*shape: int) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, jnp.int32)


def dense(params: Any, x: Any) -> Any:
    return {"y": jnp.tanh(x @ params["w"]) @ params["v"], "norm": jnp.sum(x)}


def dense_gradient(params: Any, x: Any) -> Any:
    return jax.grad(lambda p: jnp.sum(dense(p, x)["y"] ** 2))(params)


def scanned(x: Any, w: Any) -> Any:
    return jax.lax.scan(lambda carry, one: (jnp.tanh(carry @ one), jnp.sum(carry)), x, w)


def rematerialized(x: Any, w: Any) -> Any:
    block = jax.checkpoint(lambda x, w: jnp.tanh(jnp.tanh(x @ w) @ w.T))
    return jax.value_and_grad(lambda w: jnp.sum(block(x, w)))(w)


@jax.custom_vjp
def scaled(x: Any, w: Any) -> Any:
    return x @ w


def _scaled_forward(x: Any, w: Any) -> Any:
    return x @ w, (x, w)


def _scaled_backward(saved: Any, g: Any) -> Any:
    x, w = saved
    return (2 * g) @ w.T, x.T @ g


scaled.defvjp(_scaled_forward, _scaled_backward)


def custom_gradient(x: Any, w: Any) -> Any:
    return jax.grad(lambda x, w: jnp.sum(scaled(x, w)), argnums=(0, 1))(x, w)


def manual(x: Any, w: Any) -> Any:
    mesh = jax.sharding.get_abstract_mesh()

    @functools.partial(
        jax.shard_map, mesh=mesh, in_specs=(P("data"), P()), out_specs=(P("data"), P())
    )
    def body(x: Any, w: Any) -> Any:
        return x @ w, jax.lax.psum(jnp.sum(x), "data")

    y, total = body(x, w)
    return jnp.tanh(y), total


def partly_manual(x: Any, w: Any) -> Any:
    mesh = jax.sharding.get_abstract_mesh()
    body = jax.shard_map(
        lambda x, w: x @ w,
        mesh=mesh,
        in_specs=(P("data"), P()),
        out_specs=P("data"),
        axis_names={"data"},
    )
    return body(x, w)


def constrained(x: Any, w: Any) -> Any:
    return jax.lax.with_sharding_constraint(x @ w, P("data", "model"))


def squared(x: Any) -> Any:
    return jnp.square(x), jax.scipy.special.erfinv(x).T, jax.lax.top_k(x, 4)


def looped(x: Any, w: Any) -> Any:
    return jax.lax.fori_loop(0, 5, lambda _, carry: jnp.tanh(carry @ w), x)


def chosen(p: Any, x: Any) -> Any:
    return jax.lax.cond(p > 0, lambda x: x.T @ x, lambda x: x.T @ (x * 2), x)


def looked_up(table: Any, ids: Any, rows: Any) -> Any:
    return table[ids], table.at[ids].add(rows)


def ordered(x: Any) -> Any:
    return jnp.sort(x, axis=0), jnp.argsort(x, axis=1), jnp.cumsum(x, 0), jax.nn.softmax(x)


def joined(x: Any, y: Any) -> Any:
    return jnp.concatenate([x, y]), jnp.stack([x, y]), x.reshape(64, 8, 64), jnp.pad(y, 1)


def nested(x: Any, w: Any) -> Any:
    return jax.jit(lambda a: jnp.sin(a @ a.T))(x) @ jax.jit(lambda a: a * 2)(w)


def scanned_remat(w: Any, x: Any) -> Any:
    step = jax.checkpoint(lambda carry, one: (jnp.tanh(carry @ one), None))
    return jax.grad(lambda w: jnp.sum(jax.lax.scan(step, x, w)[0]))(w)


def ring(x: Any, w: Any) -> Any:
    def body(x: Any, w: Any) -> Any:
        def step(carry: Any, _: Any) -> Any:
            return jax.lax.ppermute(jnp.tanh(carry @ w), "data", [(0, 1), (1, 0)]), None

        return jax.lax.scan(step, x, None, length=3)[0]

    mesh = jax.sharding.get_abstract_mesh()
    specs = (P("data"), P())
    return jax.shard_map(body, mesh=mesh, in_specs=specs, out_specs=P("data"))(x, w)


def drawn(key: Any, x: Any) -> Any:
    return x + jax.random.normal(key, x.shape)


def loosely_constrained(x: Any) -> Any:
    return jax.lax.with_sharding_constraint(x.T, P(P.UNCONSTRAINED, "data"))


def resharded(x: Any) -> Any:
    return jax.sharding.reshard(x * 2, P(None, "data"))


def explicit_gradient(w: Any, x: Any) -> Any:
    return jax.grad(lambda w: jnp.sum(jnp.dot(x, w)))(w)


def unused(x: Any, y: Any, z: Any) -> Any:
    return {"z": z * 2, "x": [x.T]}


def update(state: Any, g: Any) -> Any:
    return jax.tree.map(lambda p: p - 0.1 * g, state)


def product(x: Any, w: Any) -> Any:
    return x @ w


def sharded(mesh: AbstractMesh, spec: Any, *shape: int) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, jnp.float32, sharding=NamedSharding(mesh, spec))


PARAMS = {"w": f32(512, 2048), "v": f32(2048, 512)}
DENSE = ({"w": P(None, "model"), "v": None}, P("data"))

CASES = {
    "dense": Case(dense, (PARAMS, f32(64, 512)), DENSE),
    "dense_prefix": Case(dense, (PARAMS, f32(64, 512)), (P(None, "model"), P("data"))),
    "dense_out": Case(dense, (PARAMS, f32(64, 512)), DENSE, {"y": P("data", "model"), "norm": P()}),
    "gradient": Case(dense_gradient, (PARAMS, f32(64, 512)), DENSE),
    "scan": Case(scanned, (f32(64, 512), f32(6, 512, 512)), (P("data"), P(None, None, "model"))),
    "remat": Case(rematerialized, (f32(64, 512), f32(512, 1024)), (P("data"), P(None, "model"))),
    "custom_vjp": Case(custom_gradient, (f32(64, 512), f32(512, 256)), (P("data"), P("model"))),
    "shard_map": Case(manual, (f32(64, 512), f32(512, 128))),
    "partly_manual": Case(
        partly_manual, (f32(64, 512), f32(512, 128)), (P("data"), P(None, "model"))
    ),
    "chlo": Case(squared, (f32(64, 512),), P("data", "model")),
    "constraint": Case(constrained, (f32(64, 512), f32(512, 128))),
    "loop": Case(looped, (f32(64, 512), f32(512, 512)), (P("data"), P(None, "model"))),
    "cond": Case(chosen, (i32(), f32(64, 512)), (None, P("data", "model"))),
    "lookup": Case(looked_up, (f32(512, 64), i32(8), f32(8, 64)), (P("model"), P("data"), None)),
    "order": Case(ordered, (f32(64, 512),), P("data")),
    "join": Case(joined, (f32(64, 512), f32(64, 512)), (P("data"), P(None, "model"))),
    "nested_jit": Case(nested, (f32(64, 512), f32(64, 128)), (P("data"), P(None, "model"))),
    "scan_remat": Case(
        scanned_remat, (f32(4, 512, 512), f32(64, 512)), (P(None, "model"), P("data"))
    ),
    "ring": Case(ring, (f32(64, 32), f32(32, 32))),
    "random": Case(
        drawn, (jax.eval_shape(lambda: jax.random.key(0)), f32(64, 8)), (None, P("data"))
    ),
    "unconstrained": Case(loosely_constrained, (f32(64, 512),), P(None, "model")),
    "reshard": Case(resharded, (sharded(EXPLICIT, P("data"), 64, 512),), mesh=EXPLICIT),
    "explicit_gradient": Case(
        explicit_gradient,
        (sharded(EXPLICIT, P(None, "model"), 512, 128), sharded(EXPLICIT, P("data"), 64, 512)),
        mesh=EXPLICIT,
    ),
    "unused": Case(unused, (f32(8, 16), f32(3), f32(4)), (P("data", "model"), None, P("data"))),
    "donated": Case(
        update,
        ({"a": f32(64, 8), "b": f32(64, 8)}, f32(64, 8)),
        (P("data"), P(None, "model")),
        P("data"),
        jit={"donate_argnums": 0},
    ),
    "explicit": Case(
        product,
        (sharded(EXPLICIT, P("data"), 64, 512), sharded(EXPLICIT, P(None, "model"), 512, 128)),
        mesh=EXPLICIT,
    ),
    "mixed": Case(
        product,
        (sharded(MIXED, P(), 64, 512), sharded(MIXED, P(None, "model"), 512, 128)),
        mesh=MIXED,
    ),
}


def spec_entries(spec: Any) -> list[Any]:
    """``spec`` as JSON has it, without entries that say nothing at its end."""
    if isinstance(spec, str):
        return [spec]
    entries = [list(entry) if isinstance(entry, tuple) else entry for entry in spec]
    while entries and entries[-1] is None:
        entries.pop()
    return entries


def compiled_specs(case: Case) -> Any:
    """The shardings of what the compiled function returns, leaf by leaf."""
    axes = case.mesh
    mesh = jax.make_mesh(axes.axis_sizes, axes.axis_names, axis_types=axes.axis_types)

    def is_leaf(node: Any) -> bool:
        return node is None or isinstance(node, P)

    def on_devices(tree: Any) -> Any:
        return jax.tree.map(
            lambda spec: None if spec is None else NamedSharding(mesh, spec), tree, is_leaf=is_leaf
        )

    def argument(leaf: Any) -> Any:
        if leaf.sharding is None:
            return leaf
        return jax.ShapeDtypeStruct(
            leaf.shape, leaf.dtype, sharding=NamedSharding(mesh, leaf.sharding.spec)
        )

    given = {"in_shardings": case.in_shardings, "out_shardings": case.out_shardings}
    options = {name: on_devices(tree) for name, tree in given.items() if tree is not None}
    with set_mesh(mesh):
        jitted = jax.jit(case.fn, **options, **case.jit)
        lowered = jitted.lower(*jax.tree.map(argument, case.args))
        shardings = lowered.compile().output_shardings
    return [
        spec_entries(spec_of(sharding, mesh, len(info.shape)))
        for sharding, info in zip(
            jax.tree.leaves(shardings), jax.tree.leaves(lowered.out_info), strict=True
        )
    ]


if __name__ == "__main__":
    assert jax.device_count() == 8, os.environ.get("XLA_FLAGS")
    json.dump({name: compiled_specs(case) for name, case in CASES.items()}, sys.stdout)
