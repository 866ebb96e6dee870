"""Limits that nothing fits into: said at once, with the least memory that would do."""

from __future__ import annotations

import re
from typing import Any

import pytest

pytest.importorskip("jax")

import shardcore
from shardcore import Module, PlanError
from shardcore.plan.search import Search
from shardcore.units import parse_bytes

from tests.deep import sampled
from tests.plan.programs import bare, mlp, mlp_step
from tests.shardy.xla import models as models
from tests.shardy.xla.models import catalog

CHIP = "tpu-v5e"


@pytest.mark.parametrize("part", sampled([0.4, 0.1, 0.7], 3))
@pytest.mark.parametrize(
    ("module", "given"),
    [
        (mlp(1024, 1000, 4096), {"devices": 8}),
        (mlp_step(512, 256, 8192), {"mesh": [{"a": 4}, {"a": 2, "b": 2}]}),
        (mlp_step(4096, 2048, 512), {"mesh": {"a": 3, "b": 2}}),
    ],
)
def test_the_least_memory_that_is_said_would_do(
    module: Module, given: dict[str, Any], part: float
) -> None:
    least = shardcore.plan(module, CHIP, minimize="memory", **given).cost.peak_bytes
    with pytest.raises(PlanError) as caught:
        shardcore.plan(module, CHIP, int(least * part), **given)
    said = re.findall(
        r"[\d.]+ [KM]iB(?= of each device, [\d.]+ [KM]iB of them|$)", caught.value.message
    )
    limit = parse_bytes(said[0])
    assert limit is not None
    plan = shardcore.plan(module, CHIP, limit, **given)
    assert plan.cost.peak_bytes <= limit
    assert limit <= least * 1.1


def test_a_limit_far_below_the_least_is_refused_before_any_search(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(self: Search) -> None:
        raise AssertionError

    monkeypatch.setattr(Search, "improve", fail)
    for limit in ("75MiB", "90MiB", "100MiB"):
        with pytest.raises(PlanError) as caught:
            shardcore.plan(mlp(), CHIP, limit, devices=16)
        assert "takes less than 200.00 MiB" in caught.value.message
        assert "(all_reduce)" in str(caught.value.hint)


def test_a_share_of_what_one_device_takes_is_no_bound() -> None:
    """A loop of stencils copies what it carries on one device, and not where it is divided."""
    module = bare(Module.parse(catalog.located("relax-rows")))
    alone = module.session().cost(CHIP)
    devices = next(iter(module.meshes.values())).num_devices
    limit = int(alone.peak_bytes / devices * 0.75)
    plan = shardcore.plan(module, CHIP, limit)
    assert plan.cost.peak_bytes <= limit


def test_annotations_that_are_refused_are_no_start() -> None:
    """Activations of a computation over all axes may not be constrained within it."""
    module = Module.parse(catalog.located("sharded-by-hand-gathered"))
    limit = int(module.session().cost(CHIP).peak_bytes * 0.95)
    with pytest.raises(PlanError) as caught:
        shardcore.plan(bare(module), CHIP, limit)
    assert caught.value.code == "does-not-fit"
