"""Exact evaluations of annotations, each done once, until the time is up."""

from __future__ import annotations

import heapq
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from shardcore._core import Mesh, TensorSharding
from shardcore.errors import Diagnostic, PlanError
from shardcore.plan.layouts import Dims, spec
from shardcore.plan.limits import Allows
from shardcore.plan.roles import Role, is_within
from shardcore.plan.scorers import Fewer, Whole
from shardcore.session import Evaluation, Session

Shardings = tuple[Dims | None, ...]
"""The annotation of each role; ``None`` for roles without one."""

Rows = dict[tuple[Mesh, Shardings], Evaluation]
"""The figures of annotations over a mesh."""

_WORTHWHILE = 1e-3
"""Smaller relative improvements are not worth more annotations."""

_HOPELESS = 0.1
"""Local search saves less than this part of a peak; if it exceeds the limit by more, it is
hopeless."""

_FAR = 0.5
"""Extrapolated peaks up to this part of the limit are assumed to fit until the search ends."""

_MOST_AHEAD = 8
"""How many trials are evaluated on all layers at once, when one after another turns out too
large."""

OBJECTIVES = {
    "time": "serial_seconds",
    "step": "step_seconds",
    "memory": "peak_bytes",
    "bytes": "comm_bytes",
    "slowest-link": "slowest_link_bytes",
}
"""For each objective, the figure that it minimizes."""


@dataclass(frozen=True)
class Trial:
    """Annotations over a mesh, with their figures."""

    mesh: Mesh
    shardings: Shardings
    row: Evaluation
    rank: tuple[float, float, float, int]
    """A sort key: bytes over the limit; the objective; then the step time, or the sent bytes if the
    step time is the objective; the number of annotations."""

    @property
    def fits(self) -> bool:
        """Whether its peak is within the limit."""
        return self.rank[0] == 0

    def step(self) -> float:
        """Return seconds of the step, infinite where it has none."""
        seconds = self.row.step_seconds
        return math.inf if seconds is None else seconds

    def arguments(self) -> tuple[float, float]:
        """Return bytes of arguments, and seconds of the step."""
        return self.row.argument_bytes or math.inf, self.step()

    def peak(self) -> tuple[float, float]:
        """Return bytes at the peak, and seconds of the step."""
        peak = self.row.peak_bytes
        return math.inf if peak is None else peak, self.step()

    @property
    def is_hopeless(self) -> bool:
        """Whether its peak exceeds the limit by so much that variations will not fit either."""
        peak = self.row.peak_bytes
        return peak is not None and self.rank[0] > peak * _HOPELESS

    def is_better_than(self, other: Trial) -> bool:
        """Whether it fits better, or its objective, or the tie-breaking figure, is smaller by
        enough to be worth a change."""
        if self.rank[0] != other.rank[0]:
            return self.rank[0] < other.rank[0]
        place = 1 if self.rank[1] != other.rank[1] else 2
        return self.rank[place] < other.rank[place] * (1 - _WORTHWHILE)

    def is_as_good_as(self, other: Trial) -> bool:
        """Whether it fits if ``other`` does, and neither takes longer nor sends more."""
        slack = 1 + 1e-9
        return all(
            own <= its * slack for own, its in zip(self.rank[:3], other.rank[:3], strict=True)
        )

    def is_like(self, other: Trial) -> bool:
        """Whether all figures are those of ``other``."""
        return replace(self.row, edit={}) == replace(other.row, edit={})


_NOT_ALLOWED = PlanError(
    Diagnostic("nothing-to-plan", "the limits do not allow it", "allow axes to be for more")
)


class Stop(Exception):  # noqa: N818 - it is no error
    """The time is up."""


