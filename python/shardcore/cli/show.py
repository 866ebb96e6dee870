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
        "--mesh",
        metavar="x=2,y=4",
        help="the axes of the mesh, unless the sharding has them [2 for each axis]",
    )
    parser.add_argument(
        "--shape", type=shape, metavar="8x16", help="the sizes of the tensor's dims"
    )


def run(options: argparse.Namespace) -> int:
    """Run the command and return the exit code."""
    from shardcore.calculus.spellings import assumed_mesh, parse_whole

    mesh = None if options.mesh is None else mesh_of(options)
    parser: argparse.ArgumentParser = options.parser
    note = ""
    try:
        sharding = parse_whole(options.sharding, mesh, shape=options.shape).sharding
    except CalculusError as error:
        if error.code != "invalid-option" or mesh is not None:
            raise
        assumed = assumed_mesh(options.sharding)
        if assumed is None:
            parser.error("the sharding names no axis of a mesh: give it, as --mesh X=4")
        sharding = parse_whole(options.sharding, assumed, shape=options.shape).sharding
        sizes = ",".join(f"{axis.name}={axis.size}" for axis in assumed.axes)
        note = f"the mesh is not given, and taken to be {sizes}: --mesh gives another"
    print_text(sharding.visualize(options.shape))
    if note:
        print_text(note)
    return 0
