"""The programs that ``benches.whole_plans`` plans: models of measured steps, without shardings."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from shardcore.bench.parameters import shapes

from benches import whole_plans


@pytest.mark.parametrize("number", [50, 112])
def test_the_step_of_a_public_pipeline_is_lowered(number: int) -> None:
    [(row, run)] = whole_plans.rows([number])
    assert row.number == number
    program = whole_plans.lowered(whole_plans.Global(run))
    arguments = program.module.arguments()
    # Parameters and two moments of each, the count of steps, and the tokens.
    assert len(arguments) == 3 * len(shapes(run.model)) + 2
    assert not any(argument.sharding for argument in arguments)


@pytest.mark.parametrize(("seconds", "place"), [(0.9, 1), (1.15, 2), (1.25, 3)])
def test_a_plan_of_the_same_kind_that_is_near_is_not_before_it(seconds: float, place: int) -> None:
    [(_, run)] = whole_plans.rows([50])
    assert whole_plans.kind_of(run) == "mixed"
    stages = run.sizes["stage"]
    own = SimpleNamespace(
        stages=stages, kind=f"mixed, {stages} stages", figures=SimpleNamespace(step_seconds=1.12)
    )
    plan = SimpleNamespace(stages=16, kind="mixed", step_seconds=1.0, alternatives=(own,))
    assert whole_plans.rank(plan, run, seconds) == place
