"""Tables of measured steps next to the estimated costs of their programs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from shardcore.report.console import paragraph, table

if TYPE_CHECKING:
    from shardcore.bench.leaderboard import Line, Summary
    from shardcore.report.console import Part

_COLUMNS = ("row", "run", "", ">measured", ">lower", ">point", ">upper", ">error")
_SUMMARY = ("", ">rows", ">costed", ">median", ">90%", ">bias", ">in the interval", ">below lower")
_MEMORY = ("row", "run", ">published", ">ours", ">error")
_TITLES = {"family": "by family", "type": "by type of products", "chips": "by number of chips"}


def steps_parts(lines: Sequence[Line], sums: dict[str, list[Summary]]) -> list[Part]:
    """The parts of the report."""
    costed = [line for line in lines if line.reason is None]
    parts = [
        paragraph("seconds of a step; * is held out", is_title=True),
        table(_COLUMNS, map(_row, costed)),
    ]
    refused = [line for line in lines if line.reason is not None]
    if refused:
        parts.append(paragraph("\nnot built", is_title=True))
        rows = [(str(line.row.number), line.row.name, line.reason or "") for line in refused]
        parts.append(table(("row", "run", "because"), rows, wrapped=("because",)))
    parts += [
        paragraph("\nabsolute errors of the point estimate", is_title=True),
        table(_SUMMARY, (_sum(f"{one.name}, {one.half}", one) for one in _halves(sums))),
    ]
    for key, title in _TITLES.items():
        found = [_sum(one.name, one) for one in sums[key]]
        parts += [paragraph(f"\n{title}", is_title=True), table(_SUMMARY, found)]
    if sums["calibrated"]:
        title = "\nthe held-out half, after calibration with one row of the other for each chip"
        found = [_sum(one.name, one) for one in sums["calibrated"]]
        parts += [paragraph(title, is_title=True), table(_SUMMARY, found)]
    memory = [line for line in costed if line.memory_error is not None]
    if memory:
        parts += [
            paragraph("\npeak memory, GiB", is_title=True),
            table(_MEMORY, map(_memory_row, memory)),
        ]
    return [*parts, *_remarks(lines)]


def _halves(sums: dict[str, list[Summary]]) -> list[Summary]:
    return [one for one in (*sums["half"], *sums["chip"]) if one.rows]


def _row(line: Line) -> tuple[str, ...]:
    figures = (line.measured, line.lower, line.point, line.upper)
    return (
        str(line.row.number),
        line.row.name,
        "*" if line.row.is_held_out else "",
        *("" if figure is None else f"{figure:.3f}" for figure in figures),
        _signed(line.error),
    )


def _memory_row(line: Line) -> tuple[str, ...]:
    published, ours = line.row.peak_bytes or 0, line.peak_bytes or 0
    sizes = (f"{published / 2**30:.1f}", f"{ours / 2**30:.1f}")
    return str(line.row.number), line.row.name, *sizes, _signed(line.memory_error)


def _sum(name: str, one: Summary) -> tuple[str, ...]:
    counts = (str(one.rows), str(one.costed))
    shares = ("" if share is None else f"{share:.1%}" for share in (one.median, one.p90))
    return name, *counts, *shares, _signed(one.bias), str(one.within), str(one.below)


def _signed(share: float | None) -> str:
    return "" if share is None else f"{share:+.1%}"


def _remarks(lines: Sequence[Line]) -> list[Part]:
    """The assumptions, and what is not modelled, with the rows that each concerns."""
    parts: list[Part] = []
    for title, said in (
        ("assumed, where the source does not say", lambda line: line.assumptions),
        ("said by the source, and not modelled", lambda line: line.row.notes),
        ("in no figure", lambda line: dict.fromkeys(line.uncounted)),
    ):
        rows: dict[str, list[int]] = {}
        for line in lines:
            for text in said(line):
                rows.setdefault(text, []).append(line.row.number)
        if rows:
            found = [(text, ranges(own)) for text, own in rows.items()]
            parts.append(paragraph(f"\n{title}", is_title=True))
            parts.append(table(("what", "rows"), found, wrapped=("rows",)))
    return parts


def ranges(numbers: Iterable[int]) -> str:
    """Ascending ``numbers`` as text, with ranges.

    >>> ranges([1, 2, 3, 7])
    '1-3, 7'
    """
    found: list[list[int]] = []
    for number in numbers:
        if found and number == found[-1][-1] + 1:
            found[-1][1:] = [number]
        else:
            found.append([number])
    return ", ".join("-".join(map(str, dict.fromkeys(each))) for each in found)
