"""A browser for all tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.page.browser import Browser, executable


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    path = executable()
    if path is None:
        pytest.skip("there is no Chromium: apt-get install chromium")
    found = Browser(path)
    try:
        yield found
    finally:
        found.close()
