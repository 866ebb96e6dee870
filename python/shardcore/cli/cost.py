"""``shardcore cost``: what a program costs, or what changed from one program to another."""

from __future__ import annotations

import argparse
from typing import Any

import shardcore
from shardcore.cli.options import count, print_json, progress_bar, read_module, warn
from shardcore.cli.where import add_hardware


def add(commands: Any) -> None:
    """Add the command to the parser's ``commands``."""
    parser = commands.add_parser(
        "cost",
        help="compute time and memory of a program on one device, or compare two programs",
        description="Complete the shardings of a StableHLO program, make all collectives explicit, "
        "and compute time, FLOPs, memory and collectives of one device, each with the source line "
        "that caused it. Of two programs, or one program with two annotations, show "
        "the differences by line.",
    )
    parser.set_defaults(command=run, parser=parser)
    parser.add_argument("file", metavar="FILE", help="MLIR text; - is standard input")
    parser.add_argument(
        "other", metavar="FILE", nargs="?", help="a second program to compare with the first"
    )
    add_hardware(parser)
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    parser.add_argument(
        "--top", type=count, default=10, metavar="N", help="rows to show of each table [10]"
    )


def run(options: argparse.Namespace) -> int:
    """Run the command and return the exit code."""
    if options.file == "-" == options.other:
        options.parser.error("only one of the programs can be standard input")
    before = _cost(options, options.file)
    if options.other is None:
        if options.json:
            print_json(before.record())
        else:
            from shardcore.report.console import show
            from shardcore.report.cost_table import cost_parts

            show(cost_parts(before, top=options.top))
        return 0
    from shardcore.report.comparison_table import comparison_parts
    from shardcore.report.console import show

    found = shardcore.compare(before, _cost(options, options.other))
    if options.json:
        print_json(found.record())
    else:
        show(comparison_parts(found, top=options.top))
    return 0


def _cost(options: argparse.Namespace, path: str) -> shardcore.Cost:
    from shardcore.calculus.topology import parse_mapping

    module = read_module(path)
    with progress_bar() as progress:
        result = module.propagate(progress=progress)
        warn(result)
        return shardcore.cost(
            result,
            options.hardware,
            topology=options.topology,
            mapping=parse_mapping(options.map),
            hardware_file=options.hardware_file,
            exact=options.exact,
            efficiency=options.efficiency,
            one_way=options.one_way,
        )
