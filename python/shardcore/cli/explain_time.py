"""``shardcore explain-time``: the figures that a step time depends on, and which to measure."""

from __future__ import annotations

import argparse
from typing import Any

from shardcore.cli.options import add_program, print_json, progress_bar, read_module, warn
from shardcore.cli.where import add_hardware, cost_options
from shardcore.partition.policies import POLICIES


def add(commands: Any) -> None:
    """Add the command to the parser's ``commands``."""
    parser = commands.add_parser(
        "explain-time",
        help="say what the time of a step hangs on, and what would narrow its interval",
        description="Cost a StableHLO program as `shardcore cost` does, then again with each "
        "figure that programs achieve of the chip made worse by itself: how much longer the step "
        "gets, what of the interval follows from that figure, and which measurement would halve "
        "it.",
    )
    parser.set_defaults(command=run, parser=parser)
    add_program(parser)
    parser.add_argument(
        "--policy", choices=POLICIES, default="xla", help="what makes the program of one device"
    )
    add_hardware(parser, default="tpu-v5p")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")


def run(options: argparse.Namespace) -> int:
    """Run the command and return the exit code."""
    from shardcore.costs.sensitivity import explain_time
    from shardcore.report.console import show
    from shardcore.report.time_table import time_parts

    module = read_module(options.file, options.shardy)
    with progress_bar() as progress:
        result = module.propagate(progress=progress)
    warn(result)
    found = explain_time(result, options.hardware, options.policy, **cost_options(options))
    if options.json:
        print_json(found.record())
    else:
        show(time_parts(found))
    return 0
