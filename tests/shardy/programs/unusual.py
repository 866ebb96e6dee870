"""Programs whose text is out of the ordinary: odd constants and names, tokens, foreign calls."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import pallas, xla_metadata
from jax.experimental.layout import Format, Layout
from jax.sharding import PartitionSpec as P

from tests.shardy.programs.registry import (
    Tree,
    constrain,
    device_mesh,
    f32,
    i32,
    lower,
    mesh,
    named,
    program,
    variants,
)

MESH = mesh(x=4, y=2)
BATCH, WIDTH = 8, 16
_x, _w = f32(BATCH, WIDTH), f32(WIDTH, WIDTH)
_border = (P("x"), P(None, "y"))


@program
def constants_of_every_type() -> jax.stages.Lowered:
    """Dense constants: splats, lists and blobs; infinities, complex, booleans, narrow floats."""
    types = [
        "bool",
        "int4",
        "uint2",
        "int8",
        "uint16",
        "int32",
        "uint32",
        "float8_e5m2",
        "float8_e4m3b11fnuz",
        "bfloat16",
        "float16",
        "float32",
        "complex64",
    ]

    def run(x: jax.Array) -> Tree:
        small = [jnp.asarray(np.arange(4) % 2, dtype=t) for t in types]
        large = [jnp.asarray(np.arange(BATCH * WIDTH).reshape(x.shape) % 2, t) for t in types]
        odd = jnp.asarray([jnp.inf, -jnp.inf, jnp.nan, -0.0, 1e-45, 3.4e38, 0.1, 1e10])
        return [x + jnp.real(y).astype(jnp.float32) for y in large], small, odd, jnp.zeros((0, 3))

    return lower(run, MESH, (_x,), (P("x", "y"),))


@program
def names_to_escape() -> jax.stages.Lowered:
    """Quotes, backslashes, line ends and letters beyond ASCII in function and scope names."""

    def inner(x: jax.Array) -> jax.Array:
        with jax.named_scope('a "quoted" \\ name'), jax.named_scope("größe\t\n{}<>->,#loc1"):
            return jnp.sin(x)

    inner.__name__ = "größe <lambda> -> 1"

    def run(x: jax.Array) -> Tree:
        return {'key "q"': jax.jit(inner)(x), "": constrain(x, MESH, "x"), "\u4f60": x * 2}

    return lower(run, MESH, (_x,), (P("x", "y"),))


@program
def ordered_effects() -> jax.stages.Lowered:
    """Prints that must happen in order: tokens as arguments, results and carried values."""

    def run(x: jax.Array) -> jax.Array:
        jax.debug.print("{}", x.sum(), ordered=True)

        def body(_: int, x: jax.Array) -> jax.Array:
            jax.debug.print("{}", x.max(), ordered=True)
            return x * 2

        return lax.fori_loop(0, 3, body, x)

    on = device_mesh(range(1), (1, 1))
    return lower(run, on, (_x,), (P("x"),), platform="cpu")


@program
def composites() -> jax.stages.Lowered:
    """Calls that carry a name, attributes and a decomposition."""

    @partial(lax.composite, name="my.soft_cap", version=2)
    def soft_cap(x: jax.Array, *, cap: float, how: Any) -> jax.Array:
        return jnp.tanh(x / cap) * cap

    def run(x: jax.Array, w: jax.Array) -> jax.Array:
        how = np.arange(3, dtype=np.int64)
        return soft_cap(soft_cap(x @ w, cap=30.0, how=how) @ w, cap=5.0, how=how)

    return lower(run, MESH, (_x, _w), _border)


@program
def foreign_calls() -> jax.stages.Lowered:
    """Custom calls with typed attributes, layouts, aliases and several results."""

    def run(x: jax.Array, w: jax.Array) -> Tree:
        call = jax.ffi.ffi_call(
            "my_kernel",
            (
                jax.ShapeDtypeStruct((BATCH, WIDTH), jnp.float32),
                jax.ShapeDtypeStruct((), jnp.int32),
            ),
            input_layouts=((0, 1), (1, 0)),
            output_layouts=((0, 1), ()),
            input_output_aliases={0: 0},
            has_side_effect=True,
        )
        y, count = call(jnp.sin(x), w, eps=np.float32(1e-3), name="a\0b", flags=np.arange(3))
        plain = jax.ffi.ffi_call("pure", y, vmap_method="broadcast_all")(y)
        return jnp.cos(y), count, plain + x

    return lower(run, device_mesh(range(8)), (_x, _w), _border, platform="cpu")


@program
def kernels() -> jax.stages.Lowered:
    """A kernel of the user's own inside of a manual computation: a call with a large string."""

    def double(x_ref: Any, out_ref: Any) -> None:
        out_ref[...] = x_ref[...] * 2

    @partial(jax.shard_map, mesh=MESH, in_specs=P("x"), out_specs=P("x"), check_vma=False)
    def body(x: jax.Array) -> jax.Array:
        return pallas.pallas_call(double, out_shape=jax.typeof(x))(x)

    return lower(lambda x: jnp.sin(body(x)) * 2, MESH, (f32(64, 128),), (P("x"),))


