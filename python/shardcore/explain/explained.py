"""The result of :func:`shardcore.explain`: the collectives of a compiled program, explained."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from shardcore.bounded import json_text
from shardcore.costs.scopes import scope_of
from shardcore.expected import expect

if TYPE_CHECKING:
    from shardcore.costs.records import CollectiveCost
    from shardcore.explain.device_groups import Groups
    from shardcore.why import Source
    from shardcore.why.remedy import Remedy

__all__ = ["CHANGES", "REASONS", "Explained", "ExplainedCollective", "ExplainedPart", "Sums"]

CHANGES = {
    "merged": "it runs as one with others, or does the work of several that were planned",
    "moved": "it runs more or less often than planned, as what is moved out of a loop",
    "split": "it sends a part of what was planned as one",
    "repeated": "it sends again what another one sends",
    "rewritten": "it is of another kind than planned, as a sum for a reduce-scatter",
    "added": "the plan has no such collective: the compiler needs it for its own way",
}
"""The changes that a compiler makes to planned collectives."""

REASONS = {
    "no-program": "no program was given: the plan and the annotations are not known",
    "not-planned": "metadata names an op of the program, for which nothing was planned",
    "not-in-program": "metadata names a line that the program does not have",
    "no-metadata": "the dump says of no op, and nothing in the plan is like it",
}
"""The reasons why no annotation is known for a collective."""

Key = TypeVar("Key")


@dataclass(frozen=True)
class ExplainedPart:
    """One array that a compiled collective sends or gathers."""

    operand: str
    """The instruction that computes it."""
    argument: str | None
    """The path of the only argument that it is computed from, if there is one."""
    dtype: str
    dims: tuple[int, ...]
    """The dims of the operand on one device."""
    bytes: int
    """Bytes on one device; for a gather after gathering."""
    op: str | None
    """The op that needs it: a StableHLO name if the planned collective is known, else JAX's
    name."""
    op_name: str
    """The op's name stack in XLA, ``jit(step)/jvp(mlp)/dot_general``; empty if there is none."""
    location: str | None
    """The source line of that op, ``file:line:column``."""
    locations: tuple[str, ...]
    """The lines of all ops that need it: several if their partial sums are added before they are
    reduced, or it does the work of several planned collectives."""
    planned: CollectiveCost | None = field(repr=False)
    """The planned collective that it is, with its annotations; ``None`` if none was found."""
    how: str | None
    """How it was found: by ``metadata`` of the collective itself or of ``neighbours``, by
    ``data-flow``, or because only one has this ``shape``."""
    among: int
    """How many other planned collectives of the same op and line it could also be."""
    changes: tuple[str, ...]
    """The changes by the compiler, from :data:`CHANGES`; empty if it is as planned."""
    reason: str | None
    """Why no annotation is known, one of :data:`REASONS`."""
    seconds: float | None = None
    """Measured seconds in one run of the program: its share of its collective's time."""

    @property
    def scope(self) -> str:
        """The scope that the user gave to this part of the program (``jax.named_scope``)."""
        return scope_of(self.op_name)[0]

    @property
    def direction(self) -> str:
        """``forward``, ``backward`` or ``recomputed``."""
        return scope_of(self.op_name)[1]

    @property
    def rematerializes(self) -> bool:
        """Whether every device gathers the whole tensor and then slices it, because XLA's
        partitioner has no better way: *involuntary full rematerialization*.
        """
        return self.planned is not None and self.planned.rematerializes

    @property
    def annotations(self) -> tuple[Source, ...]:
        """The annotations that cause it; empty if they are not known."""
        return () if self.planned is None else self.planned.why.annotations

    @property
    def edit(self) -> Remedy | None:
        """The cheapest edit of one annotation that removes it, as in
        :attr:`shardcore.why.collective.CollectiveWhy.edit`; ``None`` if none is known.
        """
        return None if self.planned is None else self.planned.why.edit

    def record(self) -> dict[str, Any]:
        """Return it as plain data, without annotations and edit."""
        row = {name: value for name, value in vars(self).items() if name != "planned"}
        return {
            **row,
            "dims": list(self.dims),
            "locations": list(self.locations),
            "changes": list(self.changes),
            "scope": self.scope,
            "direction": self.direction,
            "rematerializes": self.rematerializes,
            "planned": None if self.planned is None else self.planned.op,
            "axes": None if self.planned is None else list(self.planned.axes),
        }


