"""``shardcore check``: compares a program with expectations."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import Any

from shardcore.cli.github import add_github, annotate_failures, annotate_mistakes
from shardcore.cli.options import (
    add_program,
    print_json,
    print_text,
    progress_bar,
    read_module,
    warn,
)
from shardcore.errors import Diagnostic, ExpectationError, ShardcoreError


def add(commands: Any) -> None:
    """Add the command to the parser's ``commands``."""
    parser = commands.add_parser(
        "check",
        help="compare a program with expectations, for CI",
        description="Complete the shardings of a StableHLO program and compare with what a TOML "
        "file expects: shardings, collectives, memory, replication. The exit code is 0 if all "
        "expectations hold, and 1 with the difference printed if not.",
    )
    parser.set_defaults(command=run, parser=parser)
    add_program(parser)
    parser.add_argument(
        "--expect", required=True, metavar="FILE", help="the expectations; see docs/check.md"
    )
    parser.add_argument(
        "--update",
        action="store_true",
        help="replace expectations that do not hold by the actual values; create the file if it "
        "does not exist",
    )
    parser.add_argument(
        "--legalize-chlo",
        action="store_true",
        help="treat ops of CHLO as XLA does, which legalizes them first",
    )
    add_github(parser)
    parser.add_argument("--json", action="store_true", help="print JSON instead of text")


def run(options: argparse.Namespace) -> int:
    """Run the command and return the exit code."""
    try:
        return _run(options)
    except ShardcoreError as error:
        if options.github:
            annotate_mistakes(error.diagnostics)
        raise


def _run(options: argparse.Namespace) -> int:
    if options.expect == "-":
        options.parser.error("expectations are a file")
    module = read_module(options.file, options.shardy)
    with progress_bar() as progress:
        result = module.propagate(legalize_chlo=options.legalize_chlo, progress=progress)
    warn(result)
    try:
        found = result.check(options.expect, update=options.update)
    except FileNotFoundError as error:
        message = f"{options.expect}: {error.strerror}"
        hint = "--update writes it, with what the program has now"
        raise ExpectationError(Diagnostic("io", message, hint)) from None
    if options.json:
        print_json({"ok": found.ok, **asdict(found)})
    else:
        print_text(found)
    if options.github:
        annotate_failures(found)
    return 0 if found.ok else 1
