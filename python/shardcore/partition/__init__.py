"""The per-device program: the program that each device runs to compute the global program."""

from __future__ import annotations

from shardcore.partition.outcome import Outcome
from shardcore.partition.partitioned import Partitioned, partition
from shardcore.partition.proof import Difference, Proof, prove

__all__ = ["Difference", "Outcome", "Partitioned", "Proof", "partition", "prove"]
