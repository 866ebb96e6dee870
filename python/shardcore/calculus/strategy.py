"""A strategy for a product: its steps and its figures."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from shardcore.calculus.axes import axes_text, axis_text
from shardcore.calculus.collectives import book_name
from shardcore.calculus.plan import Stage, layout_in, layout_text
from shardcore.calculus.reshard import Step


@dataclass(frozen=True)
class TimedStep:
    """One collective of a strategy with its cost."""

    step: Step
    when: str
    """``"before"`` or ``"after"`` the multiplication."""
    text: str
    """The step in notation, ``A[I, J_X] -> A[I, J]``."""
    dim: str | None
    seconds: float
    bytes: float
    """V: the bytes of the gathered array in one group of devices."""
    bound: str
    """``"bandwidth"``, ``"latency"``, or ``"free"``."""
    stage: int = 0
    """The index of its product in the chain, from 0."""

    def record(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "op": self.step.op,
            "tensor": self.step.tensor,
            "axes": list(map(axis_text, self.step.axes)),
            "dim": self.dim,
            "when": self.when,
            "stage": self.stage,
            "text": self.text,
            "seconds": self.seconds,
            "bytes": self.bytes,
            "bound": self.bound,
        }


@dataclass(frozen=True, repr=False)
class Strategy:
    """One way to compute a product, or a chain of products."""

    stages: tuple[Stage, ...]
    steps: tuple[TimedStep, ...]
    comm_seconds: float
    compute_seconds: float
    total_seconds: float
    """Seconds if communication and computation of each product overlap entirely."""
    serial_seconds: float
    """Seconds if they do not overlap."""
    chunked_seconds: float
    """Seconds if they overlap except for the first chunk."""
    flops_per_device: float
    bytes_per_device: float
    """The peak of bytes on a device: stored, gathered and computed arrays."""
    stored_bytes_per_device: float
    """Bytes of the operands and the output in their given shardings."""
    hbm_seconds: float
    """Seconds to read operands from memory and write products; not part of the other times."""
    fits: bool = True
    """Whether ``bytes_per_device`` is within the memory limit."""

    def __repr__(self) -> str:
        note = "" if self.fits else ", needs more memory than there is"
        return f"<Strategy {self.name}: {self.total_seconds * 1e6:.4g} us, {self.bound}{note}>"

    @property
    def bound(self) -> str:
        """``"communication"`` or ``"compute"``, whichever takes longer."""
        return "communication" if self.comm_seconds > self.compute_seconds else "compute"

    @property
    def name(self) -> str:
        """The steps in short: ``AllGather_X(A)``."""
        return (
            "; ".join(step_name(timed.step, timed.dim) for timed in self.steps)
            or "multiply locally"
        )

    @property
    def inputs(self) -> tuple[str, ...]:
        """The inputs with their given shardings."""
        found = []
        for index, stage in enumerate(self.stages):
            for place, array in enumerate(stage.contraction.operands):
                if index == 0 or place == 1:
                    found.append(layout_text(array, stage.stored[place]))
        return tuple(found)

    @property
    def output(self) -> str:
        """The output with its final sharding."""
        last = self.stages[-1]
        output = last.contraction.output
        return layout_text(output, last.result, output.unreduced)

    @property
    def multiplications(self) -> tuple[str, ...]:
        """The products on devices, ``A[I, J_X] * B[J_X, K] -> C[I, K] {U_X}``."""
        return tuple(_multiplication(stage) for stage in self.stages)

    @property
    def rank(self) -> tuple[float, ...]:
        """The sort key of strategies; times are rounded, so that equal ones compare equal."""
        numbers = (self.total_seconds, self.serial_seconds, self.bytes_per_device)
        return (float(not self.fits), *map(rounded, numbers), len(self.steps))

    def record(self) -> dict[str, Any]:
        """Return everything as plain data."""
        return {
            "name": self.name,
            "inputs": list(self.inputs),
            "output": self.output,
            "steps": [timed.record() for timed in self.steps],
            "multiplications": list(self.multiplications),
            "comm_seconds": self.comm_seconds,
            "compute_seconds": self.compute_seconds,
            "total_seconds": self.total_seconds,
            "serial_seconds": self.serial_seconds,
            "chunked_seconds": self.chunked_seconds,
            "hbm_seconds": self.hbm_seconds,
            "bound": self.bound,
            "flops_per_device": self.flops_per_device,
            "bytes_per_device": self.bytes_per_device,
            "stored_bytes_per_device": self.stored_bytes_per_device,
            "fits": self.fits,
        }


def _multiplication(stage: Stage) -> str:
    left, right = stage.contraction.operands
    output = stage.contraction.output
    parts = [layout_text(array, layout_in(array, stage.cut)) for array in (left, right)]
    result = layout_text(output, layout_in(output, stage.cut), stage.unreduced)
    return f"{parts[0]} * {parts[1]} -> {result}"


def step_name(step: Step, dim: str | None) -> str:
    """Return a step in short, ``ReduceScatter_{X,K}(C)``; ``dim`` is the dim that gets the axes."""
    axes = axes_text(step.axes)
    where = axes if dim is None else f"{axes},{dim}"
    return f"{book_name(step.op)}_{where if len(where) == 1 else f'{{{where}}}'}({step.tensor})"


def rounded(value: float) -> float:
    """``value`` to ten digits, so that equal times are equal."""
    return value if value == 0 or math.isinf(value) else float(f"{value:.9e}")
