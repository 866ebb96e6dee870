"""``shardcore cost``: the cost of a program, or the changes between two programs or policies."""

from __future__ import annotations

import argparse
from typing import Any

import shardcore
from shardcore.cli.diagnosed import add_ignore, show_diagnostics
from shardcore.cli.options import (
    add_program,
    count,
    print_json,
    progress_bar,
    read_module,
    seconds,
    warn,
    write,
)
from shardcore.cli.where import add_hardware, add_tokens, cost_options
from shardcore.compilers import COMPILERS
from shardcore.partition.policies import POLICIES

OWN_OPTIONS = ("combine", "improve", "compiler", "keep_ports", "tokens")
"""Options of a cost that only this command has."""


def add(commands: Any) -> None:
    """Add the command to the parser's ``commands``."""
    parser = commands.add_parser(
        "cost",
        help="compute time and memory of a program on one device, or compare two programs",
        description="Complete the shardings of a StableHLO program, lower it to the program of one "
        "device, and compute time, FLOPs, memory and collectives of that, each with the source "
        "line that caused it. Of two programs, one program with two annotations, or one program "
        "under two policies, show the differences by line.",
    )
    parser.set_defaults(command=run, parser=parser)
    add_program(parser)
    parser.add_argument(
        "other", metavar="FILE", nargs="?", help="a second program to compare with the first"
    )
    parser.add_argument(
        "--policy",
        type=_policies,
        default=["xla"],
        metavar="POLICY",
        help=f"what makes the program of one device: {', '.join(POLICIES)}; two, as in xla,least, "
        "are compared [xla]",
    )
    add_hardware(parser, default="tpu-v5p")
    parser.add_argument(
        "--combine",
        type=_limits,
        metavar="BYTES",
        help="the most bytes of collectives that run as one: 30MiB, 0 for none, or by kind: "
        "all_reduce=30MiB,all_gather=0 [that of the chip]",
    )
    add_tokens(parser)
    parser.add_argument(
        "--improve",
        type=_passes,
        metavar="PASSES",
        help="passes that run on the program of one device before it is counted, with commas "
        "between: all-reduce-to-reduce-scatter, hoist-loop-invariant-collectives{max-bytes=N}, "
        "merge-equal-collectives, all-reduce-reassociate, fuse-reshards, remove-unused-ops "
        "[those of the compiler]",
    )
    parser.add_argument(
        "--compiler",
        choices=COMPILERS,
        help="the compiler whose kernels are in memory [that of the chip]",
    )
    parser.add_argument(
        "--against",
        choices=COMPILERS[:-1],
        help="have XLA's own compiler compile the program, without the chip, and show what it says "
        "beside the cost; the extras tpu-oracle and gpu-oracle install compilers",
    )
    parser.add_argument(
        "--seconds",
        type=seconds,
        metavar="S",
        help="with --against, how long the compiler may take [600]",
    )
    parser.add_argument(
        "--keep-ports",
        action="store_true",
        help="under xla, keep arguments and results without annotation as the completed program "
        "has them, not as XLA shards them",
    )
    parser.add_argument(
        "--by",
        choices=("scope", "line"),
        help="show what the scopes of the program cost, as those of jax.named_scope, by pass; "
        "with --memory what the picture has colours for [scope]",
    )
    parser.add_argument(
        "--memory",
        action="store_true",
        help="show what is in memory when, and at the peak by source line and scope",
    )
    parser.add_argument(
        "--kernels",
        action="store_true",
        help="show the kernels that the compiler makes of the program, those that take longest "
        "first; with --json all of them",
    )
    parser.add_argument(
        "--svg", metavar="FILE", help="with --memory, write the picture of it; - is standard output"
    )
    parser.add_argument(
        "--depth", type=count, metavar="N", help="the names of a scope that are told apart"
    )
    parser.add_argument(
        "--each-layer",
        action="store_true",
        help="do not merge scopes that differ only in numbers, layer_0 and layer_1",
    )
    add_ignore(parser)
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    parser.add_argument(
        "--top", type=count, default=10, metavar="N", help="rows to show of each table [10]"
    )


def run(options: argparse.Namespace) -> int:
    """Run the command and return the exit code."""
    if options.file == "-" == options.other:
        options.parser.error("only one of the programs can be standard input")
    if options.other is not None and len(options.policy) > 1:
        options.parser.error("compare two programs or two policies, not both")
    _check_memory(options)
    _check_against(options)
    if options.hardware == "all":
        return _every_chip(options)
    results = [_completed(path, options.shardy) for path in _paths(options)]
    costs = [cost for result in results for cost in _costs(options, result)]
    from shardcore.report.console import show

    if len(costs) == 1:
        [result] = results
        if options.against:
            _against(costs[0], options)
        elif options.memory:
            _memory(costs[0], options)
        elif options.kernels:
            _kernels(costs[0], options)
        elif options.json:
            from shardcore.diagnose import diagnostics

            chip = costs[0].hardware
            found = diagnostics(result, chip, ignore=options.ignore, cost=costs[0])
            listed = [each.record() for each in found]
            print_json({**costs[0].record(), "diagnostics": listed})
        elif options.by == "scope":
            from shardcore.report.cost_table import scope_parts

            merge = not options.each_layer
            show(scope_parts(costs[0], depth=options.depth, merge=merge, top=options.top))
        else:
            from shardcore.report.cost_table import cost_parts

            show(cost_parts(costs[0], top=options.top))
            show_diagnostics(result, options.ignore, costs[0])
        return 0
    from shardcore.report.comparison_table import comparison_parts

    compared = shardcore.compare(*costs)
    if options.json:
        print_json(compared.record())
    else:
        show(comparison_parts(compared, top=options.top))
    return 0


