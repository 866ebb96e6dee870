"""``shardcore compare``: one program under several strategies of propagation, side by side."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from shardcore.cli.options import add_program, count, print_json, read_module, warn
from shardcore.cli.where import add_hardware, cost_options
from shardcore.units import format_bytes, format_seconds, plural

if TYPE_CHECKING:
    import shardcore
    from shardcore.report.console import Part

STRATEGIES = ("basic", "aggressive", "basic-then-aggressive")


def add(commands: Any) -> None:
    """Add the command to the parser's ``commands``."""
    parser = commands.add_parser(
        "compare",
        help="compare strategies of propagation on one program",
        description="Complete the shardings of a StableHLO program by several strategies of "
        "propagation, and show side by side what each of them shards and what it costs: the "
        "aggressive strategy resolves conflicts, the basic one does not.",
    )
    parser.set_defaults(command=run)
    add_program(parser)
    parser.add_argument(
        "--strategy",
        type=_strategies,
        default=["basic", "aggressive"],
        metavar="NAMES",
        help=f"two or more of {', '.join(STRATEGIES)}, with commas between [basic,aggressive]",
    )
    add_hardware(parser, default="tpu-v5p")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    parser.add_argument(
        "--top", type=count, default=20, metavar="N", help="values that differ to show at most [20]"
    )


def run(options: argparse.Namespace) -> int:
    """Run the command and return the exit code."""
    import shardcore

    module = read_module(options.file, options.shardy)
    results = {name: module.propagate(strategy=name) for name in options.strategy}
    for result in results.values():
        warn(result)
    given = cost_options(options)
    rows = {
        name: _figures(result, shardcore.cost(result, options.hardware, **given))
        for name, result in results.items()
    }
    differing = _differing(results)
    if options.json:
        print_json({"hardware": options.hardware, "strategies": rows, "values": differing})
        return 0
    from shardcore.report.console import show

    show(_parts(rows, differing, options.top))
    return 0


def _strategies(text: str) -> list[str]:
    names = list(dict.fromkeys(text.split(",")))
    if len(names) < 2 or not set(names) <= set(STRATEGIES):
        known = ", ".join(STRATEGIES)
        raise argparse.ArgumentTypeError(f"expected two or more of {known}, got {text!r}")
    return names


def _figures(result: shardcore.Result, cost: shardcore.Cost) -> dict[str, Any]:
    """The sharding counts of ``result``, and its cost."""
    after = result.summary()["after"]
    return {
        "values": after["values"],
        "sharded_values": after["sharded_values"],
        "bytes_per_device": after["bytes_per_device"],
        "peak_bytes": cost.peak_bytes,
        "collectives": sum(each.count for each in cost.collectives),
        "sent_bytes": sum(each.wire_bytes for each in cost.collectives),
        "comm_seconds": cost.comm_seconds,
        "step_seconds_lower": cost.step_seconds_lower,
        "step_seconds_upper": cost.step_seconds_upper,
    }


def _differing(results: dict[str, shardcore.Result]) -> list[dict[str, Any]]:
    """The values whose shardings differ between the strategies."""
    listed = {
        name: {(value.function, value.name): value for value in result.values()}
        for name, result in results.items()
    }
    first, *others = listed.values()
    found = []
    for key, value in first.items():
        shardings = {name: each[key].sharding for name, each in listed.items() if key in each}
        if all(each.get(key) and each[key].sharding == value.sharding for each in others):
            continue
        texts = {name: None if each is None else str(each) for name, each in shardings.items()}
        found.append({"value": value.name, "function": value.function, "shardings": texts})
    return found


def _parts(
    rows: dict[str, dict[str, Any]], differing: list[dict[str, Any]], top: int
) -> list[Part]:
    from shardcore.report.console import paragraph, table

    names = list(rows)

    def line(title: str, key: str, shown: Any = str) -> tuple[str, ...]:
        return (title, *(shown(rows[name][key]) for name in names))

    parts = [
        table(
            ("per device", *(f">{name}" for name in names)),
            [
                (
                    "sharded values",
                    *(f"{rows[n]['sharded_values']} of {rows[n]['values']}" for n in names),
                ),
                line("bytes of all values", "bytes_per_device", format_bytes),
                line("peak memory", "peak_bytes", format_bytes),
                line("collectives", "collectives"),
                line("bytes sent", "sent_bytes", format_bytes),
                line("time of collectives", "comm_seconds", format_seconds),
                line("step, at least", "step_seconds_lower", format_seconds),
                line("step, 90% end", "step_seconds_upper", format_seconds),
            ],
        )
    ]
    if not differing:
        return [*parts, paragraph("\nevery value has the same sharding")]
    parts.append(paragraph("\nvalues whose shardings differ", is_title=True))
    shown = [
        (row["value"], *(row["shardings"].get(name) or "" for name in names))
        for row in differing[:top]
    ]
    parts.append(table(("value", *names), shown))
    if len(differing) > top:
        parts.append(paragraph(f"... {plural(len(differing) - top, 'value')} more"))
    return parts