class Trials:
    """Evaluates annotations of roles over meshes."""

    def __init__(
        self,
        scorer: Whole | Fewer,
        roles: Sequence[Role],
        limit: float,
        objective: str,
        *,
        rows: Rows,
        whole: Trials | None = None,
        allows: Allows | None = None,
        start: float,
        seconds: float,
        report: Callable[[Trial | None, float], object],
    ) -> None:
        """Set up the evaluations.

        Args:
            scorer: evaluates edits.
            roles: the roles to annotate.
            limit: bytes of memory of a device.
            objective: a key of :data:`OBJECTIVES`.
            rows: what ``scorer`` has evaluated, which others with it may share.
            whole: those of the whole program, where ``scorer`` evaluates on fewer layers.
            allows: whether annotations are within the limits; those that are not are refused.
            start: when planning began, as ``time.monotonic()`` says.
            seconds: after so many from there, evaluations raise :class:`Stop`.
            report: called after each evaluation with the best and the fraction of the time.
        """
        self._scorer, self._roles, self._rows, self._whole = scorer, roles, rows, whole
        self._limit, self._figure = limit, OBJECTIVES[objective]
        self._allows = allows
        self._start = start
        self._seconds = seconds
        self.compiler = scorer.compiler
        """The compiler of the plan."""
        self._report = report
        self._known: dict[tuple[Mesh, Shardings], Trial] = {}
        self._confirmed: set[tuple[Mesh, Shardings]] = set()
        self._far = _FAR
        self.best: Trial | None = None
        """The best trial so far."""

    @property
    def is_timed(self) -> bool:
        """Whether the step time is minimized."""
        return self._figure in (OBJECTIVES["time"], OBJECTIVES["step"])

    @property
    def is_lean(self) -> bool:
        """Whether memory is minimized, so that less is always better."""
        return self._figure == OBJECTIVES["memory"]

    @property
    def all(self) -> list[Trial]:
        """All trials, in order."""
        return list(self._known.values())

    @property
    def evaluations(self) -> int:
        """How many evaluations were made, with all layers or fewer."""
        return len(self._known) + (self._whole.evaluations if self._whole else 0)

    @property
    def fraction(self) -> float:
        """The fraction of the time that has passed."""
        return min((time.monotonic() - self._start) / max(self._seconds, 1e-9), 1.0)

    def run(
        self, mesh: Mesh, wanted: Iterable[Shardings], *, is_needed: bool = False
    ) -> list[Trial]:
        """Evaluate each of ``wanted`` over ``mesh``, in order; known ones are not repeated.

        Args:
            mesh: the mesh.
            wanted: annotations of the roles.
            is_needed: whether they are evaluated also when the time is up.

        Raises:
            Stop: the time is up, and something has been evaluated.
        """
        listed = list(dict.fromkeys(wanted))
        missing = [each for each in listed if (mesh, each) not in self._known]
        for each in missing:
            if self._allows is not None and not self._allows(mesh, each):
                self._rows[mesh, each] = Evaluation({}, error=_NOT_ALLOWED)
        edits = [self.edit(each) for each in missing if (mesh, each) not in self._rows]
        rows = self._scorer.rows(mesh, edits)
        for shardings in missing:
            if self.best is not None and self.fraction >= 1 and not is_needed:
                rows.close()  # type: ignore[attr-defined]
                raise Stop
            if (mesh, shardings) not in self._rows:
                self._rows[mesh, shardings] = next(rows)
            self._keep(mesh, shardings, self._rows[mesh, shardings])
        return [self._known[mesh, each] for each in listed]

    def confirmed(self, trial: Trial) -> Trial:
        """Return ``trial`` with the peak of the whole program, if that may exceed the limit: it may
        be larger than the extrapolated one, as where ops run in another order with all layers.

        Raises:
            Stop: the time is up.
        """
        key = trial.mesh, trial.shardings
        if self._whole is not None and key not in self._confirmed and self._is_near(trial):
            [whole] = self._whole.run(trial.mesh, [trial.shardings])
            self._confirmed.add(key)
            row = trial.row
            if row.error is None:
                row = replace(row, error=whole.row.error, peak_bytes=whole.row.peak_bytes)
            self._known[key] = self.trial(trial.mesh, trial.shardings, row)
        return self._known[key]

    def is_refuted(self) -> bool:
        """Return whether the best trial turned out not to fit on all layers, although its
        extrapolated peak was far below the limit. If so, it is no longer the best, and from then on
        every peak is :meth:`confirmed`.

        Raises:
            Stop: the time is up.
        """
        if self._far == 0 or self.best is None:
            return False
        far, self._far = self._far, 0.0
        if self.confirmed(self.best).fits or not self.best.fits:
            self._far = far
            return False
        self.best = self.first(self.all, lambda trial: trial.rank)
        return True

    def first(self, trials: Iterable[Trial], key: Callable[[Trial], Any]) -> Trial | None:
        """Return the least of ``trials`` by ``key``, :meth:`confirmed`; ``None`` if there are none.

        An extrapolated peak exceeds that of all layers by little if at all, so the others are
        hardly less.
        """
        queue = [(key(trial), place, trial) for place, trial in enumerate(trials)]
        heapq.heapify(queue)
        ahead = 1
        while queue:
            self._look_ahead([trial for *_, trial in heapq.nsmallest(ahead, queue)])
            _, place, trial = queue[0]
            found = self.confirmed(trial)
            if found is trial:
                return trial
            if key(found) != key(trial):
                ahead = min(ahead * 2, _MOST_AHEAD)
            heapq.heapreplace(queue, (key(found), place, found))
        return None

    def _look_ahead(self, trials: Sequence[Trial]) -> None:
        """Evaluate together, on all layers, those of ``trials`` that need confirmation and use the
        mesh of the first."""
        if self._whole is not None and len(trials) > 1:
            mesh = trials[0].mesh
            near = (trial for trial in trials if trial.mesh == mesh and self._is_near(trial))
            self._whole.run(mesh, [trial.shardings for trial in near])

    def _is_near(self, trial: Trial) -> bool:
        """Whether the peak could exceed the limit, or is minimized."""
        peak = trial.row.peak_bytes
        return self.is_lean or (peak is not None and peak > self._limit * self._far)

    def known(self, mesh: Mesh, shardings: Shardings) -> Trial | None:
        """Return the evaluation of ``shardings`` if there is one."""
        return self._known.get((mesh, shardings))

    def give(self, seconds: float) -> None:
        """Set the time limit to ``seconds`` from the start."""
        self._seconds = seconds

    def edit(self, shardings: Shardings) -> dict[str, str]:
        """Return the session edit for these annotations."""
        return {
            pattern: spec(dims)
            for role, dims in zip(self._roles, shardings, strict=True)
            if dims is not None
            for pattern in role.patterns
        }

    def session(self, trial: Trial, patterns: Mapping[str, str] | None = None) -> Session:
        """Return a session with the annotations of ``trial``, or with ``patterns`` instead."""
        edit = self.edit(trial.shardings) if patterns is None else patterns
        return self._scorer.session(trial.mesh, edit)

    def completed(self, trial: Trial) -> list[Dims]:
        """Return, for each role, the sharding of its first argument or result after propagation;
        nothing for values."""
        session = self.session(trial)
        ports = (*session.result.arguments(), *session.result.results())
        by_name = {port.label or port.name: port for port in reversed(ports)}
        return [
            dims_of(
                next((by_name[name].sharding for name in role.members if name in by_name), None),
                role,
            )
            for role in self._roles
        ]

    def with_patterns(self, trial: Trial, patterns: Mapping[str, str]) -> Trial:
        """Evaluate ``patterns``, which annotate the same roles differently; the row is not kept."""
        [row] = self._scorer.rows(trial.mesh, [patterns])
        return self.trial(trial.mesh, trial.shardings, row)

    def _keep(self, mesh: Mesh, shardings: Shardings, row: Evaluation) -> None:
        trial = self._known[mesh, shardings] = self.trial(mesh, shardings, row)
        if self.best is None or trial.rank < self.best.rank:
            trial = self.confirmed(trial)
        if self.best is None or trial.rank < self.best.rank:
            self.best = trial
        self._report(self.best, self.fraction)

    def trial(self, mesh: Mesh, shardings: Shardings, row: Evaluation) -> Trial:
        """Return ``row``, the figures of ``shardings``, as a trial with its rank."""
        count = sum(
            dims is not None and (role.donor is None or is_within(role, self._roles))
            for role, dims in zip(self._roles, shardings, strict=True)
        )
        figure = getattr(row, self._figure)
        if row.error is not None or figure is None or row.peak_bytes is None:
            return Trial(mesh, shardings, row, (math.inf, math.inf, math.inf, count))
        excess = max(row.peak_bytes - self._limit, 0.0)
        second = row.comm_bytes if self.is_timed else row.serial_seconds
        return Trial(mesh, shardings, row, (excess, float(figure), float(second or 0), count))


def dims_of(sharding: TensorSharding | None, role: Role) -> Dims:
    """Return the axes of each dim of a member of ``role``, without sub-axes."""
    if sharding is None:
        return ((),) * len(role.shape)
    return tuple(tuple(axis.name for axis in dim.axes if axis.is_full) for dim in sharding.dims)


def price_of(current: Trial, leaner: Trial) -> float:
    """Return the cost of a change per byte that it saves of the excess over the limit."""
    return (leaner.rank[1] - current.rank[1]) / (current.rank[0] - leaner.rank[0])


def apart(trials: Iterable[Trial]) -> list[Trial]:
    """Return the best trial of each set of equal figures, the best first. Annotations that
    propagation completes alike are one starting point; refused ones are left out."""
    found: dict[object, Trial] = {}
    accepted = (trial for trial in trials if trial.row.error is None)
    for trial in sorted(accepted, key=lambda trial: trial.rank):
        found.setdefault(trial.rank[:3], trial)
    return list(found.values())
