"""Fits the figures of a chip to measured ops, each figure to the ops whose time depends on it.

A figure is searched in its range on a grid that is refined: the value that minimizes the errors,
which are logarithms of estimated over measured seconds. Small errors count by their squares, large
ones only by their logarithm (Cauchy's loss), so that disturbed ops, and ops that a compiler treats
unlike the model, have little influence.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from shardcore.calculus.dtypes import canonical_dtype
from shardcore.calculus.hardware import Hardware
from shardcore.costs.measurements import Measurement

MARGIN = 1.1
"""Peaks are set this factor above the best measured rate, because they are used for bounds."""

_ROUNDS = 3
_SHORT = 100
"""An op this many times longer than the shortest has half the weight of a very long one."""
_FAR = 0.1
"""The scale of Cauchy's loss: the error from which on an op counts as an outlier."""
_POINTS, _ZOOMS = 13, 4
PRODUCTS = "products of "
"""The prefix of the groups of products; their element type follows."""


@dataclass(frozen=True)
class MeasuredOp(Measurement):
    """A measured op, or several in one program."""

    group: str = ""
    """Its group; see :data:`FIGURES`. ``products of f32`` are those of that element type."""
    flops: float = 0.0
    """FLOPs of a product, from which its rate follows."""
    moved_bytes: float = 0.0
    """The least bytes that it has to move, from which its rate follows."""
    weight: float = 1.0
    """The weight of its error."""


@dataclass(frozen=True)
class Figure:
    """A figure to fit."""

    name: str
    """Its key in a hardware file: ``cache_bytes``, ``achieved.memory``,
    ``achieved.products.f32``."""
    groups: tuple[str, ...]
    """The groups of ops whose time depends on it."""
    low: float
    high: float
    rates: tuple[Figure, ...] = ()
    """Figures that are fitted anew for each value of this one, which is then not refined: a
    threshold of bytes, and the rates below and above it, can only be fitted together."""


FIGURES = (
    Figure("achieved.step_seconds", ("one tiny op",), 1e-7, 1e-3),
    Figure("achieved.op_seconds", ("many tiny ops",), 1e-9, 1e-4),
    Figure(
        "achieved.mapped_bytes",
        ("new arrays",),
        2**18,
        2**30,
        (Figure("achieved.mapped_bytes_per_second", ("new arrays",), 1e8, 1e15),),
    ),
    Figure(
        "cache_bytes",
        ("streams again", "streams"),
        2**17,
        2**29,
        (
            Figure("cache_bytes_per_second", ("streams again", "streams"), 1e9, 1e15),
            Figure("achieved.memory", ("streams again", "streams"), 0.05, 1.0),
        ),
    ),
    Figure("achieved.vector_flops", ("elements",), 1e8, 1e15),
    Figure("achieved.transcendental_flops", ("exponentials",), 1, 300),
    Figure("achieved.products", (PRODUCTS,), 0.02, 1.0),
    Figure("achieved.depth_overhead", (PRODUCTS,), 0.1, 2000),
    Figure("achieved.misaligned", ("misaligned products",), 0.02, 1.0),
    Figure("achieved.convolutions", ("convolutions",), 0.02, 1.0),
    Figure("achieved.scattered", ("scattered",), 0.01, 1.0),
    Figure("achieved.sort_flops", ("sorts",), 1e6, 1e14),
    Figure("link_bytes_per_second", ("collectives",), 1e7, 1e14),
    Figure("achieved.links", ("collectives",), 0.02, 1.0),
    Figure("achieved.message_bytes", ("collectives",), 1.0, 1e9),
    Figure("achieved.collective_seconds", ("collectives",), 1e-7, 1e-2),
)
"""The figures to fit, in this order, in a few rounds, because they depend on each other."""


