"""Collectives that compilers combine into one, up to a threshold of bytes.

The bytes stay the same; latency, hops and bandwidth are those of one long message. Each collective
takes the share of that time that corresponds to its bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from shardcore._core import Figures
from shardcore.bounded import shown
from shardcore.cached_property import cached_property
from shardcore.calculus.hardware import Hardware
from shardcore.costs.figures import TrafficKind
from shardcore.costs.links import Links, Transfer
from shardcore.units import parse_bytes

Limits: TypeAlias = "Mapping[str, int | str] | int | str"
"""Bytes, or a text such as ``30MiB``, for all kinds of collectives or by kind."""

KINDS = ("all_gather", "all_reduce", "reduce_scatter", "collective_permute")
"""The collectives that compilers combine."""

SCATTER_BYTES_OF_TPUS = 9 * 2**20 - 1
"""The most bytes of combined reduce-scatters on TPUs, from programs compiled for TPU v5e: sets of
9.2e6 bytes are combined, and none of 9 MiB is.
"""


@dataclass(frozen=True)
class Together:
    """A set of collectives that are combined into one."""

    kinds: Sequence[tuple[int, int]]
    """For each kind in the set: its index, and the number of collectives."""
    times: int
    """How often the set runs."""
    whole: Transfer | None
    """One run of the whole set; ``None`` if its time is unknown, so that each runs alone."""


@dataclass(frozen=True)
class Runs:
    """One run of each collective of a program, and the combined sets."""

    kinds: Sequence[tuple[TrafficKind, Transfer]]
    """The kinds of collectives, each with one run on its own."""
    sets: Sequence[Together]
    of_rows: list[int]
    """For each collective its index in :attr:`runs`."""

    @cached_property
    def runs(self) -> list[Transfer]:
        """One run of each kind of collective on its own; then, for each combined set, of each of
        its kinds: the kind's share of the set.
        """
        found = [run for _, run in self.kinds]
        for together in self.sets:
            whole = together.whole
            count = sum(count for _, count in together.kinds)
            total = self._total_bytes(together)
            for kind, _ in together.kinds:
                own, alone = self.kinds[kind]
                share = own.bytes / total if total else 1 / count
                if whole is not None:
                    alone = whole.share(share, alone.bytes)
                found.append(alone)
        return found

    @cached_property
    def sizes(self) -> list[int]:
        """How many collectives are combined, itself included, for each of :attr:`runs`."""
        found = [1] * len(self.kinds)
        for together in self.sets:
            count = 1 if together.whole is None else sum(count for _, count in together.kinds)
            found += [count] * len(together.kinds)
        return found

    @cached_property
    def _timed(self) -> list[tuple[Transfer, int]]:
        """One run of each kind, with the number of those not combined; then the sets."""
        counts = [kind.count for kind, _ in self.kinds]
        sets = []
        for together in self.sets:
            if together.whole is not None:
                sets.append((together.whole, together.times))
                for kind, count in together.kinds:
                    counts[kind] -= count * together.times
        return [(run, times) for (_, run), times in zip(self.kinds, counts, strict=True)] + sets

    def _total_bytes(self, together: Together) -> int:
        return sum(self.kinds[kind][0].bytes * count for kind, count in together.kinds)

    def total(self, figure: Callable[[Transfer], float]) -> float:
        """Return the sum of ``figure`` over all runs."""
        return sum([figure(run) * times for run, times in self._timed])


def combined_runs(
    figures: Figures,
    kinds: Sequence[tuple[TrafficKind, Transfer]],
    links: Links,
    limits: Mapping[str, int],
) -> Runs:
    """Return the runs of the collectives of ``figures``; ``limits`` has the most bytes of combined
    collectives, by kind.

    Collectives that overlap with an adjacent product chunk by chunk are not combined, but for
    reduce-scatters, which are combined into kernels of their own.
    """
    split = {kind.kind for kind, run in kinds if run.chunks > 1} - {"reduce_scatter"}
    most = {kind: limit for kind, limit in limits.items() if limit and kind not in split}
    sets, of_rows = figures.combined(most)
    return Runs(kinds, [_together(of, times, kinds, links) for of, times in sets], of_rows)


def _together(
    of: Sequence[tuple[int, int]],
    times: int,
    kinds: Sequence[tuple[TrafficKind, Transfer]],
    links: Links,
) -> Together:
    """A set of collectives over the same mesh axes, as combined."""
    first, _ = kinds[of[0][0]]
    total = sum(kinds[kind][0].bytes * count for kind, count in of)
    whole = None
    if first.mesh is not None and first.axes is not None and links.has(first.mesh):
        whole = links.cost(first.kind, first.mesh, tuple(first.axes), total)
    return Together(of, times, whole)


def limits_of(given: Limits | None, chip: Hardware, compiler: str) -> dict[str, int]:
    """Return the most bytes of combined collectives, by kind: ``given`` over the chip's limits.

    Permutes are combined only by XLA for GPUs, gathers not by XLA for TPUs.

    Raises:
        ValueError: as for :func:`given_limits`.
    """
    limits = dict.fromkeys(KINDS, int(chip.combine_bytes))
    if compiler != "xla-gpu":
        limits["collective_permute"] = 0
    if compiler == "xla-tpu":
        limits["all_gather"] = 0
        limits["reduce_scatter"] = min(limits["reduce_scatter"], SCATTER_BYTES_OF_TPUS)
    return limits if given is None else limits | given_limits(given)


def given_limits(given: Limits) -> dict[str, int]:
    """Return the limits in ``given``, for all kinds or by kind.

    Raises:
        ValueError: a kind is unknown, or a number of bytes is not valid.
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
    """Return the limits in ``text``, ``30MiB`` or ``all_reduce=30MiB,all_gather=0``."""
    if "=" not in text:
        return text
    pairs = (part.partition("=") for part in text.split(","))
    return {kind.strip().replace("-", "_"): size for kind, _, size in pairs}
