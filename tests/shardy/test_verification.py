"""What MLIR refuses is refused, at the same line; what it accepts is accepted."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.shardy.mutations import ask_shardcore
from tests.shardy.reference import generic
from tests.shardy.verification import functions
from tests.shardy.verification.case import Case
from tests.shardy.verification.sound import quantized, sound
from tests.shardy.verification.ways import variants

DEEP = "SHARDCORE_DEEP" in os.environ


def test_changed_ops() -> None:
    sample = [] if DEEP else ["--sample", "12"]
    command = [sys.executable, "-m", "tests.shardy.verification", *sample]
    root = Path(__file__).parents[2]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    last = done.stdout.strip().rpartition("\n")[2]
    counts = {name: int(count) for name, count in re.findall(r"([a-z, ]+?) (\d+)(?:, |$)", last)}
    assert "only the reference refuses" not in counts
    assert "only shardcore refuses" not in counts
    # `functions` changes tokens: some of what comes out is no text of an op any more.
    assert counts.get("both refuse, another line", 0) <= (100 if DEEP else 5)
    assert counts["both refuse alike"] >= 9 * counts["both refuse, other words"]


@pytest.mark.parametrize("case", sound(), ids=lambda case: case.name)
def test_what_is_changed_was_sound(case: Case) -> None:
    generic(case.text())
    assert ask_shardcore(case.text()) == []


@pytest.mark.parametrize("text", functions.sound())
def test_functions_that_are_changed_were_sound(text: str) -> None:
    generic(text)
    assert ask_shardcore(text) == []


def test_each_op_is_changed_in_forty_ways_at_least() -> None:
    counts: dict[str, int] = {}
    for case in [*sound(), *quantized()]:
        counts[case.name] = counts.get(case.name, 0) + len(variants(case))
    few = {name: count for name, count in counts.items() if count < 40}
    # These take nothing, or anything.
    assert set(few) <= {"stablehlo.create_token", "stablehlo.replica_id", "stablehlo.partition_id"}
    assert len(counts) >= 165
