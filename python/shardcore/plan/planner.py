"""Plans a program: classes, candidates, search, fewest annotations, alternatives."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from shardcore._core import Mesh
from shardcore.cached_property import cached_property
from shardcore.errors import PlanError
from shardcore.plan import bounds
from shardcore.plan.alternatives import alternatives
from shardcore.plan.answer import Plan
from shardcore.plan.candidates import Candidate, candidates
from shardcore.plan.fewest import fewest, patterns, same_as
from shardcore.plan.least_memory import leaner, leanest
from shardcore.plan.model import Model
from shardcore.plan.objective import Wanted
from shardcore.plan.placement import Placement
from shardcore.plan.program import plain
from shardcore.plan.reading import Reading
from shardcore.plan.refusal import refusal
from shardcore.plan.scorers import Fewer, Whole
from shardcore.plan.search import Search
from shardcore.plan.settled import settled
from shardcore.plan.stated import Stated, constraints_of, statements
from shardcore.plan.trials import Rows, Shardings, Stop, Trial, Trials
from shardcore.session import Evaluation, Session
from shardcore.units import format_bytes, format_seconds

if TYPE_CHECKING:
    from shardcore.pipeline.layers import Layers

_RANKING_SHARE = 0.4
"""The part of the time after which the model ranks no more meshes."""
_FINALISTS = 3
"""How many of the best are evaluated on the whole program after a search on fewer layers."""
_LEANER = 0.9
"""Even a longer search is assumed to find nothing below this part of its result."""
_FEWEST_SHARE = 0.9
"""The part of the time after which no more annotations are removed."""
_VARIED = 4
"""How many of the first layouts are varied."""
_VARIED_STAGES = 32
"""How many of them are for stages, whose layouts are searched no further."""
_SEARCH_SHARE = 0.75
"""The part of the time after which the search ends, and annotations are removed."""


class Planner:
    """Plans one program."""

    def __init__(self, reading: Reading, wanted: Wanted, start: float | None = None) -> None:
        """Prepare a plan of the program that was read; its time begins at ``start``, as
        ``time.monotonic()`` says, or when it was read.

        Raises:
            PlanError: nothing fits (``does-not-fit``).
        """
        self._program, self._wanted = reading.program, wanted
        self._by_role = reading.given_by_role(wanted.meshes)
        self._start = reading.start if start is None else start
        self._ports, self._sessions, self._alone = reading.ports, reading.sessions, reading.alone
        self._roles, self._meanings = reading.roles, reading.meanings
        links = wanted.links()
        self._model = Model(
            reading.work, reading.arguments, wanted.chip, links, self._alone.peak_bytes
        )
        self._lean: Trial | None = None
        self._rows: dict[bool, Rows] = {False: {}, True: {}}
        self._scorers = reading.scorers(wanted, self._start + wanted.seconds * _SEARCH_SHARE)
        self._whole, self._trials = self._started(wanted.limit, wanted.minimize, self._report)
        if bounds.least_bytes(self._ports, wanted.meshes) > wanted.limit:
            raise self._too_large(self._leanest(), "done")
        likely = bounds.likely_bytes(self._alone, self._ports, wanted.meshes)
        if likely > wanted.limit:
            self._doubt(likely)

    def _started(
        self, limit: float, minimize: str, report: Callable[[Trial | None, float], object]
    ) -> tuple[Trials, Trials]:
        """The evaluations on the whole program, and those of the search: the same, or on fewer
        layers."""

        def of(scorer: Whole | Fewer, whole: Trials | None = None) -> Trials:
            return Trials(
                scorer,
                self._roles,
                limit,
                minimize,
                rows=self._rows[whole is None],
                whole=whole,
                allows=self._wanted.limits.allows(self._roles, self._meanings),
                start=self._start,
                seconds=self._wanted.seconds * _SEARCH_SHARE,
                report=report,
            )

        own, fewer = self._scorers
        whole = of(own)
        return whole, whole if fewer is None else of(fewer, whole)

    def plan(self) -> Plan:
        """Search, and return the best plan.

        Raises:
            PlanError: nothing fits (``does-not-fit``).
        """
        stopped = self._search()
        self._give(0.0 if stopped == "interrupted" else self._wanted.seconds * _FEWEST_SHARE)
        try:
            best = self._confirmed(stopped)
            specs = self._specs(best)
        except KeyboardInterrupt:
            best = self._whole.best or self._first()
            specs, stopped = self._whole.edit(best.shardings), "interrupted"
        return self._answer(best, specs, stopped)

    def finalists(self) -> list[Trial]:
        """Evaluate the first layouts, and return of each use of the axes of each mesh the fastest
        and those with the smallest arguments and peak, the fastest first; no local search is
        made."""
        search = Search(self._trials, self._roles, self._meanings)
        with contextlib.suppress(Stop):
            ranked = self._ranked(math.inf)
            search.start(ranked, self._by_role, self._doubt, every_usual=True)
            search.vary(_VARIED_STAGES)
        return search.best_of_uses()

    def trial(self, mesh: Mesh, shardings: Shardings) -> Trial:
        """Evaluate ``shardings`` on the whole program."""
        [found] = self._whole.run(mesh, [shardings])
        return found

    def has_faster(self, than: float) -> bool:
        """Whether something that takes fewer seconds was evaluated that does not fit."""
        return any(not each.fits and each.rank[1] < than for each in self._trials.all)

    def kind_of(self, trial: Trial) -> str:
        """Return the kind of parallelism of ``trial``."""
        return self._meanings.kind_of(trial, self._roles)

    def edit(self, trial: Trial) -> dict[str, str]:
        """Return the annotations of ``trial`` by pattern."""
        return self._whole.edit(trial.shardings)

    def session(self, trial: Trial) -> Session:
        """Return the whole program with the annotations of ``trial``."""
        return self._whole.session(trial)

    def layers(self, trial: Trial) -> Layers:
        """Return the layers of the program with the annotations of ``trial``."""
        whole, fewer = self._scorers
        edit = self.edit(trial)
        found = fewer and fewer.layers(trial.mesh, edit)
        return found or whole.layers(trial.mesh, edit)

    def plan_of(self, trial: Trial) -> Plan:
        """Return the plan of ``trial``, without the annotations that propagation implies."""
        self._give(time.monotonic() - self._start + self._wanted.seconds * (1 - _SEARCH_SHARE))
        best = self.trial(trial.mesh, trial.shardings)
        best = fewest(self._whole, best, self._roles, Trial.is_like)
        best = settled(self._whole, best, self._roles)
        return self._answer(best, self.edit(best), "done")

    def _give(self, seconds: float) -> None:
        for trials in (self._trials, self._whole):
            trials.give(seconds)

    def _answer(self, best: Trial, specs: dict[str, str], stopped: str) -> Plan:
        session, said = self._stated(best, specs)
        others = alternatives(self._whole, best, self._roles, self._meanings, self._given())
        return Plan(
            kind=self.kind_of(best),
            mesh=best.mesh,
            specs=specs,
            places={each.target: each.location for each in said.constraints},
            session=session,
            cost=session.cost(self._wanted.chip, **self._wanted.options),
            objective=self._wanted.minimize,
            limit=self._wanted.limit,
            bound=self._bound,
            alternatives=tuple(others),
            evaluations=len(self._trials.all),
            stopped=stopped,
            stated=said,
            program=self._program.source,
            keeps_constraints=self._program.keeps_values,
            placement=Placement.of(self._wanted.links().topology(best.mesh)),
            cost_options=self._wanted.options,
        )

    def _confirmed(self, stopped: str) -> Trial:
        """The best trial, evaluated on the whole program, with the fewest annotations.

        Raises:
            PlanError: it does not fit (``does-not-fit``).
        """
        trials, best = self._trials, self._trials.best
        assert best is not None, "the first evaluation is always made"
        if trials is self._whole:
            lean = best if best.fits else self._leanest()
            found = trials.trial(lean.mesh, lean.shardings, lean.row)
            if not found.fits:
                raise self._too_large(min(best, found, key=Trial.peak), stopped)
            return settled(trials, fewest(trials, found, self._roles), self._roles)
        best = fewest(trials, best, self._roles)
        try:
            for each in self._finalists(best):
                self._whole.run(each.mesh, [each.shardings])
        except Stop:
            pass
        found = self._first()
        if not found.fits:
            raise self._too_large(found, stopped)
        own = self._whole.known(best.mesh, best.shardings)
        if own is not None and own.is_as_good_as(found):
            found = own
        else:
            found = fewest(self._whole, found, self._roles)
        return settled(self._whole, found, self._roles)

    def _first(self) -> Trial:
        """The best trial on the whole program; if there is none yet, one is evaluated."""
        if self._whole.best is None:
            assert self._trials.best is not None
            self._whole.run(self._trials.best.mesh, [self._trials.best.shardings])
        assert self._whole.best is not None
        return self._whole.best

    def _finalists(self, best: Trial) -> Iterator[Trial]:
        """The trials for the whole program: the best, the leanest, and one of each kind."""
        ranked = sorted(self._trials.all, key=lambda trial: trial.rank)
        yield best
        yield from ranked[:_FINALISTS]
        yield min(ranked, key=lambda trial: (trial.row.peak_bytes or math.inf, trial.rank))
        seen = {self.kind_of(best)}
        for trial in ranked:
            kind = self.kind_of(trial)
            if kind not in seen:
                seen.add(kind)
                yield trial

    def _specs(self, best: Trial) -> dict[str, str]:
        """The annotations of ``best`` by pattern."""
        ports = (*self._ports, *self._program.module.results())
        names = [port.label or port.name for port in ports]
        found = patterns(self._trials, best, self._roles, names)
        if self._trials is not self._whole and self._whole.fraction < 1:
            whole = self._whole.edit(best.shardings)
            return found if same_as(self._whole, best, whole)(found) else whole
        return found

    def _stated(self, best: Trial, specs: Mapping[str, str]) -> tuple[Session, Stated]:
        """The most complete statement of the plan that costs no more, and the session with it; with
        everything stated if XLA would shard ports that ``specs`` leave open differently."""
        values = sorted(role.name for role in self._roles if role.is_value and role.name in specs)
        session = self._program.session(best.mesh)
        session.set(specs)
        choices = statements(session, specs, constraints_of(session, self._program.module, values))

        def figures(said: Stated) -> Evaluation:
            [row] = session.evaluate([said.edit()], self._wanted.chip, **self._wanted.options)
            return replace(row, edit={})

        for said in choices[:-1]:
            row = figures(said)
            if not best.is_better_than(self._whole.trial(best.mesh, best.shardings, row)):
                break
        else:
            return session, choices[-1]
        if self._whole.fraction >= 1 or row != figures(choices[-1]):
            session.set(said.edit())
        return session, said

    def _search(self) -> str:
        """Search, and return why the search ended."""
        wanted = self._wanted
        try:
            limit = 0.0 if wanted.minimize == "memory" else wanted.limit
            search = Search(self._trials, self._roles, self._meanings)
            search.start(self._ranked(limit), self._by_role, self._doubt)
            search.vary(_VARIED)
            best = self._trials.best
            assert best is not None, "the first evaluation is always made"
            if not best.is_hopeless:
                search.improve()
            if not (self._trials.best or best).fits:
                lean = self._leanest()
                self._trials.run(lean.mesh, [lean.shardings])
                self._doubt()
                search.improve()
            if self._trials.is_refuted():
                search.improve()
            if wanted.minimize == "memory":
                leaner(self._trials, self._within)
            return "done"
        except Stop:
            return "seconds"
        except KeyboardInterrupt:
            if self._trials.best is None:
                raise
            return "interrupted"

    def _within(self, limit: float) -> Trial | None:
        """The fastest trial found within ``limit`` bytes."""
        shown = self._trials
        _, trials = self._started(limit, "time", lambda _, part: self._report(shown.best, part))
        search = Search(trials, self._roles, self._meanings)
        search.start(self._ranked(limit), self._by_role, lambda: None)
        search.vary(_VARIED)
        search.improve()
        return trials.best

    def _ranked(self, limit: float) -> list[Candidate]:
        """Layouts ranked by the model, those within ``limit`` first."""
        return candidates(
            self._wanted.meshes,
            self._model,
            self._meanings,
            limit,
            lambda: self._trials.fraction > _RANKING_SHARE,
        )

    @cached_property
    def _bound(self) -> float:
        """A figure that no plan is below."""
        first = self._sessions[self._wanted.meshes[0]]
        return bounds.of(
            self._wanted,
            self._alone,
            self._ports,
            lambda: plain(first)._as_xla(keep_ports=True)[0],
        )

    def _given(self) -> Trial | None:
        """The evaluation of the program's own annotations; ``None`` if it has none."""
        given, mesh = self._program.given, self._program.mesh
        if not given.annotations or mesh is None:
            return None
        [row] = given.evaluate([{}], self._wanted.chip, **self._wanted.options)
        return self._trials.trial(mesh, (None,) * len(self._roles), row)

    def _report(self, best: Trial | None, fraction: float) -> None:
        """Report the progress: the best plan so far, and the bound."""
        if self._wanted.progress is None or best is None:
            return
        shown = format_seconds if self._trials.is_timed else format_bytes
        value = shown(best.rank[1]) if math.isfinite(best.rank[1]) else "nothing"
        bound = f"{value}, no less than {shown(self._bound)}"
        what = bound if best.fits else "nothing fits yet"
        self._wanted.progress(f"{what}, tried {len(self._trials.all)}", fraction)

    def _doubt(self, likely: float = math.inf) -> None:
        """Check that a search for a plan that fits is not hopeless.

        Args:
            likely: bytes that a plan is unlikely to go below.

        Raises:
            PlanError: a short search for the least memory finds far more than the limit, or finds
                more than it and the limit is below ``likely`` (``does-not-fit``).
        """
        least = self._leanest()
        peak = least.row.peak_bytes
        if peak is not None and peak * (1 if likely <= peak else _LEANER) > self._wanted.limit:
            raise self._too_large(least, "done")

    def _leanest(self) -> Trial:
        """The trial with least memory, by a short search that does not depend on the limit, so that
        planning with that much memory finds it again."""
        if self._lean is None:
            _, trials = self._started(math.inf, "memory", lambda best, fraction: None)
            search = Search(trials, self._roles, self._meanings)
            ranked, num_ops = self._ranked(0.0), self._program.module.num_ops
            self._lean = leanest(trials, search, ranked, self._by_role, num_ops)
        return self._lean

    def _too_large(self, found: Trial, stopped: str) -> PlanError:
        """The error that nothing fits. ``found`` has the least memory so far; a search for the
        least memory may find less, which planning with that much memory finds again."""
        least, wanted = self._leanest(), self._wanted
        if stopped != "done" and (found.row.peak_bytes or math.inf) < (
            least.row.peak_bytes or math.inf
        ):
            least = found
        if least.row.error is not None:
            raise least.row.error
        session = self._sessions[least.mesh]._copy(self._trials.edit(least.shardings))
        return refusal(
            session.cost(wanted.chip, **wanted.counting),
            wanted.limit,
            bounds.least_bytes(self._ports, wanted.meshes),
            self._ports,
            "devices, memory or seconds" if stopped == "seconds" else "devices or memory",
        )
