"""The families of programs that time is measured on: their results are the reference's too."""

from __future__ import annotations

import pytest

from benches.every import ALL
from tests.shardy import diff, reference, wide_programs

# Enough for the ops of wide families to have more tensors than are looked at one by one.
SIZE = 40
LEVELS = 4


@pytest.mark.parametrize("family", ALL)
def test_family(family: str) -> None:
    text = ALL[family](LEVELS if family == "calls" else SIZE)
    diff.assert_same(reference.run(text), diff.ours(text))


BEFORE_EXPORT = [
    "sdy-import-pipeline",
    "sdy-user-priority-propagate{keep-sharding-rules=true}",
]
COLLECTIVES = [
    *BEFORE_EXPORT,
    "sdy-export-pipeline{enable-insert-explicit-collectives=true}",
]


# In the last three, what a factor claims changes between two visits.
@pytest.mark.parametrize("seed", [*range(40), 230, 278, 328])
@pytest.mark.parametrize("passes", [["sdy-propagation-pipeline"], BEFORE_EXPORT, COLLECTIVES])
def test_random_rules(seed: int, passes: list[str]) -> None:
    text, pipeline = wide_programs.program(seed), reference.join_passes(passes)
    diff.assert_same(reference.run(text, pipeline), diff.ours(text, pipeline))
