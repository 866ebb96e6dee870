"""Classes of dims that are used alike: those of repeated layers, for arguments without paths.

Two classes are alike if they occur in the same places of the same ops, equally often. For example,
the hidden dim of each transformer layer is the columns of one product and the rows of another,
while the batch and the model width belong to one class in all layers. The first layer of a training
step, whose input needs no gradient, has a few places less; it still counts as alike. Classes that
occur together in one tensor stay apart, such as the widths of successive layers.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Iterator, Sequence

_Places = Counter[tuple[Hashable, int, int]]
"""How often a class occurs in each place: an op, one of its operands or results, and a dim."""
_LEAST_SHARE = 0.75
"""The least share of places that two alike classes have in common."""


class Uses:
    """The places of ops in which each class occurs.

    For example, two layers with hidden widths 4 and 5, both of width 3:

    >>> uses = Uses({3, 4, 5})
    >>> for hidden in (4, 5):
    ...     uses.add("up", 1, (3, hidden))
    ...     uses.add("down", 1, (hidden, 3))
    >>> list(uses.alike())
    [[4, 5]]
    """

    def __init__(self, wanted: Collection[int]) -> None:
        self._wanted = wanted
        self._places: dict[int, _Places] = defaultdict(Counter)
        self._tensors: set[tuple[int, ...]] = set()

    def add(self, op: Hashable, place: int, classes: Sequence[int]) -> None:
        """Add operand or result number ``place`` of ``op``, a tensor whose dims have
        ``classes``."""
        for dim, number in enumerate(classes):
            if number in self._wanted:
                self._places[number][op, place, dim] += 1
        self._tensors.add(tuple(classes))

    def alike(self) -> Iterator[list[int]]:
        """Yield groups of alike classes that share no tensor, in order."""
        apart: dict[int, set[int]] = defaultdict(set)
        for classes in self._tensors:
            for number in classes:
                apart[number].update(classes)
        for numbers in self._families():
            groups: list[list[int]] = []
            for number in numbers:
                fitting = (each for each in groups if not apart[number].intersection(each))
                group = next(fitting, None)
                if group is None:
                    groups.append([number])
                else:
                    group.append(number)
            yield from (group for group in groups if len(group) > 1)

    def _families(self) -> list[list[int]]:
        """Groups of classes with the same places, or with most of the places of the group's
        first."""
        found: dict[frozenset[tuple[Hashable, int]], list[int]] = defaultdict(list)
        for number in sorted(self._places):
            found[frozenset(self._places[number].items())].append(number)
        families: list[tuple[_Places, list[int]]] = []
        for numbers in sorted(found.values(), key=lambda each: -self._places[each[0]].total()):
            places = self._places[numbers[0]]
            family = next((each for each in families if _is_most_of(places, each[0])), None)
            if family is None:
                families.append((places, numbers))
            else:
                family[1].extend(numbers)
        return [sorted(numbers) for _, numbers in families]


def _is_most_of(places: _Places, whole: _Places) -> bool:
    return places.total() >= whole.total() * _LEAST_SHARE and places <= whole
