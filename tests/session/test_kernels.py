"""Costs on GPUs do not depend on the kernels that were fused before, in whichever program."""

from __future__ import annotations

import json
from random import Random

from shardcore import Module, clear_caches

from benches.edits import SHARDINGS, roles
from benches.programs import gpt
from tests.deep import IS_DEEP

LAYERS = 2
EDITS = 400 if IS_DEEP else 12


def test_costs_after_edits_are_those_of_a_process_that_knows_no_kernels() -> None:
    session, rng = Module.parse(gpt(LAYERS)).session(), Random(0)
    weights = [name for names in roles(session.module.arguments(), LAYERS) for name in names]
    for _ in range(EDITS):
        session.set({rng.choice(weights): rng.choice(SHARDINGS)})
        record = json.dumps(session.cost("h100").record())
        clear_caches()
        new = Module.parse(str(session.module)).propagate().cost("h100")
        assert json.dumps(new.record()) == record
