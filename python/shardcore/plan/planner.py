"""Plans a program: classes, candidates, search, fewest annotations, alternatives."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any

from shardcore._core import Mesh, Result
from shardcore.calculus.collective_time import TimeOptions
from shardcore.calculus.hardware import Hardware
from shardcore.calculus.slices import networked
from shardcore.costs import Cost
from shardcore.costs.links import Links
from shardcore.errors import Diagnostic, PlanError
from shardcore.plan import bounds
from shardcore.plan.alternatives import alternatives
from shardcore.plan.answer import Plan
from shardcore.plan.candidates import candidates
from shardcore.plan.classes import DimClasses
from shardcore.plan.fewest import fewest, patterns, same_as
from shardcore.plan.kinds import Meanings
from shardcore.plan.layouts import Dims
from shardcore.plan.model import Model
from shardcore.plan.pins import pins
from shardcore.plan.program import Program, Sessions
from shardcore.plan.relaxation import seconds_of
from shardcore.plan.roles import Ports, Role, layers, of_arguments, of_results
from shardcore.plan.routed import routed
from shardcore.plan.scorers import Fewer, Whole, fewer_layers
from shardcore.plan.search import Search
from shardcore.plan.settled import settled
from shardcore.plan.trials import Shardings, Stop, Trial, Trials, dims_of
from shardcore.session import Session
from shardcore.units import format_bytes, format_bytes_apart, format_seconds

_RANKING_SHARE = 0.4
"""The part of the time after which no more meshes are ranked by the model."""
_FINALISTS = 3
"""The best that are evaluated on the whole program after a search on fewer layers."""
_SHOWN = 3
"""The values that an error about memory lists."""


_SEARCH_SHARE = 0.75
"""The part of the time after which the search ends, and annotations are removed."""


@dataclass(frozen=True)
class Wanted:
    """What a plan is for."""

    meshes: tuple[Mesh, ...]
    chip: Hardware
    limit: float
    """Bytes that a device has."""
    minimize: str
    seconds: float
    executor: Executor | None
    options: Mapping[str, Any]
    """Those of :func:`shardcore.cost`."""
    progress: Callable[[str, float], object] | None

    @property
    def counting(self) -> dict[str, Any]:
        """Those by which plans are compared: with arguments and results as Shardy completes them,
        since what XLA would shard otherwise is annotated at the end."""
        return {**self.options, "keep_ports": True}

    def links(self) -> Links:
        """Return the links of the chip."""
        return links(self.chip, self.options)


def links(chip: Hardware, options: Mapping[str, Any]) -> Links:
    """Return the links of ``chip`` under options of :func:`shardcore.cost`."""
    timed = TimeOptions(
        options.get("exact", False),
        options.get("efficiency", 1.0),
        options.get("one_way", False),
    )
    chip = networked(chip, options.get("dcn"))
    topology, mapping = options.get("topology"), options.get("mapping")
    return Links(chip, topology, mapping, timed, options.get("slices"))


class Planner:
    """Plans one program."""

    def __init__(self, program: Program, wanted: Wanted) -> None:
        self._program, self._wanted = program, wanted
        self._start = time.monotonic()
        self._ports = program.module.arguments()
        self._check_arguments()
        self._sessions = Sessions(program)
        self._alone = self._unannotated()
        self._roles, self._meanings, self._model = self._read()
        self._bound = self._least()
        whole = Whole(self._sessions, wanted.chip, wanted.executor, wanted.counting)
        self._whole = self._trials = self._started(whole, wanted.seconds * _SEARCH_SHARE)
        fewer = None
        if self._whole.fraction < 1:
            mesh, options = wanted.meshes[0], wanted.counting
            fewer = fewer_layers(program, mesh, self._alone, wanted.chip, wanted.executor, options)
        if fewer is not None:
            self._trials = self._started(fewer, wanted.seconds * _SEARCH_SHARE, self._whole)

    def _started(
        self, scorer: Whole | Fewer, seconds: float, whole: Trials | None = None
    ) -> Trials:
        wanted = self._wanted
        return Trials(
            scorer,
            self._roles,
            wanted.limit,
            wanted.minimize,
            whole=whole,
            start=self._start,
            seconds=seconds,
            report=self._report,
        )

    def plan(self) -> Plan:
        """Search, and return the best.

        Raises:
            PlanError: nothing that was found fits (``does-not-fit``).
        """
        stopped = self._search()
        for trials in (self._trials, self._whole):
            trials.give(self._wanted.seconds)
        try:
            best = self._confirmed(stopped)
            specs = self._specs(best)
        except KeyboardInterrupt:
            best = self._whole.best or self._first()
            specs, stopped = self._whole.edit(best.shardings), "interrupted"
        session = self._program.session(best.mesh)
        session.set(specs)
        return Plan(
            kind=self._meanings.kind_of(best, self._roles),
            mesh=best.mesh,
            specs=specs,
            places=self._places(specs),
            session=session,
            cost=session.cost(self._wanted.chip, **self._wanted.options),
            objective=self._wanted.minimize,
            limit=self._wanted.limit,
            bound=self._bound,
            alternatives=tuple(
                alternatives(self._whole, best, self._roles, self._meanings, self._given())
            ),
            evaluations=len(self._trials.all),
            stopped=stopped,
        )

    def _confirmed(self, stopped: str) -> Trial:
        """The best of what was found, evaluated on the whole program, with fewest annotations.

        Raises:
            PlanError: it does not fit (``does-not-fit``).
        """
        trials, best = self._trials, self._trials.best
        assert best is not None, "the first evaluation is always made"
        if trials is self._whole:
            if not best.fits:
                raise self._too_large(best, stopped)
            return settled(trials, fewest(trials, best, self._roles), self._roles)
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
        """The best of those that were evaluated on the whole program; one is if none was."""
        if self._whole.best is None:
            assert self._trials.best is not None
            self._whole.run(self._trials.best.mesh, [self._trials.best.shardings])
        assert self._whole.best is not None
        return self._whole.best

    def _finalists(self, best: Trial) -> Iterator[Trial]:
        """What is evaluated on the whole program: the best, the leanest, and one of each kind."""
        ranked = sorted(self._trials.all, key=lambda trial: trial.rank)
        yield best
        yield from ranked[:_FINALISTS]
        yield min(ranked, key=lambda trial: (trial.row.peak_bytes or math.inf, trial.rank))
        seen = {self._meanings.kind_of(best, self._roles)}
        for trial in ranked:
            kind = self._meanings.kind_of(trial, self._roles)
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

    def _places(self, specs: Mapping[str, str]) -> dict[str, str]:
        """Where the values come from that are constrained."""
        values = [role for role in self._roles if role.is_value and role.name in specs]
        return {role.name: role.place for role in sorted(values, key=lambda role: role.name)}

    def _search(self) -> str:
        """Search, and return why it ended."""
        wanted = self._wanted
        try:
            ranked = candidates(
                wanted.meshes,
                self._model,
                self._meanings,
                0.0 if wanted.minimize == "memory" else wanted.limit,
                lambda: self._trials.fraction > _RANKING_SHARE,
            )
            search = Search(self._trials, self._roles, self._meanings)
            search.start(ranked, self._given_by_role())
            search.improve()
            if self._trials.is_refuted():
                search.improve()
        except Stop:
            return "seconds"
        except KeyboardInterrupt:
            if self._trials.best is None:
                raise
            return "interrupted"
        return "done"

    def _check_arguments(self) -> None:
        """Check that there is something to shard, and that the arguments alone fit.

        Raises:
            PlanError: there is not, or they do not.
        """
        if not any(port.shape for port in self._ports if port.index not in self._program.kept):
            message = "no argument of the program has dims that could be sharded"
            raise PlanError(Diagnostic("nothing-to-plan", message, "plan a function of arrays"))
        least = bounds.least_bytes(self._ports, self._wanted.meshes)
        if least > self._wanted.limit:
            taken, has = format_bytes_apart(least, self._wanted.limit)
            message = (
                f"the arguments alone take {taken} of each device however they are sharded, and it "
                f"has {has}"
            )
            largest = sorted(self._ports, key=lambda port: -(port.bytes or 0))[:_SHOWN]
            raise _does_not_fit(
                message,
                [(port.label or port.name, port.bytes or 0) for port in largest],
            )

    def _unannotated(self) -> Cost:
        """The cost of the program without annotations, also those that are kept."""
        first = self._sessions[self._wanted.meshes[0]]
        bare = first._copy(dict.fromkeys(first.annotations))
        return bare.cost(self._wanted.chip, **self._wanted.counting)

    def _read(self) -> tuple[list[Role], Meanings, Model]:
        """The roles of the arguments, what their dims mean, and the model of the program."""
        first = self._sessions[self._wanted.meshes[0]]
        trips = [loop.trips or 1 for loop in self._alone.loops]
        program = self._program
        unnamed = [port.index for port in self._ports if not port.label]
        classes = DimClasses(_plain(first), layers(self._ports), unnamed, trips)
        given = Ports(self._ports, program.kept, classes.arguments)
        results = Ports(program.module.results(), program.kept_results, classes.results)
        arguments = of_arguments(given, results)
        meanings = Meanings(classes.work, arguments)
        found = [*arguments, *of_results(given, results, meanings.batch)]
        values = classes.first_values()
        found += pins(program.module, values, meanings.batch, meanings.is_inside)
        batch, experts = meanings.batch, meanings.experts
        found += routed(program.module, classes.ops(), classes.of, batch, experts)
        model = Model(
            classes.work,
            arguments,
            self._wanted.chip,
            self._wanted.links(),
            self._alone.peak_bytes,
        )
        return found, meanings, model

    def _least(self) -> float:
        """A figure that no plan is below."""
        if self._wanted.minimize == "memory":
            return bounds.least_bytes(self._ports, self._wanted.meshes)
        if self._wanted.minimize == "slowest-link":
            return 0.0
        wanted = self._wanted
        module = _plain(self._sessions[wanted.meshes[0]])._as_xla(keep_ports=True)[0]
        seconds = seconds_of(wanted.chip, wanted.options) if wanted.minimize == "time" else None
        return bounds.least(module, self._alone, wanted.meshes, wanted.limit, seconds)

    def _given(self) -> Trial | None:
        """What the annotations that the program came with lead to; ``None`` if it has none."""
        given, mesh = self._program.given, self._program.mesh
        if not given.annotations or mesh is None:
            return None
        [row] = given.evaluate([{}], self._wanted.chip, **self._wanted.options)
        return self._trials.trial(mesh, (None,) * len(self._roles), row)

    def _given_by_role(self) -> tuple[Mesh, Shardings] | None:
        """The annotations that the program came with, as far as the members of a role have the
        same; ``None`` if they are over another mesh."""
        mesh, annotations = self._program.mesh, self._program.given.annotations
        if not annotations or mesh is None or mesh not in self._wanted.meshes:
            return None

        def of(role: Role) -> Dims | None:
            first, *others = {annotations.get(name) for name in role.members} or {None}
            return None if others or first is None else dims_of(first, role)

        return mesh, tuple(map(of, self._roles))

    def _report(self, best: Trial | None, fraction: float) -> None:
        """Tell the progress: the best so far, and the bound."""
        if self._wanted.progress is None or best is None:
            return
        shown = format_seconds if self._wanted.minimize == "time" else format_bytes
        value = shown(best.rank[1]) if math.isfinite(best.rank[1]) else "nothing"
        what = f"{value}, no less than {shown(self._bound)}"
        if not best.fits:
            what = "nothing fits yet"
        self._wanted.progress(f"{what}, tried {len(self._trials.all)}", fraction)

    def _too_large(self, best: Trial, stopped: str) -> PlanError:
        """The error that ``best``, which takes least memory, does not fit."""
        if best.row.error is not None:
            raise best.row.error
        session = self._sessions[best.mesh]._copy(self._trials.edit(best.shardings))
        cost = session.cost(self._wanted.chip, **self._wanted.counting)
        taken, has = format_bytes_apart(cost.peak_bytes, self._wanted.limit)
        message = f"no plan that was found takes less than {taken} of each device, and it has {has}"
        labels = {port.name: port.label or port.name for port in self._ports}
        largest = sorted(cost.live_at_peak, key=lambda each: -each.bytes)[:_SHOWN]
        return _does_not_fit(
            message,
            [(labels.get(each.name, each.name), each.bytes) for each in largest],
            "devices, memory or seconds" if stopped == "seconds" else "devices or memory",
        )


def _plain(session: Session) -> Result:
    result = session.result
    return result if isinstance(result, Result) else result.result


def _does_not_fit(
    message: str, largest: list[tuple[str, int]], more: str = "devices or memory"
) -> PlanError:
    listed = ", ".join(f"{name} {format_bytes(num_bytes)}" for name, num_bytes in largest)
    hint = f"the largest values: {listed}; give more {more}"
    return PlanError(Diagnostic("does-not-fit", message, hint))
