"""``shardcore graph``: the computation graph, drawn with shardings."""

from __future__ import annotations

import argparse
from typing import Any

from shardcore.cli.options import count, print_text, progress_bar, read_module, warn


def add(commands: Any) -> None:
    """Add the command to the parser's ``commands``."""
    parser = commands.add_parser(
        "graph",
        help="draw the computation graph with shardings",
        description="Complete the shardings of a StableHLO program and draw its tensors and ops, "
        "annotated tensors marked and repeated layers folded, as SVG or as text for Graphviz.",
    )
    parser.set_defaults(command=run, parser=parser)
    parser.add_argument("file", metavar="FILE", help="MLIR text; - is standard input")
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        default="-",
        help="where it goes: out.svg, out.dot; text for Graphviz to standard output if not given",
    )
    parser.add_argument("--around", metavar="VALUE", help="only what is near this value, %%12")
    parser.add_argument(
        "--hops", type=count, default=3, metavar="N", help="how many ops away from it [3]"
    )
    parser.add_argument("--all-layers", action="store_true", help="draw each of repeated layers")


def run(options: argparse.Namespace) -> int:
    """Run the command and return the exit code."""
    module = read_module(options.file)
    with progress_bar() as progress:
        result = module.propagate(progress=progress)
    warn(result)
    how = {"around": options.around, "hops": options.hops, "folds": not options.all_layers}
    if options.output == "-":
        print_text(result.graph(**how).dot(), end="")
        return 0
    try:
        graph = result.graph(options.output, **how)
    except (ImportError, ValueError) as error:
        options.parser.error(str(error))
    print_text(graph)
    return 0
