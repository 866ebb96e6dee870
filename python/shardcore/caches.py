"""What the process remembers across programs, so that it need not be worked out again.

Sharding rules of ops, what users' rules have answered, and what visits of ops do. All of it is
bounded, and shared by all threads; a forked process has a copy. No result depends on it: after
:func:`clear_caches` everything comes out the same, and the first program takes as long as in a new
process.
"""

from __future__ import annotations

from typing import NamedTuple

from shardcore import _core

__all__ = ["CacheInfo", "cache_info", "clear_caches"]


class CacheInfo(NamedTuple):
    """How much a cache holds."""

    entries: int
    """How many rules, answers or visits are remembered."""
    max_entries: int
    """The most that there may be. Memory has a bound besides: a cache may be full with fewer."""


def cache_info() -> dict[str, CacheInfo]:
    """Return how much each cache holds.

    ``"rules"`` are the sharding rules of StableHLO's ops, by signature; ``"answers"`` what
    functions given to :func:`shardcore.rule` have returned, by signature; ``"visits"`` what visits
    of ops do to shardings. What a run that is under way has taken along is not counted.
    """
    return {name: CacheInfo(*size) for name, size in _core.cache_sizes().items()}


def clear_caches() -> None:
    """Forget everything that is remembered across programs, and free its memory.

    Functions given to :func:`shardcore.rule` are asked again. Rules and data-flow edges stay
    registered. Modules and results keep what they have.
    """
    _core.clear_caches()
