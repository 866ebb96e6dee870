"""A hook of MkDocs: turns the roles of docstrings, such as ``:attr:`Op.name```, into plain code."""

from __future__ import annotations

import re
from typing import Any

ROLE = re.compile(r":(?:attr|class|data|exc|func|meth|mod):(<code>)~?")


def on_page_content(html: str, **_: Any) -> str:
    """Return the page without the names of roles."""
    return ROLE.sub(r"\1", html)
