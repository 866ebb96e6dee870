"""Ours and the reference agree on the same programs under other meshes and annotations."""

from __future__ import annotations

import os
import zlib

import pytest

from tests.shardy import reference
from tests.shardy.diff import explain, ours
from tests.shardy.programs import registry
from tests.shardy.reannotate import reannotate

SEEDS = range(40) if "SHARDCORE_DEEP" in os.environ else range(2)

# The reference asserts that unreduced axes agree among the values of an op.
PROGRAMS = [name for name in registry.names() if "unreduced" not in name]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_pipeline(name: str, seed: int) -> None:
    # Programs of one family would otherwise get the same annotations.
    text = reannotate(registry.text(name), zlib.crc32(name.encode()) + seed)
    difference = explain(reference.run(text), ours(text))
    assert not difference, f"\n{difference}"
