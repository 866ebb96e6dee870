"""The versions of Shardy that shardcore follows.

Shardy has no version numbers; a version is named after the jaxlib release that contains it. The
changes of each version are listed in ``rust/src/shardy.rs`` and in the documentation.
"""

from __future__ import annotations

import re
import sys
from importlib import util
from pathlib import Path

from shardcore._core import default_shardy, shardy_changes, shardy_versions

__all__ = ["SHARDY_VERSIONS", "default_shardy", "installed_release", "shardy_changes"]

SHARDY_VERSIONS: tuple[str, ...] = tuple(shardy_versions())
"""The versions of Shardy that are known, oldest first."""


def installed_release() -> str | None:
    """Return the release of the installed jaxlib, such as ``0.12.0.1``; ``None`` without jaxlib.

    jaxlib is not imported.
    """
    return _INSTALLED


def _find_release() -> str | None:
    loaded = getattr(sys.modules.get("jaxlib"), "__version__", None)
    if isinstance(loaded, str):
        return loaded
    try:
        found = util.find_spec("jaxlib")
        folders = found.submodule_search_locations if found else None
        text = Path(next(iter(folders or ()))) / "version.py"
        assigned = re.search(r"^_version = ['\"]([\d.]+)", text.read_text(), re.MULTILINE)
    except (AttributeError, ImportError, OSError, StopIteration, ValueError):
        return None
    return assigned[1] if assigned else None


_INSTALLED = _find_release()
