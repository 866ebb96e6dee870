"""The search for what layers keep: policies of JAX's first, then names, exactly.

Every choice is lowered and costed; an estimate of what a layer computes anew says in which order.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from shardcore.remat.answer import Trial
from shardcore.remat.choices import (
    KEEPING,
    NONE,
    OFFLOADING,
    Choice,
    Runs,
    Setting,
    uniform,
)
from shardcore.remat.model import LayerModel
from shardcore.remat.trials import Trials

_TRIES = 8
"""The changes that are tried of a choice, the most promising ones, before it is left."""
_OFFLOADS = 3
"""How many of these have the host keep something else, where there are so many."""
_CLIMBING = 0.7
"""The part of the time after which single values are not changed any more."""
_MIXES = 4
"""The pairs of choices for unrolled layers that are tried."""
_BETTER = 0.999
"""The part of the time below which a choice is better than another."""
_SAME = 1e-3
"""Estimates that differ by a smaller part are not told apart."""
_SLACK = 1.05
"""How far above the limit a peak may be estimated and be tried still."""


class Named(NamedTuple):
    """A value that may be named: the stack, and the name."""

    stack: int
    name: str


@dataclass(frozen=True)
class State:
    """Names that are kept and that are offloaded, of all stacks."""

    kept: frozenset[Named] = frozenset()
    offloaded: frozenset[Named] = frozenset()

    def choice(self, stack: int) -> Choice:
        """Return what layers of ``stack`` keep."""
        kept, offloaded = (
            [each.name for each in names if each.stack == stack]
            for names in (self.kept, self.offloaded)
        )
        return Choice.of_names(kept, offloaded)

    def moved(self, value: Named, where: str) -> State:
        """Return it with ``value`` kept, offloaded or computed anew: ``"kept"``, ``"offloaded"``
        or ``""``.
        """
        kept, offloaded = self.kept - {value}, self.offloaded - {value}
        if where == "kept":
            kept |= {value}
        elif where == "offloaded":
            offloaded |= {value}
        return State(kept, offloaded)


class Search:
    """The search for one program."""

    def __init__(self, trials: Trials) -> None:
        self.trials = trials
        program = trials.program
        self.counts = [stack.count for stack in program.stacks]
        self.values = [
            Named(number, value.name)
            for number, values in enumerate(program.values)
            for value in values
        ]
        self.inputs = {
            Named(number, value.name)
            for number, values in enumerate(program.values)
            for value in values
            if value.is_input
        }
        """Those that are kept in any case, if not on the host."""
        self.models = [
            LayerModel(program.layer(number), values, trials.chip, is_scan=stack.is_scan)
            for number, (values, stack) in enumerate(
                zip(program.values, program.stacks, strict=True)
            )
        ]
        self.scale = 1.0
        """Bytes of a device at the peak for each that is estimated to be kept."""
        self.can_offload = trials.chip.host_bytes_per_second is not None

    def run(self) -> None:
        """Try what may be best, until nothing better is found or the time is up."""
        trials = self.trials
        built_in = [*KEEPING, OFFLOADING] if self.can_offload else [*KEEPING]
        for policy in (NONE, *built_in):
            trials.run(uniform(Choice(policy), self.counts))
        nothing, dots = (
            trials.run(uniform(Choice(policy), self.counts))
            for policy in ("nothing_saveable", "dots_saveable")
        )
        self.base = nothing
        self._scale(nothing, dots)
        self._climb(self._filled())
        self._mix()
        self._drop_names()

    def setting(self, state: State) -> Setting:
        """Return ``state`` as a setting."""
        return tuple(((count, state.choice(at)),) for at, count in enumerate(self.counts))

    def estimate(self, state: State) -> tuple[float, float]:
        """Return seconds, besides what every choice takes, and bytes of a device that are kept."""
        seconds = held = 0.0
        for at, (count, model) in enumerate(zip(self.counts, self.models, strict=True)):
            choice = state.choice(at)
            one = model.estimate(choice.kept, choice.offloaded)
            seconds += count * one[0]
            held += count * one[1]
        return seconds, held * self.scale

    def _scale(self, nothing: Trial, dots: Trial) -> None:
        """Set how much memory of a device is estimated bytes, by products that are kept."""
        products = {
            Named(at, value.name)
            for at, values in enumerate(self.trials.program.values)
            for value in values
            if value.primitive == "dot_general"
        }
        _, held = self.estimate(State(frozenset(products)))
        more = dots.peak_bytes - nothing.peak_bytes
        if held and more > 0:
            self.scale = min(1.5, max(more / held, 1e-4))

    def _peak(self, state: State) -> float:
        """The peak, estimated from that of the program that keeps nothing."""
        return self.base.peak_bytes + self.estimate(state)[1]

    def _filled(self) -> State:
        """Keep values, those first that save most seconds for their bytes, while they fit."""
        trials, state = self.trials, State()
        open_values = [value for value in self.values if value not in self.inputs]
        while open_values and not trials.is_late(_CLIMBING):
            seconds, held = self.estimate(state)
            found = []
            for value in open_values:
                other = state.moved(value, "kept")
                after, more = self.estimate(other)
                if after < seconds and self._peak(other) <= trials.limits[0] * _SLACK:
                    found.append(((seconds - after) / max(more - held, 1.0), value, other))
            if not found:
                break
            _, value, other = max(found, key=lambda one: one[0])
            open_values.remove(value)
            before = trials.run(self.setting(state))
            trial = trials.run(self.setting(other))
            if trials.fits(trial) and (
                trial.step_seconds < before.step_seconds or not trials.fits(before)
            ):
                state = other
        return state

    def _climb(self, state: State) -> None:
        """Change one value, or two, at a time as long as that is better."""
        trials = self.trials
        trial = trials.run(self.setting(state))
        is_better = True
        while is_better:
            is_better = False
            for other in self._moves(state):
                if trials.is_late(_CLIMBING):
                    return
                found = trials.run(self.setting(other))
                if self._is_better(found, trial):
                    state, trial, is_better = other, found, True
                    break

    def _is_better(self, one: Trial, other: Trial) -> bool:
        trials = self.trials
        if not trials.fits(one):
            return not trials.fits(other) and one.peak_bytes < other.peak_bytes * _BETTER
        return not trials.fits(other) or one.step_seconds < other.step_seconds * _BETTER

    def _moves(self, state: State) -> list[State]:
        """The most promising changes of ``state``, the best first."""
        # What does not fit may come nearer by steps.
        limit = max(self.trials.limits[0] * _SLACK, self._peak(state))
        seconds = self.estimate(state)[0]
        found: dict[State, tuple[float, bool]] = {}
        for other, is_offload in self._neighbours(state):
            if self.setting(other) in self.trials.known or self._peak(other) > limit:
                continue
            after = self.estimate(other)[0]
            if is_offload or not math.isclose(after, seconds, rel_tol=_SAME):
                found[other] = after, is_offload
        ranked = sorted(found, key=lambda other: found[other][0])
        offloads = [other for other in ranked if found[other][1]][:_OFFLOADS]
        rest = [other for other in ranked if not found[other][1]]
        return [*rest[: _TRIES - len(offloads)], *offloads]

    def _neighbours(self, state: State) -> Iterator[tuple[State, bool]]:
        for value in self.values:
            where = "kept" if value in state.kept else ""
            where = "offloaded" if value in state.offloaded else where
            for to in ("", "kept", "offloaded"):
                if (
                    to == where
                    or (to == "offloaded" and not self.can_offload)
                    or (to == "kept" and value in self.inputs)
                ):
                    continue
                other = state.moved(value, to)
                yield other, to == "offloaded"
                if to == "kept":
                    for out in sorted(state.kept - {value}):
                        yield other.moved(out, ""), False

    def _mix(self) -> None:
        """Where layers are unrolled: have the last ones keep more, as many as fit.

        Time and memory are about linear in the number of layers that do.
        """
        trials = self.trials
        for at, stack in enumerate(trials.program.stacks):
            if not stack.is_scan:
                for number, less, more in self._pairs(at, stack.count)[:_MIXES]:
                    self._mix_pair(at, number, less, more)

    def _pairs(self, at: int, count: int) -> list[tuple[int, Setting, Setting]]:
        """How many layers of the stack ``at`` are likely to fit with a choice that keeps more than
        another, and the two, the fastest first.
        """
        trials, found = self.trials, []
        same = [
            (setting, trial)
            for setting, trial in trials.known.items()
            if setting is not None and len(setting[at]) == 1
        ]
        for one, less in same:
            for other, more in same:
                is_of_stack = one[:at] == other[:at] and one[at + 1 :] == other[at + 1 :]
                room, step = (trials.limits[0] - less.peak_bytes), more.peak_bytes - less.peak_bytes
                if is_of_stack and trials.fits(less) and step > room:
                    number = int(count * room / step)
                    share = number / count
                    seconds = less.step_seconds + share * (more.step_seconds - less.step_seconds)
                    found.append((seconds, number, one, other))
        found.sort(key=lambda each: each[0])
        return [each[1:] for each in found]

    def _mix_pair(self, at: int, number: int, less: Setting, more: Setting) -> None:
        """Try that ``number`` layers keep more, and one less or one more."""
        trials = self.trials
        [(count, first)], [(_, last)] = less[at], more[at]
        was_above = was_below = False
        while 0 < number < count and not trials.is_late():
            runs: Runs = ((count - number, first), (number, last))
            if trials.fits(trials.run((*less[:at], runs, *less[at + 1 :]))):
                was_below, number = True, number + 1
            else:
                was_above, number = True, number - 1
            if was_above and was_below:
                return

    def _drop_names(self) -> None:
        """Leave out names that the best does not need."""
        trials = self.trials
        best = trials.best
        names = {
            name
            for runs in (best.setting if best and best.setting else ())
            for _, choice in runs
            for name in choice.names
        }
        for name in sorted(names):
            best = trials.best
            if best is None or best.setting is None or trials.is_late():
                return
            trials.run(tuple(tuple(_without(runs, name)) for runs in best.setting))


def _without(runs: Runs, name: str) -> Iterator[tuple[int, Choice]]:
    for count, choice in runs:
        if name in choice.names:
            choice = Choice.of_names(choice.kept - {name}, choice.offloaded - {name})
        yield count, choice
