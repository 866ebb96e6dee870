"""The bugs that are put into copies of the engine to try the tests fit the sources as they are."""

from __future__ import annotations

import pytest

from tests.session import seeded as of_sessions
from tests.shardy.generator import seeded
from tests.spmd import seeded as of_partitioning

BUGS = [*seeded.BUGS, *of_partitioning.BUGS, *of_sessions.BUGS]


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_the_patch_fits(bug: seeded.Bug) -> None:
    text = (seeded.ROOT / "rust/src" / bug.file).read_text(encoding="utf-8")
    assert f'crate::seeded("{bug.name}")' in bug.patch(text)


def test_the_sources_have_none() -> None:
    sources = (seeded.ROOT / "rust").rglob("*.rs")
    assert not [path for path in sources if "seeded(" in path.read_text(encoding="utf-8")]
