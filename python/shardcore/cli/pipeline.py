"""``shardcore pipeline``: stages, schedule and micro-batches for a training step."""

from __future__ import annotations

import argparse
from typing import Any

from shardcore.cli.options import (
    add_program,
    counts,
    print_json,
    progress_bar,
    read_module,
    write,
)
from shardcore.cli.where import add_hardware, cost_options


def add(commands: Any) -> None:
    """Add the command to the parser's ``commands``."""
    parser = commands.add_parser(
        "pipeline",
        help="find stages, schedule and micro-batches for a training step",
        description="Find the layers of a training step, and the cut into stages, the schedule and "
        "the micro-batches that take the fewest seconds of devices within their memory. Each stage "
        "has as many devices as the mesh of the program.",
    )
    parser.set_defaults(command=run, parser=parser)
    add_program(parser)
    parser.add_argument(
        "--stages", type=counts, metavar="S,...", help="numbers of stages to try [2,4,8,16]"
    )
    parser.add_argument(
        "--micro-batches",
        type=counts,
        metavar="M,...",
        help="numbers of micro-batches to try [powers of two that divide the batch of a device]",
    )
    parser.add_argument(
        "--schedule",
        type=lambda text: text.split(","),
        metavar="NAME,...",
        help="gpipe, 1f1b, interleaved, circular, zb-h1 or zb-h2 [all]",
    )
    parser.add_argument(
        "--chunks",
        type=counts,
        metavar="V,...",
        help="chunks of layers a stage, for schedules that have several [2,4]",
    )
    parser.add_argument("--memory", metavar="16GiB", help="the memory of a device [the chip's]")
    add_hardware(parser)
    parser.add_argument("--svg", metavar="FILE", help="write a Gantt chart of the best to FILE")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")


def run(options: argparse.Namespace) -> int:
    """Run the command and return the exit code."""
    from shardcore.pipeline import find

    module = read_module(options.file, options.shardy)
    with progress_bar() as progress:
        found = find(
            module,
            options.hardware,
            stages=options.stages,
            micro_batches=options.micro_batches,
            schedules=None if options.schedule in (None, ["all"]) else options.schedule,
            chunks=options.chunks,
            memory=options.memory,
            progress=progress,
            **cost_options(options),
        )
    if options.svg is not None:
        write(options.svg, found.svg())
    if options.json:
        print_json(found.record())
    elif options.svg != "-":
        from shardcore.report.console import show
        from shardcore.report.pipeline_table import pipeline_parts

        show(pipeline_parts(found))
    return 0
