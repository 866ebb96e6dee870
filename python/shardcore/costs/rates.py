"""Times of ops on a chip: at its peak, as a lower bound, and at achieved rates."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, NamedTuple

from shardcore.calculus.dtypes import is_dtype
from shardcore.calculus.hardware import Hardware
from shardcore.costs.compilers import compiler_of
from shardcore.costs.figures import KernelKind, WorkKind

_MOST_TIMES = 1 << 14
"""How many times are kept for other programs."""

GROUPED = {"grouped": 1, "grouped-contraction": 3}
"""The units of grouped products, and which of their ``sizes`` is the mean size of a group."""
MATRIX_UNITS = ("product", "convolution", *GROUPED)
"""The ops that the matrix units of a chip compute."""

OUT_OF_ORDER = ("scattered", "sort")
"""The ops that read or write out of order."""

IN_ORDER = ("vector", "rows", "windows", "columns", "transform", "kernel")
"""The kernels of GPUs and CPUs that read and write in order."""

_LINE = 4096
"""The elements of a line that a GPU sorts or transforms in its shared memory: 32 KiB of complex
numbers, or of keys with their indices."""

_WINDOW_FLOPS = 5
"""The instructions of a GPU for each FLOP over a window: where the element is, whether it is there,
and to load it. Those of a cumulative sum on an H100."""

_RADIX_PASSES = 16
"""The passes over the memory that a radix sort takes as long as, which GPUs do where a single line
is so long that a network takes longer: 8 to 16 billion keys a second on an H100."""


class Times(NamedTuple):
    """Seconds of one run of an op."""

    compute: float = 0.0
    """Seconds of computation, at the chip's peak."""
    memory: float = 0.0
    """Seconds of memory traffic, at the chip's peak."""
    least_memory: float = 0.0
    """Seconds of the traffic that no cache or fusion can avoid."""
    peak: float = 0.0
    """Seconds at the peak, where each kernel takes the longer of computation and traffic, with all
    traffic going to memory."""
    achieved: float = 0.0
    """Seconds at achieved rates; less than at the peak only if operands are read from a cache."""

    def plus(self, other: Times) -> Times:
        """Return the sums of both."""
        return Times(*map(float.__add__, self, other))


@lru_cache(maxsize=16)
def _known_times(
    _: Hardware, __: float, ___: bool
) -> dict[tuple[Any, ...], tuple[WorkKind, Times]]:
    """The known kinds by their fields, with their times on a chip, an achieved share of products,
    and whether everything is in the cache.
    """
    return {}


