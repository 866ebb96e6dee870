"""Searches for plans that take the least memory."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence

from shardcore._core import Mesh
from shardcore.plan.candidates import Candidate
from shardcore.plan.search import Search
from shardcore.plan.trials import Shardings, Stop, Trial, Trials

_OPS = 300_000
"""How many ops a short search evaluates in all."""
_TRIALS = (40, 300)
"""The least and the largest number of programs that it evaluates."""
_LESS = 0.98
"""The part of the least memory found within which less is searched for."""


def leanest(
    trials: Trials,
    search: Search,
    ranked: Sequence[Candidate],
    given: tuple[Mesh, Shardings] | None,
    num_ops: int,
) -> Trial:
    """Return the trial with least memory, by a short search of a program of ``num_ops`` ops.

    Args:
        ranked: layouts, those with least memory first by the model.
        given: further annotations to evaluate.
    """
    fewest, most = _TRIALS
    with contextlib.suppress(Stop):
        search.leanest(ranked, given, min(max(_OPS // num_ops, fewest), most))
    assert trials.best is not None, "the first evaluation is always made"
    return trials.best


def leaner(trials: Trials, within: Callable[[float], Trial | None]) -> None:
    """Search for the fastest plan within less than the least memory found, as long as there is one:
    such a search passes through plans that are not the leanest of their neighbors.

    Args:
        trials: where the results are evaluated.
        within: the fastest trial that is found within some bytes.

    Raises:
        Stop: the time is up.
    """
    while (least := trials.best) is not None and least.row.peak_bytes:
        found = within(least.row.peak_bytes * _LESS)
        if found is None or not found.fits:
            return
        trials.run(found.mesh, [found.shardings])
        if trials.best is least:
            return
