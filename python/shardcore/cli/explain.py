"""``shardcore explain``: where the collectives of a compiled program come from."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from shardcore.cli.options import add_shardy, count, print_json, read_module
from shardcore.cli.streams import standard_input
from shardcore.cli.where import add_chip


def add(commands: Any) -> None:
    """Add the command to the parser's ``commands``."""
    parser = commands.add_parser(
        "explain",
        help="where the collectives of a compiled program come from",
        description="Read what XLA left after optimization, and say of each collective, also of "
        "those that run as one, which op and line it is for, which annotations require it and "
        "which edit removes it; and which collectives of the plan XLA merged, moved, split or "
        "dropped, and which it added.",
    )
    parser.set_defaults(command=run, parser=parser)
    parser.add_argument(
        "dump",
        metavar="DUMP",
        help="compiled.as_text(), the folder of --xla_dump_to or a file "
        "*after_optimizations.txt in it, or an HLO proto; gzipped or not; of TPUs, GPUs or CPUs; "
        "- is standard input",
    )
    parser.add_argument(
        "--program",
        metavar="FILE",
        help="the program that was compiled, with its locations, or model.py:build: "
        "without it annotations and edits are not known",
    )
    parser.add_argument(
        "--profile",
        metavar="PATH",
        type=Path,
        help="a trace of a run, of XProf (.xplane.pb) or Perfetto (JSON), or a folder of such",
    )
    add_shardy(parser)
    add_chip(parser, required=False)
    parser.add_argument("--top", type=count, default=20, metavar="N", help="rows to print [20]")
    parser.add_argument(
        "--edits",
        type=count,
        default=5,
        metavar="N",
        help="try edits that remove the N longest collectives [5]",
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")


def run(options: argparse.Namespace) -> int:
    """Run the command and return the exit code."""
    from shardcore.explain import explain
    from shardcore.report.console import show
    from shardcore.report.explained_table import explained_parts

    program = None if options.program is None else read_module(options.program, options.shardy)
    is_piped = options.dump == "-"
    found = explain(
        standard_input() if is_piped else Path(options.dump),
        program,
        options.profile,
        hardware=options.hardware,
        hardware_file=options.hardware_file,
        filename="<stdin>" if is_piped else None,
    )
    if options.json:
        print_json(found.record(edits=options.edits))
    else:
        show(explained_parts(found, top=options.top, edits=options.edits))
    return 0
