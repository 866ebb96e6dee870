"""The propagation passes by their textual names, and what the oracle does in their place."""

from __future__ import annotations

from collections.abc import Callable

from tests.oracle import schedule
from tests.oracle.graph import Program, add_data_flow_edges
from tests.oracle.schedule import Options
from tests.oracle.sharding import TensorSharding
from tests.oracle.state import State
from tests.oracle.visit import Strategy

# What something is, and its shardings: "arguments", an op's name, or "results".
Row = tuple[str, list[TensorSharding | None]]

CONSERVATIVE = Options(conservative=True)
BASIC_THEN_AGGRESSIVE = Options((Strategy.BASIC, Strategy.AGGRESSIVE))
WITHOUT_OP_PRIORITIES = Options(op_priorities=False)
THEN = "propagation-strategy=basic-then-aggressive"

Pass = Callable[[Program], State]

SWEEPS: dict[str, Pass] = {
    "sdy-basic-propagate": schedule.basic_propagate,
    "sdy-basic-propagate{conservative-propagation=true}": (
        lambda program: schedule.basic_propagate(program, conservative=True)
    ),
    "sdy-aggressive-propagate": schedule.aggressive_propagate,
    "sdy-aggressive-propagate{conservative-propagation=true}": (
        lambda program: schedule.aggressive_propagate(program, CONSERVATIVE)
    ),
    f"sdy-aggressive-propagate{{{THEN}}}": (
        lambda program: schedule.aggressive_propagate(program, BASIC_THEN_AGGRESSIVE)
    ),
}
SCHEDULES: dict[str, Pass] = {
    "sdy-op-priority-propagate": schedule.op_priority_propagate,
    "sdy-user-priority-propagate": schedule.user_priority_propagate,
    f"sdy-user-priority-propagate{{{THEN}}}": (
        lambda program: schedule.user_priority_propagate(program, BASIC_THEN_AGGRESSIVE)
    ),
    "sdy-user-priority-propagate{run-op-priority-propagation=false}": (
        lambda program: schedule.user_priority_propagate(program, WITHOUT_OP_PRIORITIES)
    ),
}
PASSES = SWEEPS | SCHEDULES
EDGES_FIRST = "sdy-add-data-flow-edges,"


def oracle_rows(program: Program, passes: str) -> list[Row]:
    """Run one of the passes above, after adding data-flow edges if so asked."""
    if passes.startswith(EDGES_FIRST):
        add_data_flow_edges(program)
    return PASSES[passes.removeprefix(EDGES_FIRST)](program).annotations()
