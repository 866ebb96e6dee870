"""The caches that the process keeps across programs: their sizes, and how to empty them.

They hold sharding rules of ops, the verdicts of the verifier, results of users' rules, outcomes of
visits of ops, and what fusing kernels of GPUs saves. All are bounded, and shared by all threads; a
forked process has a copy. Results do not depend on them: after :func:`clear_caches` they are the
same, but the first program takes as long as in a new process.
"""

from __future__ import annotations

from typing import NamedTuple

from shardcore import _core

__all__ = ["CacheInfo", "cache_info", "clear_caches"]


class CacheInfo(NamedTuple):
    """How much a cache holds."""

    entries: int
    """How many rules, answers, visits or kernels the cache holds."""
    max_entries: int
    """The largest number of entries. Memory is bounded too, so a cache may be full with fewer."""


def cache_info() -> dict[str, CacheInfo]:
    """Return how many entries each cache has, and how many it may have.

    ``"rules"`` holds what is known of StableHLO ops by signature: their sharding rules, and whether
    they were verified; ``"answers"`` the results of functions given to :func:`shardcore.rule`, by
    signature; ``"visits"`` the outcomes of visits of ops in propagation; ``"kernels"`` the kernels
    of GPUs that costs were asked of. Tables of a run in progress are not counted.
    """
    return {name: CacheInfo(*size) for name, size in _core.cache_sizes().items()}


def clear_caches() -> None:
    """Empty all caches that are kept across programs, and free their memory.

    Functions given to :func:`shardcore.rule` are then called again for signatures seen before.
    Rules and data-flow edges stay registered. Modules and results do not change.
    """
    _core.clear_caches()
