"""Random programs on which the oracle has to agree with shardcore, and with the reference."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from hypothesis import given
from hypothesis import strategies as st

from tests.oracle.graph import Program
from tests.property.passes import EDGES_FIRST, PASSES, SCHEDULES, SWEEPS
from tests.property.programs import (
    Features,
    programs,
    showing_order_of_factors,
    showing_order_of_uses,
    single_ops,
)


class Case(NamedTuple):
    """Programs, and the passes of which one is run on each."""

    programs: st.SearchStrategy[Program]
    passes: Iterable[str]


AFTER_EDGES = [EDGES_FIRST + passes for passes in PASSES]
CASES = {
    "one op": Case(single_ops(), SWEEPS),
    "sweep": Case(programs(), SWEEPS),
    "schedule": Case(programs(Features(max_ops=10)), SCHEDULES),
    "dead ops": Case(programs(Features(dead_ops=True)), PASSES),
    "priorities": Case(programs(Features(priorities=True)), SCHEDULES),
    "sharding groups": Case(programs(Features(groups=True)), PASSES),
    "data-flow edges": Case(programs(Features(regions=True)), AFTER_EDGES),
    "other meshes and unreduced axes": Case(
        programs(Features(other_meshes=True, unreduced=True)), PASSES
    ),
    "much together": Case(
        programs(Features(10, priorities=True, groups=True, regions=True, other_meshes=True)),
        AFTER_EDGES,
    ),
    "everything together": Case(
        programs(Features(10, True, True, True, True, True, True)), AFTER_EDGES
    ),
}
# The reference dies on dead ops with a later priority.
THE_REFERENCE_DIES = {"everything together"}
Check = Callable[[Program, str], None]


def check_random_programs(name: str, assert_agree: Check) -> None:
    case = CASES[name]
    given(case.programs, st.sampled_from(list(case.passes)))(assert_agree)()


def check_order_of_factors(num_factors: int, passes: str, assert_agree: Check) -> None:
    for program in showing_order_of_factors(num_factors):
        assert_agree(program, passes)


def check_order_of_uses(passes: str, assert_agree: Check) -> None:
    """The first use is visited first; that of an edge, where it took over the uses, last."""
    assert_agree(showing_order_of_uses(with_edge=False), passes)
    assert_agree(showing_order_of_uses(with_edge=True), EDGES_FIRST + passes)
