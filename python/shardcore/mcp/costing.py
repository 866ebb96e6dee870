"""Tools that count what a program costs, now and with other annotations."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import shardcore
from shardcore import program_files
from shardcore.costs.longest import longest_collectives
from shardcore.errors import Diagnostic, ShardcoreError
from shardcore.labels import file_line
from shardcore.mcp.programs import Answer, Programs, call, table_text
from shardcore.mcp.reading import Which
from shardcore.mcp.toolbox import about, tool
from shardcore.units import format_bytes, format_seconds, plural

if TYPE_CHECKING:
    from shardcore.costs import CollectiveCost, Cost
    from shardcore.session import Evaluation, Session

Edit = dict[str, str | None]
_EDIT = 'shardings by target, {"params/**/w": "P(None, \'model\')"}; null removes an annotation'
_MOST_EDITS = 1000
_PLAN_SHARE = 0.5
"""The part of a call's time that a search may take; the rest is for its answer."""


@tool
def cost(
    programs: Programs,
    hardware: Annotated[
        str | None, about("the chip: tpu-v5p, h100; by default that of open")
    ] = None,
    top: Annotated[int, about("how many collectives are listed")] = 5,
    program: Which = None,
) -> Answer:
    """Say what a step costs on one device: time with its interval, memory, and the collectives
    that take longest, each with a number for why(collective=...)."""
    opened = programs.get(program)
    if hardware is not None:
        # An unknown chip does not become the default of later calls.
        opened.session.cost(hardware)
        opened.hardware = hardware
    found = opened.session.cost(opened.hardware)
    rows = longest_collectives(found, max(top, 0))
    lines = [_overview(found), _memory(found)]
    if rows:
        lines += ["", _collectives(rows)]
    after = "why(collective=1)" if rows else "shardings()"
    if not found.fits:
        after = "plan()"
    return Answer("\n".join(lines), after)


def _overview(cost: Cost) -> str:
    return (
        f"on {cost.hardware.name}: step {format_seconds(cost.step_seconds)}, 9 of 10 between "
        f"{format_seconds(cost.confidence.low)} and {format_seconds(cost.confidence.high)} "
        f"({cost.confidence}), at least {format_seconds(cost.step_seconds_lower)}; "
        f"compute {format_seconds(cost.compute_seconds)} at the peak, collectives "
        f"{format_seconds(cost.comm_seconds)}, {format_seconds(cost.exposed_seconds)} of it exposed"
    )


def _memory(cost: Cost) -> str:
    verdict = "fits" if cost.fits else "DOES NOT FIT"
    return (
        f"peak {format_bytes(cost.peak_bytes)} of {format_bytes(cost.hardware.hbm_bytes)}: "
        f"{verdict}; arguments {format_bytes(cost.argument_bytes)}; "
        f"{format_bytes(cost.rows.sent_bytes)} sent"
    )


def _collectives(rows: list[CollectiveCost]) -> str:
    return table_text(
        (">", "collective", "axes", "for", "at", ">runs", ">sent", ">time"),
        (
            (
                str(number),
                row.kind,
                ", ".join(row.axes),
                (row.cause or row.op or "").removeprefix("stablehlo."),
                file_line(row.cause_location or row.location),
                str(row.count),
                format_bytes(row.total_wire_bytes),
                format_seconds(row.total_seconds),
            )
            for number, row in enumerate(rows, 1)
        ),
        len(rows),
    )


@tool
def edit(
    programs: Programs,
    set: Annotated[Edit | None, about(_EDIT)] = None,
    plan: Annotated[bool, about("take the annotations that plan found, and no others")] = False,
    undo: Annotated[bool, about("take back the last edit")] = False,
    reset: Annotated[bool, about("restore the annotations that the program came with")] = False,
    program: Which = None,
) -> Answer:
    """Change annotations of the open program, and say how step, peak and bytes sent change."""
    opened = programs.get(program)
    if (set is not None) + plan + undo + reset != 1:
        raise _mistake("edit takes one of set, plan, undo, reset", 'edit(set={"%arg0": "P()"})')
    # An edit that is refused or interrupted changes nothing.
    if undo:
        session = opened.before()
    elif reset:
        session = opened.opened.__copy__()
    elif plan:
        if opened.planned is None:
            raise _mistake("there is no plan of this program", "call plan() first")
        session = opened.planned.__copy__()
    else:
        session = opened.session.__copy__()
        _set(session, set or {})
    before, after = (each.cost(opened.hardware) for each in (opened.session, session))
    if undo:
        opened.undo()
    else:
        opened.become(session)
    figures = (
        ("step", format_seconds, before.step_seconds, after.step_seconds),
        ("collectives", format_seconds, before.comm_seconds, after.comm_seconds),
        ("sent", format_bytes, before.rows.sent_bytes, after.rows.sent_bytes),
        ("peak", format_bytes, before.peak_bytes, after.peak_bytes),
    )
    rows = [
        (name, shown(old), shown(new), f"{new / old - 1:+.1%}" if old else "")
        for name, shown, old, new in figures
    ]
    table = table_text((f"on {opened.hardware}", ">before", ">after", ">change"), rows, len(rows))
    count = plural(len(session.annotations), "annotation")
    fits = "" if after.fits else "; DOES NOT FIT"
    is_worse = after.step_seconds > before.step_seconds or not after.fits
    return Answer(f"{table}\n{count}{fits}", "edit(undo=True)" if is_worse else "cost()")


