"""Warnings with what looks for an edit that makes the program better."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from shardcore.errors import Diagnostic

if TYPE_CHECKING:
    from shardcore.costs import CollectiveCost
    from shardcore.why.remedy import Remedy
    from shardcore.why.trial import Trial

MOST_EACH = 5
"""The most warnings with one code; the last one says how many there are more."""


Search = Callable[["Trial", int], "Remedy | None"]
"""Tries at most so many edits of a program."""


class Finding(NamedTuple):
    """A warning, and the search for an edit that is advised if it helps."""

    diagnostic: Diagnostic
    search: Search | None = None
    """Returns the best of the edits that it tried; ``None`` if it found none."""
    size: int = 0
    """Bytes on a device of the value that it is about, where no program can hold more of it than
    its peak; 0 of others."""
    needs_edit: bool = False
    """Whether it is worth a word only if an edit helps."""
    starts: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Values from which axes are followed to where they are lost, with these."""
    unhelped: str | None = None
    """The hint where edits were tried and none helps; by default that of the warning."""


def first_of(found: Sequence[Finding]) -> list[Finding]:
    """Return the first :data:`MOST_EACH` of ``found``, which have one code."""
    left = len(found) - MOST_EACH
    if left <= 0:
        return list(found)
    *kept, last = found[:MOST_EACH]
    message = f"{last.diagnostic.message}; and {left} more like it"
    return [*kept, last._replace(diagnostic=last.diagnostic._replace(message=message))]


def starts_of(row: CollectiveCost) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return the tensors of the op that required ``row``, and the axes that it runs along."""
    return tuple((tensor.name, row.axes) for tensor in row.why.search.tensors)


def removal_of(row: CollectiveCost) -> Search:
    """Return the search for an edit that removes a collective."""

    def search(trial: Trial, most: int) -> Remedy | None:
        from shardcore.why.remedy import removals

        found = removals(replace(row.why.search, trial=trial), most, keep_sharded=True)
        return min(found, key=lambda edit: edit.product(trial.cost), default=None)

    return search
