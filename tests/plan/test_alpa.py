"""Plans against what the tests of alpa expect of its automatic sharding of dense layers.

Alpa's tests state, for a step over one or two mesh axes, which parallelism has to come out and how
many collectives it takes. Here each expectation is written as annotations: its collectives are
those that alpa counts, and the plan found from no annotations costs at most as much.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import pytest

jax = pytest.importorskip("jax")

import jax.numpy as jnp  # noqa: E402
import shardcore  # noqa: E402
import shardcore.jax  # noqa: E402

from tests.shardy.programs.registry import f32  # noqa: E402

CHIP = "tpu-v5p"
LAYERS = 4


@dataclass(frozen=True)
class Expected:
    """What alpa's test of a model expects."""

    step: Any
    arguments: tuple[Any, ...]
    mesh: dict[str, int]
    annotations: dict[str, str]
    collectives: dict[str, int]
    """How many run of each kind, those that run as one counted once."""
    memory: str | None = None


def mlp(params: Any, x: jax.Array, y: jax.Array) -> Any:
    """A step of gradient descent of dense layers without anything between them."""

    def loss(params: Any) -> jax.Array:
        h = x
        for number in range(LAYERS):
            h = h @ params[f"Dense_{number}"]["kernel"]
        return jnp.mean((h - y) ** 2)

    return jax.tree.map(lambda p, g: p - 0.1 * g, params, jax.grad(loss)(params))


def mlp_of(batch: int, width: int) -> tuple[Any, ...]:
    layer = {"kernel": f32(width, width)}
    x = f32(batch, width)
    return {f"Dense_{number}": layer for number in range(LAYERS)}, x, x


BATCH = {"x": "P('data')", "y": "P('data')"}
PAIRS = {
    f"params['Dense_{number}']['kernel']": "P('model')" if number % 2 else "P(None, 'model')"
    for number in range(LAYERS)
}

STORED = {f"params['Dense_{number}']['kernel']": "P('data')" for number in range(LAYERS)}

CASES = {
    # One all-reduce of all gradients.
    "data": Expected(mlp, mlp_of(2**16, 1024), {"data": 4}, BATCH, {"all_reduce": 1}),
    # ZeRO-3, as data parallelism takes 3.5 GiB. Gathered weights are kept for the backward pass.
    "zero": Expected(
        mlp,
        mlp_of(2**14, 8192),
        {"data": 4},
        {**BATCH, **STORED},
        {"all_gather": LAYERS, "reduce_scatter": LAYERS},
        memory="3GiB",
    ),
    # Megatron's pairs: after each pair, and before each pair but the first in the backward pass.
    "model": Expected(mlp, mlp_of(256, 8192), {"model": 4}, PAIRS, {"all_reduce": LAYERS - 1}),
    # Both; gradients of 64 MiB are too large to run as one.
    "both": Expected(
        mlp,
        mlp_of(2**13, 8192),
        {"data": 4, "model": 4},
        {**BATCH, **PAIRS},
        {"all_reduce": LAYERS - 1 + LAYERS},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_plan_is_what_alpa_expects_or_costs_less(name: str) -> None:
    case = CASES[name]
    lowered = shardcore.jax.lower(case.step, *case.arguments, platform="cpu")
    session = lowered.session(mesh=case.mesh)
    session.set(case.annotations)
    cost = session.cost(CHIP)
    runs: dict[str, Fraction] = defaultdict(Fraction)
    for row in cost.collectives:
        runs[row.kind] += Fraction(row.count, row.combined)
    assert dict(runs) == case.collectives
    plan = shardcore.plan(lowered, CHIP, case.memory, mesh=case.mesh, seconds=60)
    assert plan.value <= cost.serial_seconds * 1.001
    assert cost.peak_bytes <= plan.limit
    assert plan.cost.peak_bytes <= plan.limit
