"""What programs of public runs on TPUs have of the recipes of MaxText."""

from __future__ import annotations

import dataclasses

from shardcore import Cost
from shardcore.bench.models import MODELS, Layers
from shardcore.bench.rebuilt import training_of
from shardcore.bench.rows import read_rows
from shardcore.bench.step import lower
from shardcore.bench.training import Training

DEEPSEEK = MODELS["deepseek-v3"].kinds
QWEN = dataclasses.replace(MODELS["qwen3-235b-a22b"].kinds[0], depth=2)


def moved(name: str, kind: Layers, platform: str = "tpu", sorts: bool = True) -> dict[str, int]:
    """The bytes that ops of each name move in a step with layers of one kind."""
    model = dataclasses.replace(MODELS[name], kinds=(kind,))
    run = Training(model, {"data": 1, "fsdp": 8, "tensor": 1}, 8, 4096, None, platform)
    run = dataclasses.replace(run, iota=False, sorts_gradients=sorts)
    cost: Cost = lower(run).propagate().cost("tpu-v5p" if platform == "tpu" else "h100")
    found: dict[str, int] = {}
    for op in cost.ops:
        found[op.name] = found.get(op.name, 0) + op.bytes
    return found


def test_recipes_say_how_tokens_are_looked_up_and_gradients_sorted() -> None:
    runs = {number: training_of(read_rows()[number - 1]) for number in (1, 6, 9, 16, 17, 18, 22)}
    assert [number for number, run in runs.items() if run.iota] == [1, 9]
    assert [number for number, run in runs.items() if not run.sorts_gradients] == [17, 18]


def test_gradients_of_rows_are_scattered_where_they_are_not_sorted() -> None:
    name = "qwen3-235b-a22b"
    sorted_, added = moved(name, QWEN), moved(name, QWEN, sorts=False)
    rows = 2 * 4096 * 8 * MODELS[name].width
    # Of each layer the rows that go to experts, and those that come back.
    assert added["stablehlo.scatter"] - sorted_["stablehlo.scatter"] > 4 * QWEN.depth * rows
    assert sorted_["stablehlo.gather"] - added["stablehlo.gather"] > 4 * QWEN.depth * rows


def test_heads_of_latent_attention_are_taken_apart_and_joined_on_tpus() -> None:
    kind = dataclasses.replace(DEEPSEEK[0], depth=1)
    found = moved("deepseek-v3", kind)
    tokens, heads = 2 * 4096, kind.heads
    # Both parts of queries, in both directions; keys have a part for all heads.
    assert found["stablehlo.slice"] >= 2 * 2 * tokens * heads * kind.head
    assert found["stablehlo.concatenate"] >= 2 * 2 * tokens * heads * kind.head
    assert found["stablehlo.transpose"] >= 2 * 2 * tokens * heads * 64
