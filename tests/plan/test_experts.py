"""Plans from no annotations cost at most what the usual annotations of experts cost."""

from __future__ import annotations

import os

import pytest

pytest.importorskip("jax")

import shardcore

from tests.plan.programs import bare
from tests.shardy.xla import models as models
from tests.shardy.xla.models import catalog

CHIP = "tpu-v5e"
QUICK = [
    "embedding-vocabulary",
    "experts-experts",
    "retrieve-corpus",
    "prefill-fsdp",
    "graph-edges",
    "graph-nodes",
    "decode-scan",
    "contrast-data",
    "llama-accumulated-fsdp",
]
DEEP = [
    "decode-tensor",
    "denoise-rows",
    "diagonal-width",
    "distill-tensor",
    "experts-experts-tensor",
    "llama-fsdp",
    "llama-fsdp-tensor",
    "llama-scan-fsdp",
    "llama-scan-tensor",
    "llama-tensor",
    "lora-fsdp",
    "patches-tensor",
    "perceptron-grid",
    "recommend-tables",
    "lora-tensor",
    "residual-rows",
]


NAMES = [*QUICK, *(DEEP if os.environ.get("SHARDCORE_DEEP") else ())]


@pytest.mark.parametrize("name", NAMES)
def test_a_plan_is_as_good_as_the_annotations_of_an_expert(name: str) -> None:
    module = shardcore.Module.parse(catalog.located(name))
    plan = shardcore.plan(bare(module), CHIP, seconds=60)
    assert plan.value <= module.session().cost(CHIP).serial_seconds * 1.0001
    assert plan.cost.peak_bytes <= plan.limit
    assert len(plan.specs) <= 12
    printed = str(plan)
    assert all(place.split(":")[0] in printed for place in plan.places.values())


@pytest.mark.parametrize("name", NAMES)
def test_a_plan_fits_where_the_annotations_of_an_expert_do(name: str) -> None:
    module = shardcore.Module.parse(catalog.located(name))
    given = module.session().cost(CHIP)
    plan = shardcore.plan(bare(module), CHIP, given.peak_bytes, seconds=120)
    assert plan.cost.peak_bytes <= given.peak_bytes
    assert plan.value <= given.serial_seconds * 1.0001