class Rates:
    """The times of ops on a chip; ``in_cache`` says that its cache holds all memory of a step."""

    def __init__(self, chip: Hardware, num_devices: int, *, in_cache: bool = False) -> None:
        self.chip = chip
        self._in_cache = in_cache
        self._is_gpu = compiler_of(chip, None) == "xla-gpu"
        self._sustained = chip.achieved.sustained if num_devices > 1 else 1.0
        self._known: dict[str | None, tuple[float, float]] = {}
        self._times = _known_times(chip, self._sustained, in_cache)

    def timed(self, rows: Iterable[tuple[Any, ...]]) -> list[tuple[WorkKind, Times]]:
        """Return the kinds with the fields of ``rows``, each with the times of one run. Programs
        share them: most kinds of a program are those of the program before an edit.
        """
        known = self._times
        return [known.get(row) or self._add(row) for row in rows]

    def _add(self, row: tuple[Any, ...]) -> tuple[WorkKind, Times]:
        kind = WorkKind.of(row)
        if len(self._times) >= _MOST_TIMES:
            self._times.clear()
        found = self._times[row] = (kind, self.times(kind))
        return found

    def times(self, kind: WorkKind) -> Times:
        """The times of one run of ``kind``."""
        if kind.is_collective:
            return Times()
        if kind.kernels is None:
            return self._fused(kind)
        total = Times()
        for kernel in kind.kernels:
            total = total.plus(self.kernel(kernel))
        return total

    def _fused(self, kind: WorkKind) -> Times:
        """The times of an op if the compiler's kernels are unknown."""
        compute, memory = self._peak(kind, kind.bytes)
        # An elementwise op may be fused into its producer or users.
        least = (
            0 if kind.unit in ("vector", "windows") else max(0, kind.bytes - self.chip.cache_bytes)
        )
        peak = max(compute, memory)
        shares = self.chip.achieved
        in_order = kind.unit not in OUT_OF_ORDER
        at = memory / (shares.memory if in_order else shares.scattered)
        if self._in_cache:
            least, at = 0, self._from_cache(kind.bytes, kind.unit)
        achieved = self._together(kind, compute, at)
        # Ops without traffic are fused into others, so they have no launch of their own.
        achieved += shares.op_seconds if kind.bytes else 0.0
        return Times(compute, memory, least / self.chip.hbm_bytes_per_second, peak, achieved)

    def kernel(self, kind: KernelKind) -> Times:
        """The times of one run of a kernel."""
        chip, shares = self.chip, self.chip.achieved
        compute, memory = self._peak(kind, kind.bytes)
        # Written data may stay in the cache until it is overwritten.
        least = kind.read_bytes - kind.cached_bytes + max(0, kind.written_bytes - chip.cache_bytes)
        # TPUs load tiles by DMA; on GPUs and CPUs products read rows in part.
        in_order = kind.unit not in OUT_OF_ORDER if chip.is_torus else kind.unit in IN_ORDER
        moved = (kind.bytes - kind.cached_bytes) / chip.hbm_bytes_per_second
        at = moved / (shares.memory if in_order else shares.scattered)
        if self._in_cache:
            least, at = 0, self._from_cache(kind.bytes, kind.unit)
        elif kind.cached_bytes:
            at += kind.cached_bytes / chip.cache_bytes_per_second
        peak = max(compute, memory)
        achieved = self._together(kind, compute, at) + shares.op_seconds
        if kind.sizes is not None and kind.unit in MATRIX_UNITS:
            achieved += shares.group_seconds * (kind.sizes[0] - 1)
        return Times(compute, memory, least / chip.hbm_bytes_per_second, peak, achieved)

    def _together(self, kind: WorkKind | KernelKind, peak: float, moved: float) -> float:
        """Seconds of a kernel that computes for ``peak`` seconds at the peak, and whose traffic
        takes ``moved`` in one pass, at achieved rates.
        """
        compute = self._compute(kind, peak)
        if self._is_gpu and kind.sizes is not None:
            _, length, times, _ = kind.sizes
            if kind.unit == "columns":
                return max(compute, moved) + length * self.chip.achieved.column_seconds
            if kind.unit == "transform":
                return max(compute, moved * times * (1 if length <= _LINE else 2))
            if kind.unit == "sort":
                return self._sorted(kind.sizes, moved)
        # One row after the other, with little else on the same multiprocessor.
        return compute + moved if kind.unit == "rows" else max(compute, moved)

    def _sorted(self, sizes: tuple[int, int, int, int], moved: float) -> float:
        """Seconds of a sorting network, whose stages within a line of shared memory are one pass of
        ``moved`` seconds."""
        count, length, _, _ = sizes
        steps = (length - 1).bit_length()
        compared = count * 2.0**steps / 2 * steps * (steps + 1) / 2
        beyond = max(0, steps - (_LINE - 1).bit_length())
        passes = 1 + beyond * (beyond + 3) // 2
        network = max(compared / self.chip.achieved.sort_flops, moved * passes)
        return min(network, moved * _RADIX_PASSES) if count == 1 else network

    def _from_cache(self, moved: int, unit: str) -> float:
        """Seconds of ``moved`` bytes of cache traffic; out-of-order access loses the same share as
        with memory.
        """
        shares = self.chip.achieved
        lost = shares.scattered / shares.memory if unit in OUT_OF_ORDER else 1.0
        return moved / (self.chip.cache_bytes_per_second * min(lost, 1.0))

    def _peak(self, kind: WorkKind | KernelKind, moved: int) -> tuple[float, float]:
        """Seconds of computation, and of ``moved`` bytes of memory traffic, at the peak."""
        compute = (kind.flops + kind.transcendentals) / self._flops(kind.dtype)[0]
        return compute, moved / self.chip.hbm_bytes_per_second

    def _compute(self, kind: WorkKind | KernelKind, peak: float) -> float:
        """Seconds of computation at achieved rates; ``peak`` is the seconds at the peak."""
        shares = self.chip.achieved
        if kind.unit in MATRIX_UNITS:
            flops, share = self._flops(kind.dtype)
            if kind.sizes is not None:
                share *= shares.shape_share(*kind.sizes, flops / self._flops("bf16")[0])
            if kind.unit in GROUPED and kind.sizes is not None:
                share *= shares.grouped_share(kind.sizes[GROUPED[kind.unit]])
            if kind.unit == "convolution":
                share *= shares.convolutions
            elif kind.sizes is not None:
                share *= shares.aligned_share(kind.sizes[2:], dtype_of(kind.dtype))
            if math.isinf(shares.vector_flops) or math.prod(shares.tile) == 1:
                return peak / share
            # Products that do not fill tiles, such as outer products, run on the vector units.
            return max(peak, min(peak / share, kind.flops / shares.vector_flops))
        if kind.unit == "kernel":
            return peak / shares.kernels
        if kind.unit == "transform" and self._is_gpu:
            # Far fewer than XLA counts, and fewer than the traffic takes.
            return 0.0
        work = kind.flops + shares.transcendental_flops * kind.transcendentals
        if kind.unit == "windows" and self._is_gpu:
            work *= _WINDOW_FLOPS
        if kind.unit == "sort":
            return max(peak, work / min(shares.sort_flops, shares.vector_flops))
        return max(peak, work / shares.vector_flops)

    def _flops(self, dtype: str | None) -> tuple[float, float]:
        """FLOP/s for elements of type ``dtype``, and the share that large products achieve."""
        if dtype not in self._known:
            known = dtype_of(dtype)
            share = self.chip.achieved.products_of(known) * self._sustained
            self._known[dtype] = (self.chip.flops_per_second(known), share)
        return self._known[dtype]


def dtype_of(name: str | None) -> str:
    """Return ``name`` if chips have figures for this element type, else ``"bf16"``."""
    return name if name is not None and is_dtype(name) else "bf16"
