"""The caches that the process keeps across programs: their sizes, and how to empty them.

They hold sharding rules of ops, which ops were found valid, results of users' rules, and outcomes
of visits of ops. All are bounded, and shared by all threads; a forked process has a copy. No result
depends on them: after :func:`clear_caches` results are the same, and the first program takes as
long as in a new process.
"""

from __future__ import annotations

from typing import NamedTuple

from shardcore import _core

__all__ = ["CacheInfo", "cache_info", "clear_caches"]


class CacheInfo(NamedTuple):
    """How much a cache holds."""

    entries: int
    """Number of rules, answers or visits in the cache."""
    max_entries: int
    """The largest number of entries. Memory is bounded too, so a cache may be full with fewer."""


def cache_info() -> dict[str, CacheInfo]:
    """Return how many entries each cache has, and how many it may have.

    ``"rules"`` has what is known of StableHLO's ops by signature: their sharding rules, and which
    were found valid, so that they are not verified again; ``"answers"`` what functions given to
    :func:`shardcore.rule` returned, by signature; ``"visits"`` the outcomes of visits of ops.
    Tables that a run in progress uses are not counted.
    """
    return {name: CacheInfo(*size) for name, size in _core.cache_sizes().items()}


def clear_caches() -> None:
    """Empty all caches that are kept across programs, and free their memory.

    Functions given to :func:`shardcore.rule` are called again for signatures they were called for.
    Rules and data-flow edges stay registered. Modules and results do not change.
    """
    _core.clear_caches()
