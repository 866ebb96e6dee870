"""``shardcore why``: where the axes of a value come from."""

from __future__ import annotations

import argparse
from typing import Any

from shardcore.cli.options import count, print_json, print_text, progress_bar, read_module, warn


def add(commands: Any) -> None:
    """Add the command to the parser's ``commands``."""
    parser = commands.add_parser(
        "why",
        help="say where the axes of a value come from",
        description="Complete the shardings of a StableHLO program and say of each axis of a value "
        "from which annotation it comes, and through which ops it went.",
    )
    parser.set_defaults(command=run, parser=parser)
    parser.add_argument("file", metavar="FILE", help="MLIR text; - is standard input")
    parser.add_argument(
        "value",
        metavar="VALUE",
        help="the path of an argument or result, params['w'], or a value, %%12 or '@helper %%12'",
    )
    parser.add_argument("--dim", type=count, metavar="N", help="this dim only")
    parser.add_argument("--axis", metavar="NAME", help="this axis only")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a tree")


def run(options: argparse.Namespace) -> int:
    """Run the command and return the exit code."""
    module = read_module(options.file)
    with progress_bar() as progress:
        result = module.propagate(progress=progress)
    warn(result)
    found = result.why(options.value, options.axis, options.dim)
    if options.json:
        print_json(found.record())
    else:
        print_text(found)
    return 0
