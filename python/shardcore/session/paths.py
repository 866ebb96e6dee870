"""Paths of arguments and results, and patterns of them.

A path is written as JAX names leaves, ``params['layers'][3]['w']`` or ``state.params['w']``, or
with slashes, ``params/layers/3/w``: both consist of the steps ``params``, ``layers``, ``3``, ``w``.
In a pattern ``*`` stands for any characters of one step, ``**`` for any number of steps.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from shardcore.cached_property import cached_property

if TYPE_CHECKING:
    from shardcore._core import Port

_STEP = re.compile(
    r"""\[\s*(?:'(?P<single>(?:[^'\\]|\\.)*)'|"(?P<double>(?:[^"\\]|\\.)*)"|(?P<index>[^\]]*))\s*\]"""
    r"""|(?P<name>[^\[\]/.]+)|[/.]"""
)
_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U000[0-9a-fA-F]{5}|.)", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r"}
MANY = "**"
"""The pattern step that matches any number of steps."""
_MOST_NEAR = 3
"""How many paths an error suggests at most."""


@lru_cache(maxsize=1 << 16)
def steps(path: str) -> tuple[str, ...]:
    """Return the steps of ``path``; a text that is no path counts as one step."""
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
            text = _ESCAPE.sub(_unescaped, quoted)
        found += _split(text.strip())
    return tuple(found)


def _unescaped(match: re.Match[str]) -> str:
    """The character that the Python escape ``match`` stands for."""
    escape = match[1]
    return chr(int(escape[1:], 16)) if len(escape) > 1 else _ESCAPED.get(escape, escape)


def end_of(path: str, count: int) -> str:
    """Return the text of the last ``count`` steps of ``path``."""
    starts: list[int] = []
    position = 0
    while match := _STEP.match(path, position):
        if any(group is not None for group in match.groups()):
            # A dot or slash belongs to the step after it.
            before = position > 0 and path[position - 1] in "./"
            starts.append(position - before)
        position = match.end()
    return path[starts[-count] :] if len(starts) >= count else path


def is_alike(pattern: str, step: str) -> bool:
    """Whether ``step`` matches the step ``pattern``, in which ``*`` stands for any characters."""
    return pattern == step or ("*" in pattern and _compiled(pattern).fullmatch(step) is not None)


def _split(step: str) -> list[str]:
    """``step``, split so that each ``**`` in it is a step of its own."""
    if MANY not in step:
        return [step]
    return [part for part in re.split(r"(\*\*)", step) if part]


class Ports:
    """Arguments and results by path and by name; a lookup takes constant time."""

    def __init__(self, arguments: Sequence[Port], results: Sequence[Port]) -> None:
        self._ports = [*arguments, *results]
        self._labels = [(port.label, port) for port in self._ports]
        self._exact: dict[str, Port] = {}
        for label, port in self._labels:
            for name in (label, port.name):
                if name is not None:
                    self._exact.setdefault(name, port)

    @cached_property
    def _by_steps(self) -> dict[tuple[str, ...], Port]:
        found: dict[tuple[str, ...], Port] = {}
        for label, port in self._labels:
            if label:
                found.setdefault(steps(label), port)
        return found

    def find(self, name: str) -> Port | None:
        """Return the first argument or result with the path or name ``name``."""
        exact = self._exact.get(name)
        if exact is not None or name.startswith(("%", "@")):
            return exact
        return self._by_steps.get(steps(name))

    def called(self, path: str) -> Port | None:
        """Return the argument or result with the path or name ``path``.

        Raises:
            KeyError: there is none, but some have similar names.
        """
        found = self.find(path)
        if found is None:
            near = self.near(path)
            if near:
                raise KeyError(f"no value is called {path}: did you mean {', '.join(near)}?")
        return found

    def near(self, path: str) -> list[str]:
        """Return the paths that ``path`` may be a misspelling of, in quotes."""
        labels = [label for label, _ in self._labels if label]
        return [f'"{each}"' for each in near_paths(path, labels)]


def near_paths(path: str, labels: Sequence[str], cutoff: float = 0.6) -> list[str]:
    """Return the ``labels`` that ``path`` may be a misspelling of: those with the same last step,
    best match first, or else those of similar spelling, by ``cutoff`` (see ``difflib``)."""
    # The calculus is imported here, as the package does not import it.
    from shardcore.calculus.mistakes import close_names

    wanted = steps(path)
    same = [label for label in labels if steps(label)[-1:] == wanted[-1:]]
    if len(same) > _MOST_NEAR:
        # A stable sort: equally good matches keep their order.
        same.sort(key=lambda label: -_num_common_ends(steps(label), wanted))
    return same[:_MOST_NEAR] or close_names(path, labels, _MOST_NEAR, cutoff=cutoff)


def _num_common_ends(path: tuple[str, ...], other: tuple[str, ...]) -> int:
    """How many of their last steps are equal."""
    pairs = zip(reversed(path), reversed(other), strict=False)
    return sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))


def is_pattern(path: str) -> bool:
    """Whether ``path`` is a pattern, which may denote several leaves."""
    return "*" in path


class Pattern:
    """A pattern of paths."""

    def __init__(self, text: str) -> None:
        self._steps = steps(text)
        self._compiled = [None if step == MANY else _compiled(step) for step in self._steps]

    def matches(self, path: Sequence[str]) -> bool:
        """Whether the pattern matches a path with the steps ``path``."""
        # The positions in the pattern that the steps read so far can reach.
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
        """``places``, and the positions reached by letting ``**`` match no step."""
        found = set(places)
        for place in sorted(places):
            while place < len(self._compiled) and self._compiled[place] is None:
                place += 1
                found.add(place)
        return found


@lru_cache(maxsize=1 << 10)
def _compiled(step: str) -> re.Pattern[str]:
    return re.compile(".*".join(map(re.escape, step.split("*"))), re.DOTALL)
