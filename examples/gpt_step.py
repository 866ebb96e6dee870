"""Lowers one training step of a GPT to StableHLO with a few sharding annotations.

The step is what a training loop jits: forward in bfloat16, cross-entropy, backward, gradient
clipping, Adam with weight decay and a warm-up schedule, layers unrolled. The annotations are those
a user writes: shardings of the parameters, of the Adam moments and of the batch, and two
constraints inside every block. Nothing is allocated or compiled, so any machine can lower any size.

    python examples/gpt_step.py                        writes examples/gpt_step.mlir
    python examples/gpt_step.py --layers 96 -o big.mlir --no-locations
"""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

Tree = Any


@dataclasses.dataclass(frozen=True)
class Config:
    """Sizes of the model and of the batch; the defaults are GPT-2 small."""

    layers: int = 12
    width: int = 768
    heads: int = 12
    vocab: int = 50304
    context: int = 1024
    batch: int = 64


@dataclasses.dataclass(frozen=True)
class Plan:
    """Which mesh axes split what: the names a block's annotations are made of."""

    batch: tuple[str, ...] = ("data", "fsdp")
    fsdp: str | None = "fsdp"
    tensor: str | None = "tensor"
    constrain: bool = True


def abstract_mesh(**axes: int) -> AbstractMesh:
    """A mesh without devices; its axes are left to the propagation."""
    return AbstractMesh(tuple(axes.values()), tuple(axes), axis_types=(AxisType.Auto,) * len(axes))


# Model


def layer_norm(x: jax.Array, p: Tree) -> jax.Array:
    """Normalizes the last dim in float32."""
    x32 = x.astype(jnp.float32)
    mean = jnp.mean(x32, axis=-1, keepdims=True)
    var = jnp.var(x32, axis=-1, keepdims=True)
    y = (x32 - mean) * jax.lax.rsqrt(var + 1e-5)
    return (y * p["scale"] + p["bias"]).astype(x.dtype)


