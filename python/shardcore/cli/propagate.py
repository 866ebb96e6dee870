"""``shardcore propagate``: propagates the shardings of a program and shows them."""

from __future__ import annotations

import argparse
import time
from typing import Any

from shardcore.cli.diagnosed import add_ignore, show_diagnostics
from shardcore.cli.options import (
    add_program,
    count,
    print_fitted,
    print_json,
    progress_bar,
    read_module,
    warn,
    write,
)
from shardcore.line_values import line_values


def add(commands: Any) -> None:
    """Add the command to the parser's ``commands``."""
    propagate = commands.add_parser(
        "propagate",
        help="complete the shardings of a program and show them",
        description="Complete the shardings of a StableHLO program and show them as a table: each "
        "value with its sharding, the shape and the bytes that a device holds, and the place in "
        "the source; then how much is sharded, and over which axes.",
    )
    propagate.set_defaults(command=run, parser=propagate)
    add_program(propagate)
    propagate.add_argument(
        "-o", "--output", metavar="FILE", help="write the program here (- is standard output)"
    )
    propagate.add_argument("--json", action="store_true", help="print JSON instead of the table")
    propagate.add_argument(
        "--limit",
        type=count,
        default=60,
        metavar="N",
        help="rows to show at most; 0 shows all [60]",
    )
    propagate.add_argument(
        "--at", metavar="PLACE", help="show the values that a line of the source made, model.py:42"
    )
    propagate.add_argument(
        "--up-to-priority",
        type=count,
        metavar="P",
        help="stop after user priority P",
    )
    propagate.add_argument(
        "--keep-non-divisible-on-io",
        "--keep-sub-axes-on-io",
        action="store_true",
        help="keep on arguments and results what the export trims: axes that do not divide a dim, "
        "and sub-axes in open dims",
    )
    propagate.add_argument(
        "--legalize-chlo",
        action="store_true",
        help="propagate through ops of CHLO, as XLA does, which legalizes them first",
    )
    add_ignore(propagate)


def run(options: argparse.Namespace) -> int:
    """Run the command and return the exit code."""
    if options.json and options.output == "-":
        options.parser.error("--json and -o - both want standard output")
    module = read_module(options.file, options.shardy)
    with progress_bar() as progress:
        start = time.perf_counter()
        result = module.propagate(
            up_to_priority=options.up_to_priority,
            keep_non_divisible_on_io=options.keep_non_divisible_on_io,
            legalize_chlo=options.legalize_chlo,
            progress=progress,
        )
        seconds = time.perf_counter() - start
    warn(result)
    if options.output:
        write(options.output, str(result.module))
    values = None if options.at is None else line_values(result, options.at)
    if options.json:
        from shardcore.report.records import record, value_record

        print_json(
            record(result, options.ignore)
            if values is None
            else {"values": list(map(value_record, values))}
        )
    elif options.output != "-":
        from shardcore.diagnose.unannotated import remark
        from shardcore.report.console import show
        from shardcore.report.table import print_result, values_table

        if values is None:
            print_result(result, limit=options.limit, seconds=seconds)
            note = remark(result)
            if note is not None:
                print_fitted(f"\nnote: {note}")
            show_diagnostics(result, options.ignore)
        else:
            show([values_table(result, values)])
    return 0
