"""``shardcore partition``: the per-device program."""

from __future__ import annotations

import argparse
from typing import Any

from shardcore.cli.options import (
    add_program,
    count,
    print_json,
    progress_bar,
    read_module,
    warn,
    write,
)
from shardcore.compilers import COMPILERS
from shardcore.partition.policies import POLICIES


def add(commands: Any) -> None:
    """Add the command to the parser's ``commands``."""
    parser = commands.add_parser(
        "partition",
        help="make the program of one device, and compare it with the global one",
        description="Complete the shardings of a StableHLO program and make the program that each "
        "device runs: StableHLO with local shapes and collectives. The table says how ops are "
        "computed and what is sent.",
    )
    parser.set_defaults(command=run, parser=parser)
    add_program(parser)
    parser.add_argument(
        "-o", "--output", metavar="FILE", help="where the local program goes; - is standard output"
    )
    parser.add_argument(
        "--hlo", action="store_true", help="write the local program as HLO text, by jaxlib"
    )
    parser.add_argument(
        "--policy",
        choices=POLICIES,
        default="least",
        help="how to choose where an op can be computed in more than one way [least]",
    )
    parser.add_argument(
        "--compiler",
        choices=COMPILERS,
        default="none",
        help="with --policy xla: whose propagation it follows; xla-tpu simplifies before [none]",
    )
    parser.add_argument(
        "--prove",
        action="store_true",
        help="run all devices and the global program on random data and compare; "
        "the exit code is 1 where they differ",
    )
    parser.add_argument(
        "--seed", type=count, default=0, metavar="N", help="seed of the random data [0]"
    )
    parser.add_argument(
        "--dtype",
        choices=("f32", "f64"),
        help="with --prove: compute narrower floats in this type, so that rounding makes no "
        "differences",
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    parser.add_argument(
        "--top", type=count, default=10, metavar="N", help="rows to show of each table [10]"
    )


def run(options: argparse.Namespace) -> int:
    """Run the command and return the exit code."""
    if options.json and options.output == "-":
        options.parser.error("--json and -o - both want standard output")
    if options.dtype is not None and not options.prove:
        options.parser.error("--dtype is for --prove")
    module = read_module(options.file, options.shardy)
    with progress_bar() as progress:
        result = module.propagate(progress=progress)
        partitioned = result.partition(options.policy, compiler=options.compiler, progress=progress)
    warn(result)
    if options.output is not None:
        dialect = "hlo" if options.hlo else "stablehlo"
        write(options.output, partitioned.as_text(dialect))
    proof = None
    if options.prove:
        from shardcore.partition import prove

        proof = prove(partitioned, seed=options.seed, dtype=options.dtype)
    if options.json:
        record = partitioned.record()
        if proof is not None:
            record["proof"] = proof.record()
        print_json(record)
    elif options.output != "-":
        from shardcore.report.partition_table import print_partition

        print_partition(partitioned, proof, top=options.top)
    return 0 if proof is None or proof.is_proven else 1
