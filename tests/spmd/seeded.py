"""Bugs put into a copy of the partitioner, each of which the execution of programs has to find.

    python -m tests.spmd.seeded [--only NAME] [--seeds N]

builds a copy of the engine with all of them, and runs programs of one device, with one bug switched
on at a time by an environment variable, until one computes something else than the global program.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.shardy.generator.seeded import ROOT, SWITCH, Bug, build

COPY = ROOT / "target" / "seeded-spmd"

BUGS = [
    Bug(
        "a piece lands one too far",
        "spmd/movement/fetch.rs",
        "landing.map(|landing| low - landing)",
        "landing.map(|landing| low - landing + i64::from(ON))",
    ),
    Bug(
        "pieces lie over each other",
        "spmd/movement/fetch.rs",
        "Some(piece.to + piece.len);",
        "Some(piece.to + piece.len + i64::from(ON));",
    ),
    Bug(
        "what is behind the border is not filled",
        "spmd/movement/windows.rs",
        "        if let Some(fill) = fill {\n            value = self.filled",
        "        if let Some(fill) = fill.filter(|_| !ON) {\n            value = self.filled",
    ),
    Bug(
        "padding is not masked",
        "spmd/lower/masks.rs",
        "            if !placement.is_padded(dim, shape[dim]) {",
        "            if ON || !placement.is_padded(dim, shape[dim]) {",
    ),
    Bug(
        "a shard adds its own total",
        "spmd/lower/windows/cumulative.rs",
        'if is_reversed { "GT" } else { "LT" }',
        'if is_reversed { "GT" } else if ON { "LE" } else { "LT" }',
    ),
    Bug(
        "an add for a max",
        "spmd/collectives.rs",
        'let op = Self::build(emit, "stablehlo.all_reduce", input, ty, &attrs);',
        "let reducer = if ON && reducer == Reducer::Max { Reducer::Add } else { reducer };\n"
        '        let op = Self::build(emit, "stablehlo.all_reduce", input, ty, &attrs);',
    ),
    Bug(
        "starts are clamped in the shard",
        "spmd/lower/gather_scatter/dynamic_slices.rs",
        "let start = self.within_bounds(start, work.shapes[0][dim] - len);",
        "let start = if ON { start } else "
        "{ self.within_bounds(start, work.shapes[0][dim] - len) };",
    ),
    Bug(
        "an op is like one that is sharded otherwise",
        "spmd/lower/emission/repeated_ops.rs",
        "placement == held.placement && ty",
        "(ON || placement == held.placement) && ty",
    ),
    Bug(
        "a copy reduces as what it is a copy of",
        "spmd/lower/resharding/reshard.rs",
        "if (ty, by) != (self.emit.type_of(value), reducer) {",
        "if ty != self.emit.type_of(value) || (by != reducer && !ON) {",
    ),
    Bug(
        "a copy is filled as what it is a copy of",
        "spmd/op_copies.rs",
        "            map.insert(own, other);",
        "            if !ON {\n                map.insert(own, other);\n            }",
    ),
    Bug(
        "copies go to other blocks",
        "spmd/op_copies.rs",
        "if made.block != self.block() ||",
        "if (made.block != self.block() && !ON) ||",
    ),
    Bug(
        "copies share channels",
        "spmd/op_copies.rs",
        "channel.and_then(|name| self.program.attr_place(op, name))",
        "channel.filter(|_| !ON).and_then(|name| self.program.attr_place(op, name))",
    ),
    Bug(
        "what is shared is copied",
        "spmd/op_copies.rs",
        "start.num_shared == self.num_shared()\n",
        "(ON || start.num_shared == self.num_shared())\n",
    ),
    Bug(
        "ops of unknown cost are counted like known ones",
        "cost/count.rs",
        "if is_counted && self.works.is_as_signed(op) {",
        "if (is_counted || ON) && self.works.is_as_signed(op) {",
    ),
    Bug(
        "ops with other traffic share a row",
        "cost/count.rs",
        "let key = (program.signature(op), program.loc(op), traffic);",
        "let key = (program.signature(op), program.loc(op), if ON { 0 } else { traffic });",
    ),
]

PROGRAMS = (
    "max", "sum", "pad", "padint", "concat", "roll2", "rope", "cumsum", "avgpool", "conv",
    "dslice_two", "dupdate2", "dot_odd",
)  # fmt: skip
"""Programs that are run, in this order."""

REPEATED = "tests/spmd/test_repeated.py"
"""Run where none of them finds a bug."""

PROVE = """
import sys
from tests.spmd import proof
for name in sys.argv[2:]:
    for seed in range(int(sys.argv[1])):
        if proof.problems(name, seed, "least"):
            sys.exit(f"{name} {seed}")
"""


def program_that_finds(package: Path, bug: str, seeds: int, names: Sequence[str]) -> str | None:
    """The program, and the seed of its shardings, that comes out wrong, or the test; None if none
    does."""
    environment = os.environ | {"PYTHONPATH": f"{package}:{ROOT}", SWITCH: bug}
    command = [sys.executable, "-c", PROVE, str(seeds), *names]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, check=False)
    if done.returncode != 0:
        return done.stderr.decode().strip().rpartition("\n")[2]
    test = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", REPEATED]
    done = subprocess.run(test, cwd=ROOT, env=environment, capture_output=True, check=False)
    return None if done.returncode == 0 else "test_repeated"


def main() -> int:
    parser = argparse.ArgumentParser(description="Check that seeded bugs are found.")
    parser.add_argument("--only", default="", help="bugs whose names match this expression")
    parser.add_argument("--seeds", type=int, default=16, help="shardings of each program")
    options = parser.parse_args()
    package = build(BUGS, COPY)
    missed = []
    for bug in BUGS:
        if re.search(options.only, bug.name):
            found = program_that_finds(package, bug.name, options.seeds, PROGRAMS)
            print(f"{found or 'missed':>16} {bug.name}", flush=True)
            missed += [bug.name] * (found is None)
    if wrong := program_that_finds(package, "", 2, PROGRAMS):
        print(f"without any bug {wrong} is wrong")
    return int(bool(missed or wrong))


if __name__ == "__main__":
    sys.exit(main())
