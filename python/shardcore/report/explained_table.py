"""Tables of a compiled program's collectives: their origin, and edits that remove them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from shardcore.explain.explained import CHANGES, REASONS
from shardcore.labels import file_line
from shardcore.report.console import paragraph, table
from shardcore.units import format_bytes, format_seconds, plural
from shardcore.why.text import edit_effect, edit_text

if TYPE_CHECKING:
    from shardcore.costs.records import CollectiveCost
    from shardcore.explain.explained import Explained, ExplainedCollective, ExplainedPart, Sums
    from shardcore.report.console import Part

MOST_EDITS = 5
"""How many collectives, the longest ones, edits are tried for."""

_Row = tuple["ExplainedCollective", "ExplainedPart", int, int, "float | None"]


def explained_parts(found: Explained, *, top: int = 20, edits: int = MOST_EDITS) -> list[Part]:
    """The parts of the report: sums, the ``top`` longest, and the cheapest ``edits``."""
    is_timed = found.trace is not None
    parts: list[Part] = [paragraph("\n".join(_head(found)) + "\n")]
    rows = _alike(found.longest())
    columns = ["collective", "axes", ">parts", "groups", ">runs", ">bytes"]
    columns += [">time"] if is_timed else []
    columns += ["op", "line", "scope", "XLA"]
    cells = [_cells(found, row, is_timed) for row in rows[:top]]
    if cells:
        parts.append(table(columns, cells, wrapped=("scope",)))
    if len(rows) > top:
        parts.append(paragraph(f"and {plural(len(rows) - top, 'more row')}"))
    if found.collectives:
        parts += _sums("line", found.by_line(), is_timed, top)
    if is_timed:
        scopes = {"/".join(filter(None, key)): sums for key, sums in found.by_scope().items()}
        parts += _sums("scope", scopes, is_timed, top)
        parts += _sums("annotation", found.by_annotation(), is_timed, top)
    parts += _edits(rows, edits)
    lost = [_dropped(row) for row in found.dropped]
    if lost:
        parts.append(paragraph("\nplanned, and not in the compiled program", is_title=True))
        parts.append(paragraph("\n".join(dict.fromkeys(lost[:top]))))
    reasons = dict.fromkeys(part.reason for part in found.parts if part.reason)
    lines = [f"  {reason}: {REASONS[reason]}" for reason in reasons]
    used = dict.fromkeys(change for part in found.parts for change in part.changes)
    lines += [f"  {change}: {CHANGES[change]}" for change in used]
    if lines:
        parts.append(paragraph("\nwhat the words mean", is_title=True))
        parts.append(paragraph("\n".join(lines)))
    return parts


def _dropped(row: CollectiveCost) -> str:
    op = (row.cause or "an op").removeprefix("stablehlo.")
    return f"  {row.kind} for {op} at {file_line(row.cause_location or row.location)}"


def _head(found: Explained) -> Iterable[str]:
    parts = found.parts
    size = sum(part.bytes * (row.runs or 1) for row in found.collectives for part in row.parts)
    yield (
        f"{found.module}, compiled for {found.platform}, {plural(found.num_devices, 'device')}: "
        f"{plural(len(found.collectives), 'collective')} of {plural(len(parts), 'part')}, "
        f"{format_bytes(size)}"
    )
    yield f"op or line known of {found.attributed:.1%}"
    if found.has_program:
        counts = found.counts()
        done = [f"{counts['planned']} as planned"]
        done += [f"{counts[change]} {change}" for change in CHANGES if counts[change]]
        done.append(f"{len(found.dropped)} dropped")
        of_plan = sum(part.planned is not None for part in parts)
        yield (
            f"{of_plan} of {len(parts)} are of the plan, which has {len(found.plan)}: "
            f"{', '.join(done)}"
        )
    if found.trace is not None:
        times = [row.seconds for row in found.collectives if row.seconds is not None]
        step = "" if found.step_seconds is None else f"step {format_seconds(found.step_seconds)}, "
        yield (
            f"measured in {file_line(found.trace)}: {step}{format_seconds(sum(times))} in "
            f"{len(times)} of {plural(len(found.collectives), 'collective')}"
        )
    yield from found.notes


def _alike(
    pairs: Sequence[tuple[ExplainedCollective, ExplainedPart]],
) -> list[_Row]:
    """The parts of one op and line, grouped if alike: the first part, their number, their sums."""
    known: dict[tuple[object, ...], list[tuple[ExplainedCollective, ExplainedPart]]] = {}
    for row, part in pairs:
        key = (row.kind, row.groups, row.runs, part.op, part.location, part.scope)
        known.setdefault((*key, part.direction, part.changes, part.reason), []).append((row, part))
    rows: list[_Row] = []
    for alike in known.values():
        times = [part.seconds for _, part in alike if part.seconds is not None]
        size = sum(part.bytes * (row.runs or 1) for row, part in alike)
        rows.append((*alike[0], len(alike), size, sum(times) if times else None))
    return sorted(rows, key=lambda row: (-(row[4] or 0.0), -row[3]))


def _cells(found: Explained, group: _Row, is_timed: bool) -> list[str]:
    row, part, count, size, seconds = group
    changes = ", ".join(part.changes) or ("" if part.planned is None else "as planned")
    changes += ", involuntary rematerialization" if part.rematerializes else ""
    scope = "/".join(filter(None, (part.scope, part.direction if part.op_name else "")))
    cells = [
        row.kind,
        ", ".join(part.planned.axes) if part.planned else "",
        str(count),
        _groups(row, found.num_devices),
        "?" if row.runs is None else f"{row.runs:,}",
        format_bytes(size),
    ]
    cells += ["" if seconds is None else format_seconds(seconds)] if is_timed else []
    cells += [
        (part.op or "").removeprefix("stablehlo."),
        file_line(part.location),
        scope,
        part.reason if part.reason in ("no-metadata", "not-in-program") else changes,
    ]
    return cells


def _groups(row: ExplainedCollective, num_devices: int) -> str:
    if not row.groups:
        return ""
    size = max(map(len, row.groups))
    return f"{len(row.groups)} of {size}" if size < num_devices else "all"


def _sums(what: str, found: Mapping[Any, Sums], is_timed: bool, top: int) -> list[Part]:
    columns = [what, ">parts", ">bytes", *([">time"] if is_timed else [])]
    rows = []
    for key, sums in list(found.items())[:top]:
        label = file_line(key) if what == "line" else key
        cells = [label or "unknown", str(sums.parts), format_bytes(sums.bytes)]
        if is_timed:
            cells.append("" if sums.seconds is None else format_seconds(sums.seconds))
        rows.append(cells)
    return [paragraph(f"\nby {what}", is_title=True), table(columns, rows)]


def _edits(rows: Sequence[_Row], most: int) -> list[Part]:
    lines = []
    for row, part, *_ in [each for each in rows if each[1].planned is not None][:most]:
        op = (part.op or "an op").removeprefix("stablehlo.")
        names = [f"{source.label or source.name}" for source in part.annotations]
        because = f", because of {' and '.join(names)}" if names else ""
        lines.append(f"  {row.kind} for {op} at {file_line(part.location)}{because}")
        edit = part.edit
        if edit is None:
            lines.append("    no edit of one annotation that was tried removes it")
        else:
            record = edit.record()
            lines.append(f"    {edit_text(record)}: it {edit_effect(record)}")
    if not lines:
        return []
    return [paragraph("\ncheapest edits", is_title=True), paragraph("\n".join(lines))]
