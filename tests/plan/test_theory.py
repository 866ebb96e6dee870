"""Plans against what "How to Scale Your Model" derives for a step of a large MLP."""

from __future__ import annotations

import math

import pytest
import shardcore

from tests.plan.programs import mlp_step

CHIP = "tpu-v5p"
BOTH = {"x": "P('x')", "p['w1']": "P(None, 'y')", "p['w2']": "P('y')"}
"""The batch along `x`, the hidden dim along `y`: data and tensor parallelism."""
SETTINGS = [
    (devices, batch, hidden)
    for devices in (16, 64)
    for batch, hidden in (
        (2048, 8192),
        (4096, 16384),
        (8192, 8192),
        (8192, 16384),
        (8192, 32768),
        (16384, 8192),
        (16384, 16384),
        (32768, 16384),
        (32768, 32768),
        (65536, 16384),
    )
]


def meshes(devices: int) -> list[dict[str, int]]:
    powers = range(1, int(math.log2(devices)))
    return [{"x": 2**k, "y": devices // 2**k} for k in powers]


@pytest.mark.parametrize(("devices", "batch", "hidden"), SETTINGS)
def test_the_best_mix_of_data_and_tensor_parallelism_is_that_of_the_book(
    devices: int, batch: int, hidden: int
) -> None:
    """Chapter 5: `X = sqrt(B / F * Mx / My * N)`, here with one physical axis each."""
    step = mlp_step(batch, 8192, hidden)
    seconds = {}
    for mesh in meshes(devices):
        [row] = step.session(mesh=mesh).evaluate([BOTH], CHIP)
        seconds[mesh["x"]] = row.serial_seconds
    best = min(seconds, key=lambda size: seconds[size] or math.inf)
    wanted = min(max(math.sqrt(batch / hidden * devices), 2), devices // 2)
    assert wanted / 2 <= best <= wanted * 2


@pytest.mark.parametrize(("devices", "batch", "hidden"), SETTINGS[::5])
def test_a_plan_is_at_least_as_good_as_the_mix_of_the_book(
    devices: int, batch: int, hidden: int
) -> None:
    step = mlp_step(batch, 8192, hidden)
    plan = shardcore.plan(step, CHIP, mesh=meshes(devices))
    for mesh in meshes(devices):
        [row] = step.session(mesh=mesh).evaluate([BOTH], CHIP)
        assert row.serial_seconds is not None
        assert plan.value <= row.serial_seconds * 1.001
