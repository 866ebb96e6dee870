"""Each propagation pass alone does what the reference's does, on random programs.

More, and other, programs: ``python -m tests.shardy.test_propagation 5000 1`` takes 5,000 of each
kind from seed 1 on, and shows the seeds of those that differ.
"""

from __future__ import annotations

import dataclasses
import sys

import pytest

from tests.shardy import diff, reference
from tests.shardy.propagation_ops import Features
from tests.shardy.propagation_programs import program

PASSES = (
    "sdy-basic-propagate",
    "sdy-basic-propagate{conservative-propagation=true keep-sharding-rules=true}",
    "sdy-aggressive-propagate",
    "sdy-aggressive-propagate{conservative-propagation=true}",
    "sdy-aggressive-propagate{propagation-strategy=basic-then-aggressive}",
    "sdy-op-priority-propagate",
    "sdy-op-priority-propagate{propagation-strategy=basic keep-sharding-rules=true}",
    "sdy-user-priority-propagate",
    "sdy-user-priority-propagate{propagation-strategy=basic-then-aggressive}",
    "sdy-user-priority-propagate{run-op-priority-propagation=false}",
)

KINDS = {
    "plain": Features(ops=30),
    "dead ops": Features(dead=True),
    "several meshes": Features(meshes=True),
    "groups": Features(groups=True),
    "priorities": Features(priorities=True),
    "regions": Features(regions=True),
    "calls": Features(calls=True),
    "wide ops": Features(wide=True),
    "everything": Features(regions=True, groups=True, meshes=True, dead=True, wide=True),
}
PROGRAMS = 150


def pipeline(features: Features, seed: int) -> str:
    passes = []
    if features.regions:
        passes += ["sdy-manual-axes-cleanup", "sdy-add-data-flow-edges"]
    if features.calls:
        passes.append("sdy-add-func-data-flow-edges")
    return f"builtin.module({','.join([*passes, PASSES[seed % len(PASSES)]])})"


def difference(features: Features, seed: int) -> str:
    """A diff, empty if there is none."""
    text, passes = program(seed, features), pipeline(features, seed)
    theirs = reference.run(text, passes)
    return diff.explain(theirs, diff.ours(text, passes))


@pytest.mark.parametrize("kind", KINDS)
def test_random_programs(kind: str) -> None:
    for seed in range(PROGRAMS):
        found = difference(KINDS[kind], seed)
        assert not found, f"seed {seed} of {KINDS[kind]}:\n{found}"


def test_programs_are_functions_of_their_seed() -> None:
    everything = Features(*[20] + [True] * (len(dataclasses.fields(Features)) - 1))
    assert program(7, everything) == program(7, everything)
    assert program(7, everything) != program(8, everything)


def main() -> None:
    number, first = int(sys.argv[1]), int(sys.argv[2])
    for kind, features in KINDS.items():
        differing = [s for s in range(first, first + number) if difference(features, s)]
        print(f"{kind}: {differing or 'all the same'}", flush=True)


if __name__ == "__main__":
    main()
