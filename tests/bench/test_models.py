"""Models have the parameters that were published, and each family is built."""

from __future__ import annotations

import math

import pytest
from shardcore.bench.models import MODELS
from shardcore.bench.step import lower
from shardcore.bench.training import Remat, Training

from tests.deep import IS_DEEP

PUBLISHED = {
    "llama2-7b": 6.74e9,  # arXiv 2307.09288 and the model cards: 6,738,415,616
    "llama2-70b": 68.98e9,
    "llama3.1-8b": 8.03e9,  # model cards: 8.03B, 70.6B, 405.9B
    "llama3.1-70b": 70.6e9,
    "llama3.1-405b": 405.9e9,
    "mixtral-8x7b": 46.7e9,  # mistral.ai/news/mixtral-of-experts: 46.7B
    "mixtral-8x22b": 141e9,  # mistral.ai/news/mixtral-8x22b: 141B
    "deepseek-v3": 671e9,  # arXiv 2412.19437: 671B
    "qwen3-32b": 32.8e9,  # arXiv 2505.09388 and the model cards: 32.8B, 235B
    "qwen3-235b-a22b": 235e9,
    "gpt3-175b": 174.6e9,  # arXiv 2005.14165, table D.1: 174,600 million
    "megatron-22b": 22e9,  # arXiv 2205.05198, table 3: 22B
    "gemma-7b": 8.54e9,  # arXiv 2403.08295, table 2: 7,751 and 787 million
    "gpt-oss-120b": 116.8e9,  # arXiv 2508.10925: 116.83B
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_parameters_are_those_published(name: str) -> None:
    assert MODELS[name].parameters == pytest.approx(PUBLISHED[name], rel=0.01)


SIZES = {
    (model.family, len(model.kinds), model.kinds[0].experts is None): name
    for name, model in reversed(MODELS.items())
}
"""One model of each family and kind of layers; the others differ in sizes."""


@pytest.mark.parametrize("name", MODELS if IS_DEEP else SIZES.values())
def test_models_are_built(name: str) -> None:
    model = MODELS[name]
    run = Training(model, {"data": 1, "fsdp": 8, "tensor": 1}, 8, 2048, Remat())
    result = lower(run).propagate()
    # Parameters and two moments in float32, a count and tokens.
    arrays = [port for port in result.arguments() if port.dtype == "f32"]
    assert sum(math.prod(port.shape) for port in arrays) == 3 * model.parameters
    cost = result.cost("tpu-v5p")
    assert cost.uncounted == ()
    # All but norms and elementwise work; layers are computed twice forwards.
    expected = model.step_flops(2048, 2048, causal=True) * 8 / 6
    assert cost.usage.model_flops + cost.usage.recomputed_flops == pytest.approx(expected, rel=0.12)
