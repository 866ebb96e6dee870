"""JAX programs that take some 1 to 100 ms on a few cores: what a measured hardware file is held
against. None of them is among the ops that are measured.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

F32, BF16, I32 = jnp.float32, jnp.bfloat16, jnp.int32
Shape = jax.ShapeDtypeStruct
Program = tuple[Callable[..., Any], tuple[Any, ...]]
"""A function, and the shapes of its arguments; integers are indices below 1000."""


def f32(*sizes: int) -> Any:
    return Shape(sizes, F32)


def norm(x: Any, scale: Any) -> Any:
    centred = x - x.mean(-1, keepdims=True)
    return centred * jax.lax.rsqrt((centred * centred).mean(-1, keepdims=True) + 1e-5) * scale


def heads(q: Any, k: Any, v: Any) -> Any:
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) * q.shape[-1] ** -0.5
    seen = jnp.tril(jnp.ones(scores.shape[-2:], bool))
    shares = jax.nn.softmax(jnp.where(seen, scores, -1e9).astype(F32), -1).astype(q.dtype)
    return jnp.einsum("bhqk,bkhd->bqhd", shares, v)


def block(x: Any, w: Any) -> Any:
    h = norm(x, w["n1"])
    q, k, v = (jnp.einsum("bsd,dhk->bshk", h, w[name]) for name in ("q", "k", "v"))
    x = x + jnp.einsum("bshk,hkd->bsd", heads(q, k, v), w["o"])
    return x + jax.nn.gelu(norm(x, w["n2"]) @ w["up"]) @ w["down"]


def block_weights(dim: int, count: int, ffn: int, *layers: int) -> dict[str, Any]:
    each = dim // count
    qkv = {name: f32(*layers, dim, count, each) for name in ("q", "k", "v")}
    norms = {"n1": f32(*layers, dim), "n2": f32(*layers, dim)}
    out = {"o": f32(*layers, count, each, dim)}
    return {**qkv, **norms, **out, "up": f32(*layers, dim, ffn), "down": f32(*layers, ffn, dim)}


def sgd(loss: Callable[..., Any]) -> Callable[..., Any]:
    def step(params: Any, *batch: Any) -> Any:
        value, grads = jax.value_and_grad(loss)(params, *batch)
        return jax.tree.map(lambda p, g: p - 0.01 * g, params, grads), value

    return step


def adam(loss: Callable[..., Any]) -> Callable[..., Any]:
    def step(params: Any, first: Any, second: Any, *batch: Any) -> Any:
        value, grads = jax.value_and_grad(loss)(params, *batch)
        first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, grads)
        second = jax.tree.map(lambda v, g: 0.99 * v + 0.01 * g * g, second, grads)
        params = jax.tree.map(
            lambda p, m, v: p - 1e-3 * m / (jnp.sqrt(v) + 1e-8), params, first, second
        )
        return params, first, second, value

    return step


def layers_of(x: Any, weights: Any) -> Any:
    for w in weights[:-1]:
        x = jax.nn.relu(x @ w)
    return x @ weights[-1]


def squares(weights: Any, x: Any, y: Any) -> Any:
    return jnp.mean((layers_of(x, weights) - y) ** 2)


def mlp() -> Program:
    return layers_of, (f32(256, 1024), [f32(1024, 4096), f32(4096, 1024), f32(1024, 128)])


def mlp_bf16() -> Program:
    x, *weights = (Shape(s, BF16) for s in ((512, 768), (768, 2048), (2048, 768)))
    return layers_of, (x, weights)


def mlp_sgd() -> Program:
    weights = [f32(512, 1024), f32(1024, 1024), f32(1024, 512)]
    return sgd(squares), (weights, f32(512, 512), f32(512, 512))


def mlp_adam() -> Program:
    weights = [f32(256, 1024), f32(1024, 1024), f32(1024, 64)]
    return adam(squares), (weights, weights, weights, f32(128, 256), f32(128, 64))


def attention() -> Program:
    x = f32(2, 512, 8, 64)
    return heads, (x, x, x)


def attention_gradient() -> Program:
    x = f32(1, 384, 8, 64)
    return jax.grad(lambda *qkv: (heads(*qkv) ** 2).sum(), (0, 1, 2)), (x, x, x)


def convolved(x: Any, filters: Any) -> Any:
    for stride, f in zip((1, 2, 2), filters, strict=True):
        x = jax.lax.conv_general_dilated(
            x, f, (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )
        x = jax.nn.relu(x)
    return x.mean((1, 2))


def convolutions() -> Program:
    return convolved, (
        f32(8, 56, 56, 16),
        [f32(3, 3, 16, 32), f32(3, 3, 32, 64), f32(3, 3, 64, 128)],
    )


def convolutions_sgd() -> Program:
    filters = [f32(3, 3, 8, 32), f32(3, 3, 32, 32), f32(3, 3, 32, 64)]
    return sgd(lambda w, x: (convolved(x, w) ** 2).mean()), (filters, f32(8, 32, 32, 8))


def recurrent() -> Program:
    def run(x: Any, w: Any, u: Any) -> Any:
        def cell(h: Any, now: Any) -> Any:
            h = jnp.tanh(h @ w + now @ u)
            return h, h.mean(-1)

        return jax.lax.scan(cell, jnp.zeros((x.shape[1], w.shape[0])), x)

    return run, (f32(64, 64, 256), f32(512, 512), f32(256, 512))


def lstm_sgd() -> Program:
    def loss(w: Any, x: Any) -> Any:
        def cell(carry: Any, now: Any) -> Any:
            h, c = carry
            i, f, g, o = jnp.split(jnp.concatenate([h, now], -1) @ w, 4, -1)
            c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
            h = jax.nn.sigmoid(o) * jnp.tanh(c)
            return (h, c), None

        zero = jnp.zeros((x.shape[1], w.shape[1] // 4))
        return (jax.lax.scan(cell, (zero, zero), x)[0][0] ** 2).mean()

    return sgd(loss), (f32(384, 1024), f32(48, 64, 128))


def softmax() -> Program:
    return lambda x: jax.nn.softmax(x * 0.5, -1), (f32(4096, 1536),)


def layer_norm() -> Program:
    return lambda x, s: norm(norm(x, s) + x, s), (f32(6144, 768), f32(768))


def pooled_embedding() -> Program:
    def run(table: Any, ids: Any, out: Any) -> Any:
        return jnp.tanh(table[ids].mean(1)) @ out

    return run, (f32(20000, 256), Shape((384, 64), I32), f32(256, 1000))


def embedding_sgd() -> Program:
    def loss(params: Any, ids: Any, labels: Any) -> Any:
        table, out = params
        logits = table[ids].mean(1) @ out
        return -jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], 1).mean()

    return sgd(loss), ((f32(4000, 256), f32(256, 2000)), Shape((256, 32), I32), Shape((256,), I32))


def sorted_rows() -> Program:
    return lambda x: jnp.sort(x * x, -1)[:, ::2], (f32(256, 500),)


def ranks() -> Program:
    return lambda x: jnp.argsort(jnp.sin(x)), (f32(60000),)


def transformer() -> Program:
    return block, (f32(4, 256, 384), block_weights(384, 6, 1536))


def transformer_sgd() -> Program:
    def loss(params: Any, ids: Any, targets: Any) -> Any:
        x = params["table"][ids]
        x, _ = jax.lax.scan(lambda x, w: (block(x, w), None), x, params["layers"])
        logits = x @ params["table"].T
        picked = jnp.take_along_axis(logits, targets[..., None], -1)[..., 0]
        return (jax.nn.logsumexp(logits, -1) - picked).mean()

    params = {"table": f32(1000, 256), "layers": block_weights(256, 4, 1024, 3)}
    ids = Shape((4, 128), I32)
    return sgd(loss), (params, ids, ids)


def k_means() -> Program:
    def step(points: Any, centres: Any) -> Any:
        far = (points**2).sum(1)[:, None] - 2 * points @ centres.T + (centres**2).sum(1)
        nearest = far.argmin(1)
        sums = jax.ops.segment_sum(points, nearest, centres.shape[0])
        count = jax.ops.segment_sum(jnp.ones(points.shape[0]), nearest, centres.shape[0])
        return sums / jnp.maximum(count, 1)[:, None]

    return step, (f32(16384, 64), f32(128, 64))


def power_iteration() -> Program:
    def run(a: Any, x: Any) -> Any:
        def trip(_: Any, x: Any) -> Any:
            y = a @ x
            return y * jax.lax.rsqrt((y * y).sum())

        return jax.lax.fori_loop(0, 100, trip, x)

    return run, (f32(768, 768), f32(768))


PROGRAMS: dict[str, Callable[[], Program]] = {
    each.__name__: each
    for each in (
        mlp,
        mlp_bf16,
        mlp_sgd,
        mlp_adam,
        attention,
        attention_gradient,
        convolutions,
        convolutions_sgd,
        recurrent,
        lstm_sgd,
        softmax,
        layer_norm,
        pooled_embedding,
        embedding_sgd,
        sorted_rows,
        ranks,
        transformer,
        transformer_sgd,
        k_means,
        power_iteration,
    )
}
