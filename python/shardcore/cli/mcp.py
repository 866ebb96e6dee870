"""``shardcore mcp``: an MCP server for agents and editors."""

from __future__ import annotations

import argparse
from typing import Any

from shardcore.cli.options import seconds
from shardcore.cli.streams import print_error


def add(commands: Any) -> None:
    """Add the command to the parser's ``commands``."""
    parser = commands.add_parser(
        "mcp",
        help="serve agents and editors over MCP: programs that stay open, with their annotations",
        description="Run an MCP server over standard input and output, with tools that open "
        "programs, say how they are sharded, why, and what that costs, edit annotations, plan, and "
        "compare. Programs stay open. It needs the package mcp: pip install 'shardcore[mcp]'.",
    )
    parser.set_defaults(command=run, parser=parser)
    parser.add_argument(
        "--hardware",
        default="tpu-v5p",
        metavar="NAME",
        help="the chip where a call names none [tpu-v5p]",
    )
    parser.add_argument(
        "--seconds",
        type=seconds,
        default=60.0,
        metavar="N",
        help="the time after which a call is stopped [60]",
    )


def run(options: argparse.Namespace) -> int:
    """Run the command and return the exit code."""
    from shardcore.calculus.hardware import hardware

    chip = hardware(options.hardware).name
    try:
        from shardcore.mcp.server import serve
    except ModuleNotFoundError as error:
        print_error(f"error[missing-package]: shardcore mcp needs the package {error.name}")
        print_error("  help: pip install 'shardcore[mcp]'")
        return 1
    serve(chip, options.seconds)
    return 0
