"""Warnings, each with a search for an edit that helps."""

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
"""How many warnings of one code are shown; the last one says how many more there are."""


Search = Callable[["Trial", int], "Remedy | None"]
"""A function that tries at most the given number of edits of a program."""


class Finding(NamedTuple):
    """A warning, and the search for an edit, which is recommended if it helps."""

    diagnostic: Diagnostic
    search: Search | None = None
    """Returns the best of the edits that it tried; ``None`` if none helps."""
    size: int = 0
    """Bytes, on one device, of the value that the warning is about, for values that cannot exceed
    the peak; otherwise 0."""
    needs_edit: bool = False
    """Whether the warning is shown only if an edit helps."""
    starts: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Values, each with axes that are followed upstream to where they are lost."""
    unhelped: str | None = None
    """The hint if edits were tried and none helps; by default the warning's own."""


def first_of(found: Sequence[Finding]) -> list[Finding]:
    """Return the first :data:`MOST_EACH` of ``found``, all of one code."""
    left = len(found) - MOST_EACH
    if left <= 0:
        return list(found)
    *kept, last = found[:MOST_EACH]
    message = f"{last.diagnostic.message}; and {left} more like it"
    return [*kept, last._replace(diagnostic=last.diagnostic._replace(message=message))]


def starts_of(row: CollectiveCost) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return the tensors of the op that needs ``row``, and the axes of the collective."""
    return tuple((tensor.name, row.axes) for tensor in row.why.search.tensors)


def removal_of(row: CollectiveCost) -> Search:
    """Return a search for an edit that removes a collective."""

    def search(trial: Trial, most: int) -> Remedy | None:
        from shardcore.why.remedy import removals

        found = removals(replace(row.why.search, trial=trial), most, keep_sharded=True)
        return min(found, key=lambda edit: edit.product(trial.cost), default=None)

    return search
