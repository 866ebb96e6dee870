"""Sorting, searching, gathering, scattering, windows, padding and random numbers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import AbstractMesh
from jax.sharding import PartitionSpec as P

from tests.shardy.programs.registry import Tree, f32, i32, lower, mesh, variants

MESH = mesh(x=4, y=2)
Entry = tuple[Callable[..., Any], tuple[Any, ...], tuple[Any, ...]]


def _key() -> jax.Array:
    return jax.random.key(0)


def _dropout(seed: jax.Array, x: jax.Array) -> jax.Array:
    keep = jax.random.bernoulli(jax.random.key(seed), 0.9, x.shape)
    return jnp.where(keep, x / 0.9, 0)


def _histogram(x: jax.Array) -> jax.Array:
    return jnp.zeros(16).at[(x * 16).astype(jnp.int32).reshape(-1)].add(1.0)


def _embedding_bag(table: jax.Array, ids: jax.Array, segments: jax.Array) -> jax.Array:
    return jax.ops.segment_max(table[ids], segments, num_segments=8)


def _graph_layer(nodes: jax.Array, edges: jax.Array, w: jax.Array) -> jax.Array:
    messages = jax.nn.relu(nodes[edges[:, 0]] @ w)
    summed = jax.ops.segment_sum(messages, edges[:, 1], num_segments=nodes.shape[0])
    degree = jax.ops.segment_sum(jnp.ones(edges.shape[0]), edges[:, 1], nodes.shape[0])
    return nodes + summed / jnp.maximum(degree, 1)[:, None]


def _nearest(queries: jax.Array, keys: jax.Array) -> Tree:
    distances = jnp.sum(jnp.square(queries[:, None] - keys), -1)
    return lax.approx_min_k(distances, 4), jnp.argmin(distances, -1)


def _quantize(x: jax.Array) -> Tree:
    scale = jnp.max(jnp.abs(x), axis=-1, keepdims=True) / 127
    q = jnp.clip(jnp.round(x / scale), -127, 127).astype(jnp.int8)
    product = lax.dot_general(q, q, (((1,), (1,)), ((), ())), preferred_element_type=jnp.int32)
    return product * (scale * scale.T), lax.bitcast_convert_type(q, jnp.uint8)


def _gumbel_top_k(x: jax.Array) -> Tree:
    return lax.top_k(x + jax.random.gumbel(_key(), x.shape), 3)


def _top_p(logits: jax.Array) -> jax.Array:
    """Keeps the most probable tokens until their mass reaches 0.9, then samples."""
    ordered, order = lax.sort_key_val(-logits, lax.broadcasted_iota(jnp.int32, logits.shape, 1))
    mass = jnp.cumsum(jax.nn.softmax(-ordered), axis=-1)
    kept = jnp.where(mass < 0.9, -ordered, -jnp.inf)
    at = jax.random.categorical(_key(), kept)
    return jnp.take_along_axis(order, at[:, None], axis=1)


def _ring_buffer(buffer: jax.Array, x: jax.Array, at: jax.Array) -> Tree:
    buffer = lax.dynamic_update_slice(buffer, x, (at % 16, 0))
    return buffer, lax.dynamic_slice(buffer, (at, 0), (4, buffer.shape[1])), jnp.roll(buffer, at, 0)


_m, _v = f32(16, 32), f32(16)

FUNCTIONS: dict[str, Entry] = {
    "sort": (partial(jnp.sort, axis=1), (_m,), (P("x", "y"),)),
    "sort_split_dim": (partial(jnp.sort, axis=0), (_m,), (P("x"),)),
    "argsort_descending": (partial(jnp.argsort, descending=True), (_m,), (P("x"),)),
    "lexicographic_sort": (
        lambda a, b: lax.sort((a, b, a * b), num_keys=2),
        (_m, _m),
        (P("x"), None),
    ),
    "top_k": (lambda x: lax.top_k(x, 4), (_m,), (P("x", "y"),)),
    "argmax": (lambda x: (jnp.argmax(x, 1), jnp.argmin(x), jnp.max(x, 0)), (_m,), (P("x", "y"),)),
    "cumulative": (
        lambda x: (jnp.cumsum(x, 1), jnp.cumprod(x, 0), lax.cummax(x), jnp.diff(x, axis=1)),
        (_m,),
        (P("x", "y"),),
    ),
    "quantiles": (lambda x: (jnp.median(x, 1), jnp.quantile(x, 0.3, axis=0)), (_m,), (P("x"),)),
    "search_sorted": (jnp.searchsorted, (f32(64), _v), (None, P("x"))),
    "histogram": (_histogram, (_m,), (P("x", "y"),)),
    "take_rows": (lambda t, i: t[i], (_m, i32(8, 4)), (P(None, "y"), P("x"))),
    "take_of_split_rows": (lambda t, i: t[i], (_m, i32(8, 4)), (P("x", "y"), None)),
    "take_pairs": (lambda t, i, j: t[i, j], (_m, i32(8), i32(8)), (P("y"), P("x"), P("x"))),
    "take_along": (
        lambda t, i: jnp.take_along_axis(t, i, axis=1),
        (_m, i32(16, 5)),
        (P("x", "y"), P("x")),
    ),
    "take_batched": (
        jax.vmap(lambda t, i: t[i]),
        (f32(8, 16, 4), i32(8, 6)),
        (P("x", None, "y"), P("x")),
    ),
    "gradient_of_take": (
        jax.grad(lambda t, i: jnp.sum(jnp.sin(t[i]))),
        (_m, i32(8, 4)),
        (P(None, "y"), P("x")),
    ),
    "scatter_add": (
        lambda t, i, u: t.at[i].add(u),
        (_m, i32(8), f32(8, 32)),
        (P(None, "y"), P("x"), None),
    ),
    "scatter_set_window": (
        lambda t, i, u: t.at[:, i].set(u),
        (_m, i32(4), f32(16, 4)),
        (P("x", "y"), None, None),
    ),
    "scatter_batched": (
        jax.vmap(lambda t, i, u: t.at[i].max(u)),
        (f32(8, 16, 4), i32(8, 6), f32(8, 6, 4)),
        (P("x", None, "y"), P("x"), None),
    ),
    "embedding_bag": (_embedding_bag, (_m, i32(24), i32(24)), (P(None, "y"), P("x"), None)),
    "graph_layer": (
        jax.value_and_grad(lambda n, e, w: jnp.sum(_graph_layer(n, e, w)), argnums=2),
        (_m, i32(40, 2), f32(32, 32)),
        (P("x", "y"), None, None),
    ),
    "nearest": (_nearest, (f32(8, 4), f32(32, 4)), (P("x"), P("y"))),
    "one_hot": (lambda i: jax.nn.one_hot(i, 32), (i32(8, 16),), (P("x", "y"),)),
    "pad_and_reverse": (
        lambda x: (
            jnp.pad(x, ((1, 2), (0, 4))),
            x[::-1],
            x[:, ::2],
            lax.pad(x, 0.0, [(0, 0, 1)] * 2),
        ),
        (_m,),
        (P("x", "y"),),
    ),
    "concatenate": (
        lambda a, b: (jnp.concatenate([a, b]), jnp.stack([a, b], 1), jnp.hstack([a, b])),
        (_m, _m),
        (P("x", "y"), None),
    ),
    "tile_and_repeat": (
        lambda x: (jnp.tile(x, (2, 3)), jnp.repeat(x, 2, axis=0), jnp.outer(x[0], x[1])),
        (_m,),
        (P("x", "y"),),
    ),
    "reshapes": (
        lambda x: (x.reshape(-1), x.reshape(4, 4, 32), x.reshape(8, 64), x.reshape(2, 8, 16, 2).mT),
        (_m,),
        (P("x", "y"),),
    ),
    "windows": (
        lambda x: (
            lax.reduce_window(x, 0.0, lax.add, (2, 1), (2, 1), "VALID"),
            lax.cumsum(x, axis=1, reverse=True),
            jax.grad(
                lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (2, 2), (2, 2), "SAME").sum()
            )(x),
        ),
        (_m,),
        (P("x", "y"),),
    ),
    "ring_buffer": (_ring_buffer, (_m, f32(4, 32), i32()), (P(None, "y"), P("x"), None)),
    "set_operations": (
        lambda x: (jnp.unique(x, size=8), jnp.nonzero(x > 3, size=8), jnp.bincount(x, length=8)),
        (i32(32),),
        (P("x"),),
    ),
    "triangles": (
        lambda x: (jnp.tril(x), jnp.diag(x[:, 0]), jnp.trace(x), jnp.triu_indices_from(x)),
        (_m,),
        (P("x", "y"),),
    ),
    "random": (
        lambda seed: [
            jax.random.normal(jax.random.key(seed), (16, 8)),
            jax.random.randint(jax.random.key(seed), (16,), 0, 9),
            jax.random.permutation(jax.random.key(seed), 16),
            jax.random.gamma(jax.random.key(seed), 2.0, (4,)),
        ],
        (jax.ShapeDtypeStruct((), jnp.uint32),),
        (None,),
    ),
    "random_bit_generator": (
        lambda key, x: lax.rng_bit_generator(key, (16, 32))[1] + x.astype(jnp.uint32),
        (jax.ShapeDtypeStruct((4,), jnp.uint32), _m),
        (None, P("x", "y")),
    ),
    "dropout": (
        jax.value_and_grad(lambda x, s: jnp.sum(_dropout(s, x))),
        (_m, jax.ShapeDtypeStruct((), jnp.uint32)),
        (P("x", "y"), None),
    ),
    "gumbel_top_k": (_gumbel_top_k, (_m,), (P("x"),)),
    "top_p": (_top_p, (_m,), (P("x"),)),
    "quantize": (_quantize, (_m,), (P("x", "y"),)),
    "complex_numbers": (
        lambda x, y: (
            jnp.angle(x + 1j * y),
            jnp.conj(x + 1j * y) @ (x.T + 0j),
            lax.complex(x, y).real,
        ),
        (_m, _m),
        (P("x", "y"), None),
    ),
    "special_functions": (
        lambda x: (
            [f(x) for f in (jax.scipy.special.erf, lax.lgamma, lax.digamma, lax.bessel_i0e)]
            + [
                f(x)
                for f in (
                    jnp.sinh,
                    jnp.arccos,
                    lax.erf_inv,
                    jnp.cbrt,
                    jnp.log1p,
                    jnp.expm1,
                    jnp.tan,
                )
            ]
            + [
                jnp.nextafter(x, 0.0),
                jnp.arctan2(x, 2.0),
                lax.clamp(0.0, x, 1.0),
                x % 2,
                jnp.sign(x),
            ]
            + [lax.reduce_precision(x, 5, 10), jnp.isfinite(x), jnp.floor(x), jnp.ceil(x), x**3]
        ),
        (_m,),
        (P("x", "y"),),
    ),
    "integer_bits": (
        lambda x: (x << 2 | x & 3 ^ ~x, lax.population_count(x), lax.clz(x), x // 3, x >> 1),
        (i32(16, 32),),
        (P("x", "y"),),
    ),
    "narrow_types": (
        lambda x: [
            x.astype(t).astype(jnp.float32)
            for t in (jnp.bfloat16, jnp.float16, jnp.float8_e4m3fn, jnp.int4, jnp.uint8, bool)
        ],
        (_m,),
        (P("x", "y"),),
    ),
    "reductions": (
        lambda x: (
            x.sum(0),
            x.prod(1),
            (x > 0).all(0),
            (x > 0).any(),
            x.std(1),
            jax.nn.logsumexp(x, 1),
        ),
        (_m,),
        (P("x", "y"),),
    ),
    "reduce_of_pairs": (
        lambda x, y: lax.reduce(
            (x, y), (0.0, 0.0), lambda a, b: (a[0] + b[0], jnp.maximum(a[1], b[1])), (1,)
        ),
        (_m, _m),
        (P("x", "y"), None),
    ),
    "large_constant": (
        lambda x: x + jnp.asarray([[i * j % 7 for i in range(32)] for j in range(16)], jnp.float32),
        (_m,),
        (P("x", "y"),),
    ),
}


@variants(**{name: {"name": name} for name in FUNCTIONS})
def indexing(name: str, on: AbstractMesh = MESH) -> jax.stages.Lowered:
    return lower(FUNCTIONS[name][0], on, *FUNCTIONS[name][1:])
