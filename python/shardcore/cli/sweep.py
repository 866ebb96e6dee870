"""``shardcore sweep``: all combinations of shardings and meshes, best first."""

from __future__ import annotations

import argparse
from typing import Any

from shardcore.cli.options import add_program, count, print_json, progress_bar, read_module
from shardcore.cli.where import add_hardware, cost_options, mesh


def add(commands: Any) -> None:
    """Add the command to the parser's ``commands``."""
    parser = commands.add_parser(
        "sweep",
        help="try all combinations of shardings and meshes, best first",
        description="Annotate a StableHLO program in all combinations of the given shardings, on "
        "each of the given meshes, complete the shardings and compute what each costs. The table "
        "starts with the shortest step.",
    )
    parser.set_defaults(command=run, parser=parser)
    add_program(parser)
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="TARGET=SHARDING|...",
        help="shardings to try for a target, separated by |: \"params/**/w=P('fsdp')|P()\"; "
        "a target is a path, a pattern of paths with * and **, or a value like %%12; "
        "none removes the annotation; can be given several times",
    )
    parser.add_argument(
        "--mesh",
        type=mesh,
        action="append",
        default=[],
        metavar="AXIS=N,...",
        help="a mesh in the place of the program's; can be given several times",
    )
    add_hardware(parser)
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument(
        "--top", type=count, default=20, metavar="N", help="rows to show of the table [20]"
    )


def parts(text: str, separator: str, most: int | None = None) -> list[str]:
    """``text`` split at each ``separator`` outside of quotes and brackets, at most ``most`` times.
    If quotes or brackets are not closed, it is split everywhere.
    """
    found: list[str] = []
    start, depth, quote = 0, 0, ""
    for place, char in enumerate(text):
        if quote:
            quote = "" if char == quote and text[place - 1] != "\\" else quote
        elif char in "'\"":
            quote = char
        elif char in "([{":
            depth += 1
        elif char in ")]}":
            depth -= 1
        elif char == separator and depth == 0 and len(found) != most:
            found.append(text[start:place])
            start = place + 1
    if quote or depth:
        return text.split(separator, -1 if most is None else most)
    return [*found, text[start:]]


def run(options: argparse.Namespace) -> int:
    """Run the command and return the exit code."""
    from shardcore.session.sweep import sweep

    choices: dict[str, list[str | None]] = {}
    for text in options.set:
        target, *rest = parts(text, "=", most=1)
        listed = [one.strip() for one in parts(rest[0], "|")] if rest else []
        if not target.strip() or not all(listed) or not listed:
            options.parser.error(f"--set takes TARGET=SHARDING|..., got {text!r}")
        # A sharding that is given twice for a target is tried once.
        known = choices.setdefault(target.strip(), [])
        found = [None if one == "none" else one for one in listed]
        known += (one for one in dict.fromkeys(found) if one not in known)
    if not choices and not options.mesh:
        options.parser.error("there is nothing to try: give --set or --mesh")
    module = read_module(options.file, options.shardy)
    with progress_bar() as progress:
        rows = sweep(
            module,
            choices,
            list(dict.fromkeys(options.mesh)),
            options.hardware,
            progress=progress,
            **cost_options(options),
        )
    if options.json:
        print_json({"rows": [row.record() for row in rows]})
    else:
        from shardcore.report.console import show
        from shardcore.report.sweep_table import sweep_parts

        show(sweep_parts(rows, top=options.top))
    return 0 if any(row.row.error is None for row in rows) else 1