@dataclass(frozen=True)
class ExplainedCollective:
    """A collective of a compiled program."""

    name: str
    """Its instruction, ``%all-gather.3``."""
    kind: str
    """``all_gather``, ``reduce_scatter``, ``all_reduce``, ``all_to_all``, ..."""
    computation: str
    line: int
    """The line in the dump."""
    groups: Groups
    """The groups of devices that exchange data."""
    runs: int | None
    """The number of executions in one run of the program; ``None`` if a loop's trip count is
    unknown.
    """
    is_async: bool
    parts: tuple[ExplainedPart, ...]
    seconds: float | None = None
    """Measured seconds in one run of the program, averaged over devices; ``None`` if not
    measured."""

    @property
    def bytes(self) -> int:
        """The bytes of its parts in one execution."""
        return sum(part.bytes for part in self.parts)

    def record(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            **vars(self),
            "groups": [list(group) for group in self.groups],
            "bytes": self.bytes,
            "parts": [part.record() for part in self.parts],
        }


@dataclass(frozen=True)
class Fate:
    """What the compiler made of a planned collective."""

    planned: CollectiveCost
    names: tuple[str, ...]
    """The instructions that do its work."""
    changes: tuple[str, ...]
    """The changes by the compiler, from :data:`CHANGES`, or ``dropped``."""

    def record(self) -> dict[str, Any]:
        """Return it as plain data."""
        row = self.planned
        return {
            "kind": row.kind,
            "axes": list(row.axes),
            "op": row.op,
            "cause": row.cause,
            "location": row.cause_location or row.location,
            "count": row.count,
            "rematerializes": row.rematerializes,
            "names": list(self.names),
            "changes": list(self.changes),
        }


@dataclass(frozen=True)
class Sums:
    """Sums over parts of collectives, for one run of the program."""

    parts: int
    bytes: int
    seconds: float | None
    """Measured seconds; ``None`` if nothing was measured."""


