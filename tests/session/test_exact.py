"""After any edits result and cost are, byte for byte, those of a new run on the annotated program.

`tests/shardy/test_sessions.py` compares 1 % of the results to the reference's.
"""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from random import Random

from shardcore import Module, ShardcoreError

from tests.deep import IS_DEEP
from tests.session.edits import Editor, figures, outcome
from tests.shardy.generator import programs

NUM_MODULES = 60_000 if IS_DEEP else 120
EDITS_PER_MODULE = 17
NUM_CHUNKS = 120 if IS_DEEP else 8


def check_chunk(seeds: range) -> None:
    """Compare random edits of the modules of ``seeds`` with new runs."""
    num_refused = 0
    for seed in seeds:
        try:
            session = Module.parse(programs.make(seed)).session()
        except ShardcoreError:
            # One of ten thousand is refused, here as by the reference.
            num_refused += 1
            continue
        if not session.module.meshes:
            continue
        editor, done = Editor(Random(seed), session), list[str]()
        for _ in range(EDITS_PER_MODULE):
            done.append(editor.edit())
            new = Module.parse(str(session.module))
            assert outcome(session) == outcome(new), (seed, done)
            assert figures(session) == figures(new), (seed, done)
    assert num_refused <= 1 + len(seeds) // 1000


def test_random_edits_of_random_modules() -> None:
    seeds = range(NUM_MODULES)
    chunks = [seeds[start::NUM_CHUNKS] for start in range(NUM_CHUNKS)]
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        list(pool.map(check_chunk, chunks))
