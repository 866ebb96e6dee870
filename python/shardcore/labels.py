"""Short names of places, shardings and argument paths, for tables."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Sequence
from typing import TypeVar

from shardcore.controls import one_line

T = TypeVar("T")

_FILE = re.compile(r"[^/\\]*\Z")
_LINE = re.compile(r"(?P<file>.+?):(?P<line>\d+)(?::\d+)?", re.DOTALL)
_NUMBER = re.compile(r"(\[\d+\]|(?<=[a-zA-Z_])\d+\b)")
"""The number of a layer in a path: ``[3]``, or the ``3`` of ``layer_3``."""


_INSERTED = re.compile(r"(@.* )?%shc_*\d", re.DOTALL)

LOCAL = "local"
"""The label in tables of values that exist only in the per-device program."""

REPLICATED = "replicated"
"""The label in tables of values without a sharding: every device holds the whole value."""


def file_line(location: str | None) -> str:
    """``llama.py:41:8`` of ``/home/me/llama.py:41:8``, as one line."""
    found = _FILE.search(location or "")
    return one_line(found[0]) if found else ""


def line_of(location: str | None) -> tuple[str, int] | None:
    """The file and the line of ``file:line:column``; ``None`` for another text."""
    found = _LINE.fullmatch(location or "")
    return None if found is None else (found["file"], int(found["line"]))


def without_column(location: str) -> str:
    """``model.py:41`` of ``model.py:41:8``."""
    line = line_of(location)
    return location if line is None else f"{line[0]}:{line[1]}"


def is_inserted(name: str) -> bool:
    """Whether ``name`` is a value that a pass inserted, such as ``%shc4``."""
    return _INSERTED.match(name) is not None


def sharding_text(sharding: str | None) -> str:
    """A sharding's text without its mesh."""
    if sharding is None:
        return ""
    return sharding[sharding.index(", [") + 2 : -1] if ", [" in sharding else sharding


def folded(rows: Iterable[tuple[str, Hashable, T]]) -> list[tuple[str, list[T]]]:
    """Group rows of a label, a key and an item if their keys are equal and their labels differ only
    in numbers.

    Returns for each group the label, with ``*`` for numbers that differ, and the items:
    ``("params[*]['w']", [...])``.
    """
    known: dict[tuple[str, Hashable], tuple[list[str], list[T]]] = {}
    for label, key, row in rows:
        labels, joined = known.setdefault((_NUMBER.sub("*", label), key), ([], []))
        labels.append(label)
        joined.append(row)
    return [(pattern(labels), joined) for labels, joined in known.values()]


_PARENT = re.compile(r"(.*)(\[[^\[\]]*\]|\.\w+)")
"""A path, split into its parent and its last step."""

_MOST_NAMES = 3


def named_together(labels: Sequence[str]) -> str:
    """Return ``labels`` in a few words: paths that differ in numbers, or in their last step, as one
    pattern, ``params['layers'][*]``; of more than three texts only the first.
    """
    alike: dict[str, list[str]] = {}
    for label, _ in folded([(each, (), None) for each in dict.fromkeys(labels)]):
        found = _PARENT.fullmatch(label)
        alike.setdefault(found[1] if found else label, []).append(label)
    names: list[str] = []
    for parent, each in alike.items():
        names += each if len(each) < _MOST_NAMES else [f"{parent}[*]"]
    if len(names) > _MOST_NAMES:
        names = [*names[: _MOST_NAMES - 1], f"{len(names) - _MOST_NAMES + 1} others"]
    return " and ".join([", ".join(names[:-1]), names[-1]]) if names[1:] else "".join(names)


def pattern(labels: Sequence[str]) -> str:
    """``labels``, which differ only in numbers, as one text with ``*`` for numbers that differ."""
    if len(labels) == 1:
        return labels[0]
    columns = zip(*map(_NUMBER.split, labels), strict=True)
    return "".join(_common(set(column)) for column in columns)


def pattern_of(label: str) -> str:
    """Return ``label`` with ``*`` for each of its numbers, ``params[*]['w']``."""
    return _NUMBER.sub(lambda number: "[*]" if number[0].startswith("[") else "*", label)


def _common(texts: set[str]) -> str:
    if len(texts) == 1:
        return texts.pop()
    return "[*]" if texts.pop().startswith("[") else "*"
