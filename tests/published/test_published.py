"""Published step times lie within the bounds, and near the point estimate."""

from __future__ import annotations

import math

import pytest

from tests.deep import sampled
from tests.published.report import cost_of
from tests.published.runs import runs

LARGEST_MISS = {"tpu": 0.10, "cuda": 0.20}
"""How far off the point estimate may be, as a share of the published time."""

CHECKED = (
    "1xv5p-128 32B",
    "2xv5p-128 32B",
    "1xv5p-128 64B",
    "1xv5p-256 128B",
    "2xv5p-512 128B",
    "1xv5p-2048 1024B",
    "1xv5e-256 16B",
    "1xv5e-256 32B",
    "1xv5e-256 64B",
    "32xv5e-256 64B",
    "32xv5e-256 128B",
    "1xA3 Llama2-7B",
    "2xA3 Llama2-7B",
    "16xA3 Llama2-7B",
)
"""The runs that are checked; ``python -m tests.published.report`` prints all of them."""

RUNS = {run.name: run for run in runs()}


@pytest.mark.parametrize("name", sampled(CHECKED, 3))
def test_published_steps(name: str) -> None:
    run = RUNS[name]
    cost = cost_of(run)
    assert cost.uncounted == ()
    assert cost.step_seconds_lower <= run.step_seconds
    assert cost.confidence.runs > 0
    assert cost.step_seconds == pytest.approx(run.step_seconds, rel=LARGEST_MISS[run.platform])


def test_a_constant_share_of_the_peak_is_no_model() -> None:
    shares = [run.tflops / 197 for run in runs() if run.chip == "tpu-v5e"]
    middle = math.sqrt(min(shares) * max(shares))
    assert max(shares) / middle - 1 > LARGEST_MISS["tpu"]


def test_a_third_is_held_out() -> None:
    for chip in ("tpu-v5p", "tpu-v5e", "h100"):
        rows = [run.held_out for run in runs() if run.chip == chip]
        assert sum(rows) >= len(rows) // 3 > 0
