"""Leaves the comparison with the reference out where the reference cannot be installed."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path

import pytest

RELEASES = ("0.10.2", "0.12.0.1")
"""The releases of jax and jaxlib whose Shardy shardcore follows."""


def _reason_to_skip() -> str | None:
    for package in ("jax", "jaxlib"):
        try:
            found = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            return f"{package}, the reference, is not installed (it needs Python 3.11)"
        if found not in RELEASES:
            return f"the reference is {package} {' or '.join(RELEASES)}, this is {found}"
    return None


class _Unavailable(pytest.Module):
    """Stands for a test file that cannot even be imported here."""

    def collect(self) -> list[pytest.Item]:
        pytest.skip(_reason_to_skip() or "", allow_module_level=True)


def pytest_pycollect_makemodule(
    module_path: Path, parent: pytest.Collector
) -> pytest.Module | None:
    if _reason_to_skip() is None or not module_path.is_relative_to(Path(__file__).parent):
        return None
    return _Unavailable.from_parent(parent, path=module_path)
