"""Functions whose lowerings without and with Shardy have to propagate alike."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

try:
    from jax.experimental.shard_alike import shard_alike
except ImportError:
    # JAX 0.12 makes no sharding groups.
    shard_alike = None

MESH = AbstractMesh((2, 4), ("x", "y"), axis_types=(AxisType.Auto,) * 2)


def named(*spec):
    return NamedSharding(MESH, P(*spec))


def constrain(value, *spec):
    return jax.lax.with_sharding_constraint(value, named(*spec))


def shard_map(function, ins, outs, **options):
    return jax.shard_map(function, mesh=MESH, in_specs=ins, out_specs=outs, **options)


def perceptron(x, w, b, *, constrained):
    out = jnp.dot(x, w)
    if constrained:
        out = constrain(out, "x", None)
    return out + jax.lax.broadcast(b, [x.shape[0]])


def manual(x):
    psum = shard_map(lambda part: jax.lax.psum(part, "x"), P("x", "y"), P(None, "y"))
    return psum(x) + 1


def partly_manual(x):
    body = shard_map(lambda part: jax.lax.psum(part, "x"), P("x"), P(), axis_names={"x"})
    return body(constrain(x, P.UNCONSTRAINED, "y")) + 1


def constraint_in_body(x):
    def body(part):
        return jax.lax.with_sharding_constraint(part * 2, P(None, "y"))

    return shard_map(body, P("x"), P("x"), axis_names={"x"})(x)


def two_bodies(x, y):
    body = shard_map(lambda a, b: (a + b, a * 2), (P("x"), P("x")), P("x", None))
    first, second = body(x, y)
    return body(first * 2, second)


def body_called_twice(x, y):
    body = jax.jit(shard_map(lambda part: part * 2, P("x", "y"), P("x", "y")))
    return body(x) + body(y)


def nested_bodies(x):
    def outer(part):
        inner = jax.shard_map(
            lambda inner: inner * 2,
            in_specs=P(None, "y"),
            out_specs=P(None, "y"),
            axis_names={"y"},
        )
        return inner(part) + 1

    return shard_map(outer, P("x"), P("x"), axis_names={"x"})(x)


def body_without_inputs():
    def body():
        return jnp.full((2, 2), 1.0) * jax.lax.axis_index("x").astype("float32")

    return shard_map(body, (), P("x", "y"))()


def several_results(x):
    def body(part):
        gathered = jax.lax.all_gather(part, "x", axis=0, tiled=True)
        return gathered, part.sum(keepdims=True), part

    outs = (P(None, "y"), P("x", "y"), P("x", "y"))
    return shard_map(body, P("x", "y"), outs, check_vma=False)(x)


def body_with_loop(x):
    def body(part):
        return jax.lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * 2), (0, part))[1]

    return shard_map(body, P("x", "y"), P("x", "y"))(x)


def body_in_scan(x):
    body = shard_map(lambda part: part + 1, P("x", "y"), P("x", "y"))
    return jax.lax.scan(lambda carry, _: (body(carry), None), x, None, length=2)[0]


def gradient_of_body(x, w):
    body = shard_map(lambda a, b: jax.lax.psum(jnp.tanh(a @ b), "y"), (P("x", "y"), P("y")), P("x"))
    return jax.grad(lambda x, w: body(x, w).sum(), argnums=(0, 1))(x, w)


def constraint_in_scan(x):
    def step(carry, _):
        carry = constrain(jnp.tanh(carry), "x", None)
        return carry, carry.sum()

    return jax.lax.scan(step, x, None, length=3)


def constraint_in_branch(x):
    return jax.lax.cond(x.sum() > 0, lambda a: constrain(a * 2, "x"), lambda a: a, x)


def inner_jit(x):
    inner = jax.jit(jnp.sin, in_shardings=named("x", None), out_shardings=named(None, "y"))
    return inner(x) * 2


def rematerialized(x, w):
    block = jax.checkpoint(lambda a: jnp.sin(constrain(a @ w, "x", "y")))
    return jax.grad(lambda a: block(a).sum())(x)


def orders(x, y):
    return constrain(x, ("x", "y"), None) + constrain(y, ("y", "x"), None)


def alike(x, w):
    first, second = shard_alike(x @ w, jnp.sin(x) @ w)
    return first + 1, second * 2


def alike_in_a_chain(x, y, z):
    x, y = shard_alike(x, y)
    y, z = shard_alike(y, z)
    return x + 1, y * 2, jnp.cos(z)


def random_numbers(x):
    return x + jax.random.normal(jax.random.key(0), x.shape)


SHARDINGS = {
    "in_shardings": (named("x", None), named(None, "y"), named()),
    "out_shardings": named(),
}
CASES = {
    "perceptron": (partial(perceptron, constrained=False), [(48, 24), (24, 48), (48,)], SHARDINGS),
    "constraint": (partial(perceptron, constrained=True), [(48, 24), (24, 48), (48,)], SHARDINGS),
    "manual": (manual, [(48, 24)], {}),
    "partly": (partly_manual, [(48, 24)], {}),
    "constraint_in_body": (constraint_in_body, [(16, 8)], {}),
    "two": (two_bodies, [(48, 24), (48, 24)], {}),
    "twice": (body_called_twice, [(16, 8), (16, 8)], {}),
    "nested": (nested_bodies, [(16, 8)], {}),
    "without_inputs": (body_without_inputs, [], {}),
    "several_results": (several_results, [(16, 8)], {}),
    "loop": (body_with_loop, [(16, 8)], {}),
    "body_in_scan": (body_in_scan, [(16, 8)], {}),
    "gradient": (gradient_of_body, [(16, 8), (8, 4)], {}),
    "scan": (constraint_in_scan, [(16, 8)], {}),
    "branch": (constraint_in_branch, [(16, 8)], {}),
    "inner_jit": (inner_jit, [(16, 8)], {}),
    "remat": (rematerialized, [(16, 8), (8, 8)], {"in_shardings": (named("x"), named(None, "y"))}),
    "orders": (orders, [(16, 8), (16, 8)], {}),
    "random": (random_numbers, [(16, 8)], {"out_shardings": named("x", "y")}),
}
if shard_alike is not None:
    CASES |= {
        "alike": (alike, [(16, 8), (8, 16)], {"in_shardings": (named("x"), named(None, "y"))}),
        "alike_chain": (
            alike_in_a_chain,
            [(16, 8)] * 3,
            {"in_shardings": (named("x"), named(), named())},
        ),
    }


def lowered(name: str, *, shardy: bool, generic: bool = False, locations: bool = False) -> str:
    """The program of a case as JAX lowers it with or without Shardy."""
    function, shapes, options = CASES[name]
    before = jax.config.jax_use_shardy_partitioner
    jax.config.update("jax_use_shardy_partitioner", shardy)
    try:
        jax.clear_caches()
        shaped = [jax.ShapeDtypeStruct(shape, "float32") for shape in shapes]
        trace = jax.jit(function, **options).trace(*shaped)
        low = trace.lower(lowering_platforms=("cpu",))
        module = low.compiler_ir("stablehlo").operation
        return module.get_asm(enable_debug_info=locations, print_generic_op_form=generic)
    finally:
        jax.config.update("jax_use_shardy_partitioner", before)
