"""Diagnostics below the tables of commands."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import shardcore
from shardcore.cli.options import print_fitted, print_text
from shardcore.diagnose import DIAGNOSTICS, diagnostics
from shardcore.units import plural

MOST_OPS = 100_000
"""Tables of programs with at most this many ops end with diagnostics."""

MOST_SHOWN = 5
"""How many diagnostics are shown: those whose edits save most."""


def add_ignore(parser: argparse.ArgumentParser) -> None:
    """Add ``--ignore``."""
    parser.add_argument(
        "--ignore",
        action="append",
        default=[],
        choices=sorted(DIAGNOSTICS),
        metavar="CODE",
        help="leave out diagnostics with this code, e.g. padding; may be given several times",
    )


def show_diagnostics(
    result: shardcore.Result, ignore: Sequence[str], cost: shardcore.Cost | None = None
) -> None:
    """Print what a person should look at, but for the warnings, which are printed already; edits
    are costed as ``cost`` was.
    """
    if result.summary()["ops"] > MOST_OPS:
        print_text(f"\ndiagnostics of programs above {MOST_OPS} ops: result.diagnostics()")
        return
    known = set(result.warnings)
    hardware = None if cost is None else cost.hardware
    every = diagnostics(result, hardware, ignore=ignore, cost=cost)
    found = [each for each in every if each not in known]
    for each in found[:MOST_SHOWN]:
        print_fitted(f"\n{each}")
    if len(found) > MOST_SHOWN:
        more = plural(len(found) - MOST_SHOWN, "more warning")
        print_text(f"\n{more}: --json has all, result.diagnostics() too")
