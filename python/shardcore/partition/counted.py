"""Per-device programs that are only counted, not run; those still in use are shared."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any
from weakref import WeakValueDictionary

from shardcore._core import Module, Result, registry_version
from shardcore.partition.partitioned import Partitioned, partition
from shardcore.rules.shards import registered_shard_rules

_alive: WeakValueDictionary[Hashable, Partitioned] = WeakValueDictionary()
"""Programs by result, policy, passes, compiler and registered rules. A program refers to its
result, so the ``id`` of the result in its key cannot be reused."""


def counted(
    result: Result,
    policy: str,
    keep_ports: bool = False,
    passes: str = "",
    compiler: str = "none",
) -> Partitioned:
    """Return the per-device program of ``result`` under ``policy`` after ``passes``, for counting
    only; under ``xla`` as ``compiler`` propagates it.

    An op that no rule can split is computed on every device, so the program may not be runnable. A
    cost refers to its program; while a cost exists, other costs and the diagnostics of the same
    result use the same program. Nobody may change its module. Without ``keep_ports``, under
    ``xla``, arguments and results without annotation are sharded as XLA would shard them.
    """
    rules = registry_version(), registered_shard_rules()
    key = (id(result), policy, keep_ports, passes, compiler, *rules)
    known = _alive.get(key)
    if known is None:
        options: Any = {"keep_ports": keep_ports, "passes": passes, "compiler": compiler}
        known = _alive[key] = partition(result, policy, replicates_unknown=True, **options)
    return known


def local_program(
    program: Module | Result | Partitioned,
    policy: str,
    keep_ports: bool = False,
    passes: str = "",
    compiler: str = "none",
) -> Partitioned:
    """Return the per-device program of ``program`` under ``policy`` after ``passes``, for counting
    only, under ``xla`` as ``compiler`` propagates it; a program of one device as it is.

    Raises:
        TypeError: ``program`` is none of these.
    """
    if isinstance(program, Partitioned):
        return program
    if not isinstance(program, (Module, Result)):
        raise TypeError(f"expected a Module or a Result, not {type(program).__name__}")
    result = program.propagate() if isinstance(program, Module) else program
    return counted(result, policy, keep_ports, passes, compiler)
