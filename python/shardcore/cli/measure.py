"""``shardcore measure``: times ops on the accelerator at hand, and writes its hardware file."""

from __future__ import annotations

import argparse
from typing import Any

from shardcore.cli.options import print_json, progress_bar, seconds, write


def add(commands: Any) -> None:
    """Add the command to the parser's ``commands``."""
    parser = commands.add_parser(
        "measure",
        help="measure the accelerator at hand, for costs on it",
        description="Time a table of ops with JAX on the first of jax.devices(), and collectives "
        "on all of them, fit the figures of a chip to them, and write a file for --hardware-file. "
        "Needs jax, and nothing else that runs there.",
    )
    parser.set_defaults(command=run, parser=parser)
    parser.add_argument(
        "-o", "--output", metavar="FILE", help="where to write the hardware file, instead of output"
    )
    parser.add_argument(
        "--seconds",
        type=seconds,
        default=300.0,
        metavar="S",
        help="about how long it may take (default: 300)",
    )
    parser.add_argument("--name", help="what to call the chip (default: as JAX calls the device)")
    parser.add_argument(
        "--base",
        metavar="CHIP",
        help="the chip whose figures stand for what is not measured (default: the chip itself, or "
        "one of its kind)",
    )
    parser.add_argument("--ops", action="store_true", help="print a row for each op")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")


def run(options: argparse.Namespace) -> int:
    """Run the command and return the exit code."""
    import shardcore.jax

    with progress_bar() as progress:
        found = shardcore.jax.measure(
            options.seconds, name=options.name, base=options.base, progress=progress
        )
    if options.output is not None:
        write(options.output, found.to_toml())
    if options.json:
        print_json(found.record())
        return 0
    from shardcore.report.console import show
    from shardcore.report.measured_table import measured_parts

    show(measured_parts(found, options.output, with_ops=options.ops))
    if options.output is None:
        write("-", "\n" + found.to_toml())
    return 0
