"""Reports as Markdown for GitHub: comments, and job summaries."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from rich.text import Text

from shardcore.report.console import FittedTable, PlainTable

if TYPE_CHECKING:
    from shardcore.report.console import Part

_SPECIAL = re.compile(r"[\\`*_{}\[\]<|~#$@&]|://|:\w+:|www\.")
"""Characters that Markdown, or GitHub, would interpret."""
_ESCAPED = re.compile(r"([\\`*_{}\[\]<|~#$@&])")


def markdown(parts: Iterable[Part]) -> str:
    """Return ``parts`` as Markdown; titles are headings, and names in tables are code."""
    return "\n\n".join(map(_part, parts)) + "\n"


def _part(part: Part) -> str:
    if isinstance(part, PlainTable | FittedTable):
        return "\n".join(_table(part.columns, part.rows))
    assert isinstance(part, Text)
    text = _ESCAPED.sub(r"\\\1", part.plain.strip("\n"))
    return f"#### {text}" if part.style else text


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(_cell(name.lstrip('>')) for name in columns)} |"
    yield f"| {' | '.join('---:' if name.startswith('>') else '---' for name in columns)} |"
    for row in rows:
        yield f"| {' | '.join(map(_cell, row))} |"


def _cell(text: str) -> str:
    """``text`` as it is, or as code if it contains special characters."""
    if not _SPECIAL.search(text):
        return text
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * (longest + 1)
    space = " " if longest else ""
    # The bar ends a cell, even inside code.
    return f"{fence}{space}{text}{space}{fence}".replace("|", "\\|")
