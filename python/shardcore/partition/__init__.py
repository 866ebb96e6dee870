"""The program of one device: what each device runs so that all together compute the program."""

from __future__ import annotations

from shardcore.partition.partitioned import Outcome, Partitioned, partition
from shardcore.partition.proof import Difference, Proof, prove

__all__ = ["Difference", "Outcome", "Partitioned", "Proof", "partition", "prove"]
