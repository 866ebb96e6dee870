"""Makes the errors of the calculus, with their place in the text."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import TypeVar

from shardcore.bounded import items
from shardcore.errors import Diagnostic, ShardcoreError, place_of

CODES = (
    "axis-overlap",
    "contraction",
    "hardware-file",
    "invalid-collective",
    "invalid-mesh",
    "invalid-option",
    "invalid-sub-axis",
    "invalid-topology",
    "measurements",
    "missing-size",
    "notation",
    "size-mismatch",
    "unknown-axis",
    "unknown-dim",
    "unknown-dtype",
    "unknown-hardware",
)
"""Every code that a mistake in the calculus may have."""

_LONGEST_NAME = 200
"""More characters of a name are not compared with others."""

Span = tuple[int, int]
"""Where something starts and ends in a text, in characters from 0."""

_Error = TypeVar("_Error", bound=ShardcoreError)


def mistake(
    kind: type[_Error],
    code: str,
    message: str,
    *,
    text: str,
    hint: str | None,
    span: Span | None = None,
    filename: str = "<notation>",
    related: tuple[Span, str] | None = None,
) -> _Error:
    """Return an error of class ``kind`` that shows ``span`` of ``text``, or all of it."""
    assert code in CODES, code
    where = place_of(text, *(span or (0, max(len(text), 1))))
    other = (place_of(text, *related[0]), related[1]) if related else None
    return kind(Diagnostic(code, message, hint, filename, where, other))


def close_names(wanted: str, names: Iterable[str], count: int, cutoff: float = 0.6) -> list[str]:
    """Return at most ``count`` of ``names`` that ``wanted`` may be a misspelling of."""
    # It takes more than linear time in the length of the text.
    return difflib.get_close_matches(wanted[:_LONGEST_NAME], list(names), count, cutoff)


def choices(wanted: str, known: Iterable[str]) -> str:
    """A hint with the name that is close to ``wanted``, or with all ``known`` names."""
    names = items(known, "names")
    close = close_names(wanted, names, 1)
    if not close:
        close = [name for name in names if name.lower() == wanted.lower()]
    if close:
        return f'did you mean "{close[0]}"?'
    return "there is " + ", ".join(f'"{name}"' for name in names) if names else "there is none"
