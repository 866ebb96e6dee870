"""What sessions lead to after random edits is what Shardy makes of the annotated program."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest
from shardcore import Module, Session

from tests.deep import IS_DEEP, sampled
from tests.session.edits import Editor, figures, new_outcome, outcome
from tests.session.test_exact import EDITS_PER_MODULE, NUM_MODULES
from tests.shardy import reference
from tests.shardy.diff import explain
from tests.shardy.generator import programs
from tests.shardy.programs import registry
from tests.shardy.worker import Worker

EVERY = 100 // EDITS_PER_MODULE + 1
"""Of so many modules one is compared after its last edit: 1 % of all edits of `test_exact`."""
EDITS_PER_PROGRAM = 240 if IS_DEEP else 8


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    """The reference, which some programs take down. Where it makes a program that does not verify,
    it may take minutes to say so.
    """
    started = Worker(seconds=15)
    yield started
    started.close()


def is_compared(session: Session, worker: Worker) -> bool:
    """Whether Shardy completes the annotated program; then the session's result has to be that."""
    text = str(session.module)
    try:
        theirs = worker.run(text, reference.PROPAGATION, verify=False)
        theirs = worker.run(theirs, "builtin.module()")
    except (reference.DiedError, reference.RejectedError):
        return False
    mine = worker.run(str(session.result.module), "builtin.module()")
    difference = explain(theirs, mine)
    assert not difference, f"\n{difference}\n{text}"
    return True


def test_random_edits_of_random_modules(worker: Worker) -> None:
    compared = 0
    seeds = range(0, NUM_MODULES, EVERY)
    for seed in seeds:
        session = Module.parse(programs.make(seed)).session()
        if not session.module.meshes:
            continue
        editor = Editor(Random(seed), session)
        for _ in range(EDITS_PER_MODULE):
            editor.edit()
        compared += is_compared(session, worker)
    assert compared > len(seeds) / 2


@pytest.mark.parametrize("name", sampled(registry.names(), 6))
def test_random_edits_of_real_programs(name: str, worker: Worker) -> None:
    module = Module.parse(registry.text(name))
    session = module.session(mesh=None if module.meshes else {"x": 4, "y": 2})
    editor, done = Editor(Random(name), session), []
    for _ in range(EDITS_PER_PROGRAM):
        done.append(editor.edit())
        assert outcome(session) == new_outcome(session), done
        new = figures(Module.parse(str(session.module)))
        assert figures(session) == new, done
    is_compared(session, worker)
