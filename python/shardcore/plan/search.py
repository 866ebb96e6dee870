"""Finds the best annotations: exact evaluations of the model's best layouts, then local search.

Local search changes one thing at a time and keeps improvements: an axis on the dims of a class, in
all arguments that have one, or an axis on one role. Everything is in a fixed order, so the outcome
depends on timing only if the time runs out.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from shardcore._core import Mesh
from shardcore.plan.candidates import Candidate, chosen
from shardcore.plan.kinds import Meanings, large
from shardcore.plan.layouts import Dims, with_axis, without_axis
from shardcore.plan.roles import Role, bytes_of
from shardcore.plan.trials import Shardings, Trial, Trials, apart, price_of
from shardcore.plan.written import Written

_STARTS = 2
"""How many of the best evaluations local search starts from."""
_STARTS_BY_BYTES = 3
"""How many it starts from if memory or bytes are minimized."""
_MOST_STARTS = 3
"""How many it starts from while nothing fits."""
_STARTS_BOUND = 3
"""How many it starts from that do not fit, if one that is much better than the best does not fit
either."""
_MUCH = 0.2
"""By how much it has to be better."""
_STARTS_OVER = 3
"""How many it starts from that are better than the best, but do not fit."""
_STARTS_LEAN = 4
"""How many layouts a search for the least memory starts from."""
_CANDIDATES_SHARE = 0.5
"""The part of the time after which local search starts, if a commonly written layout fits."""


class Search:
    """A search over the annotations of ``roles``."""

    def __init__(self, trials: Trials, roles: Sequence[Role], meanings: Meanings) -> None:
        self._trials, self._roles, self._meanings = trials, roles, meanings
        self._large = large(roles, meanings)
        """For each role whether it is worth an annotation; others are left to propagation."""
        small = (role for role, large in zip(roles, self._large, strict=True) if not large)
        self._small_bytes = bytes_of(small)
        self._written = Written(roles, meanings, self._large)
        self._last: tuple[Trial, list[Dims]] | None = None
        self._usual: list[tuple[Candidate, Trial]] = []
        """The commonly written layouts that were evaluated, with the best of each."""

    def start(
        self,
        ranked: Sequence[Candidate],
        given: tuple[Mesh, Shardings] | None,
        doubt: Callable[[], object],
        *,
        every_usual: bool = False,
    ) -> None:
        """Evaluate the starting points of local search.

        Args:
            ranked: layouts in the order of the model.
            given: further annotations to evaluate.
            doubt: called once if the first layouts exceed the limit by far; may raise.
            every_usual: as for :func:`~.candidates.chosen`.

        Raises:
            Stop: the time is up.
        """
        if given is not None:
            self._run(given[0], [given[1]])
        found = chosen(ranked, self._meanings, every_usual=every_usual)
        for count, candidate in enumerate(found):
            best = self._trials.best
            if count == _STARTS_LEAN and best is not None and best.is_hopeless:
                doubt()
            is_late = self._trials.fraction > _CANDIDATES_SHARE
            if best is not None and is_late and (best.fits or not candidate.is_usual):
                break
            self._evaluate(candidate)

    def _evaluate(self, candidate: Candidate) -> None:
        """Evaluate a layout, and with the constraints that people usually add."""
        layout = candidate.layout
        plain = self._written.shardings(candidate)
        pinned = self._written.pinned(plain, candidate)
        along = self._written.pinned(plain, candidate, along_all=True)
        exchanged = (self._written.exchanged(each, layout) for each in (plain, pinned))
        tried = self._run(layout.mesh, [plain, pinned, along, *exchanged])
        if candidate.is_usual:
            self._usual.append((candidate, min(tried, key=lambda trial: trial.rank)))
        if self._trials.is_lean or not any(trial.fits for trial in tried):
            self._run(layout.mesh, [self._written.lean(plain, layout)])

    def vary(self, most: int) -> None:
        """Evaluate variants of the fastest ``most`` of the commonly written layouts of
        :meth:`start`: with optimizer states alone stored along the axes of the batch, as ZeRO has
        them; with activations divided along their tokens, between products that are cut, as
        sequence parallelism has them, with constraints on the first or also on what these products
        compute; and with both.

        Raises:
            Stop: the time is up.
        """
        for candidate, _ in sorted(self._usual, key=lambda each: each[1].rank)[:most]:
            layout = candidate.layout
            plain = self._written.shardings(candidate)
            apart = self._written.states_apart(layout)
            tried = [apart, self._written.pinned(apart, candidate)]
            tried += [
                self._written.along_tokens(each, layout, within=within)
                for each in (plain, apart)
                for within in (False, True)
            ]
            self._run(layout.mesh, tried)

    def best_of_uses(self) -> list[Trial]:
        """Return of each use of the axes of each mesh the fastest of what was evaluated, and those
        with the smallest arguments and peak, the fastest first."""
        found: dict[tuple[Mesh, Shardings], Trial] = {}
        for key in (Trial.step, Trial.arguments, Trial.peak):
            first: dict[Any, Trial] = {}
            for trial in sorted(apart(self._trials.all), key=key):
                uses = self._meanings.kinds_of_axes(trial.mesh, trial.shardings, self._roles)
                first.setdefault((trial.mesh, *uses.values()), trial)
            found |= {(trial.mesh, trial.shardings): trial for trial in first.values()}
        return sorted(found.values(), key=Trial.step)

    def improve(self) -> None:
        """Search from the best evaluations until nothing better is found.

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
        """Search for the least memory with about ``most`` evaluations: of ``given``; of the layouts
        that the model says take least, among the commonly written ones and among all; of further
        layouts; and from the best of these.

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
        """Save memory in trials that are better than the best, but do not fit."""
        started: set[tuple[Mesh, Shardings]] = set()
        for _ in range(_STARTS_OVER):
            over = next((t for t in self._over() if (t.mesh, t.shardings) not in started), None)
            if over is None:
                break
            started.add((over.mesh, over.shardings))
            self._slim(over)

    def _is_bound(self) -> bool:
        """Whether a trial much better than the best exceeds the limit by little."""
        best = self._trials.best
        assert best is not None, "something was evaluated"
        most = best.rank[1] * (1 - _MUCH)
        return any(trial.rank[1] < most and not trial.is_hopeless for trial in self._over())

    def _over(self) -> list[Trial]:
        """The trials that are better than the best but do not fit, those nearest to the limit
        first."""
        best = self._trials.best
        if best is None or not best.fits:
            return []
        better = (trial for trial in self._trials.all if trial.rank[1] < best.rank[1])
        return apart(trial for trial in better if not trial.fits)

    def _run(self, mesh: Mesh, wanted: Iterable[Shardings]) -> list[Trial]:
        """Evaluate each of ``wanted``; results are sharded like the arguments whose memory they
        reuse."""
        return self._trials.run(mesh, map(self._tied, wanted))

    def _tied(self, shardings: Shardings) -> Shardings:
        return tuple(
            dims if role.donor is None else shardings[role.donor]
            for role, dims in zip(self._roles, shardings, strict=True)
        )

    def _slim(self, start: Trial) -> None:
        """Save memory until the trial fits, each time by the change that costs least per saved
        byte, as long as it is better than the best that fits; then improve the result, and the
        start."""
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
        """The trial of ``tried`` that costs least per byte saved relative to ``current``, among
        those better than ``best``."""

        def price(trial: Trial) -> float:
            is_leaner = trial.rank[0] < current.rank[0] and trial.rank[1] < best.rank[1]
            return price_of(current, trial) if is_leaner else math.inf

        found = self._trials.first((t for t in tried if price(t) < math.inf), price)
        return None if found is None or price(found) == math.inf else found

    def _improve(self, start: Trial, most: float = math.inf) -> None:
        """Change one thing at a time until no change of the current best is better, or ``most``
        changes have been evaluated."""
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
        """The parts of the annotations of ``trial`` that can be changed: first axes (by name) with
        everything that they shard, then roles (by number), the largest first. Small roles come
        before the large ones if they alone could make it fit."""
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
        """The changes of a part (see :meth:`_parts`)."""
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
        """The shardings of the roles after propagation; remembered for the last trial."""
        if self._last is None or self._last[0] is not trial:
            self._last = trial, self._trials.completed(trial)
        return self._last[1]

    def _is_heavy(self, index: int) -> bool:
        """Whether a role without annotation is worth its own attempts."""
        return self._roles[index].bytes * 50 >= bytes_of(self._roles)

    def _on_class(
        self, trial: Trial, completed: Sequence[Dims], axis: str, number: int
    ) -> Shardings:
        """Shard all dims of a class along ``axis``, and remove it from other dims of the same
        roles."""
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
        """Move ``axis`` to each other dim of a role, and remove it. If no axis is left, the role is
        left to propagation, or replicated."""
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
