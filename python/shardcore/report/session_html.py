"""A session in a notebook: the annotations, and what the last edit changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import TYPE_CHECKING

from shardcore.errors import ShardcoreError
from shardcore.labels import folded
from shardcore.report.comparison_table import comparison_parts
from shardcore.report.html import MAX_COLLECTIVES, MAX_ROWS, STYLE, html_table, parts_html
from shardcore.units import plural

if TYPE_CHECKING:
    from shardcore._core import Result, TensorSharding
    from shardcore.session import Session


def session_html(session: Session) -> str:
    """Return ``session`` as an HTML element: the annotations, and what the last edit changed, by
    value and by cost.
    """
    annotations = [(name, str(sharding)) for name, sharding in session.annotations.items()]
    drawn = _rows(("annotated", "count", "sharding"), [(name, (it,)) for name, it in annotations])
    before = session._before()
    changed = "" if before is None else _changed(before, session)
    return f"<div {STYLE}><div>{escape(repr(session))}</div>{drawn}{changed}</div>"


def _changed(before: Session, now: Session) -> str:
    """The changes made by the last edit."""
    try:
        found = list(_differences(before._propagated(), now._propagated()))
    except ShardcoreError as error:
        return f"<div>{escape(f'the program cannot be completed: {error.message}')}</div>"
    columns = ("changed by the last edit", "count", "before", "after")
    shown = _rows(columns, found) if found else "<div>the last edit changed no sharding</div>"
    return f"<div>&nbsp;</div>{shown}{_costs(before, now)}"


def _differences(before: Result, after: Result) -> Iterator[tuple[str, tuple[str, str]]]:
    """The arguments, results and values with different shardings, with both shardings."""
    old, new = _shardings(before), _shardings(after)
    for name, sharding in new.items():
        # Reshards that only one result has are part of the cost comparison.
        if name in old and old[name] != sharding:
            yield name, (_text(old[name]), _text(sharding))


def _shardings(result: Result) -> dict[str, TensorSharding | None]:
    ports = [*result.arguments(), *result.results()]
    found = {port.label or port.name: port.sharding for port in ports}
    names = {port.name for port in ports}
    for value in result.values():
        if value.qualified_name not in names:
            found.setdefault(value.qualified_name, value.sharding)
    return found


def _text(sharding: TensorSharding | None) -> str:
    return "" if sharding is None else str(sharding)


def _costs(before: Session, now: Session) -> str:
    from shardcore.costs.compare import compare

    hardware, options = now._counted_for
    try:
        costs = [session.cost(hardware, **options) for session in (before, now)]
    except ShardcoreError as error:
        return f"<div>{escape(f'its cost is not known: {error.message}')}</div>"
    note = f"<div>times are for {escape(costs[1].hardware.name)}</div>"
    return parts_html(comparison_parts(compare(*costs), top=MAX_COLLECTIVES)) + note


def _rows(columns: tuple[str, ...], rows: Sequence[tuple[str, tuple[str, ...]]]) -> str:
    """A table of ``rows``; rows whose names differ only in numbers are merged."""
    joined = folded((name, texts, texts) for name, texts in rows)
    lines = [[name, str(len(alike)), *alike[0]] for name, alike in joined]
    more = f"... {plural(len(lines) - MAX_ROWS, 'row')} more" if len(lines) > MAX_ROWS else ""
    return f"{html_table(columns, lines[:MAX_ROWS])}<div>{more}</div>"
