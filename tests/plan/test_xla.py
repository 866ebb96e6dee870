"""Plans for fewest bytes send, compiled by XLA, what they promise."""

from __future__ import annotations

import pytest

jax = pytest.importorskip("jax")

import shardcore  # noqa: E402
from jax.sharding import PartitionSpec as P  # noqa: E402

from tests.shardy.xla import models as models  # noqa: E402
from tests.shardy.xla.model_rows import as_all_reduce, sent_by_kind  # noqa: E402
from tests.shardy.xla.models import catalog  # noqa: E402
from tests.shardy.xla.plans import MESH, MODELS, lower  # noqa: E402
from tests.shardy.xla.sent import sent_bytes  # noqa: E402

CHIP = "tpu-v5e"
SHARE = 0.6
"""The part of the memory that a program takes unsharded which its plan may take."""
FROM_CATALOG = ("recommend-tables", "embedding-vocabulary", "diagonal-width")


def unannotated(name: str) -> str:
    if name in FROM_CATALOG:
        return catalog.located(name)
    function, arguments = MODELS[name]()
    specs = jax.tree.map(lambda _: P(), arguments)
    return str(lower(function, MESH, arguments, specs).as_text(debug_info=True))


@pytest.mark.parametrize("name", ["attention", "experts", "classifier", *FROM_CATALOG])
def test_a_plan_sends_what_it_promises(name: str) -> None:
    module = shardcore.Module.parse(unannotated(name))
    session = module.session()
    for target in list(session.annotations):
        session.unset(target)
    limit = int(session.cost(CHIP).peak_bytes * SHARE)
    plan = shardcore.plan(module, CHIP, limit, minimize="bytes", seconds=60)
    promised = sum(sent_by_kind(plan.cost).values())
    sent = sum(as_all_reduce(sent_bytes(str(plan.session.module))).values())
    assert sent == pytest.approx(promised, rel=0.05)
    assert sent > 0
