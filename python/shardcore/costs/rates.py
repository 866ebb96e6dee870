"""How long ops take on a chip: at its peak, and at what programs achieve of it."""

from __future__ import annotations

from collections.abc import Hashable
from functools import lru_cache
from typing import TypeAlias

from shardcore.calculus.dtypes import is_dtype
from shardcore.calculus.hardware import Hardware
from shardcore.costs.figures import WorkKind

_Times: TypeAlias = "dict[tuple[Hashable, ...], tuple[float, float, float]]"
"""What :meth:`Rates.times` returns, by the figures of one run."""

_MOST_TIMES = 1 << 14
"""The most times that are kept for other programs."""


@lru_cache(maxsize=16)
def _known_times(_: Hardware) -> _Times:
    """The times that are known for a chip."""
    return {}


class Rates:
    """The times of ops on a chip."""

    def __init__(self, chip: Hardware) -> None:
        self.chip = chip
        self._known: dict[str | None, tuple[float, float]] = {}
        self._times = _known_times(chip)

    def times(self, kind: WorkKind) -> tuple[float, float, float]:
        """What :meth:`peak` and :meth:`achieved` return; each distinct kind is computed once."""
        # All but the count.
        run = kind[:-1]
        found = self._times.get(run)
        if found is None:
            if len(self._times) >= _MOST_TIMES:
                self._times.clear()
            found = self._times[run] = (*self.peak(kind), self.achieved(kind))
        return found

    def peak(self, kind: WorkKind) -> tuple[float, float]:
        """Seconds of computation and of memory traffic of one run at the peak; none for
        collectives.
        """
        if kind.is_collective:
            return 0.0, 0.0
        compute = (kind.flops + kind.transcendentals) / self._flops(kind)[0]
        return compute, kind.bytes / self.chip.hbm_bytes_per_second

    def achieved(self, kind: WorkKind) -> float:
        """Seconds of one run at the rates that programs achieve; never less than at the peak."""
        if kind.is_collective:
            return 0.0
        compute, memory = self.peak(kind)
        shares = self.chip.achieved
        if kind.unit == "product":
            filled = 1.0 if kind.sizes is None else shares.shape_share(*kind.sizes)
            compute /= self._flops(kind)[1] * filled
        elif kind.unit == "kernel":
            compute /= shares.kernels
        else:
            work = kind.flops + kind.transcendentals
            compute = max(compute, work / shares.vector_flops)
        memory /= shares.scattered if kind.unit == "scattered" else shares.memory
        # Ops without traffic are fused into others, and start with them.
        return max(compute, memory) + (shares.op_seconds if kind.bytes else 0.0)

    def _flops(self, kind: WorkKind) -> tuple[float, float]:
        """FLOP/s for the element type of ``kind``, and the share that large products reach."""
        if kind.dtype not in self._known:
            known = kind.dtype is not None and is_dtype(kind.dtype)
            dtype = kind.dtype if known and kind.dtype else "bf16"
            share = self.chip.achieved.products_of(dtype)
            self._known[kind.dtype] = (self.chip.flops_per_second(dtype), share)
        return self._known[kind.dtype]
