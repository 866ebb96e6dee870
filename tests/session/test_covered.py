"""Edits of programs with loops, branches and ops without a rule, which replays cover."""

from __future__ import annotations

from random import Random

from shardcore import Module

from tests.deep import IS_DEEP
from tests.session.covered import program
from tests.session.edits import figures, outcome
from tests.session.test_sparse import sharding

NUM_PROGRAMS = 20_000 if IS_DEEP else 100
EDITS_PER_PROGRAM = 8


def check(seeds: range) -> None:
    """Compare random edits of the programs of ``seeds`` with new runs."""
    for seed in seeds:
        rng = Random(seed)
        num_args = rng.randrange(3, 8)
        module = Module.parse(program(rng, num_args))
        session = module.session()
        session.set({f"%arg{index}": sharding(rng) for index in range(num_args)})
        names = [f"%arg{index}" for index in range(num_args)]
        names += [f"result {port.index}" for port in module.results()]
        for edit in range(EDITS_PER_PROGRAM):
            new = Module.parse(str(session.module))
            assert outcome(session) == outcome(new), seed
            if edit % 4 == 3:
                assert figures(session) == figures(new), seed
            for name in rng.sample(names, rng.choice((1, 1, 1, 2))):
                if rng.random() < 0.2:
                    session.unset(name)
                else:
                    session.set(name, sharding(rng))


def test_edits_of_arguments_and_results() -> None:
    check(range(NUM_PROGRAMS))
