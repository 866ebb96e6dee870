"""Writes the code of a pipeline, for layers in a ``jax.lax.scan`` over stacked parameters."""

from __future__ import annotations

from collections.abc import Mapping

from shardcore.errors import Diagnostic, PlanError
from shardcore.pipeline.orders import KEEPING
from shardcore.pipeline.schedules import check

_HEAD = '''\
"""A scan over {layers} layers as a pipeline by the schedule {schedule}."""

from functools import partial

import jax
import jax.numpy as jnp
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

'''
_SIZES = "STAGES, CHUNKS, MICRO_BATCHES = {stages}, {chunks}, {micro_batches}\n"
_MESH = '''\
AXES = {axes}


def make_mesh(devices=None):
    """The mesh: stages, and the axes that the layers are sharded over."""
    types = (AxisType.Auto,) * len(AXES)
    return jax.make_mesh(tuple(AXES.values()), tuple(AXES), axis_types=types, devices=devices)
'''
_RUN = '''

def pipelined(layer, x, weights, mesh):
    """What `jax.lax.scan(layer, x, weights)[0]` returns, for a `layer` that treats the sequences of
    a batch alike and returns `(x, None)`.

    Stage `s` has the layers of the chunks `s`, `s + STAGES`, ... The first dim of each of `weights`
    counts layers; keep it sharded over "stage", and as `(CHUNKS, STAGES, ...)` if there are several
    chunks, so that no step moves it.
    """
    weights = jax.tree.map(lambda w: w.reshape(CHUNKS, STAGES, -1, *w.shape[1:]), weights)
    # Each device has a part of each micro-batch, as many of its own sequences.
    batch = x.reshape(-1, MICRO_BATCHES, *x.shape[1:]).swapaxes(0, 1)

    @partial(
        jax.shard_map,
        mesh=mesh,
        in_specs=(P(None, "stage"), P()),
        out_specs=P("stage"),
        axis_names={"stage"},
        check_vma=False,
    )
    def run(weights, batch):
        stage = jax.lax.axis_index("stage")

        def tick(state, t):
            # The first stage takes what waits, the others what the stage before has sent.
            waiting, x = state
            x = jnp.where(stage == 0, waiting[t % MICRO_BATCHES], x)
            chunk = jnp.clip((t - stage) // MICRO_BATCHES, 0, CHUNKS - 1)
            x, _ = jax.lax.scan(layer, x, jax.tree.map(lambda w: w[chunk, 0], weights))
            x = jax.lax.ppermute(x, "stage", [(s, (s + 1) % STAGES) for s in range(STAGES)])
            # What comes from the last stage waits for the next chunk, or is done.
            place = (t - STAGES + 1) % MICRO_BATCHES
            last = jnp.where(t < STAGES - 1, waiting[place], x)
            return (waiting.at[place].set(last), x), None

        # Before something has arrived a stage computes with the first micro-batch, in vain.
        ticks = jnp.arange(CHUNKS * MICRO_BATCHES + STAGES - 1)
        (done, _), _ = jax.lax.scan(tick, (batch, batch[0]), ticks)
        return done[None]

    return run(weights, batch)[0].swapaxes(0, 1).reshape(x.shape)
'''


def to_python(
    schedule: str,
    layers: int,
    stages: int,
    chunks: int,
    micro_batches: int,
    axes: Mapping[str, int],
) -> str:
    """Return a Python file with a function that replaces a ``jax.lax.scan`` over layers.

    Args:
        schedule: ``gpipe`` or ``circular``; the backward passes of other schedules are not the
            derivative of their forward passes.
        layers: the number of layers, a multiple of the number of all chunks.
        stages: the number of stages.
        chunks: the number of chunks per stage.
        micro_batches: the number of micro-batches.
        axes: the other axes of the mesh.

    Raises:
        PlanError: there is no such code for the program or the schedule (``schedule``).
    """
    text = definition(schedule, layers, stages, chunks, micro_batches)
    sizes, run = text.split("\n", 1)
    head = _HEAD.format(schedule=schedule, layers=layers)
    mesh = _MESH.format(axes=repr({"stage": stages, **axes}).replace("'", '"'))
    return f"{head}{sizes}\n{mesh}{run}"


def definition(schedule: str, layers: int, stages: int, chunks: int, micro_batches: int) -> str:
    """Return the function of :func:`to_python`, and the constants that it uses.

    Raises:
        PlanError: as for :func:`to_python`.
    """
    check(schedule, stages * chunks, stages, micro_batches)
    if schedule not in KEEPING:
        raise PlanError(
            Diagnostic(
                "schedule",
                f"{schedule} is no loop over a rotating buffer, whose derivative is its backward "
                "pass",
                f"{' and '.join(KEEPING)} are",
            )
        )
    if layers % (stages * chunks):
        raise PlanError(
            Diagnostic(
                "schedule",
                f"{layers} layers are not divided evenly into {stages * chunks} chunks, as stacked "
                "parameters have to be",
                "take other stages or chunks",
            )
        )
    return _SIZES.format(stages=stages, chunks=chunks, micro_batches=micro_batches) + _RUN
