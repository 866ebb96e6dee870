"""The families of programs that time is measured on: their results are the reference's too."""

from __future__ import annotations

import pytest

from benches.every import ALL
from tests.shardy import diff, reference

# Enough for the ops of wide families to have more tensors than are looked at one by one.
SIZE = 40
LEVELS = 4


@pytest.mark.parametrize("family", ALL)
def test_family(family: str) -> None:
    text = ALL[family](LEVELS if family == "calls" else SIZE)
    diff.assert_same(reference.run(text), diff.ours(text))
