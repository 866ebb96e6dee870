"""After any edits the result is, byte for byte, that of a new run on the annotated program."""

from __future__ import annotations

import os
from random import Random

import pytest
from shardcore import Module

from tests.session.edits import Editor, new_outcome, outcome
from tests.shardy.generator import programs

IS_DEEP = bool(os.environ.get("SHARDCORE_DEEP"))
NUM_MODULES = 60_000 if IS_DEEP else 1_200
EDITS_PER_MODULE = 17
CHUNK = NUM_MODULES // 12


@pytest.mark.parametrize("start", range(0, NUM_MODULES, CHUNK))
def test_random_edits_of_random_modules(start: int) -> None:
    for seed in range(start, start + CHUNK):
        session = Module.parse(programs.make(seed)).session()
        if not session.module.meshes:
            continue
        editor = Editor(Random(seed), session)
        done = []
        for _ in range(EDITS_PER_MODULE):
            done.append(editor.edit())
            assert outcome(session) == new_outcome(session), (seed, done)
