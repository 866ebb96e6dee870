"""A pytest fixture that compares results with expectations; pytest loads it as a plugin.

    def test_step(check_shardings):
        result = shardcore.jax.lower(step, *shapes, mesh=mesh, in_shardings=specs).propagate()
        check_shardings(result, "step.toml")

The file is in the test's folder. ``pytest --update-shardings`` writes the actual values to such
files instead of failing; review the difference before you commit it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from os import PathLike
from typing import TYPE_CHECKING, Any, Protocol

import pytest

if TYPE_CHECKING:
    from shardcore.expect import Check


class Checkable(Protocol):
    """A result with expectations: :class:`shardcore.Result` or ``JaxResult``."""

    def check(
        self, expect: str | PathLike[str] | Mapping[str, Any], *, update: bool = False
    ) -> Check:
        """Compare with expectations."""


CheckShardings = Callable[[Checkable, "str | PathLike[str] | Mapping[str, Any]"], None]
"""The type of the fixture."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--update-shardings``."""
    parser.getgroup("shardcore").addoption(
        "--update-shardings",
        action="store_true",
        help="write what results are to the expectations of check_shardings",
    )


@pytest.fixture
def check_shardings(request: pytest.FixtureRequest) -> CheckShardings:
    """A function that fails unless a result meets expectations: a file in the test's folder, or a
    mapping."""

    def check(result: Checkable, expect: str | PathLike[str] | Mapping[str, Any]) -> None:
        __tracebackhide__ = True
        if isinstance(expect, Mapping):
            found = result.check(expect)
        else:
            update = bool(request.config.getoption("--update-shardings"))
            path = request.path.parent / expect
            if not update and not path.exists():
                hint = "pytest --update-shardings writes it"
                pytest.fail(f"there are no expectations in {path} yet: {hint}", pytrace=False)
            found = result.check(path, update=update)
        if not found:
            pytest.fail(str(found), pytrace=False)

    return check
