"""How well a step uses the chip: model FLOPs, MFU, HFU, what is recomputed, tokens a second.

Counted are products of matrices and kernels, as is usual: model FLOPs are those that are computed
for the first time, hardware FLOPs include what rematerialization computes once more, which JAX
marks in the locations of ops.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Usage:
    """How well a step uses the chip; FLOPs are those of one device."""

    model_flops: int
    """FLOPs of products and kernels but those that are recomputed."""
    recomputed_flops: int
    """FLOPs of products and kernels that are computed once more."""
    mfu: float
    """Model FLOPs utilization: the share of the chip's bf16 FLOP/s that model FLOPs take."""
    hfu: float
    """Hardware FLOPs utilization: with those that are recomputed."""
    tokens: int | None
    """The number of tokens of a step, of all devices; ``None`` if it is not known."""
    tokens_per_second: float | None

    @property
    def recomputed_share(self) -> float:
        """The share of FLOPs that are recomputed."""
        total = self.model_flops + self.recomputed_flops
        return self.recomputed_flops / total if total else 0.0

    def record(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {**asdict(self), "recomputed_share": self.recomputed_share}


def usage(
    flops: tuple[int, int], seconds: float, flops_per_second: float, tokens: int | None
) -> Usage:
    """Return how well a step of ``seconds`` uses a chip.

    Args:
        flops: of products and kernels, those that are computed first, and once more.
        seconds: the time of the step.
        flops_per_second: the peak of the chip.
        tokens: of a step, if they are known.
    """
    model, recomputed = flops
    available = seconds * flops_per_second
    return Usage(
        model_flops=model,
        recomputed_flops=recomputed,
        mfu=model / available if available else 0.0,
        hfu=(model + recomputed) / available if available else 0.0,
        tokens=tokens,
        tokens_per_second=None if tokens is None or not seconds else tokens / seconds,
    )
