"""Finds the best annotations: exact evaluations of what the model ranks first, then local search.

Local search changes one thing at a time and keeps what is better: an axis on the dims of a class,
in all arguments that have one, or an axis on one role. Everything is in a fixed order, so that the
outcome depends on the clock only if the time is up.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence

from shardcore._core import Mesh
from shardcore.plan.candidates import Candidate, chosen
from shardcore.plan.kinds import Meanings, large
from shardcore.plan.layouts import Dims, Layout, or_none, with_axis, without_axis
from shardcore.plan.roles import Role, bytes_of
from shardcore.plan.trials import Shardings, Trial, Trials, apart, price_of

_STARTS = 2
"""The best evaluations that local search starts from."""
_STARTS_BY_BYTES = 3
"""Those that it starts from where not the step but memory or bytes are least."""
_MOST_STARTS = 3
"""The evaluations that it starts from while nothing fits."""
_STARTS_BOUND = 3
"""Those that it starts from that do not fit, if something much better than the best does not
either."""
_MUCH = 0.2
"""How much better than the best that is."""
_STARTS_OVER = 3
"""Those that it starts from that are better than the best, but do not fit."""
_STARTS_LEAN = 4
"""The layouts that a search for the least memory starts from."""
_CANDIDATES_SHARE = 0.5
"""The part of the time after which local search starts, if something that people write fits."""


class Search:
    """A search over the annotations of ``roles``."""

    def __init__(self, trials: Trials, roles: Sequence[Role], meanings: Meanings) -> None:
        self._trials, self._roles, self._meanings = trials, roles, meanings
        self._large = large(roles, meanings)
        """Whether a role is worth an annotation; others follow by propagation."""
        small = (role for role, large in zip(roles, self._large, strict=True) if not large)
        self._small_bytes = bytes_of(small)
        self._last: tuple[Trial, list[Dims]] | None = None

    def start(
        self,
        ranked: Sequence[Candidate],
        given: tuple[Mesh, Shardings] | None,
        doubt: Callable[[], object],
    ) -> None:
        """Evaluate what local search starts from.

        Args:
            ranked: layouts, as the model ranks them.
            given: annotations beside them.
            doubt: called once if the first take far more than the limit; it may raise.

        Raises:
            Stop: the time is up.
        """
        if given is not None:
            self._run(given[0], [given[1]])
        for count, candidate in enumerate(chosen(ranked, self._meanings)):
            best = self._trials.best
            if count == _STARTS_LEAN and best is not None and best.is_hopeless:
                doubt()
            is_late = self._trials.fraction > _CANDIDATES_SHARE
            if best is not None and is_late and (best.fits or not candidate.is_usual):
                break
            self._evaluate(candidate)

    def _evaluate(self, candidate: Candidate) -> None:
        """Evaluate a layout, and what people add to it."""
        layout = candidate.layout
        plain = self.shardings(candidate)
        pinned = self._pinned(plain, candidate)
        along = self._pinned(plain, candidate, along_all=True)
        exchanged = (self._exchanged(each, layout) for each in (plain, pinned))
        tried = self._run(layout.mesh, [plain, pinned, along, *exchanged])
        if self._trials.is_lean or not any(trial.fits for trial in tried):
            self._run(layout.mesh, [self._lean(plain, layout)])

    def improve(self) -> None:
        """Search from the best of what has been evaluated until nothing better is found.

        Raises:
            Stop: the time is up.
        """
        enough = _STARTS if self._trials.is_timed else _STARTS_BY_BYTES
        starts = apart(self._trials.all)
        for count, start in enumerate(starts[:_MOST_STARTS]):
            best = self._trials.best
            if count >= enough and best is not None and (best.fits or best.is_hopeless):
                break
            self._improve(start)
        self._slim_better()
        best = self._trials.best
        for start in [start for start in starts[enough:] if not start.fits][:_STARTS_BOUND]:
            if self._is_bound():
                self._improve(start)
        if self._trials.best is not best:
            self._slim_better()

    def leanest(
        self,
        ranked: Sequence[Candidate],
        given: tuple[Mesh, Shardings] | None,
        most: int,
    ) -> None:
        """Search for the least memory with about ``most`` evaluations: of ``given`` and the layouts
        that take least by the model, of those that people write and of all, then of others, then
        from the best of them.

        Raises:
            Stop: the time is up.
        """
        trials = self._trials
        if given is not None:
            self._run(given[0], [given[1]])
        usual = [each for each in ranked if each.is_usual]
        first = (each for both in itertools.zip_longest(usual, ranked) for each in both if each)
        starts = dict.fromkeys(
            (*itertools.islice(first, 2 * _STARTS_LEAN), *chosen(ranked, self._meanings))
        )
        for count, candidate in enumerate(starts):
            if count >= _STARTS_LEAN and 2 * trials.evaluations >= most:
                break
            self._evaluate(candidate)
        for start in apart(trials.all)[:_STARTS_BY_BYTES]:
            self._improve(start, most - trials.evaluations)

    def _slim_better(self) -> None:
        """Slim what is better than the best, but does not fit."""
        started: set[tuple[Mesh, Shardings]] = set()
        for _ in range(_STARTS_OVER):
            over = next((t for t in self._over() if (t.mesh, t.shardings) not in started), None)
            if over is None:
                break
            started.add((over.mesh, over.shardings))
            self._slim(over)

    def _is_bound(self) -> bool:
        """Whether something much better than the best takes little more than the limit."""
        best = self._trials.best
        assert best is not None, "something was evaluated"
        most = best.rank[1] * (1 - _MUCH)
        return any(trial.rank[1] < most and not trial.is_hopeless for trial in self._over())

    def _over(self) -> list[Trial]:
        """What is better than the best but does not fit, what fits best first."""
        best = self._trials.best
        if best is None or not best.fits:
            return []
        better = (trial for trial in self._trials.all if trial.rank[1] < best.rank[1])
        return apart(trial for trial in better if not trial.fits)

    def _run(self, mesh: Mesh, wanted: Iterable[Shardings]) -> list[Trial]:
        """Evaluate each of ``wanted``, with results sharded as the arguments whose memory they
        take."""
        return self._trials.run(mesh, map(self._tied, wanted))

    def _tied(self, shardings: Shardings) -> Shardings:
        return tuple(
            dims if role.donor is None else shardings[role.donor]
            for role, dims in zip(self._roles, shardings, strict=True)
        )

    def shardings(self, candidate: Candidate) -> Shardings:
        """Return the annotations of a layout: those of roles that it shards."""
        return tuple(
            or_none(candidate.layout.of(role.classes, role.shape, even=True))
            if large and role.what == "argument"
            else None
            for role, large in zip(self._roles, self._large, strict=True)
        )

    def _pinned(
        self, shardings: Shardings, candidate: Candidate, *, along_all: bool = False
    ) -> Shardings:
        """``shardings`` with activations constrained by their batch, if its axes also shard
        something else, no argument has it, or people write the layout; ``along_all``: along the
        other axes of the layout too, so that what they shard need not be gathered where the
        constraint is."""
        batch, layout = self._meanings.batch, candidate.layout
        least = 0 if self._meanings.is_inside or candidate.is_usual else 1
        if not any(batch in classes and len(classes) > least for classes in layout.axes):
            return shardings
        axes = ((batch,) if batch in c else c if along_all else () for c in layout.axes)
        whole = Layout(layout.mesh, tuple(axes))
        return tuple(
            or_none(whole.of(role.classes, role.shape, even=True)) if role.what == "begun" else dims
            for role, dims in zip(self._roles, shardings, strict=True)
        )

    def _exchanged(self, shardings: Shardings, layout: Layout) -> Shardings:
        """``shardings`` with what is sent to experts constrained by them, and what comes back by
        its batch, along the axes that shard both."""
        batch, experts = self._meanings.batch, self._meanings.experts
        if not any(map(self._meanings.exchanges, layout.axes)):
            return shardings
        back = [(batch,) if batch in classes else () for classes in layout.axes]
        sent = [
            (*(number for number in classes if number in experts), *own)
            for classes, own in zip(layout.axes, back, strict=True)
        ]
        layouts = {
            "sent": Layout(layout.mesh, tuple(sent)),
            "returned": Layout(layout.mesh, tuple(back)),
        }
        return tuple(
            or_none(layouts[role.what].of(role.classes, role.shape, even=True))
            if role.what in layouts
            else dims
            for role, dims in zip(self._roles, shardings, strict=True)
        )

    def _lean(self, shardings: Shardings, layout: Layout) -> Shardings:
        """``shardings`` with each argument that has an annotation cut along all axes that divide
        one of its dims, those without axes first."""
        found = list(shardings)
        for index, role in enumerate(self._roles):
            for axis in layout.mesh.axes:
                dims = found[index]
                if dims is None or any(axis.name in axes for axes in dims):
                    continue
                for dim in sorted(range(len(dims)), key=lambda dim: len(dims[dim])):
                    moved = with_axis(dims, role.shape, layout.mesh, axis.name, dim)
                    if moved is not None:
                        found[index] = moved
                        break
        return tuple(found)

    def _slim(self, start: Trial) -> None:
        """Save memory until it fits, each time by the change of all that costs least for what it
        saves, as long as it is better than what fits; then, and from the start, improve it."""
        current, best = self._trials.confirmed(start), self._trials.best
        assert best is not None, "the start is evaluated"
        while not current.fits:
            tried = (
                each
                for what in self._parts(current)
                for each in self._run(current.mesh, self._moves(current, what))
            )
            found = self._cheapest(current, tried, best)
            if found is None:
                break
            current = found
        else:
            self._improve(current)
        self._improve(start)

    def _cheapest(self, current: Trial, tried: Iterable[Trial], best: Trial) -> Trial | None:
        """Of ``tried``, what costs least for a byte that it saves of ``current``, if it is better
        than ``best``."""

        def price(trial: Trial) -> float:
            is_leaner = trial.rank[0] < current.rank[0] and trial.rank[1] < best.rank[1]
            return price_of(current, trial) if is_leaner else math.inf

        found = self._trials.first((t for t in tried if price(t) < math.inf), price)
        return None if found is None or price(found) == math.inf else found

    def _improve(self, start: Trial, most: float = math.inf) -> None:
        """Change one thing at a time until no change of what is best by then makes it better, or
        ``most`` changes have been evaluated."""
        current = self._trials.confirmed(start)
        most += self._trials.evaluations
        failed: set[str | int] = set()
        while self._trials.evaluations < most:
            what = next((each for each in self._parts(current) if each not in failed), None)
            if what is None:
                return
            tried = self._run(current.mesh, self._moves(current, what))
            better = (trial for trial in tried if trial.is_better_than(current))
            best = self._trials.first(better, lambda trial: trial.rank)
            if best is not None and best.is_better_than(current):
                current = best
                failed.clear()
            else:
                failed.add(what)

    def _parts(self, trial: Trial) -> Iterator[str | int]:
        """What can be changed of the annotations of ``trial``: axes by name, what they shard
        everywhere, then roles by number, the largest first. Small roles come before them, where
        these alone may make it fit."""
        ordered = sorted(
            (index for index, role in enumerate(self._roles) if role.what != "next"),
            key=lambda index: -self._roles[index].bytes,
        )
        if 0 < trial.rank[0] <= 2 * self._small_bytes:
            yield from (index for index in ordered if not self._large[index])
        yield from (axis.name for axis in trial.mesh.axes if axis.size > 1)
        for index in ordered:
            is_set = trial.shardings[index] is not None
            if self._large[index] and (is_set or self._is_heavy(index)):
                yield index

    def _moves(self, trial: Trial, what: str | int) -> list[Shardings]:
        """The changes of one of :meth:`_parts`."""
        completed = self._completed(trial)
        if isinstance(what, int):
            axes = [axis.name for axis in trial.mesh.axes if axis.size > 1]
            moved = (self._on_role(trial, completed[what], axis, what) for axis in axes)
            return list(itertools.chain.from_iterable(moved))
        found = (
            moved
            for number in self._meanings.considered
            for moved in (
                self._on_class(trial, completed, what, number),
                self._off_class(trial, what, number),
            )
        )
        return [moved for moved in map(self._tied, found) if moved != trial.shardings]

    def _completed(self, trial: Trial) -> list[Dims]:
        """How propagation shards the roles; that of the trial asked for last is remembered."""
        if self._last is None or self._last[0] is not trial:
            self._last = trial, self._trials.completed(trial)
        return self._last[1]

    def _is_heavy(self, index: int) -> bool:
        """Whether a role without annotation is worth an attempt of its own."""
        return self._roles[index].bytes * 50 >= bytes_of(self._roles)

    def _on_class(
        self, trial: Trial, completed: Sequence[Dims], axis: str, number: int
    ) -> Shardings:
        """Shard all dims of a class along ``axis``, and no other dims of the same roles."""
        found = list(trial.shardings)
        for index, role in enumerate(self._roles):
            if self._large[index] and number in role.classes and role.what == "argument":
                dim = role.classes.index(number)
                moved = with_axis(
                    found[index] or completed[index], role.shape, trial.mesh, axis, dim
                )
                if moved is not None:
                    found[index] = moved
        return tuple(found)

    def _off_class(self, trial: Trial, axis: str, number: int) -> Shardings:
        """Remove ``axis`` from the dims of a class."""
        found = list(trial.shardings)
        for index, role in enumerate(self._roles):
            dims = found[index]
            if dims is not None and any(
                axis in axes and known == number
                for axes, known in zip(dims, role.classes, strict=True)
            ):
                found[index] = without_axis(dims, axis)
        return tuple(found)

    def _on_role(self, trial: Trial, completed: Dims, axis: str, index: int) -> Iterator[Shardings]:
        """Move ``axis`` to each other dim of one role, and remove it. Where no axis is left, others
        decide, or it stays whole."""
        role, dims = self._roles[index], trial.shardings[index]
        start = dims or completed
        options: list[Dims | None] = [
            moved
            for dim in range(len(role.shape))
            if (moved := with_axis(start, role.shape, trial.mesh, axis, dim))
            not in (None, completed)
        ]
        if any(axis in axes for axes in start):
            options.append(without_axis(start, axis))
            if options[-1] is None:
                options.append(((),) * len(start))
        for each in options:
            if each != dims:
                yield (*trial.shardings[:index], each, *trial.shardings[index + 1 :])
