"""The state of memory at the start of a step: whether it is in the cache, and whether it is
mapped."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shardcore._core import Figures
    from shardcore.calculus.hardware import Hardware
    from shardcore.partition.partitioned import Partitioned


def is_in_cache(figures: Figures, compiler: str, chip: Hardware) -> bool:
    """Whether the cache of ``chip`` still holds all memory of a step from the step before."""
    if not chip.achieved.cache_persists or figures.memory(False)[0] > chip.cache_bytes:
        return False
    return figures.peak_bytes(compiler, False) <= chip.cache_bytes


def mapping_seconds(local: Partitioned, figures: Figures, chip: Hardware) -> float:
    """The seconds in which a CPU host maps the memory of large results that do not reuse donated
    arguments.
    """
    shares = chip.achieved
    if math.isinf(shares.mapped_bytes_per_second):
        return 0.0
    sizes = [result.bytes_per_device or 0 for result in local.results]
    large = sum(size for size in sizes if size >= shares.mapped_bytes)
    aliased = figures.memory(False)[2]
    return max(large - aliased, 0) / shares.mapped_bytes_per_second