@variants(default={}, tf32={"preset": lax.DotAlgorithmPreset.TF32_TF32_F32_X3})
def precise_products(preset: Any = None) -> jax.stages.Lowered:
    """Dot products and convolutions with precisions, algorithms and accumulation types."""

    def run(x: jax.Array, w: jax.Array) -> Tree:
        low = x.astype(jnp.bfloat16), w.astype(jnp.bfloat16)
        return (
            jnp.dot(x, w, precision=preset or lax.Precision.HIGHEST),
            jnp.dot(*low, preferred_element_type=jnp.float32),
            lax.dot_general(x, w, (((1,), (0,)), ((), ())), precision=("highest", "default")),
            jnp.einsum("bi,ij,bj->", x, w, x),
            jnp.vdot(x[0], x[1]) + x[0] @ x[1],
            jnp.tensordot(x, x, 2),
        )

    return lower(run, MESH, (_x, _w), _border)


@program
def convolutions() -> jax.stages.Lowered:
    """In one to three dims, dilated, strided, grouped by batch and by feature, with gradients."""

    def conv(x: jax.Array, w: jax.Array, **options: Any) -> jax.Array:
        padding = [(1, 1)] * (x.ndim - 2)
        return lax.conv_general_dilated(x, w, (1,) * len(padding), padding, **options)

    def run(x1: jax.Array, x2: jax.Array, x3: jax.Array, w: jax.Array) -> Tree:
        def loss(w: jax.Array) -> jax.Array:
            return jnp.sum(conv(x2, w, rhs_dilation=(2, 2)))

        return (
            conv(x1, w[:, :, 0], lhs_dilation=(2,)),
            conv(x2, w, feature_group_count=1),
            conv(x2, w[:, :4], feature_group_count=2),
            conv(x2, w, batch_group_count=2),
            conv(x3, w[:, :, None]),
            jax.grad(loss)(w),
            lax.conv_general_dilated_patches(x2, (2, 2), (2, 2), "VALID"),
            jax.image.resize(x2, (4, 8, 10, 10), "cubic"),
        )

    shapes = (f32(4, 8, 12), f32(4, 8, 12, 12), f32(4, 8, 6, 6, 6), f32(16, 8, 3, 3))
    return lower(run, MESH, shapes, (P("x"), P("x", "y"), P("x", None, "y"), P("y")))


@program
def metadata() -> jax.stages.Lowered:
    """Attributes for the compiler below: on ops, on calls and on arguments."""

    def run(x: jax.Array, w: jax.Array) -> jax.Array:
        with xla_metadata.set_xla_metadata(priority="high", count=3, flag=True):
            y = jnp.sin(x @ w)
        return y * 2

    return lower(run, MESH, (_x, _w), _border)


@program
def layouts() -> jax.stages.Lowered:
    """Argument and result layouts beside their shardings."""
    on = device_mesh(range(8))
    rows, columns = named(on, _border)
    chosen = Format(Layout(major_to_minor=(1, 0)), columns)
    jitted = jax.jit(
        lambda x, w: x @ w, in_shardings=(rows, chosen), out_shardings=Format(Layout.AUTO, rows)
    )
    return jitted.trace(_x, _w).lower(lowering_platforms=("cpu",))


@program
def per_platform() -> jax.stages.Lowered:
    """One program for several platforms, chosen by an index at run time."""

    def run(x: jax.Array, w: jax.Array) -> jax.Array:
        y = lax.platform_dependent(x, tpu=jnp.sin, cpu=jnp.cos, default=lambda x: x * 2)
        return jnp.linalg.cholesky(y @ y.T) @ w[:BATCH]

    jitted = jax.jit(run, in_shardings=named(MESH, _border))
    return jitted.trace(_x, _w).lower(lowering_platforms=("cpu", "tpu", "cuda"))


@variants(
    cholesky={"function": jnp.linalg.cholesky},
    eigh={"function": lambda a: jnp.linalg.eigh(a)[1]},
    qr={"function": lambda a: jnp.linalg.qr(a)[0]},
    solve={"function": lambda a: jnp.linalg.solve(a, a + 1)},
    sort={"function": lambda a: jnp.sort(a)},
)
def on_gpu(function: Any) -> jax.stages.Lowered:
    """The same mathematics as on other platforms, by other custom calls."""
    square = f32(BATCH, WIDTH, WIDTH)
    return lower(function, MESH, (square,), (P("x"),), P("x", "y"), platform="cuda")


@program
def edge_shapes() -> jax.stages.Lowered:
    """Scalars, dims of size one and zero, a rank of eight, unused and repeated arguments."""

    def run(a: jax.Array, b: jax.Array, c: jax.Array, unused: jax.Array) -> Tree:
        return a + 1, b.squeeze() * a, c.reshape(-1), c.transpose(), jnp.zeros((0, 4)) + a, b, b

    shapes = (f32(), f32(4, 1, 2), f32(*[2] * 8), i32(16))
    return lower(run, MESH, shapes, (P(), P("x", None, "y"), P(*[None] * 7, "y"), P("x")))


@program
def five_axes() -> jax.stages.Lowered:
    on = mesh(a=2, b=3, c=2, d=2, e=5)

    def run(x: jax.Array, w: jax.Array) -> Tree:
        y = constrain(x @ w, on, ("c", "a"), ("b", "e"))
        return y.reshape(-1, 15, 4), y.T @ x, jnp.sort(y, 0)

    arguments = (f32(24, 60), f32(60, 60))
    return lower(run, on, arguments, (P(("a", "d"), ("b", "c")), P(None, "e")))
