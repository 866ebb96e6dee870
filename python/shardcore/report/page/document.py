"""Assembles a page: data, style and scripts in one document."""

from __future__ import annotations

import gc
import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shardcore import files
from shardcore.controls import one_line, visible
from shardcore.report.page.data import page_data

if TYPE_CHECKING:
    from shardcore._core import Result
    from shardcore.calculus.hardware import Hardware

SCRIPTS = (
    "dom.js",
    "format.js",
    "table.js",
    "picture.js",
    "details.js",
    "source.js",
    "values.js",
    "modules.js",
    "timeline.js",
    "memory.js",
    "changes.js",
    "graph.js",
    "main.js",
)
"""The scripts, in the order in which they are joined."""

_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
    "base-uri 'none'; form-action 'none'"
)
"""A content security policy that forbids loading anything: the page is self-contained."""

_PAGE = """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>
{style}</style>
</head>
<body>
<noscript>This page needs JavaScript.</noscript>
<script type="application/json" id="data">{data}</script>
<script>
{script}</script>
</body>
</html>
"""


class Page:
    """A page; notebooks display it in a frame."""

    def __init__(self, html: str) -> None:
        self.html = html
        """The document."""

    def __repr__(self) -> str:
        return f"<shardcore.report.page.Page of {len(self.html)} characters>"

    def _repr_html_(self) -> str:
        # Scripts run in a separate origin, which cannot access the notebook.
        return (
            f'<iframe sandbox="allow-scripts" srcdoc="{escape(self.html)}" title="shardcore" '
            'style="width: 100%; height: 720px; border: 1px solid #8888"></iframe>'
        )


def show(
    result: Result,
    hardware: str | Hardware | None = None,
    *,
    against: Result | None = None,
    edits: int = 0,
    **options: Any,
) -> Page:
    """Return the page of ``result``; see :meth:`shardcore.Result.show`.

    Raises:
        TypeError: ``against`` is no result.
        ShardcoreError: as for :meth:`shardcore.Result.cost`.
    """
    other = getattr(against, "result", against)
    if other is not None and type(other) is not type(result):
        raise TypeError(f"a result is compared with a result, not a {type(against).__name__}")
    with _no_garbage():
        data = page_data(result, hardware, other, edits, options)
    return Page(
        _PAGE.format(
            policy=escape(_POLICY),
            title=escape(f"{one_line(data['title'])} - shardcore"),
            style=_read("page.css"),
            data=_json(data),
            script="".join(map(_read, SCRIPTS)),
        )
    )


def write_page(
    result: Result,
    path: str | os.PathLike[str],
    hardware: str | Hardware | None = None,
    **options: Any,
) -> None:
    """Write the page of ``result`` to ``path``; see :meth:`shardcore.Result.report`.

    Raises:
        OSError: the file cannot be written; the old file is unchanged.
    """
    files.write(path, show(result, hardware, **options).html)


@contextmanager
def _no_garbage() -> Iterator[None]:
    """Suspend garbage collection: the data of a page are many objects without cycles, and searching
    them for cycles would take a quarter of the time.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


_ESCAPE = re.compile(r"\\(?:u((?!d[89a-f])[0-9a-f]{4})|.)")
"""An escape of JSON; with a code unless that is half of a pair."""


def _json(data: dict[str, Any]) -> str:
    """``data`` as JSON that cannot end an HTML element, without control characters and those that
    change the direction of text."""
    text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    text = _ESCAPE.sub(lambda found: _seen(found[0], found[1]), text)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _seen(escape: str, code: str | None) -> str:
    return escape if code is None else json.dumps(visible(chr(int(code, 16))))[1:-1]


@cache
def _read(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")
