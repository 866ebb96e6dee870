"""Plans are compiled by XLA as they are, and those for fewest bytes send what they promise."""

from __future__ import annotations

import pytest

jax = pytest.importorskip("jax")

import shardcore  # noqa: E402
from shardcore import Module  # noqa: E402

from benches.random_plans import CHIP, compared, planned, xla_bytes  # noqa: E402
from tests.deep import IS_DEEP, sampled  # noqa: E402
from tests.plan.ports import unlike  # noqa: E402
from tests.shardy.xla import models as models  # noqa: E402
from tests.shardy.xla.model_rows import as_all_reduce, sent_by_kind  # noqa: E402
from tests.shardy.xla.models import catalog  # noqa: E402
from tests.shardy.xla.plans import MODELS, unannotated  # noqa: E402
from tests.shardy.xla.sent import sent_bytes  # noqa: E402

FROM_CATALOG = ("recommend-tables", "embedding-vocabulary", "diagonal-width")
DONATING = ("perceptron-grid", "residual-rows", "lora-fsdp")
"""Programs with arguments whose memory results take."""


@pytest.mark.parametrize("name", sampled([*MODELS, *FROM_CATALOG], 3))
def test_a_plan_sends_what_it_promises(name: str) -> None:
    plan = planned(Module.parse(unannotated(name) if name in MODELS else catalog.located(name)))
    text = str(plan.session.module)
    sent = sum(as_all_reduce(sent_bytes(text)).values())
    assert sent == pytest.approx(sum(sent_by_kind(plan.cost).values()), rel=0.05)
    assert sent > 0
    assert xla_bytes(text) == pytest.approx(plan.value, rel=0.05)


@pytest.mark.parametrize("model", MODELS if IS_DEEP else ["attention"])
def test_no_random_plan_that_fits_sends_less(model: str) -> None:
    """`benches/random_plans.py` compares 200 of each."""
    found = compared(model, 4)
    assert found.random
    assert found.ratio >= 0.95


@pytest.mark.parametrize("name", catalog.names() if IS_DEEP else sampled(DONATING, 2))
def test_xla_takes_the_text_of_a_plan(name: str) -> None:
    plan = shardcore.plan(Module.parse(catalog.located(name)), CHIP, seconds=60)
    assert unlike(plan) == []
    assert xla_bytes(str(plan.session.module)) >= 0
