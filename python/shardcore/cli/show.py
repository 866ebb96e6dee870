"""``shardcore show``: draw a sharding."""

from __future__ import annotations

import argparse
from typing import Any

from shardcore.cli.options import print_text, shape
from shardcore.cli.where import mesh_of
from shardcore.errors import CalculusError


def add(commands: Any) -> None:
    """Add the command to the parser's ``commands``."""
    parser = commands.add_parser(
        "show",
        help="draw the devices that hold each block of a tensor",
        description="Draw the blocks of a tensor and the devices that hold them, for any mesh: "
        "shardcore show '[{\"x\"}, {}]' --mesh x=2,y=4 --shape 8x16",
    )
    parser.set_defaults(command=run, parser=parser)
    parser.add_argument(
        "sharding", metavar="SHARDING", help="in any notation: '[{\"x\"}, {}]', 'P(\"x\")'"
    )
    parser.add_argument(
        "--mesh", metavar="x=2,y=4", help="the axes of the mesh, unless the sharding has them"
    )
    parser.add_argument(
        "--shape", type=shape, metavar="8x16", help="the sizes of the tensor's dims"
    )


def run(options: argparse.Namespace) -> int:
    """Run the command and return the exit code."""
    from shardcore.calculus.spellings import parse_whole

    mesh = None if options.mesh is None else mesh_of(options)
    try:
        sharding = parse_whole(options.sharding, mesh, shape=options.shape).sharding
    except CalculusError as error:
        if error.code != "invalid-option":
            raise
        options.parser.error("the sharding is over a mesh that it does not have: give --mesh")
    print_text(sharding.visualize(options.shape))
    return 0
