"""Runs of equal consecutive blocks of ops, as unrolled layers are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

_SHORTEST = 4
"""Blocks with fewer ops are not taken for layers."""
_MOST_PERIODS = 40
"""How many block lengths are tried."""


@dataclass(frozen=True)
class Run:
    """A run of equal consecutive blocks of ops."""

    start: int
    """The index of the first op of the first block."""
    period: int
    """The number of ops of a block."""
    count: int
    """The number of blocks."""

    def block(self, number: int) -> range:
        """Return the indices of the ops of a block."""
        first = self.start + number * self.period
        return range(first, first + self.period)

    @property
    def end(self) -> int:
        """The index of the op after the last block."""
        return self.start + self.period * self.count


def runs(texts: Sequence[str], least: int, shortest: int = _SHORTEST) -> Iterator[Run]:
    """Yield runs of ``least`` or more equal blocks of ``texts``, each of ``shortest`` or more, that
    do not overlap, the longest first.
    """
    numbers: dict[str, int] = {}
    ids = [numbers.setdefault(text, len(numbers)) for text in texts]
    every = _all_runs(ids, least, shortest)
    found = sorted(every, key=lambda run: (-(run.end - run.start), run.period))
    taken = bytearray(len(ids))
    for run in found:
        if not any(taken[run.start : run.end]):
            taken[run.start : run.end] = b"\1" * (run.end - run.start)
            yield run


def _all_runs(ids: Sequence[int], least: int, shortest: int) -> Iterator[Run]:
    """Yield, for the likeliest lengths of blocks, the runs of ``least`` or more of that length."""
    last: dict[int, int] = {}
    distances: Counter[int] = Counter()
    for place, number in enumerate(ids):
        if number in last:
            distances[place - last[number]] += 1
        last[number] = place
    listed = np.array(ids)
    for period, _ in distances.most_common(_MOST_PERIODS):
        if period < shortest:
            continue
        # A run ends where an op differs from the op one block later.
        ends = np.flatnonzero(listed[:-period] != listed[period:])
        bounds = [-1, *map(int, ends), len(ids) - period]
        for before, end in pairwise(bounds):
            count = (end - before - 1) // period + 1
            if count >= least:
                yield Run(before + 1, period, count)
