"""How well a step uses the chip: model FLOPs, MFU, HFU, what is recomputed, tokens a second.

Counted are products of matrices and kernels, as is usual. Model FLOPs are those of the program of
all devices, divided by the devices: what several devices compute alike counts once, and so does
what rematerialization computes once more, which JAX marks in the locations of ops. Hardware FLOPs
are all that a device computes. Masked parts of products count as they are computed. Both leave out
other ops, elementwise ones and reductions for example, whose FLOPs are told, and ops that are not
counted.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, NamedTuple


class ProductFlops(NamedTuple):
    """FLOPs of products and kernels that one device computes."""

    first: int
    """Its share of what the program computes for the first time."""
    again: int
    """What is computed once more."""
    alike: int
    """What other devices compute, too, or is padding."""
    other: int
    """Those of ops that are neither."""

    @property
    def executed(self) -> int:
        """What products and kernels compute."""
        return self.first + self.again + self.alike


@dataclass(frozen=True)
class Usage:
    """How well a step uses the chip; FLOPs are those of one device."""

    model_flops: int
    """FLOPs of products and kernels of the program of all devices, divided by the devices."""
    recomputed_flops: int
    """FLOPs of products and kernels that are computed once more."""
    replicated_flops: int
    """FLOPs of products and kernels that other devices compute, too, or that are padding."""
    other_flops: int
    """FLOPs of other ops, which neither utilization counts."""
    mfu: float
    """Model FLOPs utilization: the share of the chip's bf16 FLOP/s that model FLOPs take."""
    hfu: float
    """Hardware FLOPs utilization: with those that are recomputed or replicated, of products and
    kernels."""
    tokens: int | None
    """The number of tokens of a step, of all devices; ``None`` if it is not known."""
    tokens_per_second: float | None

    @property
    def recomputed_share(self) -> float:
        """The share of FLOPs that are recomputed."""
        return self._share(self.recomputed_flops)

    @property
    def replicated_share(self) -> float:
        """The share of FLOPs that other devices compute, too, or that are padding."""
        return self._share(self.replicated_flops)

    @property
    def other_share(self) -> float:
        """The share of the FLOPs that a device computes which neither utilization counts."""
        total = self._executed + self.other_flops
        return self.other_flops / total if total else 0.0

    @property
    def _executed(self) -> int:
        return self.model_flops + self.recomputed_flops + self.replicated_flops

    def _share(self, flops: int) -> float:
        return flops / self._executed if self._executed else 0.0

    def record(self) -> dict[str, Any]:
        """Return it as plain data."""
        shares = ("recomputed_share", "replicated_share", "other_share")
        return {**asdict(self), **{name: getattr(self, name) for name in shares}}


def usage(
    flops: ProductFlops, seconds: float, flops_per_second: float, tokens: int | None
) -> Usage:
    """Return how well a step of ``seconds`` uses a chip.

    Args:
        flops: of products and kernels.
        seconds: the time of the step.
        flops_per_second: the peak of the chip.
        tokens: of a step, if they are known.
    """
    available = seconds * flops_per_second
    return Usage(
        model_flops=flops.first,
        recomputed_flops=flops.again,
        replicated_flops=flops.alike,
        other_flops=flops.other,
        mfu=flops.first / available if available else 0.0,
        hfu=flops.executed / available if available else 0.0,
        tokens=tokens,
        tokens_per_second=None if tokens is None or not seconds else tokens / seconds,
    )
