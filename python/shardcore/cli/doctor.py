"""``shardcore doctor``: a page about a program, to be pasted into an issue."""

from __future__ import annotations

import argparse
from typing import Any

from shardcore.cli.options import (
    add_program,
    print_fitted,
    print_json,
    progress_bar,
    read_module,
)
from shardcore.cli.where import add_chip


def add(commands: Any) -> None:
    """Add the command to the parser's ``commands``."""
    parser = commands.add_parser(
        "doctor",
        help="a page on a program, to paste into an issue",
        description="Complete the shardings of a StableHLO program and say on one page what "
        "somebody who is asked about it needs: versions and mesh; what is replicated, computed "
        "whole or rematerialized; the collectives that take longest, with the annotations that "
        "disagree and the cheapest edit; and where XLA is known to partition such a program "
        "wrongly, or not at all.",
    )
    parser.set_defaults(command=run, parser=parser)
    add_program(parser)
    add_chip(parser, default="tpu-v5p")
    parser.add_argument("--json", action="store_true", help="print JSON instead of text")


def run(options: argparse.Namespace) -> int:
    """Run the command and return the exit code."""
    from shardcore.diagnose.doctor import checkup
    from shardcore.report.doctor_text import doctor_text

    module = read_module(options.file, options.shardy)
    with progress_bar() as progress:
        result = module.propagate(progress=progress)
        found = checkup(
            result, options.hardware, hardware_file=options.hardware_file, progress=progress
        )
    if options.json:
        print_json(found)
    else:
        print_fitted(doctor_text(found))
    return 0
