"""``shardcore why``: the origins of a value's axes, and the reasons for collectives."""

from __future__ import annotations

import argparse
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from shardcore.cli.options import (
    add_program,
    count,
    print_fitted,
    print_json,
    progress_bar,
    read_module,
    warn,
)
from shardcore.cli.where import add_hardware, cost_options
from shardcore.controls import in_lines
from shardcore.costs.longest import longest_collectives
from shardcore.line_values import line_values
from shardcore.why import Why, WhyNot, absences
from shardcore.why.text import collective_tree

if TYPE_CHECKING:
    from shardcore import Result, Value

_PLACE = re.compile(r"[^%@\s][^\s]*:\d+")
"""A line of a source file, ``model.py:42``."""


def add(commands: Any) -> None:
    """Add the command to the parser's ``commands``."""
    parser = commands.add_parser(
        "why",
        help="say where the axes of a value come from, and why collectives are there",
        description="Complete the shardings of a StableHLO program and say of each axis of a value "
        "from which annotation it comes, and through which ops it went; of an axis that it does "
        "not have, why not; or, of the collectives that take longest, which annotations disagree, "
        "and which edit of one removes them.",
    )
    parser.set_defaults(command=run, parser=parser)
    add_program(parser)
    parser.add_argument(
        "value",
        metavar="VALUE",
        nargs="?",
        help="the path of an argument or result, params['w'], a value, %%12 or '@helper %%12', "
        "or a line of the source, model.py:42: the values that it made",
    )
    parser.add_argument("--dim", type=count, metavar="N", help="this dim only")
    parser.add_argument(
        "--axis",
        metavar="NAME",
        help="this axis only; where the value, or its dim, does not have it, why not",
    )
    parser.add_argument(
        "--collectives",
        type=count,
        metavar="N",
        help="instead of a value, the N places of the program whose collectives take longest",
    )
    add_hardware(parser, default="tpu-v5p")
    parser.add_argument(
        "--policy",
        choices=("xla", "shardy", "least"),
        default="xla",
        help="what makes the collectives (default: xla)",
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of a tree")


def run(options: argparse.Namespace) -> int:
    """Run the command and return the exit code."""
    if (options.value is None) == (options.collectives is None):
        options.parser.error("give a VALUE or --collectives N")
    module = read_module(options.file, options.shardy)
    with progress_bar() as progress:
        result = module.propagate(progress=progress)
    warn(result)
    if options.collectives is not None:
        return _collectives(options, result)
    if _PLACE.fullmatch(options.value) and result.module._ports.find(options.value) is None:
        return _line(options, result)
    axis = options.axis
    missing = [] if axis is None else absences(result, options.value, axis, options.dim)
    if missing:
        if options.json:
            print_json({"why_not": [each.record() for each in missing]})
        else:
            print_fitted("\n".join(map(str, missing)))
        return 0
    found = result.why(options.value, options.axis, options.dim)
    if options.json:
        print_json(found.record())
        return 0
    print_fitted(found)
    if not found.axes:
        names = sorted({name for mesh in result.module.meshes.values() for name in mesh.axis_names})
        if names:
            asked = " or ".join(f"--axis {name}" for name in names)
            print_fitted(f"   {asked} says why it is not there")
    return 0


def _line(options: argparse.Namespace, result: Result) -> int:
    """Explain the values that a source line computes: those that have the axis, if one is given; if
    none has it, why not.
    """
    values = [value for value in line_values(result, options.value) if value.shape]
    axis, dim = options.axis, options.dim
    whys: list[Why | WhyNot] = []
    for value in values:
        if dim is not None and dim >= len(value.shape or ()):
            continue
        missing = [] if axis is None else absences(result, value, axis, dim)
        whys += missing or [result.why(value, axis, dim) if axis else _of_dim(result, value, dim)]
    if options.json:
        records = [(isinstance(each, WhyNot), each.record()) for each in whys]
        print_json(
            {
                "values": [record for is_missing, record in records if not is_missing],
                "why_not": [record for is_missing, record in records if is_missing],
            }
        )
        return 0
    print_fitted("\n".join(map(str, whys)) or f"{options.value} made no value with dims")
    return 0


def _of_dim(result: Result, value: Value, dim: int | None) -> Why:
    """The origins of the axes of ``value``, or only of dim ``dim``; may be empty."""
    found = result.why(value)
    kept = (axis for axis in found.axes if dim in (None, axis.dim))
    return replace(found, axes=tuple(kept))


def _collectives(options: argparse.Namespace, result: Result) -> int:
    """Explain the longest collectives, one for each source location."""
    cost = result.cost(options.hardware, options.policy, **cost_options(options))
    longest = longest_collectives(cost, options.collectives)
    with progress_bar() as progress:
        found = []
        for done, row in enumerate(longest):
            progress("trying edits", done / len(longest))
            found.append(row.why.record())
    if options.json:
        print_json({"collectives": found})
        return 0
    for number, record in enumerate(found):
        print_fitted(("\n" if number else "") + collective_tree(in_lines(record)))
    return 0
