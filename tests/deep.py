"""Whether tests try everything, as `make test-deep` does, or a sample of it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TypeVar

import pytest

Case = TypeVar("Case")
IS_DEEP = bool(os.environ.get("SHARDCORE_DEEP"))
"""Whether everything is tried."""
deep = pytest.mark.skipif(not IS_DEEP, reason="some minutes; make test-deep runs it")
"""Marks a test that costs more than it finds."""


def sampled(cases: Iterable[Case], step: int) -> list[Case]:
    """Every ``step``-th of ``cases``; all of them where everything is tried."""
    return list(cases)[:: 1 if IS_DEEP else step]
