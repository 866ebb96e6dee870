"""A result as a table."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from shardcore.labels import REPLICATED, folded, is_inserted
from shardcore.report.console import paragraph, plain_text, show, table
from shardcore.units import format_bytes, plural

if TYPE_CHECKING:
    from rich.console import Console

    from shardcore._core import Module, Port, Result, Value
    from shardcore.report.console import Part

MAX_PORTS = 60
"""The most rows of arguments, and of results, in ``str(result)``."""
COLUMNS = ("value", "shape", "sharding", "local shape", "per device", "source")


def format_shape(value: Value | Port) -> str:
    """Shape and element type as MLIR writes them in ``tensor<...>``: ``8x16xf32``."""
    if value.shape is None:
        return value.type
    return "x".join(
        [*("?" if size is None else str(size) for size in value.shape), value.dtype or ""]
    )


def format_local_shape(value: Value | Port) -> str:
    """The shape on one device, ``4x16``; empty if it is unknown."""
    return "" if value.local_shape is None else "x".join(map(str, value.local_shape))


def format_sharding(value: Value | Port) -> str:
    """The sharding without its mesh, ``[{"data"}, {}]``."""
    if value.sharding is None:
        return ""
    text, mesh = str(value.sharding), value.sharding.mesh
    is_on_one_device = mesh is not None and mesh.is_maximal
    if is_on_one_device or ", [" not in text:
        return text
    return text[text.index(", [") + 2 : -1]


def cells(value: Value) -> list[str]:
    """The cells of the row of ``value``, one for each of ``COLUMNS``."""
    return [value.qualified_name, *_figures(value), value.location or ""]


def _figures(value: Value | Port) -> list[str]:
    """Shape, sharding, local shape, and bytes on a device."""
    size = "" if value.bytes_per_device is None else format_bytes(value.bytes_per_device)
    sharding = format_sharding(value) or ("" if value.shape is None else REPLICATED)
    return [format_shape(value), sharding, format_local_shape(value), size]


def result_text(result: Result) -> str:
    """The arguments and results of ``result`` as a table, repeated layers merged; then totals."""
    parts: list[Part] = []
    for name, ports in (("argument", result.arguments()), ("result", result.results())):
        found = [(port.label or port.name, tuple(_figures(port)), port) for port in ports]
        rows = [
            [label, "" if len(joined) == 1 else f"x {len(joined)}", *_figures(joined[0])]
            for label, joined in folded(found)
        ]
        if rows:
            more = (
                f"... {plural(len(rows) - MAX_PORTS, 'row')} more\n"
                if len(rows) > MAX_PORTS
                else ""
            )
            columns = (name, "", "shape", "sharding", "local shape", ">per device")
            parts += [table(columns, rows[:MAX_PORTS]), paragraph(more)]
    return plain_text([*parts, paragraph(summary_text(result.summary()))])


def values_table(result: Result, values: Sequence[Value]) -> Part:
    """A table with a row for each of ``values`` of ``result``; those that passes inserted come
    last.

    Values outside of the entry function have the names that ``why`` accepts, ``@helper %12``.

    The source column is left out if no value has a source.
    """
    rows = [cells(value) for value in sorted(values, key=lambda value: is_inserted(value.name))]
    names = [f">{name}" if name == "per device" else name for name in COLUMNS]
    if not any(row[-1] for row in rows):
        names, rows = names[:-1], [row[:-1] for row in rows]
    return table(names, rows, wrapped=("sharding",))


def print_result(
    result: Result, *, limit: int, seconds: float | None = None, console: Console | None = None
) -> None:
    """Print the values of ``result`` as a table, then totals.

    If there are more than ``limit`` tensors, half of the rows show the first arguments and half the
    first results of ops (0 shows all). On a terminal, lines fit its width.
    """
    values, more = selection(result, limit)
    if more:
        more += " (--limit 0 shows all)\n"
    summary = paragraph(f"{more}\n{summary_text(result.summary(), seconds)}")
    show([values_table(result, values), summary], console)


def selection(result: Result | Module, limit: int) -> tuple[list[Value], str]:
    """The tensors of ``result`` to show, at most ``limit`` unless it is 0, and a note on the
    others.

    If there are more, half are the first arguments and half the first results of ops, those of the
    program before those that were inserted.
    """
    values = [value for value in result.values() if value.shape is not None]
    if not 0 < limit < len(values):
        return values, ""
    arguments = [value for value in values if value.op is None]
    results = [value for value in values if value.op is not None]
    first = max(limit - len(results), min(len(arguments), limit // 2))
    rest = (len(arguments[first:]), len(results[limit - first :]))
    kinds = plural(rest[0], "argument"), plural(rest[1], "result")
    more = f"... {' and '.join(kinds)} of ops more"
    own = (value for value in results if not is_inserted(value.name))
    inserted = (value for value in results if is_inserted(value.name))
    return arguments[:first] + list(islice(chain(own, inserted), limit - first)), more


def summary_text(summary: dict[str, Any], seconds: float | None = None) -> str:
    """The lines below the table: counts of sharded values, bytes per device, uses of axes."""
    before, after = summary["before"], summary["after"]
    lines = [
        f"{after['sharded_values']} of {after['values']} values are sharded "
        f"(annotated: {before['sharded_values']})",
        f"{'bytes per device':18}{'before':>11}{'after':>11}",
    ]
    for name, key in (
        ("arguments", "argument_bytes_per_device"),
        ("results", "result_bytes_per_device"),
        ("all values", "bytes_per_device"),
    ):
        numbers = f"{format_bytes(before[key]):>11}{format_bytes(after[key]):>11}"
        lines.append(f"  {name:16}{numbers}")
    for axis in after["axes"]:
        lines.append(
            f'axis "{axis["name"]}"={axis["size"]} of @{axis["mesh"]} shards '
            f"{plural(axis['values'], 'value')}, {axis['arguments']} of them "
            f"{'an argument' if axis['arguments'] == 1 else 'arguments'}"
        )
    if before["is_saturated"] or after["is_saturated"]:
        lines.append("some of these bytes are 2^128 or more, and not counted beyond that")
    if seconds is not None:
        took = f"{plural(summary['ops'], 'op')} in {seconds * 1000:.1f} ms"
        lines.append(f"{took}, as the Shardy of jaxlib {summary['shardy']}")
    return "\n".join(lines)