@dataclass(frozen=True, repr=False)
class Explained:
    """The collectives of a compiled program. ``str()`` is a report, :meth:`record` plain data."""

    module: str
    """The name of the compiled module."""
    platform: str
    """The compiler: ``tpu``, ``gpu`` or ``cpu``."""
    num_devices: int
    collectives: tuple[ExplainedCollective, ...]
    """The collectives, in the order of the dump."""
    plan: tuple[Fate, ...]
    """For each planned collective what became of it, in plan order; empty without a program."""
    has_program: bool
    trace: str | None = None
    """The name of the trace file with the times."""
    step_seconds: float | None = None
    """Measured seconds of one run of the program, the median over its runs; ``None`` if the trace
    does not say."""
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for rows, kind in ((self.collectives, ExplainedCollective), (self.plan, Fate)):
            expect(rows, tuple)
            for row in rows:
                expect(row, kind)

    @property
    def parts(self) -> tuple[ExplainedPart, ...]:
        """The parts of all collectives."""
        return tuple(part for row in self.collectives for part in row.parts)

    @property
    def attributed(self) -> float:
        """The share of parts whose op or line is known, between 0 and 1."""
        known = [part.op is not None or part.location is not None for part in self.parts]
        return sum(known) / len(known) if known else 1.0

    @property
    def dropped(self) -> tuple[CollectiveCost, ...]:
        """The planned collectives that the compiler eliminated."""
        return tuple(fate.planned for fate in self.plan if "dropped" in fate.changes)

    def by_line(self) -> dict[str | None, Sums]:
        """Return the sums by the line of the op that needs the collective, the largest first."""
        return self._by(lambda part: part.location)

    def by_scope(self) -> dict[tuple[str, str], Sums]:
        """Return the sums by scope and direction, the largest first."""
        return self._by(lambda part: (part.scope, part.direction))

    def by_annotation(self) -> dict[str | None, Sums]:
        """Return the sums by annotation, the largest first; ``None`` collects those without a known
        annotation. A collective with two annotations counts for both.
        """
        rows = [
            (source.label or source.name if source else None, row, part)
            for row, part in self._pairs()
            for source in (part.annotations or (None,))
        ]
        return _sums(rows)

    def longest(self, most: int | None = None) -> list[tuple[ExplainedCollective, ExplainedPart]]:
        """Return the parts with their collectives: those with the longest measured times, or
        without measurements the largest.
        """
        return sorted(self._pairs(), key=lambda pair: _weight(*pair), reverse=True)[:most]

    def counts(self) -> dict[str, int]:
        """Return how many parts are as planned, and how many of each kind of change."""
        counts = Counter(change for part in self.parts for change in part.changes)
        planned = sum(part.planned is not None and not part.changes for part in self.parts)
        return {"planned": planned, **{name: counts[name] for name in CHANGES}}

    def _pairs(self) -> list[tuple[ExplainedCollective, ExplainedPart]]:
        return [(row, part) for row in self.collectives for part in row.parts]

    def _by(self, key: Callable[[ExplainedPart], Key]) -> dict[Key, Sums]:
        return _sums([(key(part), row, part) for row, part in self._pairs()])

    def record(self, edits: int = 0) -> dict[str, Any]:
        """Return everything as plain data, with annotations and edits for the ``edits`` longest
        parts."""
        explained = []
        for row, part in self.longest(edits):
            if part.planned is not None:
                explained.append({"name": row.name, "operand": part.operand} | _why(part))
        return {
            "module": self.module,
            "platform": self.platform,
            "num_devices": self.num_devices,
            "attributed": self.attributed,
            "counts": self.counts(),
            "collectives": [row.record() for row in self.collectives],
            "plan": [fate.record() for fate in self.plan],
            "by_line": [
                {"location": place, **vars(sums)} for place, sums in self.by_line().items()
            ],
            "by_scope": [
                {"scope": scope, "direction": direction, **vars(sums)}
                for (scope, direction), sums in self.by_scope().items()
            ],
            "by_annotation": [
                {"annotation": label, **vars(sums)} for label, sums in self.by_annotation().items()
            ],
            "why": explained,
            "trace": self.trace,
            "step_seconds": self.step_seconds,
            "notes": list(self.notes),
        }

    def to_json(self, indent: int | None = 1) -> str:
        """Return :meth:`record` as JSON.

        Raises:
            ValueError: ``indent`` is not from 0 to 80.
        """
        return json_text(self.record(), indent)

    def __repr__(self) -> str:
        return (
            f"<shardcore.Explained {self.module} on {self.platform}: "
            f"{len(self.collectives)} collectives, {len(self.parts)} parts>"
        )

    def _repr_html_(self) -> str:
        from shardcore.report.explained_table import explained_parts
        from shardcore.report.html import parts_html

        return parts_html(explained_parts(self))

    def __str__(self) -> str:
        from shardcore.report.console import plain_text
        from shardcore.report.explained_table import explained_parts

        return plain_text(explained_parts(self))


def _why(part: ExplainedPart) -> dict[str, Any]:
    edit = part.edit
    return {
        "annotations": [dict(vars(source)) for source in part.annotations],
        "edit": None if edit is None else edit.record(),
    }


def _weight(row: ExplainedCollective, part: ExplainedPart) -> tuple[float, int]:
    return part.seconds or 0.0, part.bytes * (row.runs or 1)


def _sums(
    rows: Sequence[tuple[Key, ExplainedCollective, ExplainedPart]],
) -> dict[Key, Sums]:
    groups: dict[Key, list[tuple[ExplainedCollective, ExplainedPart]]] = {}
    for key, row, part in rows:
        groups.setdefault(key, []).append((row, part))
    found = {key: _sum(pairs) for key, pairs in groups.items()}
    return dict(sorted(found.items(), key=lambda item: (-(item[1].seconds or 0), -item[1].bytes)))


def _sum(pairs: Iterable[tuple[ExplainedCollective, ExplainedPart]]) -> Sums:
    pairs = list(pairs)
    times = [part.seconds for _, part in pairs if part.seconds is not None]
    return Sums(
        len(pairs),
        sum(part.bytes * (row.runs or 1) for row, part in pairs),
        sum(times) if times else None,
    )
