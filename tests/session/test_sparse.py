"""Edits of programs few of whose values are sharded: most visits do nothing until late in a run."""

from __future__ import annotations

import re
from random import Random

from shardcore import Module

from tests.deep import IS_DEEP
from tests.session.edits import new_outcome, outcome

TYPE = "tensor<4x4xf32>"
BINARY = [
    "stablehlo.add {0}, {1} : {type}",
    "stablehlo.dot_general {0}, {1}, contracting_dims = [1] x [0] : ({type}, {type}) -> {type}",
    "stablehlo.dot_general {0}, {1}, contracting_dims = [0] x [1] : ({type}, {type}) -> {type}",
]
UNARY = [
    "stablehlo.negate {0} : {type}",
    "stablehlo.transpose {0}, dims = [1, 0] : ({type}) -> {type}",
]
NUM_PROGRAMS = 20_000 if IS_DEEP else 100
EDITS_PER_PROGRAM = 8


def program(rng: Random, num_args: int) -> str:
    """Ops on matrices, each of two values before it or of one; sums of products along the rows."""
    values = [f"%arg{index}" for index in range(num_args)]
    lines = []
    for number in range(rng.randrange(10, 30)):
        if rng.random() < 0.4:
            inner = rng.choice(values), rng.choice(values)
            lines += [
                f"  %p{number} = stablehlo.dot_general {inner[0]}, {inner[1]}, batching_dims = [0] "
                f"x [0], contracting_dims = [1] x [1] : ({TYPE}, {TYPE}) -> tensor<4xf32>",
                f"  %v{number} = stablehlo.broadcast_in_dim %p{number}, dims = "
                f"[{rng.randrange(2)}] : (tensor<4xf32>) -> {TYPE}",
            ]
        else:
            op = rng.choice([*BINARY, *UNARY])
            last = values[-3:] if rng.random() < 0.5 else values
            line = op.format(rng.choice(last), rng.choice(values), type=TYPE)
            lines.append(f"  %v{number} = {line}")
        values.append(f"%v{number}")
    # Replays do not cover programs with ops that nothing uses.
    used = set(re.findall(r"%\w+", " ".join(line.partition(" = ")[2] for line in lines)))
    results = [value for value in values[num_args:] if value not in used]
    return written([f"%arg{index}: {TYPE}" for index in range(num_args)], lines, results)


def written(args: list[str], lines: list[str], results: list[str]) -> str:
    """The text of a program of these lines."""
    types = ", ".join([TYPE] * len(results))
    return "\n".join(
        [
            'sdy.mesh @mesh = <["a"=2, "b"=2]>',
            f"func.func @main({', '.join(args)}) -> ({types}) {{",
            *lines,
            f"  return {', '.join(results)} : {types}",
            "}",
        ]
    )


def sharding(rng: Random) -> str:
    """At most one axis a dim."""
    axes = ['"a"', '"b"', ""]
    rng.shuffle(axes)
    if rng.random() < 0.4:
        axes = ["", ""]
    dims = (", ".join(filter(None, (axis, rng.choice(("", "?"))))) for axis in axes[:2])
    return "[" + ", ".join(f"{{{dim}}}" for dim in dims) + "]"


def check(seeds: range) -> None:
    """Compare random edits of the programs of ``seeds`` with new runs."""
    for seed in seeds:
        rng = Random(seed)
        num_args = rng.randrange(3, 8)
        session = Module.parse(program(rng, num_args)).session()
        session.set({f"%arg{index}": sharding(rng) for index in range(num_args)})
        assert outcome(session) == new_outcome(session), seed
        for _ in range(EDITS_PER_PROGRAM):
            names = rng.sample(range(num_args), rng.choice((1, 1, 1, 2)))
            session.set({f"%arg{index}": sharding(rng) for index in names})
            assert outcome(session) == new_outcome(session), seed


def test_edits_of_few_annotations() -> None:
    check(range(NUM_PROGRAMS))
