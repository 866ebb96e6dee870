"""Propagation step by step: the sharding changes made by each visit of an op.

Source: the loop of ``rust/src/propagation/mod.rs``, which records every change.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, overload

from shardcore.controls import visible
from shardcore.labels import file_line
from shardcore.units import plural

if TYPE_CHECKING:
    from shardcore._core import Result

__all__ = ["Change", "RunStep", "Steps", "Visit", "steps"]


@dataclass(frozen=True)
class Change:
    """A change of the sharding of one tensor."""

    value: str
    """The tensor's name in the original program: ``"%12"``, ``"%arg3"``, ``"result 0"``."""
    before: str | None
    """The sharding before, as ``sdy`` text; ``None`` if there was none."""
    after: str | None
    """The sharding after."""

    def record(self) -> dict[str, Any]:
        """Return it as plain data."""
        return dict(vars(self))


@dataclass(frozen=True)
class Visit:
    """The changes made by one visit of an op."""

    op: str | None
    """The op, ``"stablehlo.add"``; ``None`` for the change of user priority, which hides dims of
    later priorities, or adds those of the current one."""
    location: str | None
    """The source line of the op."""
    changes: tuple[Change, ...]

    def record(self) -> dict[str, Any]:
        """Return it as plain data."""
        changes = [change.record() for change in self.changes]
        return {"op": self.op, "location": self.location, "changes": changes}


@dataclass(frozen=True)
class RunStep:
    """One op-priority step within one user priority: ops are visited until nothing changes."""

    priority: int
    """The user priority; dims up to it take part."""
    step: int
    """The op-priority step, from 0; the first steps visit only ops that pass data through."""
    strategy: str
    """``"basic"`` or ``"aggressive"``."""
    visits: tuple[Visit, ...]
    """The visits that changed something, in order."""

    def record(self) -> dict[str, Any]:
        """Return it as plain data."""
        record = dict(vars(self))
        return {**record, "visits": [visit.record() for visit in self.visits]}


class Steps(Sequence[RunStep]):
    """The steps of a propagation, in order; ``str()`` lists the changes of each visit."""

    def __init__(self, steps: Sequence[RunStep]) -> None:
        self._steps = tuple(steps)

    @overload
    def __getitem__(self, index: int) -> RunStep: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[RunStep, ...]: ...
    def __getitem__(self, index: int | slice) -> RunStep | tuple[RunStep, ...]:
        return self._steps[index]

    def __len__(self) -> int:
        return len(self._steps)

    def visits(self) -> Iterator[tuple[RunStep, Visit]]:
        """Yield every visit with its step, in order."""
        for step in self._steps:
            for visit in step.visits:
                yield step, visit

    def of(self, value: str) -> Steps:
        """Return only the visits that changed ``value``, in the steps that have some."""
        found = []
        for step in self._steps:
            visits = [
                visit for visit in step.visits if any(each.value == value for each in visit.changes)
            ]
            if visits:
                found.append(replace(step, visits=tuple(visits)))
        return Steps(found)

    def record(self) -> list[dict[str, Any]]:
        """Return the steps as plain data."""
        return [step.record() for step in self._steps]

    def __repr__(self) -> str:
        visits = sum(len(step.visits) for step in self._steps)
        made = f"{plural(len(self), 'step')}, {plural(visits, 'visit')} with changes"
        return f"<shardcore.why.steps.Steps of {made}>"

    def __str__(self) -> str:
        return visible("\n".join(_lines(self._steps)))

    def _repr_html_(self) -> str:
        from shardcore.report.html import text_html

        return text_html(self)


def steps(result: Result) -> Steps:
    """Return the changes of each visit; see :meth:`shardcore.Result.steps`."""
    return Steps(
        [
            RunStep(
                priority,
                step,
                strategy,
                tuple(
                    Visit(op, line, tuple(Change(*change) for change in changes))
                    for op, line, changes in visits
                ),
            )
            for priority, step, strategy, visits in result._explainer.steps()
        ]
    )


def _lines(steps: Sequence[RunStep]) -> Iterator[str]:
    priority = None
    for step in steps:
        if step.priority != priority:
            priority = step.priority
            yield f"user priority {priority}"
        nothing = "" if step.visits else ": nothing changes"
        yield f"  op-priority step {step.step}, {step.strategy}{nothing}"
        for visit in step.visits:
            where = "" if visit.location is None else f"  {file_line(visit.location)}"
            yield f"    {visit.op or 'dims that take part'}{where}"
            for change in visit.changes:
                yield f"      {change.value}  {short(change.before)} -> {short(change.after)}"


def short(sharding: str | None) -> str:
    """Return the text of a sharding without its mesh."""
    if sharding is None:
        return "none"
    at = sharding.find(", [")
    return sharding if at < 0 else sharding[at + 2 : -1]
