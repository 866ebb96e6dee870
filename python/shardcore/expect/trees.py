"""Merges the expectations of similar trees, such as parameters, their moments, and the results,
into one row with ``**`` in place of the paths' beginnings.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from shardcore.session.paths import MANY, end_of, is_alike, steps

Path = tuple[str, ...]


@dataclass(frozen=True)
class _Row:
    name: str
    sharding: str
    path: Path
    members: frozenset[int]
    """The paths that it stands for, as indices into the list of all paths."""


def joined(rows: Sequence[tuple[str, str]], labels: Iterable[str]) -> list[tuple[str, str]]:
    """Merge ``rows`` of names or patterns whose ends and shardings are equal, if no other path in
    ``labels`` (all paths) has that end. The longest ends come first.
    """
    known = _Known(labels)
    current = dict(enumerate(_Row(name, text, *known.of(name)) for name, text in rows))
    longest = max((len(row.path) for row in current.values()), default=0)
    for length in range(longest, 0, -1):
        groups: dict[tuple[str, Path], list[int]] = {}
        for place, row in current.items():
            if row.members and len(row.path) >= length and MANY not in row.path[-length:]:
                groups.setdefault((row.sharding, row.path[-length:]), []).append(place)
        for (sharding, end), places in groups.items():
            members = frozenset().union(*(current[place].members for place in places))
            if len(places) > 1 and members == known.ending(end):
                text = end_of(current[places[0]].name, length)
                name = f"{MANY}{'' if text.startswith(('[', '.', '/')) else '/'}{text}"
                for place in places[1:]:
                    del current[place]
                current[places[0]] = _Row(name, sharding, (MANY, *end), members)
    return [(current[place].name, current[place].sharding) for place in sorted(current)]


class _Known:
    """All paths, with an index."""

    def __init__(self, labels: Iterable[str]) -> None:
        self._paths = list(map(steps, labels))
        self._by_last: dict[str, list[int]] = {}
        for place, path in enumerate(self._paths):
            if path:
                self._by_last.setdefault(path[-1], []).append(place)

    def of(self, name: str) -> tuple[Path, frozenset[int]]:
        """The steps of the path ``name``, and the indices of the paths that equal or match it."""
        path = steps(name)
        same = (place for place in self.ending(path) if len(self._paths[place]) == len(path))
        return path, frozenset(same)

    def ending(self, end: Path) -> frozenset[int]:
        """The indices of the paths that end with steps matching ``end``."""
        if not end:
            return frozenset()
        last = end[-1]
        near = range(len(self._paths)) if "*" in last else self._by_last.get(last, [])
        return frozenset(place for place in near if self._ends(self._paths[place], end))

    @staticmethod
    def _ends(path: Path, end: Path) -> bool:
        if len(path) < len(end):
            return False
        return all(map(is_alike, end, path[-len(end) :]))
