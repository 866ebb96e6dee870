"""HTML for notebooks: tables of memory, axes, collectives and values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING

from rich.table import Table

from shardcore.errors import ShardcoreError
from shardcore.report.console import FittedTable, PlainTable
from shardcore.report.cost_table import COLLECTIVE_COLUMNS, collective_cells
from shardcore.report.table import COLUMNS, cells, selection
from shardcore.units import format_bytes, plural

if TYPE_CHECKING:
    from shardcore._core import FactorTable, Module, Result, Value
    from shardcore.report.console import Part

MAX_ROWS = 40
"""If there are more values, they are not listed."""
MAX_COLLECTIVES = 10
"""How many collectives, the most expensive ones, are listed."""
STYLE = 'style="font-family: ui-monospace, monospace; font-size: 12px; text-align: left"'


def result_html(result: Result) -> str:
    """Return ``result`` as an HTML element: memory, axes, collectives, values."""
    summary = result.summary()
    before, after = summary["before"], summary["after"]
    values, more = selection(result, MAX_ROWS)
    rows = _rows(values)
    peak, collectives = _costs(result)
    kinds = (
        ("arguments", "argument_bytes_per_device"),
        ("results", "result_bytes_per_device"),
        ("all values", "bytes_per_device"),
    )
    memory = [[name, format_bytes(before[key]), format_bytes(after[key])] for name, key in kinds]
    axes = [
        [
            f"{axis['name']}={axis['size']}",
            f"@{axis['mesh']}" if axis["mesh"] else "",
            str(axis["values"]),
            str(axis["arguments"]),
        ]
        for axis in after["axes"]
    ]
    return (
        f"<div {STYLE}><div>{after['sharded_values']} of {after['values']} values are sharded "
        f"(annotated: {before['sharded_values']})</div>"
        f"{html_table(('bytes per device', 'before', 'after'), [*memory, *peak])}"
        f"{html_table(('axis', 'mesh', 'shards values', 'arguments'), axes)}{collectives}"
        f"{html_table(COLUMNS, rows)}<div>{escape(more)}</div></div>"
    )


def _costs(result: Result) -> tuple[list[list[str]], str]:
    """The row of the peak and the collectives; if there is no cost, the reason."""
    try:
        cost = result.cost()
    except ShardcoreError as error:
        return [], f"<div>{escape(f'its cost is not known: {error.message}')}</div>"
    top = cost.top_collectives(MAX_COLLECTIVES)
    rest = len(cost.collectives) - len(top)
    others = f"{plural(rest, 'collective')} more; " if rest else ""
    drawn = html_table(
        [name.lstrip(">") for name in COLLECTIVE_COLUMNS], map(collective_cells, top)
    )
    note = (
        f"<div>{escape(f'{others}times are for {cost.hardware.name}, policy {cost.policy}')}</div>"
    )
    peak = [["live at the peak", "", format_bytes(cost.peak_bytes)]]
    return peak, drawn + note if drawn else ""


def value_html(value: Value) -> str:
    """Return ``value`` as an HTML element, with a picture of its sharding if it has one."""
    head = escape(f"{value.name}: {value.type}")
    where = f" <i>{escape(value.location)}</i>" if value.location else ""
    known = value.sharding is not None and value.sharding.mesh is not None
    drawing = value.visualize()._repr_html_() if known else "<div>no sharding</div>"
    return f"<div {STYLE}><div><b>{head}</b>{where}</div>{drawing}</div>"


def _rows(values: Sequence[Value]) -> list[list[str]]:
    return [cells(value) for value in values]


def module_html(module: Module) -> str:
    """Return ``module`` as an HTML element: its size, its meshes, its first values."""
    totals = module.totals()
    meshes = [
        [f"@{name}", ", ".join(f"{axis.name}={axis.size}" for axis in mesh.axes)]
        for name, mesh in module.meshes.items()
    ]
    counts = (
        f"{plural(module.num_ops, 'op')}; {totals['sharded_values']} of {totals['values']} values"
    )
    values, more = selection(module, MAX_ROWS)
    rows = _rows(values)
    return (
        f"<div {STYLE}><div>{escape(f'{module.filename}: {counts} are sharded')}</div>"
        f"{html_table(('mesh', 'axes'), meshes)}"
        f"{html_table(COLUMNS, rows)}<div>{escape(more)}</div></div>"
    )


def factor_table_html(table: FactorTable) -> str:
    """Return ``table`` as an HTML element: factors before and after a visit."""
    free = [(name, getattr(table, name)) for name in ("replicated", "unreduced")]
    free = [(name, axes) for name, axes in free if axes]
    sizes = (f"{symbol}={size}" for symbol, size, _ in table.factors)
    columns = ("", *sizes, *(name for name, _ in free))
    kinds = ("kind", *(kind for _, _, kind in table.factors), *("" for _ in free))
    drawn = "".join(
        html_table(
            (title, *columns[1:]),
            [
                [
                    name,
                    *(row.get(symbol, "-") or "{}" for symbol, _, _ in table.factors),
                    *(axes.get(name, "") for _, axes in free),
                ]
                for name, row in rows.items()
            ]
            + ([list(kinds)] if title == "before" else []),
        )
        for title, rows in (("before", table.before), ("after", table.after))
    )
    return f"<div {STYLE}><div><b>{escape(table.op)}</b></div>{drawn}</div>"


def parts_html(parts: Iterable[Part]) -> str:
    """Return the parts of a report as an HTML element."""
    return f"<div {STYLE}>{''.join(map(_part, parts))}</div>"


def text_html(text: object) -> str:
    """Return the lines of ``str(text)`` as an HTML element."""
    return f'<pre style="font-size: 12px">{escape(str(text))}</pre>'


def _part(part: Part) -> str:
    if isinstance(part, (PlainTable, FittedTable)):
        return html_table([name.lstrip(">") for name in part.columns], part.rows)
    if isinstance(part, Table):
        rows = zip(*(map(str, column.cells) for column in part.columns), strict=True)
        return html_table([str(column.header) for column in part.columns], rows)
    return f'<div style="white-space: pre">{escape(str(part))}</div>'


def html_table(names: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of plain text."""

    def line(tag: str, cells: Iterable[str]) -> str:
        style = 'style="text-align: left; padding: 1px 8px"'
        inner = (f"<{tag} {style}>{escape(cell)}</{tag}>" for cell in cells)
        return f"<tr>{''.join(inner)}</tr>"

    body = "".join(line("td", row) for row in rows)
    if not body:
        return ""
    head = line("th", names)
    return f'<table style="font: inherit"><thead>{head}</thead><tbody>{body}</tbody></table>'
