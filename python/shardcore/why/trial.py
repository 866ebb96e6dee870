"""A costed per-device program, and the costs of its program under other annotations."""

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
    """The data with which collectives of a per-device program answer ``why``."""

    local: Partitioned
    count: Callable[[Partitioned], Cost]
    """Costs a per-device program with the same options as this one."""

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
        """The partitioned result, in which CHLO ops are sharded like the ops that XLA legalizes
        them to."""
        return self.local.result._legalizing()

    @cached_property
    def session(self) -> Session:
        """A session of the partitioned program as it was given."""
        result = self.local.result
        return result._given().session(**result._options())

    @cached_property
    def lines(self) -> Lines:
        """The lines of the user's files where values can be constrained."""
        return Lines(self.local.result)

    @cached_property
    def cost(self) -> Cost:
        """The cost with the present annotations."""
        return self.count(self.local)

    def after(self, target: str, sharding: TensorSharding) -> Cost | None:
        """Return the cost, with the same policy and hardware, after ``target`` is annotated with
        ``sharding``; ``None`` if the edit is refused.
        """
        try:
            return self.of(self.completed(target, sharding)).cost
        except ShardcoreError:
            return None

    def completed(self, target: str, sharding: TensorSharding) -> Result:
        """Return the propagated program with ``target`` annotated.

        Raises:
            ShardcoreError: the edit is refused.
        """
        session = self.session
        return session._propagate(session._merged({target: sharding}))

    def of(self, result: Result) -> Trial:
        """Return the same for another propagated program.

        Raises:
            PartitionError: it has no per-device program (``unpartitionable``).
        """
        return Trial(self.local._of(result), self.count)
