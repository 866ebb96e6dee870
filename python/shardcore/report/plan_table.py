"""Tables of a plan: its annotations, its cost, and the alternatives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from shardcore.report.console import paragraph, table
from shardcore.report.pipeline_table import pipeline_words, stages_parts
from shardcore.session.targets import listed
from shardcore.units import format_bytes, format_seconds, plural

if TYPE_CHECKING:
    from shardcore.plan.answer import Plan
    from shardcore.plan.stated import Constraint
    from shardcore.report.console import Part

COLUMNS = ("kind", "mesh", ">step", ">compute", ">collectives", ">peak", "why not")
_MOST_NAMES = 4
"""How many names of a list are shown."""
_ENDS = {
    "done": "nothing better was found nearby",
    "seconds": "the time was up",
    "interrupted": "it was interrupted",
}


def plan_parts(plan: Plan) -> list[Part]:
    """The parts of the report."""
    # The calculus is imported here, as the package does not import it.
    from shardcore.calculus.partition_spec import spec_text

    cost, pipeline = plan.cost, plan.pipeline
    over = f"{plan.kind} over {_mesh(plan.mesh.shape)}"
    step = [
        f"  step         {format_seconds(cost.step_seconds)}, at least "
        f"{format_seconds(cost.step_seconds_lower)}",
        f"  at the peak  {format_seconds(cost.serial_seconds)}: "
        f"{format_seconds(cost.compute_seconds)} of ops and "
        f"{format_seconds(cost.comm_seconds)} of collectives, nothing overlapped",
    ]
    if pipeline is not None:
        over += f", {pipeline_words(pipeline.best)}"
        low, high = map(format_seconds, plan.interval)
        waits = f"stages wait {pipeline.best.timeline.bubble:.1%}"
        step = [f"  step         {format_seconds(plan.step_seconds)}, {low} to {high}; {waits}"]
    lines = [
        f"{over}, on {cost.hardware.name}, policy {cost.policy}",
        f"  mesh         {plan.placement or 'one device'}",
        *step,
        f"  {_bound(plan)}",
        f"  peak memory  {format_bytes(plan.peak_bytes)} of {format_bytes(plan.limit)}",
        f"  tried        {plan.evaluations}; {_ENDS[plan.stopped]}",
    ]
    lines += [f"  layers       {each}: {kept}" for each, kept in plan.policies.items()]
    if plan.why:
        lines.append(f"  why          {plan.why}")
    parts: list[Part] = [paragraph("\n".join(lines))]
    if pipeline is not None:
        parts += stages_parts(pipeline.best)
    count = plural(len(plan.specs), "annotation")
    made = {each.target: _made(each) for each in plan.constraints if each.location}
    rows = [
        (_made_of(target, made) or _shown(target), plan.specs[target], str(sharding))
        for target, sharding in plan.annotations.items()
    ]
    parts.append(paragraph(f"\n{count}", is_title=True))
    if rows:
        columns = ("target", "JAX", "sdy")
        parts.append(table(columns, rows, wrapped=columns))
    parts.append(paragraph("\nrules for all arguments", is_title=True))
    parts.append(table(("path", "JAX"), [(rule, spec_text(s)) for rule, s in plan.rules.items()]))
    if plan.constraints:
        parts.append(paragraph("\nlines to add", is_title=True))
        parts.append(paragraph("\n".join(dict.fromkeys(f"  {each}" for each in plan.constraints))))
    if plan.unreached:
        values = plural(len(plan.unreached), "constrained value")
        text = f"\nno line of a file reaches {values}; without, the step is another one"
        parts.append(paragraph(text))
    if plan.changes:
        parts.append(paragraph("\nchanges, each with those before", is_title=True))
        parts.append(table(("change", ">step", ">peak", ""), _changes(plan), wrapped=("change",)))
    if plan.alternatives:
        parts.append(paragraph("\nothers", is_title=True))
        parts.append(table(COLUMNS, _alternatives(plan), wrapped=COLUMNS[-1:]))
    return parts


def _made_of(target: str, made: Mapping[str, str]) -> str:
    """Where the values of ``target`` are made; empty if that is not known of each."""
    found = [made.get(name, "") for name in listed(target)]
    return ", ".join(dict.fromkeys(found)) if all(found) else ""


def _shown(target: str) -> str:
    """``target``; only the first names of a long list."""
    names = listed(target)
    if len(names) <= _MOST_NAMES:
        return target
    return f"{', '.join(names[: _MOST_NAMES - 1])}, ... {len(names) - _MOST_NAMES + 1} more"


def _made(constraint: Constraint) -> str:
    """The variable of a value in the user's file, or its op, with the line."""
    known = constraint.site is not None and constraint.site.name
    return f"{known or constraint.primitive or constraint.op} at {constraint.place}"


def _bound(plan: Plan) -> str:
    """A text on the distance between the plan and its lower bound."""
    if plan.objective in ("time", "step"):
        value = format_seconds(plan.value)
        bound = f"{format_seconds(plan.bound)} at the peak"
    else:
        value, bound = format_bytes(plan.value), format_bytes(plan.bound)
    gap = "" if plan.gap is None else f"; {value} is {plan.gap:.1%} above it"
    return f"bound        no plan is below {bound}{gap}"


def _changes(plan: Plan) -> list[tuple[str, ...]]:
    return [
        (
            each.what,
            "" if each.step_seconds is None else format_seconds(each.step_seconds),
            "" if each.peak_bytes is None else format_bytes(each.peak_bytes),
            "" if each.fits else "does not fit",
        )
        for each in plan.changes
    ]


def _alternatives(plan: Plan) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for each in plan.alternatives:
        found = each.figures
        figures = ("", "", "", "")
        if found.error is None:
            times = (found.step_seconds, found.compute_seconds, found.comm_seconds)
            step, compute, sent = ("" if at is None else format_seconds(at) for at in times)
            figures = (step, compute, sent, format_bytes(found.peak_bytes or 0))
        rows.append((each.kind, _mesh(each.mesh.shape), *figures, each.reason))
    return rows


def _mesh(sizes: dict[str, int]) -> str:
    return ",".join(f"{name}={size}" for name, size in sizes.items())
