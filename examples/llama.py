"""Training steps of a Llama of 8 billion parameters, and of one with experts, for 64 chips.

python examples/llama.py DIR      writes the steps there: llama.mlir, with the batch kept at
                                  the embedding, that with twice the batch, and moe.mlir

The embedding's width is sharded over the axis that the batch is over, as people write it: what that
leads to is what docs/questions.md asks about.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P

WIDTH, HIDDEN, LAYERS, WORDS, HEADS = 4096, 14336, 32, 128256, 32
SEQUENCES, LENGTH, EXPERTS = 128, 4096, 8
BATCH = P(("fsdp", "expert"))


def norm(x: jax.Array) -> jax.Array:
    """``x`` with rows of the same length."""
    wide = x.astype(jnp.float32)
    return (wide * jax.lax.rsqrt(jnp.mean(wide * wide, -1, keepdims=True) + 1e-6)).astype(x.dtype)


def attention(x: jax.Array, w: Any) -> jax.Array:
    """Causal attention with as many keys as queries."""
    rows, length, _ = x.shape
    q, k, v = ((x @ w[name]).reshape(rows, length, HEADS, -1) for name in ("q", "k", "v"))
    scores = jnp.einsum("bthd,bshd->bhts", q, k) * q.shape[-1] ** -0.5
    scores = jnp.where(jnp.tril(jnp.ones((length, length), bool)), scores, -1e9)
    mixed = jnp.einsum("bhts,bshd->bthd", jax.nn.softmax(scores), v)
    return mixed.reshape(rows, length, -1) @ w["o"]


def mlp(x: jax.Array, w: Any) -> jax.Array:
    """A gated layer."""
    return (jax.nn.silu(x @ w["gate"]) * (x @ w["up"])) @ w["down"]


def experts(x: jax.Array, w: Any) -> jax.Array:
    """Gated layers, each for the tokens that are routed to it, two of them for each token."""
    gates, chosen = jax.lax.top_k(jax.nn.softmax(x @ w["route"]), 2)
    room = 2 * x.shape[1] // EXPERTS
    routed = jax.nn.one_hot(chosen, EXPERTS, dtype=x.dtype).sum(2)
    place = jnp.cumsum(routed, 1) * routed - 1
    sent = jax.nn.one_hot(place, room, dtype=x.dtype)
    there = jnp.einsum("btec,btd->ebcd", sent, x)
    there = jax.lax.with_sharding_constraint(there, P("expert", "fsdp"))
    hidden = jax.nn.silu(jnp.einsum("ebcd,edf->ebcf", there, w["gate"]))
    back = jnp.einsum("ebcf,efd->ebcd", hidden, w["down"])
    return jnp.einsum("btec,ebcd->btd", sent, back) * gates.sum(-1, keepdims=True)


def loss(params: Any, tokens: jax.Array, feed: Callable[..., jax.Array], keep: Any) -> jax.Array:
    """Cross entropy of the next token."""
    x = params["embed"][tokens]
    if keep is not None:
        x = jax.lax.with_sharding_constraint(x, keep)

    @jax.checkpoint
    def layer(x: jax.Array, w: Any) -> tuple[jax.Array, None]:
        x = x + attention(norm(x), w)
        return x + feed(norm(x), w), None

    x, _ = jax.lax.scan(layer, x, params["layers"])
    logits = jax.nn.log_softmax((norm(x) @ params["head"]).astype(jnp.float32))
    return -jnp.take_along_axis(logits[:, :-1], tokens[:, 1:, None], -1).mean()


def build(
    sequences: int = SEQUENCES,
    keep: Any = None,
    mesh: Mapping[str, int] | None = None,
    *,
    is_routed: bool = False,
) -> tuple[Any, tuple[Any, Any], Mapping[str, Any]]:
    """Return the step, its arguments, and how they are sharded."""
    mesh = mesh or {"fsdp": 16, "tensor": 4}
    feed, batch = (experts, BATCH) if is_routed else (mlp, P("fsdp"))
    into, out = ("fsdp", "tensor"), ("tensor", "fsdp")
    shapes: dict[str, tuple[tuple[int, ...], tuple[str | None, ...]]] = {
        **dict.fromkeys(("q", "k", "v"), ((WIDTH, WIDTH), into)),
        "o": ((WIDTH, WIDTH), out),
    }
    if is_routed:
        shapes["route"] = (WIDTH, EXPERTS), (None, None)
        shapes["gate"] = (EXPERTS, WIDTH, HIDDEN), ("expert", "fsdp", "tensor")
        shapes["down"] = (EXPERTS, HIDDEN, WIDTH), ("expert", "tensor", "fsdp")
    else:
        shapes |= dict.fromkeys(("gate", "up"), ((WIDTH, HIDDEN), into))
        shapes["down"] = (HIDDEN, WIDTH), out

    def of(*sizes: int) -> jax.ShapeDtypeStruct:
        return jax.ShapeDtypeStruct(sizes, jnp.bfloat16)

    params = {
        "embed": of(WORDS, WIDTH),
        "head": of(WIDTH, WORDS),
        "layers": {name: of(LAYERS, *sizes) for name, (sizes, _) in shapes.items()},
    }
    specs = {
        "embed": P("tensor", "fsdp"),
        "head": P("fsdp", "tensor"),
        "layers": {name: P(None, *axes) for name, (_, axes) in shapes.items()},
    }

    def step(params: Any, tokens: jax.Array) -> tuple[Any, jax.Array]:
        value, grads = jax.value_and_grad(loss)(params, tokens, feed, keep)
        return jax.tree.map(lambda p, g: p - 1e-4 * g, params, grads), value

    tokens = jax.ShapeDtypeStruct((sequences, LENGTH), jnp.int32)
    options = {"mesh": mesh, "in_shardings": (specs, batch), "donate_argnums": 0}
    return step, (params, tokens), options


def main(folder: str) -> None:
    """Write the programs to ``folder``."""
    import shardcore.jax

    # One frame for each op, named by file only: a program must not depend on where it was made.
    jax.config.update("jax_include_full_tracebacks_in_locations", False)
    jax.config.update("jax_hlo_source_file_canonicalization_regex", ".*/")
    routed = {"fsdp": 4, "expert": 8, "tensor": 2}
    programs = {
        "llama": build(),
        "llama_2x": build(2 * SEQUENCES, keep=P("fsdp")),
        "llama_kept": build(keep=P("fsdp")),
        "moe": build(keep=BATCH, mesh=routed, is_routed=True),
    }
    for name, (function, arguments, options) in programs.items():
        lowered = shardcore.jax.lower(function, *arguments, **options)
        Path(folder, f"{name}.mlir").write_text(str(lowered.module), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
