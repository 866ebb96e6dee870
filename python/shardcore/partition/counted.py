"""Per-device programs that are counted, not run: those that are still in use are shared."""

from __future__ import annotations

from collections.abc import Hashable
from weakref import WeakValueDictionary

from shardcore._core import Module, Result, registry_version
from shardcore.partition.partitioned import Partitioned, partition
from shardcore.rules.shards import registered_shard_rules

_alive: WeakValueDictionary[Hashable, Partitioned] = WeakValueDictionary()
"""Programs by result, policy and the rules that they are made by. A program refers to its result,
so that the ``id`` in its key is not that of another result."""


def counted(result: Result, policy: str, keep_ports: bool = False) -> Partitioned:
    """Return the per-device program of ``result`` under ``policy``, to be counted.

    Every device computes the ops of which nothing is known, so that the program may not run. A cost
    refers to its program; as long as there is one, other costs and the diagnostics of the same
    result are counted from it. Nobody may change its module. Without ``keep_ports`` arguments and
    results without annotation are sharded as XLA shards them under ``xla``.
    """
    key = (id(result), policy, keep_ports, registry_version(), registered_shard_rules())
    known = _alive.get(key)
    if known is None:
        known = partition(result, policy, replicates_unknown=True, keep_ports=keep_ports)
        _alive[key] = known
    return known


def local_program(
    program: Module | Result | Partitioned, policy: str, keep_ports: bool = False
) -> Partitioned:
    """Return the per-device program that ``policy`` makes of ``program``, to be counted.

    Raises:
        TypeError: ``program`` is none.
    """
    if isinstance(program, Partitioned):
        return program
    if not isinstance(program, (Module, Result)):
        raise TypeError(f"expected a Module or a Result, not {type(program).__name__}")
    result = program.propagate() if isinstance(program, Module) else program
    return counted(result, policy, keep_ports)
