"""Classes that are used alike: those of repeated layers where arguments have no paths.

Two classes are alike if the same ops have them in the same places, as often: the hidden width of
each layer of a transformer is the columns of one product and the rows of another, and so on, while
the other dims of these products, the batch and the width, are in one class for all layers. Those of
the first layer of a training step, which needs no gradient of what it takes, are in some places
less, and alike all the same. Classes that some tensor has together stay apart, as those of layers
whose columns are the rows of the next.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Iterator, Sequence

_Places = Counter[tuple[Hashable, int, int]]
"""Ops, operands or results of them, and dims, with how often each has a class."""
_LEAST_SHARE = 0.75
"""The part of the places of a class that one which is alike has at least."""


class Uses:
    """The places in which ops have some classes.

    Of two layers with hidden widths 4 and 5, both of width 3:

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
        """Add the operand or result number ``place`` of ``op``, a tensor of these ``classes``."""
        for dim, number in enumerate(classes):
            if number in self._wanted:
                self._places[number][op, place, dim] += 1
        self._tensors.add(tuple(classes))

    def alike(self) -> Iterator[list[int]]:
        """Yield classes that are alike and in no tensor together, in order."""
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
        """Classes that are in the same places, or in most of the places of the first of them."""
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
