"""``shardcore graph``: the computation graph, drawn with shardings."""

from __future__ import annotations

import argparse
from typing import Any

from shardcore.cli.options import add_program, count, print_text, progress_bar, read_module, warn
from shardcore.errors import ShardcoreError
from shardcore.report.graph.folding import MAX_NODES


def add(commands: Any) -> None:
    """Add the command to the parser's ``commands``."""
    parser = commands.add_parser(
        "graph",
        help="draw the computation graph with shardings",
        description="Complete the shardings of a StableHLO program and draw its tensors and ops, "
        "annotated tensors marked, as SVG or as text for Graphviz. Large programs are folded: "
        "repeated layers once, then ops by scope or by source line.",
    )
    parser.set_defaults(command=run, parser=parser)
    add_program(parser)
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
    parser.add_argument(
        "--scope", metavar="NAME", help="only the ops in this scope or line: a name of the graph"
    )
    parser.add_argument(
        "--max-nodes",
        type=count,
        default=MAX_NODES,
        metavar="N",
        help=f"fold until there are so few tensors and ops [{MAX_NODES}]",
    )
    parser.add_argument("--all-layers", action="store_true", help="fold nothing: draw each op")


def run(options: argparse.Namespace) -> int:
    """Run the command and return the exit code."""
    module = read_module(options.file, options.shardy)
    with progress_bar() as progress:
        result = module.propagate(progress=progress)
    warn(result)
    how = {
        "around": options.around,
        "hops": options.hops,
        "scope": options.scope,
        "folds": not options.all_layers,
        "max_nodes": options.max_nodes,
    }
    path = None if options.output == "-" else options.output
    try:
        graph = result.graph(path, **how)
    except ShardcoreError:
        raise
    except ValueError as error:
        options.parser.error(str(error))
    if path is None:
        print_text(graph.dot(), end="")
        return 0
    print_text(graph)
    if graph.hint:
        print_text(graph.hint)
    return 0
