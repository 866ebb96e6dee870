"""Exact schedules of pipelines: when each stage computes which micro-batch.

A pipeline has stages, each on its own devices, and chunks of layers: with ``v`` chunks per stage,
chunk ``c`` of ``v * stages``, in model order, is on stage ``c % stages``. A task is one phase of
one chunk for one micro-batch. :func:`run` starts the tasks of each stage in the order of the
schedule, each as soon as its inputs have arrived.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from shardcore.bounded import shown
from shardcore.cached_property import cached_property
from shardcore.errors import Diagnostic, PlanError
from shardcore.pipeline.flow import Flow
from shardcore.pipeline.orders import ORDERS, SPLIT, Chunk
from shardcore.pipeline.zero_bubble import greedy, lagging

SCHEDULES = (*ORDERS, *SPLIT)
"""The schedules, as :mod:`shardcore.pipeline.orders` describes them."""
LOOPED = ("interleaved", "circular")
"""The schedules in which a stage has several chunks."""


class Task(NamedTuple):
    """One phase of one chunk for one micro-batch."""

    stage: int
    chunk: int
    micro_batch: int
    phase: str
    """``F``: forward; ``B``: the gradient of the input, and also of the parameters unless the
    schedule splits them; ``W``: the gradient of the parameters."""
    start: float
    """Seconds from the start of the step."""
    end: float


@dataclass(frozen=True, repr=False)
class Timeline:
    """The times of all tasks of a pipeline."""

    schedule: str
    stages: int
    micro_batches: int
    chunks: tuple[Chunk, ...]
    """The chunks, in model order."""
    finish: tuple[float, ...]
    """Seconds of each stage at the end of the step, such as for its optimizer."""
    flow: Flow = field(repr=False)
    """The order of the tasks."""

    @cached_property
    def tasks(self) -> tuple[Task, ...]:
        """The tasks of each stage in execution order, stage by stage."""
        return tuple(
            Task(stage, slot.chunk, slot.micro_batch, slot.phase, start, end)
            for stage, slot, start, end in self.flow.tasks(self.chunks, self._times[0])
        )

    @cached_property
    def spans(self) -> tuple[tuple[float, float], ...]:
        """For each stage the start of its first task, and its end of the step."""
        starts, ends = self._times
        return tuple(
            (starts[self.flow.first(stage)], end + more)
            for stage, (end, more) in enumerate(zip(ends, self.finish, strict=True))
        )

    @property
    def step_seconds(self) -> float:
        """Seconds of the step, until the last stage ends it."""
        return max(end for _, end in self.spans)

    @property
    def period_seconds(self) -> float:
        """Seconds from one step to the next if each stage starts the next step as soon as it has
        ended this one. The optimizer may not allow it: clipping by the global norm of gradients
        waits for all stages.
        """
        return max(end - start for start, end in self.spans)

    @cached_property
    def bubbles(self) -> tuple[float, ...]:
        """For each stage the share of the step in which it waits."""
        busy = list(self.finish)
        for number, chunk in enumerate(self.chunks):
            once = chunk.forward + chunk.backward_input + chunk.backward_weight
            busy[number % self.stages] += once * self.micro_batches
        step = self.step_seconds
        return tuple(max(0.0, 1 - each / step) if step else 0.0 for each in busy)

    @property
    def bubble(self) -> float:
        """The mean over stages of the share of the step in which they wait."""
        return sum(self.bubbles) / self.stages

    @cached_property
    def peak_activations(self) -> tuple[float, ...]:
        """For each stage the peak of the bytes of kept activations, and of what gradients of
        parameters that are computed later read."""
        kept = [chunk.activations for chunk in self.chunks]
        return tuple(self._peaks(kept, [chunk.delayed for chunk in self.chunks]))

    @cached_property
    def peak_live(self) -> tuple[int, ...]:
        """For each stage the most pairs of a chunk and a micro-batch whose activations it keeps."""
        count = len(self.chunks)
        return tuple(round(at) for at in self._peaks([1.0] * count, [0.0] * count))

    def record(self) -> dict[str, object]:
        """Return it as plain data."""
        return {
            "schedule": self.schedule,
            "stages": self.stages,
            "micro_batches": self.micro_batches,
            "step_seconds": self.step_seconds,
            "period_seconds": self.period_seconds,
            "bubbles": list(self.bubbles),
            "peak_live": list(self.peak_live),
            "peak_activation_bytes": list(self.peak_activations),
            "tasks": [task._asdict() for task in self.tasks],
        }

    def __str__(self) -> str:
        from shardcore.report.pipeline_text import gantt_text

        return gantt_text(self)

    def __repr__(self) -> str:
        return (
            f"<shardcore.pipeline.Timeline {self.schedule}: {self.stages} stages, "
            f"{self.micro_batches} micro-batches, {self.step_seconds:.4g} s, "
            f"{self.bubble:.1%} bubble>"
        )

    def svg(self) -> str:
        """Return an SVG: a Gantt chart with a row for each stage."""
        from shardcore.report.pipeline_svg import gantt_svg

        return gantt_svg(self)

    def _repr_svg_(self) -> str:
        return self.svg()

    @cached_property
    def _times(self) -> tuple[list[float], list[float]]:
        """The seconds at which tasks start, and at which each stage has run its last."""
        return self.flow.starts(self.chunks)

    def _peaks(self, sizes: Sequence[float], delayed: Sequence[float]) -> list[float]:
        """The live maximum on each stage if a micro-batch takes ``sizes`` of each chunk from the
        start of its forward pass to the end of the last phase of its backward pass, and ``delayed``
        until then from the end of the first phase of that.
        """
        return [most_kept(self.flow, stage, sizes, delayed) for stage in range(self.stages)]


def most_kept(flow: Flow, stage: int, sizes: Sequence[float], delayed: Sequence[float]) -> float:
    """Return the most that ``stage`` keeps at once; a micro-batch takes ``sizes`` of each chunk,
    and ``delayed`` where its gradients of parameters are left."""
    count = len(flow.order)
    own = [*sizes[stage::count], *delayed[stage::count]]
    return max(
        sum(count * size for count, size in zip(state, own, strict=True))
        for state in flow.live[stage]
    )


def run(
    schedule: str,
    chunks: Sequence[Chunk],
    stages: int,
    micro_batches: int,
    finish: Sequence[float] | None = None,
) -> Timeline:
    """Return the timeline of the tasks.

    Messages between two stages in one direction are sent one after the other; stages compute in the
    meantime.

    Args:
        schedule: one of :data:`SCHEDULES`.
        chunks: the chunks in model order, ``v`` per stage; ``interleaved`` and ``circular`` take
            any ``v``, other schedules need 1.
        stages: the number of stages.
        micro_batches: the number of micro-batches; with several chunks per stage, ``interleaved``
            needs a multiple of the number of stages, ``circular`` at least that number.
        finish: seconds of each stage at the end of the step; by default 0.

    Raises:
        PlanError: the schedule is unknown, or does not allow these numbers of chunks, stages or
            micro-batches (``schedule``).
    """
    check(schedule, len(chunks), stages, micro_batches)
    times = tuple(chunks)
    ends = tuple(finish) if finish is not None else (0.0,) * stages
    found = [
        Timeline(schedule, stages, micro_batches, times, ends, flow)
        for flow in _flows(schedule, times, stages, micro_batches)
    ]
    return min(found, key=lambda each: (each.step_seconds, each.period_seconds))


_MOST_FLOWS = 64


@lru_cache(_MOST_FLOWS)
def flow_of(schedule: str, stages: int, turns: int, micro_batches: int) -> Flow:
    """Return the order of a schedule that is not one of :data:`~.orders.SPLIT`."""
    return Flow(ORDERS[schedule](stages, turns, micro_batches), stages * turns)


@lru_cache(_MOST_FLOWS)
def _lagging(stages: int, micro_batches: int, times: int) -> Flow:
    return Flow(lagging(stages, micro_batches, times), stages)


def _flows(
    schedule: str, chunks: tuple[Chunk, ...], stages: int, micro_batches: int
) -> Iterator[Flow]:
    """The orders of a schedule; which of several is best depends on the times."""
    if schedule not in SPLIT:
        yield flow_of(schedule, stages, len(chunks) // stages, micro_batches)
        return
    times_memory = SPLIT.index(schedule) + 1
    for times in range(times_memory + 1):
        yield _lagging(stages, micro_batches, times)
    for order in greedy(chunks, stages, micro_batches, times_memory):
        yield Flow(order, stages)


def check(schedule: str, chunks: int, stages: int, micro_batches: int) -> None:
    """Check that the schedule allows these numbers.

    Raises:
        PlanError: as for :func:`run`.
    """

    def refuse(message: str, hint: str) -> PlanError:
        return PlanError(Diagnostic("schedule", message, hint))

    if schedule not in SCHEDULES:
        raise refuse(f"no schedule is called {shown(schedule)}", f"there is {', '.join(SCHEDULES)}")
    if stages < 1 or micro_batches < 1:
        raise refuse(
            f"a pipeline of {stages} stages and {micro_batches} micro-batches has no tasks",
            "both are at least 1",
        )
    turns, rest = divmod(chunks, stages)
    if rest or not turns or (turns > 1 and schedule not in LOOPED):
        wanted = "a multiple of" if schedule in LOOPED else "as many as"
        raise refuse(
            f"{schedule} has no {chunks} chunks on {stages} stages",
            f"it takes {wanted} the stages",
        )
    if turns > 1 and schedule == "interleaved" and micro_batches % stages:
        raise refuse(
            f"{schedule} goes by groups of {stages} micro-batches, of which {micro_batches} are no "
            "multiple",
            f"take {-(-micro_batches // stages) * stages}",
        )
    if turns > 1 and schedule == "circular" and micro_batches < stages:
        raise refuse(
            f"{schedule} needs a micro-batch for each of {stages} stages, not {micro_batches}",
            f"take {stages} or more",
        )
