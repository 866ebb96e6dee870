"""``shardcore steps``: propagation step by step."""

from __future__ import annotations

import argparse
from typing import Any

from shardcore.cli.options import (
    add_program,
    count,
    print_fitted,
    print_json,
    print_text,
    progress_bar,
    read_module,
    warn,
)
from shardcore.why.steps import Steps
from shardcore.why.values import find


def add(commands: Any) -> None:
    """Add the command to the parser's ``commands``."""
    parser = commands.add_parser(
        "steps",
        help="say which visit of which op changed which sharding",
        description="Complete the shardings of a StableHLO program and list, for each user "
        "priority and op-priority step, the visits that changed shardings: the op, its source "
        "line, and each tensor with its sharding before and after.",
    )
    parser.set_defaults(command=run, parser=parser)
    add_program(parser)
    parser.add_argument("--priority", type=count, metavar="N", help="this user priority only")
    parser.add_argument(
        "--value",
        metavar="VALUE",
        help="visits that changed this value only: %%12, or the path of an argument or result",
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of a list")


def run(options: argparse.Namespace) -> int:
    """Run the command and return the exit code."""
    module = read_module(options.file, options.shardy)
    with progress_bar() as progress:
        result = module.propagate(progress=progress)
    warn(result)
    found = result.steps()
    if options.priority is not None:
        found = Steps([step for step in found if step.priority == options.priority])
    if options.value is not None:
        value = find(result, options.value).name
        found = found.of(value)
    if options.json:
        print_json({"steps": found.record()})
    elif options.value is not None and not found:
        print_text(f"no visit changes {value}")
    else:
        print_fitted(found)
    return 0
