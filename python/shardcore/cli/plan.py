"""``shardcore plan``: the annotations that make a step fastest within the memory of a device."""

from __future__ import annotations

import argparse
import json
from typing import Any

import shardcore
from shardcore import entry_point, files
from shardcore.cli.options import (
    add_program,
    counts,
    print_json,
    print_text,
    progress_bar,
    read_module,
    seconds,
)
from shardcore.cli.where import add_hardware, cost_options, mesh
from shardcore.units import parse_bytes

_OBJECTIVES = ("time", "step", "memory", "bytes", "slowest-link")


def add(commands: Any) -> None:
    """Add the command to the parser's ``commands``."""
    parser = commands.add_parser(
        "plan",
        help="find the few annotations that make a step fastest within the memory",
        description="Find the shardings of arguments that make a step of a StableHLO program "
        "fastest within the memory of a device. The program's own annotations are removed unless "
        "--keep names them. Ctrl-C prints the best so far.",
    )
    parser.set_defaults(command=run, parser=parser)
    add_program(parser)
    parser.add_argument(
        "--memory", type=_memory, metavar="16GiB", help="the memory of a device [the chip's]"
    )
    parser.add_argument(
        "--mesh",
        type=mesh,
        action="append",
        default=[],
        metavar="AXIS=N,...",
        help="a mesh to consider [the program's]; can be given several times",
    )
    parser.add_argument(
        "--devices", type=_devices, metavar="N", help="consider all meshes of so many devices"
    )
    parser.add_argument(
        "--pipeline",
        action="store_true",
        help="plan stages of a pipeline, too: all numbers of them that divide the devices",
    )
    parser.add_argument(
        "--stages",
        type=counts,
        metavar="S,...",
        help="numbers of stages to choose from, of which 1 is a plan without",
    )
    parser.add_argument(
        "--limits",
        nargs="+",
        action="extend",
        default=[],
        metavar="NAME=...",
        help="memory=16GiB, host-memory=64GiB, micro-batch=2, schedules=1f1b,gpipe, or by the name "
        "of an axis what it may be for, model=tensor,expert",
    )
    parser.add_argument(
        "--from",
        dest="start",
        metavar="PLAN.json",
        help="an existing plan, as --json prints it: say what is worth changing, in order",
    )
    parser.add_argument(
        "--keep",
        action="append",
        default=[],
        metavar="TARGET",
        help="a target of shardcore sweep whose annotation stays; can be given several times",
    )
    parser.add_argument(
        "--minimize", choices=_OBJECTIVES, default="time", help="what to minimize [time]"
    )
    parser.add_argument(
        "--seconds", type=seconds, default=30.0, metavar="N", help="the time for the search [30]"
    )
    add_hardware(parser)
    parser.add_argument(
        "--apply",
        action="store_true",
        help="print the change of FILE.py, and of files with values to constrain, that applies the "
        "plan, as a diff; no file is changed",
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")


def run(options: argparse.Namespace) -> int:
    """Run the command and return the exit code."""
    # The planner is not imported with the command line.
    from shardcore.plan.limits import Limits, parse_limits

    module = read_module(options.file, options.shardy)
    try:
        limits = parse_limits(options.limits)
        Limits.of(limits)
        start = None if options.start is None else json.loads(files.read(options.start))
    except ValueError as error:
        options.parser.error(str(error))
    with progress_bar() as progress:
        found = shardcore.plan(
            module,
            options.hardware,
            options.memory,
            options.mesh or None,
            options.devices,
            options.keep,
            options.seconds,
            minimize=options.minimize,
            stages=options.stages or ("any" if options.pipeline else None),
            limits=limits,
            start=start,
            progress=progress,
            **cost_options(options),
        )
    if options.json:
        print_json(found.record())
    elif options.apply:
        entry = entry_point.split(options.file)
        print_text(found.patch(*entry or ()), end="")
    else:
        from shardcore.report.console import show
        from shardcore.report.plan_table import plan_parts

        show(plan_parts(found))
    return 0


def _memory(text: str) -> int:
    found = parse_bytes(text)
    if not found:
        raise argparse.ArgumentTypeError(f"expected a number of bytes, 16GiB, got {text!r}")
    return found


def _devices(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text[:8]) <= 1 << 20:
        raise argparse.ArgumentTypeError(f"expected a number of devices above 0, got {text!r}")
    return int(text)
