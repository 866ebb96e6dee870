"""Propagation agrees with the oracle, on one op and on small programs."""

from __future__ import annotations

import pytest

from tests.oracle.graph import Program
from tests.oracle.printing import to_mlir
from tests.property import agreement
from tests.property.ours import after
from tests.property.passes import PASSES, SWEEPS, oracle_rows


def assert_agree(program: Program, passes: str) -> None:
    ours = after(passes, to_mlir(program))
    assert ours == oracle_rows(program, passes)


@pytest.mark.parametrize("case", agreement.CASES)
def test_random_programs(case: str) -> None:
    agreement.check_random_programs(case, assert_agree)


@pytest.mark.parametrize("num_factors", [3, 9, 18])
@pytest.mark.parametrize("passes", list(SWEEPS))
def test_order_of_factors_shows(num_factors: int, passes: str) -> None:
    agreement.check_order_of_factors(num_factors, passes, assert_agree)


@pytest.mark.parametrize("passes", list(PASSES))
def test_order_of_uses_shows(passes: str) -> None:
    agreement.check_order_of_uses(passes, assert_agree)
