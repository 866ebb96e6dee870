"""The programs that ``benches.whole_plans`` plans: models of measured steps, without shardings."""

from __future__ import annotations

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
