"""``shardcore bench``: public measured training steps next to the estimated costs of their
programs."""

from __future__ import annotations

import argparse
from typing import Any

from shardcore.cli.options import print_json, progress_bar


def add(commands: Any) -> None:
    """Add the command to the parser's ``commands``."""
    parser = commands.add_parser(
        "bench",
        help="hold costs against public measured training steps",
        description="Rebuild the configurations of public measured training steps as JAX programs, "
        "cost them, and print measured and costed steps with their errors, by chip and in total. "
        "Half of the rows are held out: no figure was fitted to them. Needs jax.",
    )
    parser.add_argument("what", choices=("steps",), metavar="steps", help="the steps of training")
    parser.add_argument(
        "--rows", metavar="1,5-9", help="rows of the table by number, with commas between"
    )
    parser.add_argument(
        "--chip", metavar="NAME", action="append", help="rows of this chip; may be repeated"
    )
    parser.add_argument(
        "--calibrate",
        action="store_true",
        help="also calibrate each chip with its first row that is not held out, and print the "
        "errors of the others",
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    parser.set_defaults(command=run, parser=parser)


def run(options: argparse.Namespace) -> int:
    """Run the command and return the exit code."""
    from shardcore.bench.leaderboard import costed, summaries
    from shardcore.bench.rows import read_rows

    rows = read_rows()
    if options.rows is not None:
        wanted = _numbers(options, len(rows))
        rows = tuple(row for row in rows if row.number in wanted)
    if options.chip is not None:
        known = dict.fromkeys(row.chip for row in read_rows())
        for name in options.chip:
            if name not in known:
                options.parser.error(f"no row is of {name!r}; there is {', '.join(known)}")
        rows = tuple(row for row in rows if row.chip in options.chip)
    with progress_bar() as progress:
        lines = list(costed(rows, progress, calibrates=options.calibrate))
    sums = summaries(lines)
    if options.json:
        records = {key: [one.record() for one in found] for key, found in sums.items()}
        print_json({"rows": [line.record() for line in lines], "summaries": records})
        return 0
    from shardcore.report.bench_table import steps_parts
    from shardcore.report.console import show

    show(steps_parts(lines, sums))
    return 0


def _numbers(options: argparse.Namespace, last: int) -> set[int]:
    """The rows in ``--rows``, out of ``last``."""
    found: set[int] = set()
    for part in options.rows.split(","):
        first, dash, end = part.partition("-")
        ends = (first, end if dash else first)
        if not all(each.isascii() and each.isdigit() and 0 < int(each) <= last for each in ends):
            options.parser.error(f"--rows: expected numbers from 1 to {last}, got {part!r}")
        found.update(range(int(ends[0]), int(ends[1]) + 1))
    return found
