"""Collectives that run as one, as compilers combine them up to a threshold.

The bytes stay those of each; the time to start, the hops and the bandwidth are those of one long
message. Each collective takes its share of that time, by its bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias

from shardcore._core import Figures
from shardcore.bounded import shown
from shardcore.calculus.hardware import Hardware
from shardcore.costs.figures import TrafficKind
from shardcore.costs.links import Links, Transfer
from shardcore.units import parse_bytes

Limits: TypeAlias = "Mapping[str, int | str] | int | str"
"""Bytes, or a text such as ``30MiB``, for all kinds of collectives or by kind."""

KINDS = ("all_gather", "all_reduce", "reduce_scatter")
"""The collectives that compilers combine."""


@dataclass(frozen=True)
class Runs:
    """One run of each collective of a program, and the sets that run as one."""

    kinds: Sequence[tuple[TrafficKind, Transfer]]
    """The kinds of collectives, and one run of each by itself."""
    rows: Sequence[tuple[int, int]]
    """For each collective the place of its kind, and how often it runs."""
    sets: Sequence[tuple[Sequence[int], Transfer]]
    """The places in :attr:`rows` of those that run as one, and one run of these together."""

    @cached_property
    def runs(self) -> list[Transfer]:
        """One run of each collective: its share of the set that it is in."""
        found = [self.kinds[kind][1] for kind, _ in self.rows]
        for rows, whole in self.sets:
            sizes = [self.kinds[self.rows[row][0]][0].bytes for row in rows]
            total = sum(sizes)
            shares: dict[int, Transfer] = {}
            for row, size in zip(rows, sizes, strict=True):
                kind = self.rows[row][0]
                if kind not in shares:
                    share = size / total if total else 1 / len(rows)
                    shares[kind] = replace(
                        whole,
                        bytes=found[row].bytes,
                        seconds=whole.seconds * share,
                        fastest=whole.fastest * share,
                        achieved=whole.achieved * share,
                    )
                found[row] = shares[kind]
        return found

    @cached_property
    def sizes(self) -> list[int]:
        """With how many collectives each one runs as one, itself included."""
        found = [1] * len(self.rows)
        for rows, _ in self.sets:
            for row in rows:
                found[row] = len(rows)
        return found

    @cached_property
    def _alone(self) -> list[tuple[Transfer, int]]:
        """One run of each kind, and how many of that kind run alone."""
        counts = [kind.count for kind, _ in self.kinds]
        for rows, _ in self.sets:
            for row in rows:
                kind, times = self.rows[row]
                counts[kind] -= times
        return [(run, times) for (_, run), times in zip(self.kinds, counts, strict=True)]

    def total(self, figure: Callable[[Transfer], float]) -> float:
        """Return the sum of ``figure`` over all runs."""
        found = sum([figure(run) * times for run, times in self._alone])
        return found + sum(figure(whole) * self.rows[rows[0]][1] for rows, whole in self.sets)


def combined_runs(
    figures: Figures,
    kinds: Sequence[tuple[TrafficKind, Transfer]],
    links: Links,
    limits: Mapping[str, int],
) -> Runs:
    """Return the runs of the collectives of ``figures``; ``limits`` has the most bytes of those
    that run as one, by kind.

    Those that overlap with the product next to them, chunk by chunk, run alone.
    """
    rows = figures.traffic_of_rows()
    split = {kind.kind for kind, run in kinds if run.chunks > 1}
    most = {kind: limit for kind, limit in limits.items() if limit and kind not in split}
    sets: list[tuple[Sequence[int], Transfer]] = []
    for together in figures.combined(most) if most and kinds else ():
        found = [kinds[rows[row][0]][0] for row in together]
        first = found[0]
        if first.mesh is not None and first.axes is not None:
            total = sum(kind.bytes for kind in found)
            sets.append((together, links.cost(first.kind, first.mesh, tuple(first.axes), total)))
    return Runs(kinds, rows, sets)


def limits_of(given: Limits | None, chip: Hardware) -> dict[str, int]:
    """Return the most bytes of collectives that run as one, by kind: those of ``chip`` but for
    those that are ``given``.

    Raises:
        ValueError: as for :func:`given_limits`.
    """
    limits = dict.fromkeys(KINDS, int(chip.combine_bytes))
    return limits if given is None else limits | given_limits(given)


def given_limits(given: Limits) -> dict[str, int]:
    """Return the bytes that are ``given``, for all kinds or by kind.

    Raises:
        ValueError: there is no such kind, or no such number of bytes.
    """
    limits: dict[str, int] = {}
    chosen = given if isinstance(given, Mapping) else dict.fromkeys(KINDS, given)
    for kind, value in chosen.items():
        if kind not in KINDS:
            raise ValueError(f"expected one of {', '.join(KINDS)}, got {shown(kind)}")
        size = parse_bytes(value)
        if size is None:
            raise ValueError(f"expected bytes, such as '30MiB', got {shown(value)}")
        limits[kind] = size
    return limits


def parse_limits(text: str) -> Limits:
    """Return what ``text``, ``30MiB`` or ``all_reduce=30MiB,all_gather=0``, gives."""
    if "=" not in text:
        return text
    pairs = (part.partition("=") for part in text.split(","))
    return {kind.strip().replace("-", "_"): size for kind, _, size in pairs}
