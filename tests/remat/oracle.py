"""The policies of JAX's, tried one by one: layers wrapped as users wrap them, and costed."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import shardcore.jax

from tests.remat.models import Model

POLICIES = {
    "everything_saveable": jax.checkpoint_policies.everything_saveable,
    "nothing_saveable": jax.checkpoint_policies.nothing_saveable,
    "dots_saveable": jax.checkpoint_policies.dots_saveable,
    "dots_with_no_batch_dims_saveable": jax.checkpoint_policies.dots_with_no_batch_dims_saveable,
    "offload_dot_with_no_batch_dims": jax.checkpoint_policies.offload_dot_with_no_batch_dims(
        "device", "pinned_host"
    ),
}


class Row(NamedTuple):
    """A program, and what it takes."""

    policy: str
    step_seconds: float
    peak_bytes: int


def cost(loss: Any, model: Model, hardware: str) -> shardcore.Cost:
    """The cost of the loss and its gradients."""
    has_aux = isinstance(jax.eval_shape(loss, *model.shapes), tuple)
    platform = "tpu" if hardware.startswith("tpu") else "cuda"
    step = jax.value_and_grad(loss, has_aux=has_aux)
    lowered = shardcore.jax.lower(step, *model.shapes, platform=platform)
    return lowered.propagate().cost(hardware)


def tried(model: Model, hardware: str) -> list[Row]:
    """No recomputation, then each policy."""
    wraps: dict[str, Any] = {"none": lambda layer: layer}
    for name, policy in POLICIES.items():
        # Within a scan nothing has to be kept apart, and users say so.
        options = {"policy": policy, "prevent_cse": not model.is_scan}
        wraps[name] = functools.partial(jax.checkpoint, **options)
    found = []
    for name, wrap in wraps.items():
        one = cost(functools.partial(model.loss, wrap), model, hardware)
        found.append(Row(name, one.step_seconds, one.peak_bytes))
    return found


def best(rows: list[Row], limit: float) -> Row | None:
    """The fastest that fits."""
    fitting = [row for row in rows if row.peak_bytes <= limit]
    return min(fitting, key=lambda row: row.step_seconds, default=None)
