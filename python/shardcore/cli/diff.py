"""``shardcore diff``: what changed between two versions of a program."""

from __future__ import annotations

import argparse
import sys
from typing import Any

import shardcore
from shardcore.cli.github import add_github, annotate_failures
from shardcore.cli.options import (
    add_shardy,
    count,
    print_json,
    progress_bar,
    read_module,
    warn,
)
from shardcore.cli.where import add_hardware, cost_options
from shardcore.partition.policies import POLICIES


def add(commands: Any) -> None:
    """Add the command to the parser's ``commands``."""
    parser = commands.add_parser(
        "diff",
        help="say what changed between two versions of a program, for a pull request",
        description="Complete the shardings of two versions of a program and say in a few lines "
        "what changed: the time of a step, the peak memory, collectives by line, shardings, and "
        "annotations without effect. Lines are those of HEAD; those of BASE are known again where "
        "an edit moved them. The exit code is 1 if HEAD is not as --expect says.",
    )
    parser.set_defaults(command=run, parser=parser)
    parser.add_argument("base", metavar="BASE", help="the program that there was, as FILE below")
    parser.add_argument(
        "file",
        metavar="HEAD",
        help="the program that there is: MLIR text, or model.py:build, a Python function that "
        "returns a function and its arguments; one of both may be -, standard input",
    )
    add_shardy(parser)
    parser.add_argument(
        "--expect",
        metavar="FILE",
        help="what is expected of HEAD, as shardcore check takes it",
    )
    parser.add_argument(
        "--policy", choices=POLICIES, default="xla", help="what makes the programs of one device"
    )
    add_hardware(parser, default="tpu-v5p")
    parser.add_argument(
        "--legalize-chlo",
        action="store_true",
        help="treat ops of CHLO as XLA does, which legalizes them first",
    )
    add_github(parser)
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--markdown", action="store_true", help="print Markdown instead of tables")
    form.add_argument("--json", action="store_true", help="print JSON instead of tables")
    parser.add_argument(
        "--top", type=count, default=10, metavar="N", help="rows to show of each table [10]"
    )


def run(options: argparse.Namespace) -> int:
    """Run the command and return the exit code."""
    if options.base == "-" == options.file:
        options.parser.error("only one of the programs can be standard input")
    before, after = (read_module(path, options.shardy) for path in (options.base, options.file))
    with progress_bar() as progress:
        base, head = (
            module.propagate(legalize_chlo=options.legalize_chlo, progress=progress)
            for module in (before, after)
        )
        found = shardcore.diff(
            base,
            head,
            options.hardware,
            options.policy,
            expect=options.expect,
            progress=progress,
            **cost_options(options),
        )
    warn(head)
    if options.json:
        print_json(found.record())
    elif options.markdown:
        sys.stdout.write(found.markdown(top=options.top))
    else:
        from shardcore.report.console import show
        from shardcore.report.diff_table import diff_parts

        show(diff_parts(found, top=options.top))
    if options.github and found.check is not None:
        annotate_failures(found.check)
    return 0 if found.ok else 1
