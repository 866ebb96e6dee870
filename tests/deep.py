"""Whether tests try everything, as `make test-deep` does, or a sample of it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TypeVar

import pytest

Case = TypeVar("Case")
Other = TypeVar("Other")
IS_DEEP = bool(os.environ.get("SHARDCORE_DEEP"))
"""Whether everything is tried."""
deep = pytest.mark.skipif(not IS_DEEP, reason="some minutes; make test-deep runs it")
"""Marks a test that costs more than it finds."""


def sampled(cases: Iterable[Case], step: int) -> list[Case]:
    """Every ``step``-th of ``cases``; all of them where everything is tried."""
    return list(cases)[:: 1 if IS_DEEP else step]


def sampled_pairs(
    cases: Iterable[Case], others: Iterable[Other], step: int
) -> list[tuple[Case, Other]]:
    """Every ``step``-th of ``others`` with each of ``cases``, and with the next one other ones; all
    pairs where everything is tried."""
    others = list(others)
    return [
        (case, other)
        for at, case in enumerate(cases)
        for shift, other in enumerate(others, at)
        if IS_DEEP or shift % step == 0
    ]
