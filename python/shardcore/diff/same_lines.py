"""Matches the source lines of two versions of a program.

An edit moves the lines below it. Lines are recognized by the ops that they produce, in order, file
by file. If the same number of lines lies between two recognized lines in both versions, these are
matched too, as edited lines.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from shardcore.labels import line_of

if TYPE_CHECKING:
    from shardcore._core import Result


def same_lines(base: Result, head: Result) -> dict[str, str]:
    """Return, for lines ``file:line`` of ``base``, the corresponding lines of ``head``.

    Lines that were removed are left out.
    """
    old, new = _files(base), _files(head)
    found: dict[str, str] = {}
    for file, name in _same_files(list(old), list(new)):
        for before, after in _aligned(_keys(old[file]), _keys(new[name])):
            found[f"{file}:{before}"] = f"{name}:{after}"
    return found


def _files(result: Result) -> dict[str, dict[int, Counter[tuple[str, str]]]]:
    """For each line of each file, the ops that it produces, with their result types."""
    found: dict[str, dict[int, Counter[tuple[str, str]]]] = {}
    for value in result.values():
        line = line_of(value.location)
        if line is not None:
            made = found.setdefault(line[0], {}).setdefault(line[1], Counter())
            made[value.op or "", value.type] += 1
    return found


def _same_files(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The files of both versions with equal path ends: two checkouts are in different folders."""
    left = set(new)
    ends = sorted(
        ((_num_common_ends(file, name), file, name) for file in old for name in new),
        key=lambda each: (-each[0], each[1] != each[2]),
    )
    seen: set[str] = set()
    for length, file, name in ends:
        if length and file not in seen and name in left:
            seen.add(file)
            left.remove(name)
            yield file, name


def _num_common_ends(one: str, other: str) -> int:
    count = 0
    for first, second in zip(
        reversed(PurePosixPath(one).parts), reversed(PurePosixPath(other).parts), strict=False
    ):
        if first != second:
            break
        count += 1
    return count


Key = tuple[int, tuple[Hashable, ...]]
"""A line, and the keys by which it is recognized, the most specific first."""


def _keys(lines: Mapping[int, Counter[tuple[str, str]]]) -> list[Key]:
    return [
        (line, (frozenset(made.items()), frozenset(op for op, _ in made)))
        for line, made in sorted(lines.items())
    ]


def _aligned(old: Sequence[Key], new: Sequence[Key], level: int = 0) -> Iterator[tuple[int, int]]:
    """Pairs of corresponding lines."""
    if not old or not new:
        return
    if level == len(old[0][1]):
        if len(old) == len(new):
            yield from zip((line for line, _ in old), (line for line, _ in new), strict=True)
        return
    first, second = ([keys[level] for _, keys in each] for each in (old, new))
    for tag, start, end, other, last in SequenceMatcher(
        None, first, second, autojunk=False
    ).get_opcodes():
        pairs = old[start:end], new[other:last]
        if tag == "equal":
            yield from zip(
                (line for line, _ in pairs[0]), (line for line, _ in pairs[1]), strict=True
            )
        else:
            yield from _aligned(*pairs, level + 1)
