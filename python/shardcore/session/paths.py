"""Paths of arguments and results, and patterns of them.

A path is written as JAX names leaves, ``params['layers'][3]['w']`` or ``state.params['w']``, or
with slashes, ``params/layers/3/w``: both consist of the steps ``params``, ``layers``, ``3``, ``w``.
In a pattern ``*`` stands for any characters of one step, ``**`` for any number of steps.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

_STEP = re.compile(
    r"""\[\s*(?:'(?P<single>(?:[^'\\]|\\.)*)'|"(?P<double>(?:[^"\\]|\\.)*)"|(?P<index>[^\]]*))\s*\]"""
    r"""|(?P<name>[^\[\]/.]+)|[/.]"""
)
MANY = "**"
"""The step of a pattern that stands for any number of steps."""


@lru_cache(maxsize=1 << 16)
def steps(path: str) -> tuple[str, ...]:
    """Return the steps of ``path``; a text that is no path is one step."""
    found: list[str] = []
    position = 0
    while position < len(path):
        match = _STEP.match(path, position)
        if match is None:
            return (path,)
        position = match.end()
        text = next((group for group in match.groups() if group is not None), None)
        if text is None:
            continue
        quoted = match["single"] if match["single"] is not None else match["double"]
        if quoted is not None:
            text = re.sub(r"\\(.)", r"\1", quoted)
        found += _split(text.strip())
    return tuple(found)


def _split(step: str) -> list[str]:
    """``step`` with each ``**`` in it as a step of its own."""
    if MANY not in step:
        return [step]
    return [part for part in re.split(r"(\*\*)", step) if part]


def is_pattern(path: str) -> bool:
    """Whether ``path`` may denote several leaves."""
    return "*" in path


class Pattern:
    """A pattern of paths."""

    def __init__(self, text: str) -> None:
        self._steps = steps(text)
        self._compiled = [None if step == MANY else _compiled(step) for step in self._steps]

    def matches(self, path: Sequence[str]) -> bool:
        """Whether the steps ``path`` are as the pattern says."""
        # The places in the pattern that the steps so far may lead to.
        places = self._after_many({0})
        for step in path:
            following: set[int] = set()
            for place in places:
                if place == len(self._compiled):
                    continue
                pattern = self._compiled[place]
                if pattern is None:
                    following.add(place)
                elif pattern.fullmatch(step):
                    following.add(place + 1)
            places = self._after_many(following)
            if not places:
                return False
        return len(self._compiled) in places

    def _after_many(self, places: set[int]) -> set[int]:
        """``places``, and those behind steps that stand for none at all."""
        found = set(places)
        for place in sorted(places):
            while place < len(self._compiled) and self._compiled[place] is None:
                place += 1
                found.add(place)
        return found


def _compiled(step: str) -> re.Pattern[str]:
    return re.compile(".*".join(map(re.escape, step.split("*"))), re.DOTALL)
