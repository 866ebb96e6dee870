"""The best pipeline that was found, and the alternatives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from shardcore.pipeline.cuts import Cut
from shardcore.pipeline.layers import Layers
from shardcore.pipeline.schedules import Timeline

if TYPE_CHECKING:
    from shardcore.calculus.hardware import Hardware
    from shardcore.costs.links import Transfer


class Setup(NamedTuple):
    """What is chosen of a pipeline besides its cut."""

    schedule: str
    stages: int
    turns: int
    """The number of chunks per stage."""
    micro_batches: int
    once: bool
    """Whether parameters are gathered and converted once a step, and kept until its end, not for
    each micro-batch."""


@dataclass(frozen=True, repr=False)
class Candidate:
    """A pipeline with its times and memory."""

    schedule: str
    stages: int
    turns: int
    """The number of chunks per stage."""
    micro_batches: int
    once: bool
    """Whether parameters are gathered and converted once a step, and kept until its end, not for
    each micro-batch."""
    cut: Cut
    """The number of layers of each chunk, in model order."""
    timeline: Timeline
    memory: tuple[float, ...]
    """The peak bytes of a device of each stage."""
    send: Transfer
    """The transfer of activations to the next chunk (or of their gradient back), per
    micro-batch."""
    devices: int
    """The number of devices of all stages."""

    @property
    def setup(self) -> Setup:
        """What it is besides its cut."""
        return Setup(self.schedule, self.stages, self.turns, self.micro_batches, self.once)

    @property
    def step_seconds(self) -> float:
        """Seconds of the step."""
        return self.timeline.step_seconds

    @property
    def device_seconds(self) -> float:
        """Seconds of the step times the number of devices, by which pipelines on different numbers
        of devices are compared.
        """
        return self.step_seconds * self.devices

    @property
    def peak_bytes(self) -> float:
        """The largest of :attr:`memory`."""
        return max(self.memory)

    @property
    def layers_by_stage(self) -> tuple[int, ...]:
        """The number of layers of each stage."""
        return tuple(sum(self.cut[stage :: self.stages]) for stage in range(self.stages))

    @property
    def sent_bytes(self) -> int:
        """An upper bound of the bytes that a device sends to other stages in a step."""
        ways = 0 if self.stages == 1 else 2 * self.turns
        return self.send.bytes * self.micro_batches * ways

    def record(self) -> dict[str, Any]:
        """Return it as plain data, without tasks."""
        timeline = self.timeline.record()
        del timeline["tasks"]
        return {
            **timeline,
            "chunks_per_stage": self.turns,
            "prepares_once": self.once,
            "cut": list(self.cut),
            "layers_by_stage": list(self.layers_by_stage),
            "memory_bytes": list(self.memory),
            "peak_bytes": self.peak_bytes,
            "send_seconds": self.send.achieved,
            "send_bytes": self.send.bytes,
            "sent_bytes": self.sent_bytes,
            "devices": self.devices,
            "device_seconds": self.device_seconds,
        }

    def __repr__(self) -> str:
        return (
            f"<shardcore.pipeline.Candidate {self.schedule}: {self.stages} stages, "
            f"{self.micro_batches} micro-batches, {self.step_seconds:.4g} s>"
        )


@dataclass(frozen=True, repr=False)
class Pipeline:
    """The best pipeline that was found for a program, and the alternatives."""

    best: Candidate
    others: tuple[Candidate, ...]
    """The best with each other schedule, then the best with each other number of stages."""
    layers: Layers
    hardware: Hardware
    limit: float
    """Bytes of memory of a device."""
    whole: tuple[float, float, int]
    """Seconds, peak bytes and devices of the program without stages."""
    tried: int
    """How many pipelines were evaluated."""

    def record(self) -> dict[str, Any]:
        """Return everything as plain data."""
        step, peak, devices = self.whole
        return {
            "hardware": self.hardware.name,
            "limit_bytes": self.limit,
            "best": {**self.best.record(), "tasks": self.best.timeline.record()["tasks"]},
            "others": [each.record() for each in self.others],
            "without_stages": {"step_seconds": step, "peak_bytes": peak, "devices": devices},
            "layers": self.layers.record(),
            "tried": self.tried,
        }

    def svg(self) -> str:
        """Return an SVG of the best pipeline: a Gantt chart with a row for each stage."""
        return self.best.timeline.svg()

    def _repr_svg_(self) -> str:
        return self.svg()

    def __str__(self) -> str:
        from shardcore.report.pipeline_table import pipeline_text

        return pipeline_text(self)

    def __repr__(self) -> str:
        return f"<shardcore.Pipeline: {self.best!r} of {self.tried}>"