def attention(x: jax.Array, p: Tree, heads: int) -> jax.Array:
    """Causal self-attention with one fused projection to queries, keys and values."""
    batch, time, width = x.shape
    q, k, v = jnp.split(x @ p["qkv"].astype(x.dtype) + p["qkv_bias"].astype(x.dtype), 3, axis=-1)
    q, k, v = (y.reshape(batch, time, heads, width // heads) for y in (q, k, v))
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) * (width // heads) ** -0.5
    causal = jnp.tril(jnp.ones((time, time), bool))
    scores = jnp.where(causal, scores.astype(jnp.float32), -1e30)
    weights = jax.nn.softmax(scores, axis=-1).astype(x.dtype)
    y = jnp.einsum("bhqk,bkhd->bqhd", weights, v).reshape(batch, time, width)
    return y @ p["out"].astype(x.dtype) + p["out_bias"].astype(x.dtype)


def mlp(x: jax.Array, p: Tree) -> jax.Array:
    """Two products with a GELU between them."""
    h = jax.nn.gelu(x @ p["up"].astype(x.dtype) + p["up_bias"].astype(x.dtype))
    return h @ p["down"].astype(x.dtype) + p["down_bias"].astype(x.dtype)


def block(x: jax.Array, p: Tree, heads: int, mesh: AbstractMesh, plan: Plan) -> jax.Array:
    """One transformer layer, its residual stream pinned twice."""
    x = x + attention(layer_norm(x, p["attention_norm"]), p["attention"], heads)
    x = constrain(x, mesh, plan)
    x = x + mlp(layer_norm(x, p["mlp_norm"]), p["mlp"])
    return constrain(x, mesh, plan)


def constrain(x: jax.Array, mesh: AbstractMesh, plan: Plan) -> jax.Array:
    """Pins an activation to be split by batch and by nothing else."""
    if not plan.constrain:
        return x
    return jax.lax.with_sharding_constraint(x, NamedSharding(mesh, P(plan.batch, None, None)))


def embed(params: Tree, tokens: jax.Array) -> jax.Array:
    """Token and position embeddings, in the type the model computes in."""
    positions = params["positions"][: tokens.shape[1]]
    return (params["embedding"][tokens] + positions).astype(jnp.bfloat16)


def cross_entropy(params: Tree, x: jax.Array, targets: jax.Array) -> jax.Array:
    """Mean loss of the next token; the embedding is the output projection too."""
    x = layer_norm(x, params["final_norm"])
    logits = jnp.einsum("btd,vd->btv", x, params["embedding"].astype(x.dtype)).astype(jnp.float32)
    picked = jnp.take_along_axis(logits, targets[..., None], axis=-1)[..., 0]
    return jnp.mean(jax.nn.logsumexp(logits, axis=-1) - picked)


def loss(params: Tree, batch: Tree, heads: int, mesh: AbstractMesh, plan: Plan) -> jax.Array:
    """The whole forward pass."""
    x = embed(params, batch["tokens"])
    for p in params["blocks"]:
        x = block(x, p, heads, mesh, plan)
    return cross_entropy(params, x, batch["targets"])


# Optimizer


def clip(grads: Tree, norm: float) -> tuple[Tree, jax.Array]:
    """Scales gradients to a global norm of at most `norm`; returns the norm too."""
    total = jnp.sqrt(sum(jnp.sum(jnp.square(g)) for g in jax.tree.leaves(grads)))
    scale = jnp.minimum(1.0, norm / (total + 1e-6))
    return jax.tree.map(lambda g: g * scale, grads), total


def learning_rate(step: jax.Array, peak: float = 6e-4, warm_up: int = 2000) -> jax.Array:
    """Linear warm-up, then cosine decay."""
    s = step.astype(jnp.float32) + 1
    decay = 0.5 * (1 + jnp.cos(jnp.pi * jnp.minimum(1.0, s / 500_000)))
    return peak * jnp.where(s < warm_up, s / warm_up, decay)


def adam(params: Tree, grads: Tree, state: Tree, decay: float = 0.1) -> tuple[Tree, Tree]:
    """One update with decoupled weight decay on matrices."""
    b1, b2 = 0.9, 0.95
    step = state["step"]
    t = step.astype(jnp.float32) + 1
    correct1, correct2 = 1 / (1 - b1**t), 1 / (1 - b2**t)
    m = jax.tree.map(lambda m, g: b1 * m + (1 - b1) * g, state["m"], grads)
    v = jax.tree.map(lambda v, g: b2 * v + (1 - b2) * g * g, state["v"], grads)
    lr = learning_rate(step)

    def update(p: jax.Array, m: jax.Array, v: jax.Array) -> jax.Array:
        direction = m * correct1 / (jnp.sqrt(v * correct2) + 1e-8)
        return p - lr * (direction + (decay * p if p.ndim > 1 else 0))

    return jax.tree.map(update, params, m, v), {"m": m, "v": v, "step": step + 1}


# Shapes and shardings


def f32(*shape: int) -> jax.ShapeDtypeStruct:
    """An abstract float32 array."""
    return jax.ShapeDtypeStruct(shape, jnp.float32)


def block_shapes(width: int) -> Tree:
    """Parameters of one layer."""
    norm = {"scale": f32(width), "bias": f32(width)}
    return {
        "attention_norm": norm,
        "attention": {
            "qkv": f32(width, 3 * width),
            "qkv_bias": f32(3 * width),
            "out": f32(width, width),
            "out_bias": f32(width),
        },
        "mlp_norm": norm,
        "mlp": {
            "up": f32(width, 4 * width),
            "up_bias": f32(4 * width),
            "down": f32(4 * width, width),
            "down_bias": f32(width),
        },
    }


def block_specs(plan: Plan) -> Tree:
    """Megatron's split over `tensor`, the other dim over `fsdp`."""
    norm = {"scale": P(), "bias": P()}
    return {
        "attention_norm": norm,
        "attention": {
            "qkv": P(plan.fsdp, plan.tensor),
            "qkv_bias": P(plan.tensor),
            "out": P(plan.tensor, plan.fsdp),
            "out_bias": P(),
        },
        "mlp_norm": norm,
        "mlp": {
            "up": P(plan.fsdp, plan.tensor),
            "up_bias": P(plan.tensor),
            "down": P(plan.tensor, plan.fsdp),
            "down_bias": P(),
        },
    }


def shapes(config: Config) -> Tree:
    """Parameters of the model."""
    return {
        "embedding": f32(config.vocab, config.width),
        "positions": f32(config.context, config.width),
        "blocks": [block_shapes(config.width)] * config.layers,
        "final_norm": {"scale": f32(config.width), "bias": f32(config.width)},
    }


def specs(config: Config, plan: Plan) -> Tree:
    """Partition specs of the parameters."""
    return {
        "embedding": P(plan.tensor, plan.fsdp),
        "positions": P(None, plan.fsdp),
        "blocks": [block_specs(plan)] * config.layers,
        "final_norm": {"scale": P(), "bias": P()},
    }


def train_state(params: Tree, step: Any) -> Tree:
    """The state of a training loop, or one leaf of anything for each of its leaves."""
    return {"params": params, "adam": {"m": params, "v": params, "step": step}}


# Lowering


def inputs(config: Config) -> tuple[Tree, Tree]:
    """Shapes of the two arguments of the step: the state and the batch."""
    tokens = jax.ShapeDtypeStruct((config.batch, config.context), jnp.int32)
    state = train_state(shapes(config), jax.ShapeDtypeStruct((), jnp.int32))
    return state, {"tokens": tokens, "targets": tokens}


def input_specs(config: Config, plan: Plan) -> tuple[Tree, Tree]:
    """Partition specs of the same two arguments."""
    batch = {"tokens": P(plan.batch), "targets": P(plan.batch)}
    return train_state(specs(config, plan), P()), batch


def train_step(config: Config, mesh: AbstractMesh, plan: Plan) -> Callable[[Tree, Tree], Any]:
    """The function to jit: `(state, batch) -> (state, metrics)`."""

    def step(state: Tree, batch: Tree) -> tuple[Tree, Tree]:
        value, grads = jax.value_and_grad(loss)(state["params"], batch, config.heads, mesh, plan)
        grads, norm = clip(grads, 1.0)
        params, moments = adam(state["params"], grads, state["adam"])
        return {"params": params, "adam": moments}, {"loss": value, "norm": norm}

    return step


def lower(config: Config, mesh: AbstractMesh, plan: Plan, locations: bool = False) -> str:
    """StableHLO text of the step, its state donated."""
    state, batch = jax.tree.map(
        lambda spec: NamedSharding(mesh, spec),
        input_specs(config, plan),
        is_leaf=lambda leaf: isinstance(leaf, P),
    )
    step = jax.jit(
        train_step(config, mesh, plan),
        in_shardings=(state, batch),
        out_shardings=(state, None),
        donate_argnums=0,
    )
    lowered = step.trace(*inputs(config)).lower(lowering_platforms=("tpu",))
    return lowered.as_text(debug_info=locations)


def main(arguments: Sequence[str] | None = None) -> None:
    """Writes the program that the command line describes."""
    parser = argparse.ArgumentParser(description="Lower a GPT training step to StableHLO.")
    parser.add_argument("--layers", type=int, default=Config.layers)
    parser.add_argument("--batch", type=int, default=Config.batch)
    parser.add_argument("--mesh", default="data=2,fsdp=4,tensor=4", help="axis=size,...")
    parser.add_argument("--no-locations", action="store_true", help="leave source locations out")
    parser.add_argument("-o", "--output", type=Path, default=Path(__file__).with_suffix(".mlir"))
    options = parser.parse_args(arguments)

    # One frame for each op, named by file only: a program must not depend on where it was made.
    jax.config.update("jax_include_full_tracebacks_in_locations", False)
    jax.config.update("jax_hlo_source_file_canonicalization_regex", ".*/")
    axes = dict(axis.split("=") for axis in options.mesh.split(","))
    mesh = abstract_mesh(**{name: int(size) for name, size in axes.items()})
    config = Config(layers=options.layers, batch=options.batch)
    options.output.write_text(lower(config, mesh, Plan(), locations=not options.no_locations))


if __name__ == "__main__":
    main()
