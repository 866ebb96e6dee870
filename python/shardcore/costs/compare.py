"""Differences between two costs, in total and by source line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from shardcore.costs.program import Cost
from shardcore.labels import without_column


@dataclass(frozen=True)
class Figure:
    """One figure, before and after."""

    name: str
    before: float
    after: float

    @property
    def change(self) -> float:
        """``after - before``."""
        return self.after - self.before


@dataclass(frozen=True)
class LineChange:
    """The changes at one source line, or of one op name if the program has no locations.

    A collective counts for the line of the op that needs it.
    """

    place: str
    flops: Figure
    compute_seconds: Figure
    comm_bytes: Figure
    comm_seconds: Figure
    collectives: dict[str, tuple[int, int]]
    """For each kind whose number of runs changed: the numbers before and after."""

    @property
    def seconds(self) -> float:
        """The change in seconds, with nothing overlapped."""
        return self.compute_seconds.change + self.comm_seconds.change

    def record(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {**asdict(self), "seconds": self.seconds}


@dataclass(frozen=True)
class Comparison:
    """The differences between two costs."""

    policies: tuple[str, str]
    """Both policies, as in :attr:`shardcore.Cost.policy`."""
    totals: tuple[Figure, ...]
    lines: tuple[LineChange, ...]
    """The lines with changes, the largest change of time first."""

    def record(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "policies": {"before": self.policies[0], "after": self.policies[1]},
            "totals": {
                row.name: {"before": row.before, "after": row.after, "change": row.change}
                for row in self.totals
            },
            "lines": [row.record() for row in self.lines],
        }

    def _repr_html_(self) -> str:
        from shardcore.report.comparison_table import comparison_parts
        from shardcore.report.html import parts_html

        return parts_html(comparison_parts(self))

    def __str__(self) -> str:
        from shardcore.report.comparison_table import comparison_text

        return comparison_text(self)


TOTALS = (
    "step_seconds",
    "step_seconds_lower",
    "step_seconds_upper",
    "compute_seconds",
    "comm_seconds",
    "flops",
    "hbm_bytes",
    "argument_bytes",
    "output_bytes",
    "peak_bytes",
)

HOST_TOTALS = ("host_memory_peak_bytes",)
"""Figures of programs that use host memory."""


def compare(before: Cost, after: Cost, *, lines: Mapping[str, str] | None = None) -> Comparison:
    """Return the differences from ``before`` to ``after``, in total and by source line.

    The costs are those of two programs, or of one program under two annotations or policies.

    Args:
        before: the old cost.
        after: the new cost.
        lines: if the source was edited: for lines ``file:line`` of ``before``, the corresponding
            lines of ``after``; locations then have no columns.

    Raises:
        TypeError: one of them is no :class:`~shardcore.Cost`.
    """
    for cost in (before, after):
        if not isinstance(cost, Cost):
            raise TypeError(f"expected a shardcore.Cost, not {type(cost).__name__}")
    names = (*TOTALS, *(HOST_TOTALS if before.host or after.host else ()))
    totals = tuple(Figure(name, getattr(before, name), getattr(after, name)) for name in names)
    old, new = (
        (_lines(before), _lines(after))
        if lines is None
        else (_lines(before, lines), _lines(after, {}))
    )
    changes = [
        change
        for place in dict.fromkeys([*old, *new])
        if (change := _change(place, old.get(place, _Line()), new.get(place, _Line()))) is not None
    ]
    changes.sort(key=lambda row: -abs(row.seconds))
    return Comparison((before.policy, after.policy), totals, tuple(changes))


@dataclass
class _Line:
    flops: int = 0
    compute_seconds: float = 0.0
    comm_bytes: int = 0
    comm_seconds: float = 0.0
    kinds: dict[str, int] | None = None


def _lines(cost: Cost, names: Mapping[str, str] | None = None) -> dict[str, _Line]:
    """The cost of each location; with ``names``, of each line under its name there."""

    def called(place: str) -> str:
        if names is None:
            return place
        line = without_column(place)
        return names.get(line, line)

    lines: dict[str, _Line] = {}
    for row in cost.ops:
        line = lines.setdefault(called(row.location or row.name), _Line())
        line.flops += row.flops
        line.compute_seconds += row.seconds
    for moved in cost.collectives:
        place = moved.cause_location or moved.location or moved.cause or moved.kind
        line = lines.setdefault(called(place), _Line())
        line.comm_bytes += moved.total_bytes
        line.comm_seconds += moved.total_seconds
        line.kinds = line.kinds or {}
        line.kinds[moved.kind] = line.kinds.get(moved.kind, 0) + moved.count
    return lines


def _change(place: str, old: _Line, new: _Line) -> LineChange | None:
    figures = {
        name: Figure(name, getattr(old, name), getattr(new, name))
        for name in ("flops", "compute_seconds", "comm_bytes", "comm_seconds")
    }
    kinds = dict(_changed_kinds(old.kinds or {}, new.kinds or {}))
    # Sums in another order may differ in the last digits.
    same = all(
        abs(figure.change) <= 1e-9 * max(abs(figure.before), abs(figure.after))
        for figure in figures.values()
    )
    return None if same and not kinds else LineChange(place, **figures, collectives=kinds)


def _changed_kinds(
    old: dict[str, int], new: dict[str, int]
) -> Iterator[tuple[str, tuple[int, int]]]:
    for kind in dict.fromkeys([*old, *new]):
        if old.get(kind, 0) != new.get(kind, 0):
            yield kind, (old.get(kind, 0), new.get(kind, 0))
