"""Pipelines of stages whose layers keep something else for the backward pass."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from shardcore.cached_property import cached_property
from shardcore.pipeline.layers import find_layers
from shardcore.plan.answer import Plan
from shardcore.plan.keeping import Figures, Keeping
from shardcore.plan.program import plain
from shardcore.plan.staged import Sharded, Staged

if TYPE_CHECKING:
    from shardcore.plan.stages import StagesPlanner
    from shardcore.remat.choices import Setting

_SHARE = 0.9
"""The part of what is left of the time that is for this."""
_LEAN_SHARE = 0.3
"""The part of that in which pipelines are found whose layers keep nothing."""
_MOST_LEAN = 24
"""The shardings for which that is done, at most."""
_MOST_FILLED = 2
"""For how many of these what layers keep is searched."""
_LEAST_SECONDS = 1e-3
_RECOMPUTED = 4 / 3
"""How many times as long layers take that compute all of their forward pass anew, about."""


def _in_turn(found: Sequence[Sharded]) -> list[Sharded]:
    """The fastest shardings of each kind and number of stages, then the next of each: which fit
    depends on these most."""
    before: Counter[tuple[int, str]] = Counter()
    turns: list[tuple[int, float, int]] = []
    for number, each in enumerate(found):
        key = each.stages, each.planner.kind_of(each.trial)
        turns.append((before[key], each.estimate, number))
        before[key] += 1
    return [found[number] for _, _, number in sorted(turns)]


class StagePolicies:
    """What layers of stages keep."""

    def __init__(self, of: StagesPlanner) -> None:
        self._of = of

    @cached_property
    def _keeping(self) -> Keeping | None:
        return Keeping.of(self._of.reading, self._of.wanted)

    @cached_property
    def longer(self) -> float:
        """How many times as long as with other policies layers may take as they are."""
        keeping = self._keeping
        return _RECOMPUTED if keeping is not None and keeping.recomputes else 1.0

    def search(self, found: Sequence[Sharded]) -> None:
        """Keep pipelines of shardings for which memory is short, or whose layers compute something
        anew as they are, with layers that keep something else."""
        most, left = self._of.most * self.longer, self._of.left * _SHARE
        may = [each for each in found if each.estimate < most]
        if not may or left <= 0:
            return
        if self._keeping is None:
            return
        if self.longer == 1.0:
            may = [each for each in may if self._is_short(each)]
        may = _in_turn(may)
        lean: list[tuple[float, Sharded]] = []
        end = time.monotonic() + left * _LEAN_SHARE
        for at, each in enumerate(may[:_MOST_LEAN]):
            if time.monotonic() > end:
                break
            self._of.report("policies", at / len(may))
            step, _, _ = self._kept(each, self._keeping.leanest)
            lean.append((step, each))
        lean.sort(key=lambda one: one[0])
        for at, (_, each) in enumerate(lean[:_MOST_FILLED]):
            share = (self._of.left * _SHARE) / (min(len(lean), _MOST_FILLED) - at)
            self._keeping.best(partial(self._kept, each), self._of.wanted.limit, share)

    def _is_short(self, of: Sharded) -> bool:
        """Whether a pipeline that does not fit would be faster than the best."""
        search = self._of.searched(of.layers, of.trial.mesh, of.stages, self._of.most, math.inf)
        return search.best is not None

    def _kept(self, of: Sharded, setting: Setting | None) -> Figures:
        """The best pipeline of the program whose layers keep what ``setting`` says."""
        assert self._keeping is not None
        given = of.planner.session(of.trial)
        session = self._keeping.session(setting, given)
        chip, options = self._of.wanted.chip, of.options
        layers = find_layers(plain(session), chip, **options)
        search = self._of.searched(layers, of.trial.mesh, of.stages, math.inf)
        best = search.best
        host = layers.cost.host_memory_peak_bytes / of.stages
        if best is None:
            return math.inf, search.least or 2 * self._of.wanted.limit, host
        if setting is not None:
            self._of.take(Staged(of.planner, of.trial, best, setting))
        return best.step_seconds, best.peak_bytes, host

    def plan_of(self, each: Staged) -> Plan:
        """Return the plan of a stage of ``each``, whose layers keep what was found."""
        assert self._keeping is not None
        assert each.setting is not None
        session = each.planner.session(each.trial)
        return self._keeping.plan(each.setting, session, max(self._of.left, _LEAST_SECONDS))
