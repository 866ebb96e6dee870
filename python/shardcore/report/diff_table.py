"""Tables of the changes between two versions of a program."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from shardcore.labels import file_line, folded
from shardcore.report.comparison_table import NAMES, format_of, percent, signed
from shardcore.report.console import paragraph, table
from shardcore.units import format_seconds, plural

if TYPE_CHECKING:
    from shardcore.costs.compare import Comparison, Figure
    from shardcore.diff import Diff
    from shardcore.errors import Diagnostic
    from shardcore.expect import Check
    from shardcore.report.console import Part

_TOTALS = ("step_seconds", "compute_seconds", "comm_seconds", "peak_bytes")
"""The figures that are shown even if they did not change."""


def diff_parts(diff: Diff, *, top: int = 10) -> list[Part]:
    """The parts of the report, with at most ``top`` rows in each table."""
    parts: list[Part] = [paragraph(_title(diff), is_title=True)]
    if diff.meshes[0] != diff.meshes[1]:
        parts.append(_table(("", "before", "after"), [("mesh", *diff.meshes)]))
    parts.append(_totals(diff.costs, diff.hardware))
    sections = (
        ("does not hold", ("expectation", "expected", "found"), list(_failures(diff.check))),
        (
            "collectives that changed",
            ("line", "number", ">bytes", ">time"),
            list(_collectives(diff.costs)),
        ),
        (
            "arguments and results that are sharded otherwise",
            ("name", "", "before", "after"),
            list(_ports(diff)),
        ),
        (
            "values that are sharded otherwise",
            ("line", "op", ">values", "before", "after"),
            list(_values(diff)),
        ),
        ("new to look at", ("line", "what", "what to do"), list(map(_warning, diff.appeared))),
        ("mended", ("line", "what", ""), [(*_warning(each)[:2], "") for each in diff.gone]),
    )
    for title, columns, rows in sections:
        if rows:
            parts += [paragraph(f"\n{title}", is_title=True), _table(columns, rows[:top])]
        if len(rows) > top:
            parts.append(paragraph(f"... {plural(len(rows) - top, 'row')} more"))
    return parts


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Part:
    kept = [place for place, name in enumerate(columns) if name or any(row[place] for row in rows)]
    return table(
        [columns[place] for place in kept], [[row[place] for place in kept] for row in rows]
    )


def _title(diff: Diff) -> str:
    figures = {row.name: row for row in diff.costs.totals}
    said = [f"{NAMES[name]} {_changed(figures[name])}" for name in ("step_seconds", "peak_bytes")]
    found = len(diff.ports) + sum(row.count for row in diff.values)
    if found:
        said.append(f"{plural(found, 'value')} sharded otherwise")
    if diff.check is not None and not diff.check:
        said.append(f"{plural(len(diff.check.failures), 'expectation')} broken")
    return ", ".join(said)


def _changed(figure: Figure) -> str:
    before, after = (format_of(figure.name)(each) for each in (figure.before, figure.after))
    if before == after:
        return f"{after}, as before"
    return f"{before} -> {after} ({percent(figure) or signed(figure)})"


def _totals(costs: Comparison, hardware: str) -> Part:
    figures = {row.name: row for row in costs.totals}
    rows = []
    for name in _TOTALS:
        row = figures[name]
        before, after = (format_of(name)(each) for each in (row.before, row.after))
        if name == "step_seconds":
            low, high = figures["step_seconds_lower"], figures["step_seconds_upper"]
            before += _interval(low.before, high.before)
            after += _interval(low.after, high.after)
        rows.append((NAMES[name], before, after, signed(row), percent(row)))
    return _table((f"on {hardware}", ">before", ">after", ">change", ">"), rows)


def _interval(low: float, high: float) -> str:
    return f" ({format_seconds(low)} to {format_seconds(high)})"


def _failures(check: Check | None) -> Iterator[tuple[str, ...]]:
    from shardcore.expect.mistakes import dotted

    for failure in () if check is None else check.failures:
        yield dotted(failure.path), failure.expected, "; ".join(failure.actual)


def _collectives(costs: Comparison) -> Iterator[tuple[str, ...]]:
    for row in costs.lines:
        if row.collectives or row.comm_bytes.change:
            numbers = (f"{kind} {old} -> {new}" for kind, (old, new) in row.collectives.items())
            place = file_line(row.place) or row.place
            yield place, ", ".join(numbers), signed(row.comm_bytes), signed(row.comm_seconds)


def _ports(diff: Diff) -> Iterator[tuple[str, ...]]:
    rows = ((row.name, (row.before, row.after), row) for row in diff.ports)
    for name, joined in folded(rows):
        first = joined[0]
        count = "" if len(joined) == 1 else f"x {len(joined)}"
        yield name, count, first.before or "was not there", first.after or "is not there"


def _values(diff: Diff) -> Iterator[tuple[str, ...]]:
    for row in diff.values:
        place = file_line(row.place) or row.place
        op = row.op.removeprefix("stablehlo.")
        yield place, op, str(row.count), ", ".join(row.before), ", ".join(row.after)


def _warning(warning: Diagnostic) -> tuple[str, ...]:
    place = file_line(warning.location) or warning.value or ""
    return place, f"{warning.code}: {warning.message}", warning.hint or ""
