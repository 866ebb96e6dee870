"""What is chosen is as fast as the best of JAX's policies by exhaustive trial, and fits."""

from __future__ import annotations

import jax
import pytest
import shardcore

from tests.deep import IS_DEEP
from tests.remat import models, oracle

MODELS = {
    "gpt, scanned": (models.gpt(3), "h100"),
    "mlp, unrolled": (models.mlp(4), "tpu-v5p"),
    "experts, scanned": (models.experts(2), "tpu-v5p"),
}
SLOWER = 1.05
"""How many times the step of the best of JAX's that of what is chosen may take."""
SECONDS = 60 if IS_DEEP else 1


@pytest.mark.parametrize("name", MODELS)
def test_no_policy_of_jax_is_faster(name: str) -> None:
    model, hardware = MODELS[name]
    rows = oracle.tried(model, hardware)
    whole = rows[0].peak_bytes
    for part in (0.8, 0.6) if IS_DEEP else (0.6,):
        limit = int(part * whole)
        found = shardcore.remat(
            model.plain, *model.shapes, hardware=hardware, memory=limit, seconds=SECONDS
        )
        best = oracle.best(rows, limit)
        assert best is not None
        assert found.best.step_seconds <= SLOWER * best.step_seconds
        assert found.best.peak_bytes <= limit
        # What is said of the choice is what the function costs that comes with it.
        cost = oracle.cost(found.apply(), model, hardware)
        assert (cost.step_seconds, cost.peak_bytes) == (
            found.best.step_seconds,
            found.best.peak_bytes,
        )


def test_policies_cost_what_users_get_of_them() -> None:
    """The layers that were found are those that users would wrap.

    Of a jitted layer JAX writes `reduce_precision` on what is kept only where it is inlined, which
    the time counts: layers that are not jitted are compared.
    """
    for model, hardware in (MODELS["gpt, scanned"], MODELS["mlp, unrolled"]):
        found = shardcore.remat(
            model.plain, *model.shapes, hardware=hardware, memory="1TiB", seconds=0.01
        )
        ours = {trial.label: trial for trial in found.trials}
        for row in oracle.tried(model, hardware):
            label = "no recomputation" if row.policy == "none" else row.policy
            assert ours[label].peak_bytes == pytest.approx(row.peak_bytes, rel=0.01)
            assert ours[label].step_seconds == pytest.approx(row.step_seconds, rel=0.02)


def test_layers_that_are_checkpointed_are_planned_anew() -> None:
    """What the program keeps already decides nothing but the first row."""
    model = models.mlp(4)

    def loss(*args: object) -> jax.Array:
        found: jax.Array = model.loss(jax.checkpoint, *args)
        return found

    given, plain = (
        shardcore.remat(each, *model.shapes, hardware="h100", memory="1TiB", seconds=0.01)
        for each in (loss, model.plain)
    )
    assert given.trials[0].label == plain.trials[0].label == "as given"
    assert given.trials[0].peak_bytes < plain.trials[0].peak_bytes
    assert [each.record() for each in given.trials[1:]] == [
        each.record() for each in plain.trials[1:]
    ]
