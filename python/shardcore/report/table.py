"""A result as a table that people can read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from shardcore._core import Result, Value


def format_bytes(count: float) -> str:
    """``count`` bytes with a binary unit: ``format_bytes(1536) == "1.5 KiB"``."""
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if abs(count) < 1024 or unit == "TiB":
            break
        count /= 1024
    return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"


def format_shape(value: Value) -> str:
    """Shape and element type as MLIR writes them inside ``tensor<...>``: ``8x16xf32``."""
    if value.shape is None:
        return value.type
    return "x".join(
        [*("?" if size is None else str(size) for size in value.shape), value.dtype or ""]
    )


def format_sharding(value: Value) -> str:
    """The sharding without its mesh, ``[{"data"}, {}]``."""
    if value.sharding is None:
        return ""
    text = str(value.sharding)
    return text[text.index(", [{") + 2 : -1] if ", [{" in text else text


def _row(value: Value) -> tuple[Text, ...]:
    local = "" if value.local_shape is None else "x".join(map(str, value.local_shape))
    size = "" if value.bytes_per_device is None else format_bytes(value.bytes_per_device)
    sharding = format_sharding(value)
    cells = (value.name, format_shape(value), sharding, local, size, value.location or "")
    return tuple(Text(cell) for cell in cells)


def values_table(values: list[Value]) -> Table:
    """A table with a row for each of ``values``."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("value", "shape", "sharding", "local shape", "per device", "source"):
        justify: Any = "right" if name == "per device" else "left"
        table.add_column(
            name, justify=justify, overflow="fold", no_wrap=name in ("value", "per device")
        )
    for value in values:
        table.add_row(*_row(value))
    return table


def print_result(result: Result, *, limit: int, seconds: float | None = None) -> None:
    """Print the values of ``result`` as a table, then what it amounts to.

    Of a program with more than ``limit`` tensors, half of the rows show the first arguments and
    half the first results of ops (0 shows all).
    """
    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=160)
    values = [value for value in result.values() if value.shape is not None]
    if limit == 0 or len(values) <= limit:
        console.print(values_table(values))
    else:
        arguments = [value for value in values if value.op is None]
        results = [value for value in values if value.op is not None]
        first = max(limit - len(results), min(len(arguments), limit // 2))
        console.print(values_table(arguments[:first] + results[: limit - first]))
        rest = f"{len(arguments[first:])} arguments and {len(results[limit - first :])} results"
        console.print(Text(f"... {rest} of ops more (--limit 0 shows all)"))
    console.print()
    console.print(summary_text(result.summary(), seconds))


def summary_text(summary: dict[str, Any], seconds: float | None = None) -> Text:
    """The lines below the table: how much is sharded, what a device holds, where axes are."""
    before, after = summary["before"], summary["after"]
    lines = [
        f"{after['sharded_values']} of {after['values']} values are sharded "
        f"(annotated: {before['sharded_values']})",
        "bytes per device: "
        + ", ".join(
            f"{name} {format_bytes(before[key])} -> {format_bytes(after[key])}"
            for name, key in (
                ("arguments", "argument_bytes_per_device"),
                ("results", "result_bytes_per_device"),
                ("all values", "bytes_per_device"),
            )
        ),
    ]
    for axis in after["axes"]:
        lines.append(
            f'axis "{axis["name"]}"={axis["size"]} of @{axis["mesh"]} shards '
            f"{axis['values']} values, {axis['arguments']} of them arguments"
        )
    if seconds is not None:
        lines.append(f"{summary['ops']} ops in {seconds * 1000:.1f} ms")
    return Text("\n".join(lines))
