"""The per-device program: what each device runs, so that all devices compute the global program."""

from __future__ import annotations

from shardcore.partition.partitioned import Outcome, Partitioned, partition
from shardcore.partition.proof import Difference, Proof, prove

__all__ = ["Difference", "Outcome", "Partitioned", "Proof", "partition", "prove"]
