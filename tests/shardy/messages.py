"""What errors say and at which line: the reference's, shardcore's, and those a lit file expects."""

from __future__ import annotations

import re
from collections.abc import Iterable

import shardcore

Message = tuple[int | None, str]
"""The line an error is at, from 1, and what it says; ``None`` if it has no place."""

EXPECTED = re.compile(r"//\s*expected-error(-re)?\s*(@\S+)?\s*(\d+)?\s*\{\{(.*?)\}\}")


def expected(piece: str) -> list[Message]:
    """The errors that the comments of a piece of a lit file expect."""
    lines = piece.split("\n")
    found: list[Message] = []
    for number, line in enumerate(lines, 1):
        for _, where, _, text in EXPECTED.findall(line):
            at = number
            if where in ("@below", "@above"):
                step = 1 if where == "@below" else -1
                at += step
                while "expected-error" in lines[at - 1]:
                    at += step
            elif where:
                at = number + int(where[1:]) if where[1] in "+-" else int(where[1:])
            found.append((at, text))
    return found


def of_error(error: shardcore.ShardcoreError) -> list[Message]:
    """What ``error`` says."""
    return [(diagnostic.line, diagnostic.message) for diagnostic in error.diagnostics]


def missing(theirs: Iterable[Message], ours: Iterable[Message]) -> list[Message]:
    """Those of ``theirs`` that none of ``ours`` says at the same line."""
    said = list(ours)
    return [
        (line, text)
        for line, text in theirs
        if not any(text in mine and line in (None, at) for at, mine in said)
    ]
