"""How well a step uses the chip: model FLOPs, MFU, HFU, recomputation, tokens or examples per
second.

As usual, only matrix products, convolutions and kernels count. Model FLOPs are those of the global
program divided by the number of devices: replicated computation counts once, and so does
rematerialized computation, which JAX marks in the locations of ops. Hardware FLOPs are all that a
device computes. Masked parts of products count like others. Other ops, such as elementwise ops and
reductions, are left out of both and reported separately; ops without known FLOPs are left out
altogether.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from shardcore.costs.batch import Batch


class ProductFlops(NamedTuple):
    """FLOPs of products and kernels on one device."""

    first: int
    """The device's share of the FLOPs that the program computes for the first time."""
    again: int
    """FLOPs that are recomputed."""
    alike: int
    """FLOPs that other devices compute too, or that are padding."""
    other: int
    """FLOPs of other ops."""

    @property
    def executed(self) -> int:
        """All FLOPs that products and kernels compute."""
        return self.first + self.again + self.alike


@dataclass(frozen=True)
class Usage:
    """How well a step uses the chip; FLOPs are those of one device."""

    model_flops: int
    """FLOPs of products and kernels of the global program, divided by the number of devices."""
    recomputed_flops: int
    """FLOPs of products and kernels that are recomputed."""
    replicated_flops: int
    """FLOPs of products and kernels that other devices compute too, or that are padding."""
    other_flops: int
    """FLOPs of other ops, which neither MFU nor HFU counts."""
    mfu: float
    """Model FLOPs utilization: model FLOPs as a share of what the chip could compute in bf16."""
    hfu: float
    """Hardware FLOPs utilization: the same with recomputed and replicated FLOPs of products and
    kernels."""
    tokens: int | None
    """The number of tokens of a step, over all devices; ``None`` if it is unknown."""
    tokens_per_second: float | None
    examples: int | None = None
    """The number of examples of a step, such as images, over all devices; ``None`` if it is
    unknown, or its tokens are known."""
    examples_per_second: float | None = None
    counted_in: str | None = None
    """The argument whose elements are the tokens, or whose rows are the examples; ``None`` if they
    are unknown or given."""

    @property
    def recomputed_share(self) -> float:
        """The share of the FLOPs that are recomputed."""
        return self._share(self.recomputed_flops)

    @property
    def replicated_share(self) -> float:
        """The share of the FLOPs that other devices compute too, or that are padding."""
        return self._share(self.replicated_flops)

    @property
    def other_share(self) -> float:
        """The share of a device's FLOPs that neither MFU nor HFU counts."""
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
    flops: ProductFlops,
    seconds: float,
    flops_per_second: float,
    tokens: int | None,
    batch: Batch | None,
) -> Usage:
    """Return how well a step of ``seconds`` uses a chip.

    Args:
        flops: FLOPs of products and kernels.
        seconds: the step time.
        flops_per_second: the chip's peak.
        tokens: the tokens of a step, if they are given.
        batch: otherwise what its arguments tell.
    """
    available = seconds * flops_per_second
    examples = None
    if tokens is None and batch is not None:
        tokens = batch.count if batch.unit == "tokens" else None
        examples = batch.count if batch.unit == "examples" else None
    else:
        batch = None
    return Usage(
        model_flops=flops.first,
        recomputed_flops=flops.again,
        replicated_flops=flops.alike,
        other_flops=flops.other,
        mfu=flops.first / available if available else 0.0,
        hfu=flops.executed / available if available else 0.0,
        tokens=tokens,
        tokens_per_second=_rate(tokens, seconds),
        examples=examples,
        examples_per_second=_rate(examples, seconds),
        counted_in=None if batch is None else batch.argument,
    )


def _rate(count: int | None, seconds: float) -> float | None:
    return None if count is None or not seconds else count / seconds
