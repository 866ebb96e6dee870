"""``shardcore report``: a page about a program."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

from shardcore.cli.options import (
    add_program,
    count,
    print_text,
    progress_bar,
    read_module,
    warn,
    write,
)
from shardcore.cli.where import add_hardware, add_tokens, cost_options
from shardcore.partition.policies import POLICIES

if TYPE_CHECKING:
    from shardcore._core import Result


def add(commands: Any) -> None:
    """Add the command to the parser's ``commands``."""
    parser = commands.add_parser(
        "report",
        help="write a page about a program, for a browser",
        description="Complete the shardings of a StableHLO program and write one self-contained "
        "page of HTML: whether it fits, the step, MFU, the changes worth most; the source with "
        "costs, shardings and collectives beside each line, memory by kind, the timeline, all "
        "values with where their axes come from.",
    )
    parser.set_defaults(command=run, parser=parser)
    add_program(parser)
    parser.add_argument("-o", "--output", metavar="FILE", help="where the page goes: out.html")
    parser.add_argument(
        "--trace",
        metavar="FILE",
        help="where the predicted step goes as a Chrome trace, for Perfetto: out.json",
    )
    parser.add_argument(
        "--model-explorer",
        metavar="FILE",
        help="where the completed program goes as a graph for Google's Model Explorer: out.json; "
        "beside it node data, out.sharding.json, out.bytes.json, out.seconds.json",
    )
    parser.add_argument(
        "--against", metavar="FILE", help="a program to compare with: what changed is marked"
    )
    parser.add_argument(
        "--edits",
        type=count,
        default=3,
        metavar="N",
        help="try edits of annotations and tell the N changes worth most [3]",
    )
    parser.add_argument(
        "--policy",
        choices=POLICIES,
        default="xla",
        help="what makes the program of one device [xla]",
    )
    add_hardware(parser, default="tpu-v5p")
    add_tokens(parser)
    parser.add_argument(
        "--legalize-chlo",
        action="store_true",
        help="treat ops of CHLO as XLA does, which legalizes them first",
    )


def run(options: argparse.Namespace) -> int:
    """Run the command and return the exit code."""
    if options.file == "-" == options.against:
        options.parser.error("only one of the programs can be standard input")
    if "-" in (options.output, options.trace):
        options.parser.error("a page or a trace is a file")
    if not (options.output or options.trace or options.model_explorer):
        options.parser.error("there is nothing to write: give -o, --trace or --model-explorer")
    paths = [options.file] if options.against is None else [options.file, options.against]
    with progress_bar() as progress:
        results = [
            read_module(path, options.shardy).propagate(
                legalize_chlo=options.legalize_chlo, progress=progress
            )
            for path in paths
        ]
    warn(results[0])
    how = {"policy": options.policy, "tokens": options.tokens, **cost_options(options)}
    if options.output:
        against = results[1] if len(results) > 1 else None
        results[0].report(
            options.output, options.hardware, against=against, edits=options.edits, **how
        )
    if options.trace or options.model_explorer:
        _exports(results[0], options, how)
    return 0


def _exports(result: Result, options: argparse.Namespace, how: dict[str, Any]) -> None:
    """Write files for other tools."""
    from shardcore.report import model_explorer
    from shardcore.report.trace import trace

    cost = result.cost(options.hardware, **how)
    if options.trace:
        write(options.trace, json.dumps(trace(cost, result.module.filename), allow_nan=False))
    if options.model_explorer:
        for path in model_explorer.write(result, cost, options.model_explorer):
            print_text(path)
