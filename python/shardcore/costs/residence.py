"""Where a step's memory is when it begins: still in the cache, or not mapped yet."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shardcore._core import Figures
    from shardcore.calculus.hardware import Hardware
    from shardcore.partition.partitioned import Partitioned


def is_in_cache(figures: Figures, compiler: str, chip: Hardware) -> bool:
    """Whether the cache of ``chip`` has all memory of a step, from the step before."""
    if not chip.achieved.cache_persists or figures.memory(False)[0] > chip.cache_bytes:
        return False
    return figures.peak_bytes(compiler, False) <= chip.cache_bytes


def mapping_seconds(local: Partitioned, figures: Figures, chip: Hardware) -> float:
    """The seconds in which a host maps the results of a step that are large and do not take the
    place of arguments.
    """
    shares = chip.achieved
    if math.isinf(shares.mapped_bytes_per_second):
        return 0.0
    sizes = [result.bytes_per_device or 0 for result in local.results]
    large = sum(size for size in sizes if size >= shares.mapped_bytes)
    aliased = figures.memory(False)[2]
    return max(large - aliased, 0) / shares.mapped_bytes_per_second