@dataclass(frozen=True)
class Fit:
    """The result of a fit."""

    chip: Hardware
    rows: tuple[tuple[MeasuredOp, float], ...]
    """Each op, with its seconds by the fitted figures."""

    def error(self, group: str = "") -> float:
        """The median of the relative errors of ``group``, by default of all ops."""
        misses = sorted(
            abs(seconds / row.step_seconds - 1)
            for row, seconds in self.rows
            if row.group.startswith(group)
        )
        return misses[len(misses) // 2] if misses else math.nan

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups of the measured ops."""
        return tuple(dict.fromkeys(row.group for row, _ in self.rows))


def fit(rows: Sequence[MeasuredOp], start: Hardware, source: str, *, keeps_peaks: bool) -> Fit:
    """Fit the figures of a chip to ``rows``, starting from those of ``start``.

    Args:
        rows: measured ops; figures that none of them depends on keep their values.
        start: the starting figures, used for everything that is not measured.
        source: the origin of the rows, which is recorded with each figure.
        keeps_peaks: whether peaks of ``start`` stay if no measurement exceeds them.

    Raises:
        ValueError: there are no rows.
    """
    if not rows:
        raise ValueError("there is no measured op to fit to")
    # Short ops are mostly launch overhead, which is a small part of a step.
    short = _SHORT * min(row.step_seconds for row in rows)
    rows = [replace(row, weight=row.step_seconds / (row.step_seconds + short)) for row in rows]
    chip = _with_peaks(rows, start, keeps_peaks=keeps_peaks)
    # If the peak is known, the achieved share is what is measured.
    left_out = "link_bytes_per_second" if keeps_peaks else "achieved.links"
    shown = [
        (name, own, figure)
        for figure in FIGURES
        if figure.name != left_out
        for name, own in _rows_of(figure, rows)
    ]
    kept = (_searched(chip, shown, cache_persists=each) for each in (False, True))
    chip = min(kept, key=lambda each: _error(rows, each))
    names = {each.name for _, _, figure in shown for each in (figure, *figure.rates)}
    heads = dict.fromkeys(name.partition(".")[0] for name in sorted(names))
    peaks = [key for key in ("flops", "hbm_bytes_per_second") if _differs(chip, start, key)]
    sources = dict.fromkeys(heads, f"measured: {source}")
    sources |= dict.fromkeys(peaks, f"measured: {source}, the best and a tenth")
    chip = replace(chip, source={**start.source, **sources})
    return Fit(chip, tuple((row, row.cost(chip).step_seconds) for row in rows))


def _differs(chip: Hardware, start: Hardware, figure: str) -> bool:
    return bool(getattr(chip, figure) != getattr(start, figure))


def _kind(group: str) -> str:
    """The group of ops, without the element type."""
    return PRODUCTS if group.startswith(PRODUCTS) else group


def _searched(
    chip: Hardware, shown: list[tuple[str, list[MeasuredOp], Figure]], *, cache_persists: bool
) -> Hardware:
    """``chip`` with each figure at its best value."""
    chip = replace(chip, achieved=replace(chip.achieved, cache_persists=cache_persists))
    for _ in range(_ROUNDS):
        for name, own, figure in shown:
            chip = _best(chip, name, figure, own)
    return chip


def _error(rows: Iterable[MeasuredOp], chip: Hardware) -> float:
    """The weighted sum of Cauchy's loss over the errors of ``rows``."""
    total = 0.0
    for row in rows:
        miss = math.log(max(row.cost(chip).step_seconds, 1e-12) / row.step_seconds)
        total += row.weight * math.log1p((miss / _FAR) ** 2)
    return total


def _rows_of(figure: Figure, rows: Iterable[MeasuredOp]) -> list[tuple[str, list[MeasuredOp]]]:
    """The ops on which ``figure`` depends, if there are any; for products by element type."""
    own = [row for row in rows if _kind(row.group) in figure.groups]
    if figure.name != "achieved.products":
        return [(figure.name, own)] if own else []
    types = dict.fromkeys(row.group for row in own)
    return [
        (
            f"{figure.name}.{canonical_dtype(each.removeprefix(PRODUCTS))}",
            [row for row in own if row.group == each],
        )
        for each in types
    ]


def _with_peaks(rows: Iterable[MeasuredOp], chip: Hardware, *, keeps_peaks: bool) -> Hardware:
    """``chip`` with the highest measured rates as peaks, with a margin."""
    flops: dict[str, float] = {}
    bandwidth = 0.0
    for row in rows:
        if row.group.startswith(PRODUCTS):
            dtype = canonical_dtype(row.group.removeprefix(PRODUCTS))
            rate = MARGIN * row.flops / row.step_seconds
            flops[dtype] = max(flops.get(dtype, 0.0), rate)
        if row.group == "streams" and row.moved_bytes > 2 * chip.cache_bytes:
            bandwidth = max(bandwidth, MARGIN * row.moved_bytes / row.step_seconds)
    if keeps_peaks:
        for dtype, known in chip.flops.items():
            flops[dtype] = max(flops.get(dtype, 0.0), known)
        bandwidth = max(bandwidth, chip.hbm_bytes_per_second)
    flops = {dtype: _rounded(rate) for dtype, rate in flops.items()}
    flops.setdefault("bf16", max(flops.values(), default=chip.flops["bf16"]))
    known = chip.hbm_bytes_per_second
    return replace(
        chip,
        flops=MappingProxyType(flops),
        hbm_bytes_per_second=_rounded(bandwidth) if bandwidth else known,
    )


def _with(chip: Hardware, name: str, value: float) -> Hardware:
    """``chip`` with another figure; figures of one kind of chip only keep their type."""
    first, _, rest = name.partition(".")
    values: dict[str, Any]
    if first != "achieved":
        values = {first: value}
        return replace(chip, **values)
    second, _, dtype = rest.partition(".")
    values = {second: value}
    if dtype:
        products = chip.achieved.products
        values = {second: MappingProxyType({**products, dtype: value})}
    return replace(chip, achieved=replace(chip.achieved, **values))


def _rounded(value: float) -> float:
    """``value`` with three significant digits, as more would mean nothing."""
    return float(f"{value:.3g}")


def _best(
    chip: Hardware, name: str, figure: Figure, rows: Sequence[MeasuredOp], zooms: int = _ZOOMS
) -> Hardware:
    """``chip`` with the value of the figure ``name`` that minimizes the errors of ``rows``."""

    def candidate(value: float, zooms: int = _ZOOMS // 2) -> Hardware:
        other = _with(chip, name, _rounded(value))
        for rate in figure.rates:
            other = _best(other, rate.name, rate, rows, zooms)
        return other

    found = searched(
        lambda value: _error(rows, candidate(value)),
        (figure.low, figure.high),
        1 if figure.rates else zooms,
    )
    return candidate(found, _ZOOMS)


def searched(
    error: Callable[[float], float], ends: tuple[float, float], zooms: int = _ZOOMS
) -> float:
    """The minimum of ``error`` between ``ends``, both above 0, found on a geometric grid that is
    refined around its best point.
    """
    best = ends[0]
    start, end = map(math.log, ends)
    for _ in range(zooms):
        step = (end - start) / (_POINTS - 1)
        places = [start + step * index for index in range(_POINTS)]
        # Of equally good points the middle one: an op may not depend on the figure.
        errors = [error(math.exp(place)) for place in places]
        good = [at for at, it in enumerate(errors) if it <= min(errors) * (1 + 1e-12)]
        at = good[len(good) // 2]
        best = math.exp(places[at])
        start, end = places[max(at - 1, 0)], places[min(at + 1, _POINTS - 1)]
    return best


def figures_of(chip: Hardware, group: str) -> list[tuple[str, float]]:
    """The figures of ``chip`` that ``group`` determines, by their last names."""
    found = []
    for figure in FIGURES:
        if _kind(group) not in figure.groups:
            continue
        for each in (figure, *figure.rates):
            last = each.name.removeprefix("achieved.")
            value = getattr(chip if last == each.name else chip.achieved, last)
            if isinstance(value, Mapping):
                value = chip.achieved.products_of(group.removeprefix(PRODUCTS))
            found.append((last, value))
    return found
