"""A plan as tables: its annotations, what it costs, and what it was chosen from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shardcore.report.console import paragraph, table
from shardcore.session.targets import listed
from shardcore.units import format_bytes, format_seconds, plural

if TYPE_CHECKING:
    from shardcore.plan.answer import Plan
    from shardcore.report.console import Part

COLUMNS = ("kind", "mesh", ">step", ">compute", ">collectives", ">peak", "why not")
_MOST_NAMES = 4
"""The names of a target that lists several that are shown."""
_ENDS = {
    "done": "nothing better was found nearby",
    "seconds": "the time was up",
    "interrupted": "it was interrupted",
}


def plan_parts(plan: Plan) -> list[Part]:
    """The parts of the report."""
    cost = plan.cost
    lines = [
        f"{plan.kind} over {_mesh(plan.mesh.shape)}, on {cost.hardware.name}, policy {cost.policy}",
        f"  step         {format_seconds(cost.serial_seconds)}: "
        f"{format_seconds(cost.compute_seconds)} of ops and "
        f"{format_seconds(cost.comm_seconds)} of collectives",
        f"  {_bound(plan)}",
        f"  peak memory  {format_bytes(cost.peak_bytes)} of {format_bytes(plan.limit)}",
        f"  tried        {plan.evaluations}; {_ENDS[plan.stopped]}",
    ]
    parts: list[Part] = [paragraph("\n".join(lines))]
    count = plural(len(plan.specs), "annotation")
    rows = [
        (_shown(target), plan.specs[target], str(sharding), plan.places.get(target, ""))
        for target, sharding in plan.annotations.items()
    ]
    parts.append(paragraph(f"\n{count}", is_title=True))
    if rows:
        columns = ("target", "JAX", "sdy", *(["source"] if plan.places else []))
        cells = [row[: len(columns)] for row in rows]
        parts.append(table(columns, cells, wrapped=columns[:3]))
    if plan.alternatives:
        parts.append(paragraph("\nothers", is_title=True))
        parts.append(table(COLUMNS, _alternatives(plan), wrapped=COLUMNS[-1:]))
    return parts


def _shown(target: str) -> str:
    """``target``; of a list of many names the first ones."""
    names = listed(target)
    if len(names) <= _MOST_NAMES:
        return target
    return f"{', '.join(names[: _MOST_NAMES - 1])}, ... {len(names) - _MOST_NAMES + 1} more"


def _bound(plan: Plan) -> str:
    """How far the plan is from what no plan can do better than."""
    if plan.objective == "time":
        value, bound = format_seconds(plan.value), format_seconds(plan.bound)
    else:
        value, bound = format_bytes(plan.value), format_bytes(plan.bound)
    gap = "" if plan.gap is None else f"; {value} is {plan.gap:.1%} above it"
    return f"bound        no plan is below {bound}{gap}"


def _alternatives(plan: Plan) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for each in plan.alternatives:
        found = each.figures
        figures = ("", "", "", "")
        if found.error is None:
            figures = (
                format_seconds(found.serial_seconds or 0.0),
                format_seconds(found.compute_seconds or 0.0),
                format_seconds(found.comm_seconds or 0.0),
                format_bytes(found.peak_bytes or 0),
            )
        rows.append((each.kind, _mesh(each.mesh.shape), *figures, each.reason))
    return rows


def _mesh(sizes: dict[str, int]) -> str:
    return ",".join(f"{name}={size}" for name, size in sizes.items())
