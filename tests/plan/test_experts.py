"""Plans from no annotations cost at most what the usual annotations of experts cost."""

from __future__ import annotations

import pytest

pytest.importorskip("jax")

import shardcore
from jax.sharding import PartitionSpec as P
from shardcore.plan.search import Search

from tests.deep import IS_DEEP, deep, sampled
from tests.plan.programs import bare
from tests.shardy.programs.registry import constrain, i32, lower, mesh
from tests.shardy.xla import models as models
from tests.shardy.xla.models import catalog
from tests.shardy.xla.models.catalog import adam, adam_state
from tests.shardy.xla.models.llama import Size, loss_of, shapes, specs

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


# Where a plan with no more memory than an expert's annotations is slower, and how much at most.
SLOWER = {"decode-scan": 1.03}

NAMES = [*sampled(QUICK, 3), *(DEEP if IS_DEEP else ())]


@pytest.mark.parametrize("name", NAMES)
def test_a_plan_is_as_good_as_the_annotations_of_an_expert(name: str) -> None:
    module = shardcore.Module.parse(catalog.located(name))
    plan = shardcore.plan(bare(module), CHIP, seconds=60)
    assert plan.value <= module.session().cost(CHIP).serial_seconds * 1.0001
    assert plan.cost.peak_bytes <= plan.limit
    assert len(plan.specs) <= 12
    printed = str(plan)
    assert all(place.split(":")[0] in printed for place in plan.places.values())


@pytest.mark.parametrize("name", [name for name in NAMES if IS_DEEP or name not in SLOWER])
def test_a_plan_fits_where_the_annotations_of_an_expert_do(name: str) -> None:
    module = shardcore.Module.parse(catalog.located(name))
    given = module.session().cost(CHIP)
    plan = shardcore.plan(bare(module), CHIP, given.peak_bytes, seconds=120)
    assert plan.cost.peak_bytes <= given.peak_bytes
    if name in SLOWER:
        # Known: not found within exactly the memory of the expert, but with 2 % more.
        assert given.serial_seconds < plan.value <= given.serial_seconds * SLOWER[name]
        plan = shardcore.plan(bare(module), CHIP, given.peak_bytes * 51 // 50, seconds=120)
    assert plan.value <= given.serial_seconds * 1.0001


def decoder(depth: int) -> shardcore.Module:
    """Layers as of a Llama of 8 billion parameters, unrolled, with the usual annotations."""
    size = Size(depth, 64, 2048, 4096, 32, 8, 14336, 128256)
    over = mesh(fsdp=16, tensor=4)
    state = adam_state(shapes(size, False), i32())
    specs_of = adam_state(specs(size, False, "fsdp", "tensor"), P())
    tokens = i32(size.batch, size.time)
    step = adam(loss_of(lambda x: constrain(x, over, "fsdp", None, None), False, False), 1)
    lowered = lower(
        step,
        over,
        (state, tokens, tokens),
        (specs_of, P("fsdp"), P("fsdp")),
        (specs_of, None),
        donate=0,
    )
    text = lowered.compiler_ir("stablehlo").operation.get_asm(enable_debug_info=True)
    return shardcore.Module.parse(text)


@pytest.mark.parametrize("depth", [10, 16] if IS_DEEP else [4])
def test_what_people_write_is_tried_before_any_search(
    depth: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Search, "improve", lambda self: None)
    module = decoder(depth)
    given = module.session().cost("tpu-v5p")
    plan = shardcore.plan(bare(module), "tpu-v5p", given.peak_bytes, seconds=120)
    assert plan.cost.peak_bytes <= given.peak_bytes
    assert plan.value <= given.serial_seconds * 1.0001


@deep
@pytest.mark.parametrize("depth", [10, 12, 16, 32])
def test_a_plan_of_many_layers_fits_where_the_annotations_of_an_expert_do(depth: int) -> None:
    module = decoder(depth)
    given = module.session().cost("tpu-v5p")
    plan = shardcore.plan(bare(module), "tpu-v5p", given.peak_bytes, seconds=120)
    assert plan.cost.peak_bytes <= given.peak_bytes
    assert plan.value <= given.serial_seconds
    assert len(plan.specs) <= 12
