"""Flags for mesh and hardware, shared by the commands of the calculus."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shardcore._core import Mesh
    from shardcore.calculus.collective_time import TimeOptions
    from shardcore.calculus.notation import NamedArray
    from shardcore.calculus.topology import Topology


def add_mesh(parser: argparse.ArgumentParser, *, required: bool = True) -> None:
    """Add ``--mesh``, ``--sizes``, ``--dtype`` and ``--json``."""
    parser.add_argument(
        "--mesh", required=required, metavar="X=8,Y=4", help="the axes of the mesh, major to minor"
    )
    parser.add_argument("--sizes", metavar="I=128,J=8192", help="sizes of named dims")
    parser.add_argument("--dtype", metavar="TYPE", help="the element type, e.g. bf16")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")


def add_chip(
    parser: argparse.ArgumentParser, default: str | None = None, *, required: bool = True
) -> None:
    """Add ``--hardware`` and ``--hardware-file``."""
    parser.add_argument(
        "--hardware",
        required=required and default is None,
        default=default,
        metavar="NAME",
        help=f"the chip, e.g. tpu-v5e or h100{'' if default is None else f' [{default}]'}",
    )
    parser.add_argument(
        "--hardware-file",
        metavar="FILE",
        help="TOML with other chips, or other figures of known ones",
    )


def add_hardware(
    parser: argparse.ArgumentParser, default: str | None = None, *, required: bool = True
) -> None:
    """Add ``--hardware``, ``--topology`` and the options of the time model."""
    add_chip(parser, default, required=required)
    parser.add_argument(
        "--topology", metavar="4x4x4", help="the torus; without it, each mesh axis is an axis of it"
    )
    parser.add_argument(
        "--map",
        metavar="X=0,1",
        nargs="+",
        action="extend",
        default=[],
        help="the physical axes that a mesh axis runs over; without it, in order",
    )
    parser.add_argument(
        "--exact",
        action="store_true",
        help="count that a device has its own block already, (N-1)/N on rings, and that switches "
        "of nodes add up",
    )
    parser.add_argument(
        "--efficiency",
        type=float,
        default=1.0,
        metavar="E",
        help="the fraction of the bandwidth that is reached [1]",
    )
    parser.add_argument("--one-way", action="store_true", help="rings send in one direction only")
    parser.add_argument(
        "--slices",
        type=int,
        metavar="N",
        help="the number of tori, each of --topology, that a network connects; without it, as many "
        "as pods are needed",
    )
    parser.add_argument(
        "--dcn",
        type=float,
        metavar="BYTES",
        help="bytes a second that a chip sends to other slices or nodes, e.g. 6.25e9",
    )


def add_tokens(parser: argparse.ArgumentParser) -> None:
    """Add ``--tokens``."""
    parser.add_argument(
        "--tokens",
        type=_tokens,
        metavar="N",
        help="the tokens of a step, over all devices [the size of the first argument of integers "
        "with two dims]",
    )


def _tokens(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not int(text[:18]):
        raise argparse.ArgumentTypeError(f"expected a number of tokens above 0, got {text!r}")
    return int(text)


def mesh(text: str) -> Mesh:
    """The mesh in ``text``, ``data=8,model=4``; used as the type of an argument."""
    from shardcore.calculus.notation_parser import parse_mesh
    from shardcore.errors import ShardcoreError

    try:
        return parse_mesh(text)
    except ShardcoreError as error:
        raise argparse.ArgumentTypeError(error.message) from None


def mesh_of(options: argparse.Namespace) -> Mesh:
    """The mesh of ``--mesh``."""
    from shardcore.calculus.notation_parser import parse_mesh

    return parse_mesh(options.mesh)


def sizes_of(options: argparse.Namespace) -> dict[str, int]:
    """The sizes of ``--sizes``."""
    from shardcore.calculus.notation_parser import parse_sizes

    return parse_sizes(options.sizes) if options.sizes is not None else {}


def check_sizes(options: argparse.Namespace, arrays: Iterable[NamedArray]) -> None:
    """Check that every dim in ``--sizes`` belongs to some array."""
    from shardcore.calculus.mistakes import choices, mistake
    from shardcore.errors import CalculusError

    known = list(dict.fromkeys(dim.name for array in arrays for dim in array.dims if dim.name))
    for name in sizes_of(options):
        if name not in known:
            found = re.search(rf"\b{re.escape(name)}\b", options.sizes)
            raise mistake(
                CalculusError,
                "unknown-dim",
                f'no array has a dim "{name}"',
                hint=choices(name, known),
                text=options.sizes,
                span=found.span() if found else None,
                filename="<sizes>",
            )


def topology_of(options: argparse.Namespace, mesh: Mesh) -> Topology:
    """The topology that the flags describe."""
    from shardcore.calculus.hardware import hardware
    from shardcore.calculus.slices import networked
    from shardcore.calculus.topology import Topology, parse_mapping

    chip = hardware(options.hardware, options.hardware_file)
    chip = networked(chip, options.dcn)
    return Topology.of(mesh, chip, options.topology, parse_mapping(options.map), options.slices)


def time_options(options: argparse.Namespace) -> TimeOptions:
    """The options of the time model."""
    from shardcore.calculus.collective_time import TimeOptions

    return TimeOptions(options.exact, options.efficiency, options.one_way)


def cost_options(options: argparse.Namespace) -> dict[str, Any]:
    """Return the options of :func:`shardcore.cost` that the flags of :func:`add_hardware` give."""
    from shardcore.calculus.topology import parse_mapping

    return {
        "topology": options.topology,
        "mapping": parse_mapping(options.map),
        "hardware_file": options.hardware_file,
        "exact": options.exact,
        "efficiency": options.efficiency,
        "one_way": options.one_way,
        "slices": options.slices,
        "dcn": options.dcn,
    }