def _set(session: Session, edits: Edit) -> None:
    """Apply all of ``edits``."""
    shardings = {target: text for target, text in edits.items() if text is not None}
    for target, text in edits.items():
        if text is None:
            session.unset(target)
    if shardings:
        session.set(shardings)


@tool
def evaluate(
    programs: Programs,
    edits: Annotated[list[Edit], about(f"edits to try, each {_EDIT}")],
    program: Which = None,
) -> Answer:
    """Try many edits, each by itself, and say what each costs, the shortest step first; the
    program stays as it is."""
    opened = programs.get(program)
    if not 0 < len(edits) <= _MOST_EDITS:
        raise _mistake(f"evaluate takes 1 to {_MOST_EDITS} edits, not {len(edits)}", None)
    now = opened.session.cost(opened.hardware)
    found = list(opened.session.evaluate(edits, opened.hardware))
    order = sorted(
        range(len(found)),
        key=lambda place: (found[place].error is not None, found[place].step_seconds or 0.0),
    )
    limit = now.hardware.hbm_bytes
    rows = [
        (
            "now",
            "as it is",
            *_figures(now.step_seconds, now.rows.sent_bytes, now.peak_bytes, limit),
        ),
        *((str(place), _edit_text(edits[place]), *_row(found[place], limit)) for place in order),
    ]
    columns = (">edit", "", ">step", ">sent", ">peak", "")
    table = table_text(columns, rows, 21)
    refused = next((found[place].error for place in order if found[place].error), None)
    if refused is not None:
        table += f"\nthe first that is refused: {refused}"
    best = found[order[0]]
    is_better = best.error is None and (best.step_seconds or 0.0) < now.step_seconds
    return Answer(table, call("edit", set=edits[order[0]]) if is_better else "plan()")


def _row(found: Evaluation, limit: float) -> tuple[str, ...]:
    if found.error is not None:
        return "refused", "", "", found.error.code
    return _figures(found.step_seconds or 0.0, found.comm_bytes or 0, found.peak_bytes or 0, limit)


def _figures(step: float, sent: int, peak: int, limit: float) -> tuple[str, ...]:
    fits = "" if peak <= limit else "does not fit"
    return format_seconds(step), format_bytes(sent), format_bytes(peak), fits


def _edit_text(edit: Edit) -> str:
    return "; ".join(f"{target} = {text or 'none'}" for target, text in edit.items())


@tool
def plan(
    programs: Programs,
    hardware: Annotated[str | None, about("the chip; by default that of open")] = None,
    devices: Annotated[int | None, about("consider all meshes of so many devices")] = None,
    mesh: Annotated[dict[str, int] | None, about('this mesh: {"data": 8, "model": 4}')] = None,
    memory: Annotated[
        str | None, about('memory of a device, "16GiB"; by default the chip\'s')
    ] = None,
    keep: Annotated[list[str] | None, about("targets whose annotations stay as they are")] = None,
    seconds: Annotated[float, about("the time for the search")] = 20.0,
    program: Which = None,
) -> Answer:
    """Find the few annotations that make a step fastest within the memory; the program stays as
    it is."""
    opened = programs.get(program)
    found = shardcore.plan(
        opened.session.module,
        hardware or opened.hardware,
        memory,
        mesh,
        devices,
        keep or (),
        min(seconds, programs.seconds * _PLAN_SHARE) if seconds > 0 else seconds,
    )
    gap = "" if found.gap is None else f", {found.gap:.1%} above what no plan can be below"
    lines = [
        f"{found.kind} over {found.mesh}, {found.evaluations} tried{gap}",
        _overview(found.cost),
        _memory(found.cost),
        *(f"  {target} = {text}" for target, text in found.specs.items()),
    ]
    opened.planned = found.session
    return Answer("\n".join(lines), "edit(plan=True)")


@tool
def diff(
    programs: Programs,
    base: Annotated[
        str | None,
        about(
            "what to compare with: another open program, p1, or the path of one; by default the "
            "program as it was opened"
        ),
    ] = None,
    top: Annotated[int, about("the most rows of each table")] = 5,
    program: Which = None,
) -> Answer:
    """Say what changed from another version of the program: step, peak, collectives by line,
    shardings, and annotations without effect."""
    opened = programs.get(program)
    before: Any
    if base is None:
        before = opened.opened.result
    elif programs.is_open(base):
        before = programs.get(base).result
        programs.get(opened.name)
    else:
        before = program_files.read(base)
    found = shardcore.diff(before, opened.result, opened.hardware)
    after = "cost()" if found.costs.lines or found.ports else "evaluate(edits=[...])"
    return Answer(found.text(top=max(top, 1)), after)


@tool
def explain(
    programs: Programs,
    dump: Annotated[
        str, about("the path of what XLA compiled: text, a proto, or the folder of a dump")
    ],
    profile: Annotated[str | None, about("the path of a trace of a run, for its times")] = None,
    program: Which = None,
) -> Answer:
    """Say of each collective that XLA's compiler left which op, line and annotation it comes from,
    and what became of those of the program."""
    opened = programs.get(program)
    found = shardcore.explain(Path(dump), opened.result, profile, hardware=opened.hardware)
    return Answer(str(found), "edit(...)" if found.parts else "cost()")


def _mistake(message: str, hint: str | None) -> ShardcoreError:
    return ShardcoreError(Diagnostic("invalid-arguments", message, hint))
