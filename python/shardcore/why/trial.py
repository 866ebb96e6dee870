"""A per-device program that was counted, and how other annotations of its program are counted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from shardcore.cached_property import cached_property
from shardcore.errors import ShardcoreError
from shardcore.why.lines import Lines

if TYPE_CHECKING:
    from shardcore._core import Result, TensorSharding
    from shardcore.costs import Cost
    from shardcore.partition.partitioned import Partitioned
    from shardcore.session import Session


@dataclass(frozen=True)
class Trial:
    """What the collectives of a per-device program ask why they are there."""

    local: Partitioned
    count: Callable[[Partitioned], Cost]
    """Counts a per-device program as this one was counted."""

    @staticmethod
    def of_cost(cost: Cost) -> Trial | None:
        """Return that of the program that ``cost`` is of; ``None`` if it was pickled."""
        kept = cost.rows.trial
        if kept is None:
            return None
        found = Trial(kept.local, kept.count)
        vars(found)["cost"] = cost
        return found

    @cached_property
    def result(self) -> Result:
        """The result that was partitioned: with ops of CHLO sharded as the ops that XLA legalizes
        them to."""
        return self.local.result._legalizing()

    @cached_property
    def session(self) -> Session:
        """The program that was partitioned, as it was given."""
        result = self.local.result
        return result._given().session(**result._options())

    @cached_property
    def lines(self) -> Lines:
        """Where values can be constrained in the user's files."""
        return Lines(self.local.result)

    @cached_property
    def cost(self) -> Cost:
        """The cost of the program as it is annotated."""
        return self.count(self.local)

    def after(self, target: str, sharding: TensorSharding) -> Cost | None:
        """Return the cost, by the same policy and on the same hardware, once ``target`` is
        annotated with ``sharding``; ``None`` if that is refused.
        """
        try:
            return self.of(self.completed(target, sharding)).cost
        except ShardcoreError:
            return None

    def completed(self, target: str, sharding: TensorSharding) -> Result:
        """Return the program completed with ``target`` annotated.

        Raises:
            ShardcoreError: that is refused.
        """
        session = self.session
        return session._propagate(session._merged({target: sharding}))

    def of(self, result: Result) -> Trial:
        """Return the same of another completed program.

        Raises:
            PartitionError: it has no program of one device (``unpartitionable``).
        """
        return Trial(self.local._of(result), self.count)
