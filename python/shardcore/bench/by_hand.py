"""A training step with explicit collectives, as in Megatron-LM, with pipeline stages.

Each device holds a shard of the float32 parameters and their moments, gathers them in bfloat16 once
per step, and reduce-scatters their gradients once. A stage runs all of its layers in each tick of a
scan, and then sends to the next stage. With ``interleave`` chunks of layers per stage, a stage
waits only a part of a tick for the pipeline to fill, and sends correspondingly more often. So the
program has the work, the sends and the idle ticks of an interleaved schedule, one after the other,
but not the order of its chunks, nor its memory. Every stage computes as much as the slowest one.
"""

from __future__ import annotations

import functools
import math
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

import shardcore.jax
from shardcore.bench import cross_entropy
from shardcore.bench.decoder import (
    fused,
    layers,
    logits_weight,
    narrow,
    norm,
    table,
    with_positions,
)
from shardcore.bench.parameters import PRODUCTS, Parameter, named, shapes
from shardcore.bench.placement import ByHand, Weights, entries, gather, spread
from shardcore.bench.products import NARROW, scaled
from shardcore.bench.step import adam
from shardcore.bench.training import Training


def stage_layers(run: Training) -> tuple[dict[int, int], bool]:
    """Return the number of layers of each kind per stage, and whether the last stage computes
    logits too.

    If the layers do not divide evenly, embeddings and logits count as one layer each, as when a
    model with 126 layers runs on 8 stages. All layers of a pipeline are of the most frequent kind.
    """
    stages = run.sizes.get("stage", 1)
    kinds = run.model.kinds
    if stages == 1:
        return {place: kind.depth for place, kind in enumerate(kinds)}, True
    most = max(range(len(kinds)), key=lambda place: kinds[place].depth)
    depth = run.model.depth
    has_logits = depth % (stages * run.interleave) == 0
    return {most: -(-(depth if has_logits else depth + 2) // stages)}, has_logits


def ticks(run: Training) -> int:
    """Return how often a stage runs its layers, including the ticks of an idle pipeline."""
    stages = run.sizes.get("stage", 1)
    return run.microbatches + round((stages - 1) / run.interleave)


def lower(run: Training) -> shardcore.jax.Lowered:
    """Lower a step of ``run``."""
    mesh = run.mesh
    depths, _ = stage_layers(run)
    stages = run.sizes.get("stage", 1)
    parameters = {
        name: _repeated(each, depths[each.kind] * stages) if each.kind is not None else each
        for name, each in shapes(run.model).items()
        if each.kind is None or each.kind in depths
    }
    specs = {name: run.spec(name, each) for name, each in parameters.items()}
    placed = {name: NamedSharding(mesh, spec) for name, spec in specs.items()}
    arrays = {
        name: jax.ShapeDtypeStruct(each.shape, jnp.float32, sharding=placed[name])
        for name, each in parameters.items()
    }
    rows = P(None, run.batch_axes, run.time_axis)
    batch = run.batch // run.microbatches
    tokens = jax.ShapeDtypeStruct(
        (run.microbatches, batch, run.time), jnp.int32, sharding=NamedSharding(mesh, rows)
    )
    states = (specs, specs, specs, P())

    def step(state: Any, tokens: jax.Array) -> Any:
        found = _alternating if run.alternates else jax.value_and_grad(_loss)
        value, gradient = found(state[0], tokens, run, specs)
        return adam(state, gradient, tuple(mesh.axis_names)), jax.lax.psum(value, _parts(run))

    local = jax.shard_map(
        step, mesh=mesh, in_specs=(states, rows), out_specs=(states, P()), check_vma=False
    )
    count = jax.ShapeDtypeStruct((), jnp.int32)
    return shardcore.jax.lower(
        local,
        (arrays, arrays, arrays, count),
        tokens,
        mesh=mesh,
        donate_argnums=0,
        platform=run.platform,
    )


def _parts(run: Training) -> tuple[str, ...]:
    """The axes along which each device has a part of the loss."""
    return tuple(axis for axis in run.sizes if axis != "tensor")


def _repeated(parameter: Parameter, depth: int) -> Parameter:
    return replace(parameter, shape=(depth, *parameter.shape[1:]))


def _loss(params: Weights, tokens: jax.Array, run: Training, specs: dict[str, P]) -> jax.Array:
    """The mean loss; all microbatches pass through the pipeline before a gradient does."""
    whole, how = _whole(params, run, specs), ByHand(run)
    used = _layer_by_layer({**whole, **_narrow(whole, run)}, run)

    def tick(x: jax.Array, tokens: jax.Array) -> tuple[jax.Array, jax.Array]:
        x, loss = _stage(x, used, tokens, how)
        return _sent(x, run, 1), loss

    idle = ticks(run) - run.microbatches
    rows = jnp.pad(tokens, ((0, idle), (0, 0), (0, 0)))
    last, losses = jax.lax.scan(tick, _nothing(tokens, run), rows)
    return jnp.mean(losses) + _end(last, used, tokens[0], how)


def _alternating(
    params: Weights, tokens: jax.Array, run: Training, specs: dict[str, P]
) -> tuple[jax.Array, Weights]:
    """The mean loss and its gradient, with a forward and a backward pass in each tick.

    Both are of the microbatches at hand: the gradient that has arrived is that of others, but takes
    as long. In a pipeline with several chunks per stage, what a tick sends arrives after the next.
    """
    how, count = ByHand(run), run.at_once
    whole, back = jax.vjp(lambda params: _whole(params, run, specs), params)
    known = _layer_by_layer(_narrow(whole, run), run)
    wide, join = jax.vjp(lambda whole: _layer_by_layer(whole, run), whole)

    def stages(tokens: jax.Array, wide: Any, xs: Any) -> Any:
        found = [_stage(x, wide | known, rows, how) for x, rows in zip(xs, tokens, strict=True)]
        return [x for x, _ in found], sum(loss for _, loss in found)

    def tick(carry: Any, tokens: jax.Array) -> Any:
        sums, arrived, left = carry
        sent = [[_sent(x, run, way) for x in xs] for way, xs in zip((1, -1), left, strict=True)]
        xs, gradients = arrived if run.interleave > 1 else sent
        (ends, loss), pull = jax.vjp(functools.partial(stages, tokens), wide, xs)
        found, starts = pull((gradients, jnp.float32(1 / run.microbatches)))
        return (jax.tree.map(jnp.add, sums, found), sent, [ends, starts]), loss

    trips = -(-ticks(run) // count)
    idle = trips * count - run.microbatches
    rows = jnp.pad(tokens, ((0, idle), (0, 0), (0, 0))).reshape(trips, count, *tokens.shape[1:])
    nothing = [[_nothing(tokens, run)] * count] * 2
    zeros = jax.tree.map(jnp.zeros_like, wide)
    (sums, _, left), losses = jax.lax.scan(tick, (zeros, nothing, nothing), rows)
    value, found = jax.value_and_grad(lambda wide: _end(left[0][0], wide | known, tokens[0], how))(
        wide
    )
    [gradient] = back(*join(jax.tree.map(jnp.add, sums, found)))
    return jnp.sum(losses) / run.microbatches + value, gradient


def _stage(x: jax.Array, whole: Weights, tokens: jax.Array, how: ByHand) -> Any:
    """The layers of a stage on one microbatch: its activations, and the loss on the last stage."""
    run = how.run
    depths, has_logits = stage_layers(run)
    words = with_positions(_embedded(tokens, whole, how), whole)
    staged = run.sizes.get("stage", 1) > 1
    x = jnp.where(jax.lax.axis_index("stage") == 0, words, x) if staged else words
    x = layers(how, x, whole, depths)
    return x, _cross_entropy(x, tokens, whole, how) if has_logits else jnp.float32(0)


def _end(last: jax.Array, whole: Weights, tokens: jax.Array, how: ByHand) -> jax.Array:
    """The loss, if the logits count as a layer: once per step, as no stage waits for them."""
    _, has_logits = stage_layers(how.run)
    return jnp.float32(0) if has_logits else _cross_entropy(last, tokens, whole, how)


def _sent(x: jax.Array, run: Training, way: int) -> jax.Array:
    """What the stage before sends, or for ``way`` -1 the one after, once for each chunk."""
    stages = run.sizes.get("stage", 1)
    if stages > 1:
        ring = [(place, (place + way) % stages) for place in range(stages)]
        for _ in range(run.interleave):
            x = jax.lax.ppermute(x, "stage", ring)
    return x


def _nothing(tokens: jax.Array, run: Training) -> jax.Array:
    """The activations of a stage that nothing has arrived at."""
    parts = run.sizes.get("tensor", 1) if run.sequence_parallel else 1
    _, batch, time = tokens.shape
    return jnp.zeros((batch, time // parts, run.model.width), jnp.bfloat16)


def _whole(params: Weights, run: Training, specs: dict[str, P]) -> Weights:
    """The parameters, in bfloat16, with the shards that a device along ``tensor`` needs."""
    return {name: _gathered(p, specs[name], run, name) for name, p in params.items()}


def _gathered(weight: jax.Array, spec: P, run: Training, name: str) -> jax.Array:
    found = gather(weight.astype(jnp.bfloat16), spec, run.gathered(name))
    # Weights that are not sharded over ``tensor`` are used by each device for its part of a
    # sequence.
    is_whole = "tensor" in run.sizes and not any("tensor" in axes for axes in entries(spec))
    return spread(found, ("tensor",)) if is_whole and run.sequence_parallel else found


def _layer_by_layer(weights: Weights, run: Training) -> dict[str, Any]:
    """The weights; if layers are unrolled, each has arrays of its own."""
    if run.scan:
        return weights
    outside = [name for name, each in shapes(run.model).items() if each.kind is None]
    return {
        name: each if name in outside else tuple(jnp.unstack(each))
        for name, each in weights.items()
    }


def _narrow(whole: Weights, run: Training) -> Weights:
    """The weights of products in the run's narrow type, converted once per step."""
    if run.dtype not in NARROW:
        return {}
    return {
        named(narrow(name.split(".")[0]), each.kind): scaled(
            jax.lax.stop_gradient(whole[name]), run.dtype
        )
        for name, each in shapes(run.model).items()
        if each.kind is not None and name in whole and name.split(".")[0] in PRODUCTS
    }


def _embedded(tokens: jax.Array, params: Weights, how: ByHand) -> jax.Array:
    words = table(params)
    if how.run.sizes.get("tensor", 1) == 1:
        return words[tokens]
    place = tokens - jax.lax.axis_index("tensor") * words.shape[0]
    own = (place >= 0) & (place < words.shape[0])
    found = words[jnp.where(own, place, 0)]
    return how.leave(jnp.where(own[..., None], found, 0))


def _cross_entropy(x: jax.Array, tokens: jax.Array, params: Weights, how: ByHand) -> jax.Array:
    """The mean loss; each device along ``tensor`` has the logits of a part of the vocabulary."""
    axes = ("tensor",) if how.run.sizes.get("tensor", 1) > 1 else ()
    y = how.enter(norm(how, x, params["norm"]))
    logits = y @ logits_weight(params)
    if how.run.loss_op_by_op:
        found = cross_entropy.op_by_op(logits, tokens, axes)
    else:
        found = fused(how, lambda y: cross_entropy.in_one_kernel(y, tokens, axes), logits)
    # Devices along ``tensor`` have the same loss, but gradients of their part only.
    return jnp.mean(found) / math.prod(how.run.sizes[axis] for axis in _parts(how.run))
