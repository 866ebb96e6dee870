"""``shardcore remat``: what layers keep for the backward pass, compute anew or offload."""

from __future__ import annotations

import argparse
from typing import Any

from shardcore import entry_point
from shardcore.cli.options import print_json, print_text, seconds
from shardcore.cli.where import add_hardware, cost_options
from shardcore.errors import Diagnostic, PlanError


def add(commands: Any) -> None:
    """Add the command to the parser's ``commands``."""
    parser = commands.add_parser(
        "remat",
        help="find what layers keep, compute anew or offload",
        description="Find what the layers of a loss keep for the backward pass, compute anew or "
        "have the host keep, so that a step is fastest within the memory of a device, and print "
        "the policy for jax.checkpoint.",
    )
    parser.set_defaults(command=run, parser=parser)
    parser.add_argument(
        "file",
        metavar="FILE.py:FUNCTION",
        help="a function without arguments that returns the loss and its arguments: loss, "
        "(params, batch), and options of shardcore.remat behind them, if any",
    )
    parser.add_argument("--memory", metavar="16GiB", help="the memory of a device [the chip's]")
    parser.add_argument(
        "--host-memory", metavar="64GiB", help="the memory of its host [as much as needed]"
    )
    parser.add_argument(
        "--seconds", type=seconds, default=30.0, metavar="N", help="the time for the search [30]"
    )
    add_hardware(parser)
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")


def run(options: argparse.Namespace) -> int:
    """Run the command and return the exit code."""
    entry = entry_point.split(options.file)
    if entry is None:
        entry_point.check_named(options.file)
        message = f"{options.file} is no function: layers are changed before lowering"
        hint = "name the function that returns the loss and its arguments: model.py:build"
        raise PlanError(Diagnostic("not-a-loss", message, hint))
    given = {
        "hardware": options.hardware,
        "memory": options.memory,
        "host_memory": options.host_memory,
        "seconds": options.seconds,
        **cost_options(options),
    }
    # What is not said is left to what the function returns.
    found = entry_point.remat(
        *entry, {name: value for name, value in given.items() if value is not None}
    )
    if options.json:
        print_json(found["record"])
    else:
        print_text(found["text"])
    return 0
