"""Propagation agrees with the oracle, on one op and on small programs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.oracle.graph import Program
from tests.oracle.printing import to_mlir
from tests.property.ours import after
from tests.property.passes import EDGES_FIRST, PASSES, SCHEDULES, SWEEPS, oracle_rows
from tests.property.programs import (
    Features,
    programs,
    showing_order_of_factors,
    showing_order_of_uses,
    single_ops,
)


def assert_agree(program: Program, passes: str) -> None:
    ours = after(passes, to_mlir(program))
    assert ours == oracle_rows(program, passes)


@given(single_ops(), st.sampled_from(list(SWEEPS)))
def test_one_op(program: Program, passes: str) -> None:
    assert_agree(program, passes)


@given(programs(), st.sampled_from(list(SWEEPS)))
def test_sweep(program: Program, passes: str) -> None:
    assert_agree(program, passes)


@given(programs(Features(max_ops=10)), st.sampled_from(list(SCHEDULES)))
def test_schedule(program: Program, passes: str) -> None:
    assert_agree(program, passes)


@given(programs(Features(dead_ops=True)), st.sampled_from(list(PASSES)))
def test_dead_ops(program: Program, passes: str) -> None:
    assert_agree(program, passes)


@given(programs(Features(priorities=True)), st.sampled_from(list(SCHEDULES)))
def test_priorities(program: Program, passes: str) -> None:
    assert_agree(program, passes)


@given(programs(Features(groups=True)), st.sampled_from(list(PASSES)))
def test_sharding_groups(program: Program, passes: str) -> None:
    assert_agree(program, passes)


@given(programs(Features(regions=True)), st.sampled_from(list(PASSES)))
def test_data_flow_edges(program: Program, passes: str) -> None:
    assert_agree(program, EDGES_FIRST + passes)


@given(programs(Features(other_meshes=True, unreduced=True)), st.sampled_from(list(PASSES)))
def test_other_meshes_and_unreduced_axes(program: Program, passes: str) -> None:
    assert_agree(program, passes)


@given(
    programs(Features(10, True, True, True, True, True, True)),
    st.sampled_from(list(PASSES)),
)
def test_everything_together(program: Program, passes: str) -> None:
    assert_agree(program, EDGES_FIRST + passes)


@pytest.mark.parametrize("num_factors", [3, 9, 18])
@pytest.mark.parametrize("passes", list(SWEEPS))
def test_order_of_factors_shows(num_factors: int, passes: str) -> None:
    for program in showing_order_of_factors(num_factors):
        assert_agree(program, passes)


@pytest.mark.parametrize("passes", list(PASSES))
def test_order_of_uses_shows(passes: str) -> None:
    # The first use is visited first; that of an edge, where the edge took over the uses, last.
    assert_agree(showing_order_of_uses(with_edge=False), passes)
    assert_agree(showing_order_of_uses(with_edge=True), EDGES_FIRST + passes)
