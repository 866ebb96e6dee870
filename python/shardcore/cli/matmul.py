"""``shardcore matmul``: every way to do a sharded product, and the best one."""

from __future__ import annotations

import argparse
import shutil
import sys
from typing import Any

from shardcore.cli.options import count, print_fitted, print_json, print_text
from shardcore.cli.where import (
    add_hardware,
    add_mesh,
    check_sizes,
    mesh_of,
    sizes_of,
    time_options,
    topology_of,
)
from shardcore.errors import CalculusError
from shardcore.units import format_bytes, format_seconds, parse_bytes


def add(commands: Any) -> None:
    """Add the command to the parser's ``commands``."""
    parser = commands.add_parser(
        "matmul",
        help="list the strategies for a sharded product, the best first",
        description="List every sequence of collectives for 'A[I, J_X] * B[J, K] -> C[I, K]', or "
        "for a chain of products, with times and memory, the best first.",
    )
    parser.set_defaults(command=run, parser=parser)
    parser.add_argument("product", metavar="PRODUCT", help="A[I, J_X] * B[J, K] -> C[I, K]")
    add_mesh(parser)
    add_hardware(parser, required=False)
    parser.add_argument(
        "--search", action="store_true", help="also choose the shardings of inputs without axes"
    )
    parser.add_argument(
        "--memory",
        type=_bytes,
        metavar="BYTES",
        help="memory of a device, e.g. 300MB [that of the chip]",
    )
    parser.add_argument(
        "--limit",
        type=count,
        default=10,
        metavar="N",
        help="rows to show at most; 0 shows all [10]",
    )
    parser.add_argument(
        "--program",
        choices=("global", "local"),
        help="instead print the product as StableHLO: with shardings, or as each device runs it",
    )
    parser.add_argument(
        "--strategy",
        metavar="NAME",
        help="the strategy of --program, e.g. 'AllGather_X(A)'; without it the partitioner chooses",
    )
    parser.add_argument(
        "--chunked",
        action="store_true",
        help="in --program, a collective matmul: a loop that sends a block while it multiplies one",
    )
    parser.add_argument(
        "--policy",
        choices=("least", "shardy", "xla"),
        help="how --program local chooses where there is more than one way [least]",
    )


def _bytes(text: str) -> float:
    """A number of bytes above 0, with a unit or without."""
    count = parse_bytes(text)
    if not count:
        raise argparse.ArgumentTypeError(f"expected bytes such as 300MB, got {text!r}")
    return float(count)


def run(options: argparse.Namespace) -> int:
    """Run the command and return the exit code."""
    from shardcore.calculus.chain import chain_strategies
    from shardcore.calculus.contraction import CASES, pairwise, parse_product
    from shardcore.calculus.crossover import bound_changes, chain_crossovers, crossovers
    from shardcore.calculus.matmul import matmul_strategies

    if options.program is not None:
        return _program(options)
    for flag in ("strategy", "chunked", "policy"):
        if getattr(options, flag):
            options.parser.error(f"--{flag} is for --program")
    if options.hardware is None:
        options.parser.error("the following arguments are required: --hardware")
    mesh = mesh_of(options)
    operands, output = parse_product(
        options.product, mesh, sizes=sizes_of(options), dtype=options.dtype
    )
    check_sizes(options, [*operands, output])
    products = pairwise(operands, output)
    topology, how = topology_of(options, mesh), time_options(options)
    notes = list(topology.notes)
    choice = {"memory_limit": options.memory, "search": options.search}
    if len(products) == 1:
        strategies = matmul_strategies(products[0], topology, how, **choice)
        changes = crossovers(products[0], topology, how, **choice)
    else:
        strategies = chain_strategies(products, topology, how, **choice)
        try:
            changes = chain_crossovers(products, topology, how, **choice)
        except CalculusError as error:
            changes = []
            notes.append(f"no sizes at which the best changes: {error.message}")
    dtypes = {array.dtype or "" for array in operands}
    for dtype in sorted(dtypes):
        if not topology.hardware.has_figure_for(dtype):
            notes.append(f"{topology.hardware.name} has no figure for {dtype}; taken as bf16")
    bounds = bound_changes(strategies[0], topology, how)
    if options.json:
        print_json(
            {
                "product": options.product,
                "case": products[0].case,
                "cases": [product.case for product in products],
                "case_text": CASES[products[0].case],
                "mesh": dict(mesh.shape),
                "hardware": topology.hardware.name,
                "best": strategies[0].name,
                "strategies": [strategy.record() for strategy in strategies],
                "best_changes": [change.record() for change in changes],
                "bound_changes": [change.record() for change in bounds],
                "notes": notes,
            }
        )
        return 0
    for product in products:
        print_text(f"{product}\ncase {product.case}: {CASES[product.case]}\n")
    _table(strategies[: options.limit or None], searched=options.search)
    if options.limit and len(strategies) > options.limit:
        print_text(f"... {len(strategies) - options.limit} more (--limit 0 shows all)")
    print_text()
    for change in changes:
        print_fitted(
            f"at {change.dim} = {change.size:.5g} the best changes: {change.below} | {change.above}"
        )
    for change in bounds:
        print_text(f"at {change.dim} = {change.size:.5g} {change.below} stops to bound the best")
    for note in notes:
        print_text(f"note: {note}")
    return 0


def _program(options: argparse.Namespace) -> int:
    from shardcore.calculus.contraction import parse_product
    from shardcore.calculus.programs import program

    if options.json:
        options.parser.error("--program prints StableHLO, not JSON")
    mesh, sizes = mesh_of(options), sizes_of(options)
    operands, output = parse_product(options.product, mesh, sizes=sizes, dtype=options.dtype)
    check_sizes(options, [*operands, output])
    module = program(
        options.product,
        mesh=mesh,
        sizes=sizes,
        dtype=options.dtype,
        strategy=options.strategy,
        chunked=options.chunked,
    )
    if options.program == "local":
        module = module.propagate().partition(options.policy or "least").module
    print_text(module)
    return 0


def _table(strategies: list[Any], *, searched: bool) -> None:
    from shardcore.report.console import PlainTable

    numbers = (">total", ">chunked", ">serial", ">communication", ">compute", ">per device")
    texts = ("inputs", "strategy") if searched else ("strategy",)
    rows = []
    for strategy in strategies:
        size = format_bytes(strategy.bytes_per_device) + ("" if strategy.fits else " !")
        rows.append(
            [
                format_seconds(strategy.total_seconds, 4),
                format_seconds(strategy.chunked_seconds, 4),
                format_seconds(strategy.serial_seconds, 4),
                format_seconds(strategy.comm_seconds, 4),
                format_seconds(strategy.compute_seconds, 4),
                size,
                *([", ".join(strategy.inputs)] if searched else []),
                strategy.name,
            ]
        )
    lines = list(PlainTable((*numbers, *texts), rows).lines())
    if sys.stdout.isatty() and max(map(len, lines)) > shutil.get_terminal_size().columns:
        # Texts go below the numbers.
        lines = []
        narrow = PlainTable(numbers, [row[: len(numbers)] for row in rows]).lines()
        for line, row in zip(narrow, [(*numbers, *texts), *rows], strict=True):
            lines += [line, f"  {'; '.join(row[len(numbers) :])}"]
    for line in lines:
        print_fitted(line)
    if not all(strategy.fits for strategy in strategies):
        print_text("!  needs more memory than a device has")