def _limits(text: str) -> dict[str, int]:
    """The sizes up to which collectives are combined, by kind."""
    from shardcore.costs.combine import given_limits, parse_limits

    try:
        return given_limits(parse_limits(text))
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _passes(text: str) -> str:
    """The passes that run on the per-device program."""
    from shardcore.costs.improve import check_passes

    try:
        return check_passes(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _check_memory(options: argparse.Namespace) -> None:
    """Refuse options that need --memory or --kernels without it, and those that exclude it."""
    if options.kernels and (
        options.memory
        or options.other is not None
        or len(options.policy) > 1
        or options.hardware == "all"
    ):
        options.parser.error("--kernels takes one program, one policy and one chip, no --memory")
    if not options.memory:
        if options.svg is not None or options.by == "line":
            options.parser.error("--svg and --by line go with --memory")
    elif options.other is not None or len(options.policy) > 1 or options.hardware == "all":
        options.parser.error("--memory takes one program, one policy and one chip")


def _memory(cost: shardcore.Cost, options: argparse.Namespace) -> None:
    """Print or write the memory over time."""
    from shardcore.report.console import show
    from shardcore.report.memory_table import memory_parts

    timeline = cost.memory_timeline()
    if options.svg is not None:
        write(options.svg, timeline.svg(options.by or "scope"))
    if options.json:
        print_json(timeline.record())
    elif options.svg != "-":
        show(memory_parts(timeline, top=options.top))


def _kernels(cost: shardcore.Cost, options: argparse.Namespace) -> None:
    """Print the kernels."""
    from shardcore.report.console import show
    from shardcore.report.kernel_table import kernel_parts

    if options.json:
        print_json({"compiler": cost.compiler, "kernels": [row.record() for row in cost.kernels]})
    else:
        show(kernel_parts(cost, top=options.top))


def _check_against(options: argparse.Namespace) -> None:
    """Refuse options that --against excludes, and --seconds without it."""
    if not options.against:
        if options.seconds is not None:
            options.parser.error("--seconds goes with --against")
    elif (
        options.memory
        or options.kernels
        or options.by
        or options.other is not None
        or len(options.policy) > 1
        or options.hardware == "all"
    ):
        options.parser.error(
            "--against takes one program, one policy and one chip, no --memory, --kernels or --by"
        )


def _against(cost: shardcore.Cost, options: argparse.Namespace) -> None:
    """Print the cost beside what XLA says of the program."""
    from shardcore.report.console import show
    from shardcore.xla import against
    from shardcore.xla.compile import SECONDS

    found = against(
        cost,
        options.against,
        topology=options.topology,
        seconds=options.seconds or SECONDS,
    )
    if options.json:
        print_json(found.record())
    else:
        from shardcore.report.against_table import against_parts

        show(against_parts(found))


def _policies(text: str) -> list[str]:
    """One policy, or two separated by a comma."""
    found = text.split(",")
    unknown = [name for name in found if name not in POLICIES]
    if unknown or len(found) > 2:
        known = ", ".join(POLICIES)
        raise argparse.ArgumentTypeError(f"expected one or two of {known}, got {text!r}")
    return found


def _paths(options: argparse.Namespace) -> list[str]:
    return [options.file] if options.other is None else [options.file, options.other]


def _given(options: argparse.Namespace) -> dict[str, Any]:
    """The options of a cost other than the chip and the policy."""
    own = {name: getattr(options, name) for name in OWN_OPTIONS}
    own["compiler"] = options.compiler or options.against
    return {**cost_options(options), **own}


def _costs(options: argparse.Namespace, result: shardcore.Result) -> list[shardcore.Cost]:
    """The costs of a program under each policy."""
    given = _given(options)
    return [shardcore.cost(result, options.hardware, each, **given) for each in options.policy]


def _completed(path: str, shardy: str | None) -> shardcore.Result:
    """The program at ``path``, propagated."""
    module = read_module(path, shardy)
    with progress_bar() as progress:
        result = module.propagate(progress=progress)
    warn(result)
    return result


def _every_chip(options: argparse.Namespace) -> int:
    """Print the cost of one program under one policy on every chip."""
    from shardcore.costs.chips import on_every_chip
    from shardcore.report.chips_table import chips_parts
    from shardcore.report.console import show

    if options.other is not None or len(options.policy) > 1:
        options.parser.error("--hardware all takes one program and one policy")
    [policy] = options.policy
    rows = on_every_chip(_completed(options.file, options.shardy), policy, **_given(options))
    if options.json:
        print_json({"policy": policy, "hardware": [row.record() for row in rows]})
    else:
        show(chips_parts(rows))
    return 0
