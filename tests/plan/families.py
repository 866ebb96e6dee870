"""Programs unlike those of `tests.shardy.xla.models`, with the usual annotations of each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from tests.shardy.programs.registry import f32, i32

Family = tuple[Callable[..., Any], tuple[Any, ...], int | None, dict[str, str]]
"""A function, its arguments, which of them is donated, and annotations over `d` and `m`."""


def momentum(loss: Callable[..., jax.Array]) -> Callable[..., Any]:
    """A step `(state, *batch) -> (state, loss)`."""

    def step(state: Any, *batch: Any) -> Any:
        value, grads = jax.value_and_grad(loss)(state["params"], *batch)
        m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, state["m"], grads)
        params = jax.tree.map(lambda p, m: p - 0.01 * m, state["params"], m)
        return {"params": params, "m": m}, value

    return step


def state(params: Any) -> Any:
    return {"params": params, "m": params}


def norm(x: jax.Array) -> jax.Array:
    return x * jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6)


def mixture() -> Family:
    """Each token goes to the best two of twelve experts."""
    experts, width, inner = 12, 768, 1536

    def loss(params: Any, x: jax.Array, wanted: jax.Array) -> jax.Array:
        for layer in params["layers"]:
            h = norm(x)
            gates = jax.nn.softmax(jnp.einsum("gsd,de->gse", h, layer["gate"]))
            weights, index = jax.lax.top_k(gates, 2)
            chosen = jax.nn.one_hot(index, experts)
            flat = chosen.reshape(h.shape[0], -1, experts)
            place = (jnp.cumsum(flat, 1).reshape(chosen.shape) - 1) * chosen
            slots = jax.nn.one_hot(place.astype(jnp.int32), 4 * h.shape[1] // experts)
            back = jnp.einsum("gsk,gskec->gsec", weights, slots * chosen[..., None])
            sent = jnp.einsum("gsec,gsd->egcd", (back > 0).astype(h.dtype), h)
            hidden = jax.nn.silu(jnp.einsum("egcd,edf->egcf", sent, layer["up"]))
            out = jnp.einsum("egcf,efd->egcd", hidden, layer["down"])
            x = x + jnp.einsum("gsec,egcd->gsd", back, out)
        return jnp.mean((x - wanted) ** 2)

    layer = {
        "gate": f32(width, experts),
        "up": f32(experts, width, inner),
        "down": f32(experts, inner, width),
    }
    x = f32(48, 240, width)
    annotations = {
        "batch/*": "P('d')",
        "state/**/up": "P('d', None, 'm')",
        "state/**/down": "P('d', 'm')",
    }
    return momentum(loss), (state({"layers": [layer, layer]}), x, x), 0, annotations


def recurrence() -> Family:
    """Layers of a selective state space: a scan over layers, each a scan over time."""
    depth, width, inner, size, vocabulary = 3, 768, 1536, 16, 6144

    def layer(x: jax.Array, p: Any) -> tuple[jax.Array, None]:
        u, gate = jnp.split(norm(x) @ p["in"], 2, -1)
        rate, decay = jax.nn.softplus(u @ p["rate"]), -jnp.exp(p["decay"])

        def step(s: jax.Array, at: Any) -> tuple[jax.Array, jax.Array]:
            u, rate, enter, leave = at
            kept = s * jnp.exp(rate[..., None] * decay)
            s = kept + (rate * u)[..., None] * enter[:, None, :]
            return s, jnp.einsum("bdn,bn->bd", s, leave)

        turns = [jnp.swapaxes(t, 0, 1) for t in (u, rate, u @ p["enter"], u @ p["leave"])]
        _, y = jax.lax.scan(step, jnp.zeros((x.shape[0], inner, size)), tuple(turns))
        return x + (jnp.swapaxes(y, 0, 1) * jax.nn.silu(gate)) @ p["out"], None

    def loss(params: Any, tokens: jax.Array, wanted: jax.Array) -> jax.Array:
        x, _ = jax.lax.scan(layer, params["table"][tokens], params["layers"])
        scores = jax.nn.log_softmax(x @ params["head"])
        return -jnp.mean(jnp.take_along_axis(scores, wanted[..., None], -1))

    layers = {
        "in": f32(depth, width, 2 * inner),
        "rate": f32(depth, inner, inner),
        "decay": f32(depth, inner, size),
        "enter": f32(depth, inner, size),
        "leave": f32(depth, inner, size),
        "out": f32(depth, inner, width),
    }
    params = {"table": f32(vocabulary, width), "head": f32(width, vocabulary), "layers": layers}
    tokens = i32(48, 96)
    annotations = {
        "batch/*": "P('d')",
        **dict.fromkeys(("state/**/in", "state/**/rate"), "P(None, 'd', 'm')"),
        "state/**/out": "P(None, 'm', 'd')",
        "state/**/table": "P('m', 'd')",
        "state/**/head": "P('d', 'm')",
        **{f"state/**/{name}": "P(None, 'm')" for name in ("decay", "enter", "leave")},
    }
    return momentum(loss), (state(params), tokens, tokens), 0, annotations


def hourglass() -> Family:
    """Convolutions down to a quarter and up again, with skips; images are cut into rows."""

    def convolved(x: jax.Array, kernel: jax.Array, stride: int = 1) -> jax.Array:
        dims = ("NHWC", "HWIO", "NHWC")
        strides = (stride, stride)
        return jax.lax.conv_general_dilated(x, kernel, strides, "SAME", dimension_numbers=dims)

    def loss(params: Any, x: jax.Array, wanted: jax.Array) -> jax.Array:
        h, skips = convolved(x, params["stem"]), []
        for level in params["down"]:
            skips.append(jax.nn.silu(convolved(h, level["same"])))
            h = jax.nn.silu(convolved(skips[-1], level["half"], 2))
        h = jax.nn.silu(convolved(h, params["middle"]))
        for kernel, skip in zip(params["up"], reversed(skips), strict=True):
            h = jax.image.resize(h, (*skip.shape[:3], h.shape[3]), "nearest")
            h = jax.nn.silu(convolved(jnp.concatenate([h, skip], -1), kernel))
        return jnp.mean((convolved(h, params["head"]) - wanted) ** 2)

    params = {
        "stem": f32(3, 3, 3, 48),
        "down": [{"same": f32(3, 3, c, c), "half": f32(3, 3, c, 2 * c)} for c in (48, 96)],
        "middle": f32(3, 3, 192, 192),
        "up": [f32(3, 3, 288, 96), f32(3, 3, 144, 48)],
        "head": f32(3, 3, 48, 3),
    }
    images = f32(48, 96, 96, 3)
    return momentum(loss), (state(params), images, images), 0, {"batch/*": "P('d', 'm')"}


def tables() -> Family:
    """Six tables of embeddings, products of all pairs, and two small networks."""

    def loss(params: Any, dense: jax.Array, ids: jax.Array, wanted: jax.Array) -> jax.Array:
        for w in params["bottom"]:
            dense = jax.nn.relu(dense @ w)
        found = [table[ids[:, place]] for place, table in enumerate(params["tables"])]
        all_of = jnp.stack([dense, *found], 1)
        pairs = jnp.einsum("bid,bjd->bij", all_of, all_of).reshape(all_of.shape[0], -1)
        top = jnp.concatenate([dense, pairs], -1)
        for w in params["top"]:
            top = jax.nn.relu(top @ w)
        return jnp.mean((top[:, 0] - wanted) ** 2)

    params = {
        "tables": [f32(96000, 96)] * 6,
        "bottom": [f32(48, 384), f32(384, 96)],
        "top": [f32(96 + 49, 768), f32(768, 384), f32(384, 1)],
    }
    batch = (f32(9600, 48), i32(9600, 6), f32(9600))
    annotations = dict.fromkeys(("batch/*", "state/*/tables/*"), "P(('d', 'm'))")
    return momentum(loss), (state(params), *batch), 0, annotations


def adapters() -> Family:
    """Four layers that stay as they are, with small factors that are trained."""
    width, rank = 1536, 12

    def loss(small: Any, base: Any, x: jax.Array, wanted: jax.Array) -> jax.Array:
        for a, b in zip(small, base, strict=True):
            h = norm(x)
            h = jax.nn.gelu(h @ b["up"] + (h @ a["up in"]) @ a["up out"])
            x = x + h @ b["down"] + (h @ a["down in"]) @ a["down out"]
        return jnp.mean((x - wanted) ** 2)

    def step(small: Any, base: Any, x: jax.Array, wanted: jax.Array) -> Any:
        grads = jax.grad(loss)(small, base, x, wanted)
        return jax.tree.map(lambda p, g: p - 0.1 * g, small, grads)

    factors = {
        "up in": f32(width, rank),
        "up out": f32(rank, 4 * width),
        "down in": f32(4 * width, rank),
        "down out": f32(rank, width),
    }
    layer = {"up": f32(width, 4 * width), "down": f32(4 * width, width)}
    x = f32(48, 192, width)
    annotations = {
        **dict.fromkeys(("x", "wanted"), "P('d')"),
        "base/*/up": "P('d', 'm')",
        "base/*/down": "P('m', 'd')",
    }
    return step, ([factors] * 4, [layer] * 4, x, x), None, annotations


FAMILIES = {each.__name__: each for each in (mixture, recurrence, hourglass, tables, adapters)}
