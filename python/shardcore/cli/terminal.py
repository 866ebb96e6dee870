"""Fits lines of text to a terminal, which would break lines inside words.

Trees and messages are wrapped between words, with a hanging indent. Source lines are cut, so that
the caret stays below its position; hints are not broken, so that they can be copied.
"""

from __future__ import annotations

import re
import shutil
import textwrap
from collections.abc import Iterator
from typing import TextIO

_LEAST = 40
"""On narrower terminals, lines are printed unchanged."""
_LEAD = re.compile(r"[ │├└─←]*")
_SOURCE = re.compile(r" *\d+ \| ")
_CARET = re.compile(r" *\| ")
_WHOLE = re.compile(r"  (?:-->|help:) ")


def for_stream(text: str, stream: TextIO) -> str:
    """Return ``text`` with lines that fit ``stream``, if that is a terminal."""
    if not stream.isatty():
        return text
    return fitted(text, shutil.get_terminal_size().columns)


def fitted(text: str, width: int) -> str:
    """Return ``text`` with lines of at most ``width`` characters, except for long words and
    hints."""
    if width < _LEAST:
        return text
    return "\n".join(_lines(text.split("\n"), width))


def _lines(lines: list[str], width: int) -> Iterator[str]:
    for at, line in enumerate(lines):
        if len(line) <= width or _WHOLE.match(line) or _CARET.match(line):
            yield line
        elif _SOURCE.match(line):
            carets = (below for below in lines[at + 1 : at + 4] if _CARET.match(below))
            has_room = all(len(below) < width for below in carets)
            yield f"{line[: width - 1]}…" if has_room else line
        else:
            yield from _wrapped(line, width)


def _wrapped(line: str, width: int) -> Iterator[str]:
    """The parts of ``line``; the branches of a tree continue beside all of them."""
    lead = _LEAD.match(line)
    first = lead[0] if lead else ""
    below = first.replace("├", "│").translate(dict.fromkeys(map(ord, "└─←"), " ")) + "  "
    return iter(
        textwrap.wrap(
            line[len(first) :],
            width,
            initial_indent=first,
            subsequent_indent=below,
            break_long_words=False,
            break_on_hyphens=False,
        )
    )
