"""``shardcore calibrate``: fits what programs achieve of a chip to measured steps."""

from __future__ import annotations

import argparse
from typing import Any

from shardcore.cli.options import print_json, print_text, write


def add(commands: Any) -> None:
    """Add the command to the parser's ``commands``."""
    parser = commands.add_parser(
        "calibrate",
        help="fit the time model of a chip to measured steps",
        description="Read programs and how long their steps took on one kind of chip, fit what "
        "programs achieve of its figures, and write a file for --hardware-file.",
    )
    parser.set_defaults(command=run, parser=parser)
    parser.add_argument(
        "file", metavar="MEASUREMENTS", help="JSON with the chip, and the runs; see docs/cost.md"
    )
    parser.add_argument(
        "--hardware-file",
        metavar="FILE",
        help="TOML with other chips, or other figures of known ones, to start from",
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="where to write the hardware file")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")


def run(options: argparse.Namespace) -> int:
    """Run the command and return the exit code."""
    from shardcore.costs.calibrate import calibrate
    from shardcore.costs.measurements import read_measurements

    runs, chip = read_measurements(options.file, options.hardware_file)
    if all(row.held_out for row in runs):
        options.parser.error("all measurements are held out")
    found = calibrate(runs, chip)
    if options.output is not None:
        write(options.output, found.to_toml())
    if options.json:
        print_json(found.record())
        return 0
    from shardcore.report.calibration_table import calibration_parts
    from shardcore.report.console import show

    show(calibration_parts(found))
    if options.output is None:
        print_text(f"\n{found.to_toml()}", end="")
    return 0
