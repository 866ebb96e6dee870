"""``shardcore maxtext``: the step of a configuration of MaxText."""

from __future__ import annotations

import argparse
from typing import Any

from shardcore.cli.options import count, print_json


def add(commands: Any) -> None:
    """Add the command to the parser's ``commands``."""
    parser = commands.add_parser(
        "maxtext",
        help="compute time and memory of the training step of a MaxText configuration",
        description="Read a configuration of MaxText, build its training step as a JAX program as "
        "bench does, and compute its time, memory and collectives. Keys that would change the step "
        "and are not modelled are listed. MaxText is not needed, nor an accelerator; jax and "
        "PyYAML are: pip install 'shardcore[jax,maxtext]'.",
    )
    parser.add_argument("config", metavar="CONFIG.yml", help="the configuration")
    parser.add_argument(
        "--set",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="a key over that of the file, as on MaxText's command line; may be repeated",
    )
    parser.add_argument(
        "--hardware", metavar="NAME", help="the chip, tpu-v6e [that of compile_topology]"
    )
    parser.add_argument("--hardware-file", metavar="FILE", help="a TOML file with chips")
    parser.add_argument(
        "--devices", type=count, metavar="N", help="chips of all slices [of compile_topology]"
    )
    parser.add_argument("--topology", metavar="16x16", help="the torus of a slice")
    parser.add_argument("--json", action="store_true", help="print JSON instead of tables")
    parser.set_defaults(command=run, parser=parser)


def run(options: argparse.Namespace) -> int:
    """Run the command and return the exit code."""
    from shardcore.maxtext.config import read_config
    from shardcore.maxtext.step import step_of

    step = step_of(
        read_config(options.config, options.set),
        hardware=options.hardware,
        devices=options.devices,
        topology=options.topology,
    )
    cost = step.cost(options.hardware_file)
    if options.json:
        print_json(
            {
                **step.record(),
                "tokens_per_second_and_chip": step.tokens_per_second(cost),
                "cost": cost.record(),
            }
        )
        return 0
    from shardcore.report.console import show
    from shardcore.report.maxtext_table import maxtext_parts

    show(maxtext_parts(step, cost))
    return 0
