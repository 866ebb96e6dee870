"""Edits take no memory that stays."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from random import Random

from shardcore import Module, clear_caches

from tests.session.edits import random_sharding
from tests.session.test_session import TEXT

ROOT = Path(__file__).resolve().parents[2]
MOST_GROWTH = 2 << 20
# After so many edits what a session remembers has been full.
FILLED = 8_000
# Caches of the process fill for longer than the test runs: they are emptied each so many edits.
CLEARED = 500


def resident_bytes() -> int:
    """The memory of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def grown(edits: int) -> int:
    """By how many bytes the most memory of ``edits`` edits exceeds that of as many before them.

    What a session remembers of earlier edits fills up to a bound and is forgotten then, so that
    single moments differ by about 1 MB; both halves begin once it has been full.
    """
    session, rng = Module.parse(TEXT).session(), Random(16)
    (symbol, mesh), *_ = session.module.meshes.items()
    ranks = {port.name: len(port.shape or ()) for port in session.module.arguments()}
    most = [0, 0]
    for number in range(-FILLED, 2 * edits):
        name = rng.choice(list(ranks))
        session.set(name, random_sharding(rng, mesh, symbol, ranks[name]))
        [port.sharding for port in session.result.arguments()]
        if number % CLEARED == 0:
            clear_caches()
        if number >= 0 and number % 100 == 0:
            half = number // edits
            most[half] = max(most[half], resident_bytes())
    return most[1] - most[0]


def test_memory_stays_flat_over_many_edits() -> None:
    # What other tests have freed is not given back, so the edits have a process of their own.
    if not Path("/proc/self/statm").exists():
        return
    code = "from tests.session.test_memory import grown; print(grown(20_000))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert int(done.stdout) < MOST_GROWTH
