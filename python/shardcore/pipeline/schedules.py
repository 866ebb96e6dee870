"""Exact schedules of pipelines: when each stage computes which micro-batch.

A pipeline has stages, each on its own devices, and chunks of layers: with ``v`` chunks per stage,
chunk ``c`` of ``v * stages``, in model order, is on stage ``c % stages``. A task is one phase of
one chunk for one micro-batch. :func:`run` starts the tasks of each stage in the order of the
schedule, each as soon as its inputs have arrived.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from shardcore.bounded import shown
from shardcore.cached_property import cached_property
from shardcore.errors import Diagnostic, PlanError
from shardcore.pipeline.orders import ORDERS, SPLIT, Chunk, Order, Slot, seconds
from shardcore.pipeline.zero_bubble import zero_bubble

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
    tasks: tuple[Task, ...]
    """The tasks of each stage in execution order, stage by stage."""

    @cached_property
    def spans(self) -> tuple[tuple[float, float], ...]:
        """For each stage the start of its first task, and its end of the step."""
        starts, ends = [float("inf")] * self.stages, [0.0] * self.stages
        for task in self.tasks:
            starts[task.stage] = min(starts[task.stage], task.start)
            ends[task.stage] = max(ends[task.stage], task.end)
        ends = [end + more for end, more in zip(ends, self.finish, strict=True)]
        return tuple(zip(starts, ends, strict=True))

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
        for task in self.tasks:
            busy[task.stage] += task.end - task.start
        step = self.step_seconds
        return tuple(max(0.0, 1 - each / step) if step else 0.0 for each in busy)

    @property
    def bubble(self) -> float:
        """The mean over stages of the share of the step in which they wait."""
        return sum(self.bubbles) / self.stages

    @cached_property
    def peak_activations(self) -> tuple[float, ...]:
        """For each stage the peak of the bytes of kept activations."""
        return tuple(self._peaks([chunk.activations for chunk in self.chunks]))

    @cached_property
    def peak_live(self) -> tuple[int, ...]:
        """For each stage the most pairs of a chunk and a micro-batch whose activations it keeps."""
        return tuple(round(at) for at in self._peaks([1.0] * len(self.chunks)))

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

    def _peaks(self, sizes: Sequence[float]) -> list[float]:
        """The live maximum on each stage if a micro-batch takes ``sizes`` of each chunk from the
        start of its forward pass to the end of the last phase of its backward pass.
        """
        last = "W" if self.schedule in SPLIT else "B"
        live, peaks = [0.0] * self.stages, [0.0] * self.stages
        # A stage runs one task at a time, and its tasks are sorted by time.
        for task in self.tasks:
            stage = task.stage
            if task.phase == "F":
                live[stage] += sizes[task.chunk]
                peaks[stage] = max(peaks[stage], live[stage])
            elif task.phase == last:
                live[stage] -= sizes[task.chunk]
        return peaks


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
    if schedule in SPLIT:
        orders = zero_bubble(times, stages, micro_batches, SPLIT.index(schedule) + 1)
    else:
        orders = [ORDERS[schedule](stages, len(chunks) // stages, micro_batches)]
    ends = tuple(finish) if finish is not None else (0.0,) * stages
    found = [
        Timeline(schedule, stages, micro_batches, times, ends, _timed(order, times, stages))
        for order in orders
    ]
    return min(found, key=lambda each: (each.step_seconds, each.period_seconds))


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


def _timed(order: Order, chunks: tuple[Chunk, ...], stages: int) -> tuple[Task, ...]:
    """Start the tasks of each stage in ``order``, each as soon as possible."""
    last = len(chunks) - 1
    splits = any(slot.phase == "W" for slot in order[0])
    arrived: dict[Slot, float] = {Slot("F", 0, m): 0.0 for m in range(len(order[0]))}
    ways: dict[tuple[int, int], float] = {}
    free, places = [0.0] * stages, [0] * stages
    found: list[list[Task]] = [[] for _ in range(stages)]
    # The start of a task depends only on its inputs, not on the order of this loop: each stage
    # # proceeds until an input is missing, and again when one arrives.
    waiting = list(range(stages))

    def deliver(slot: Slot, at: float, sender: int, seconds: float) -> None:
        receiver = slot.chunk % stages
        if receiver != sender:
            at = max(at, ways.get((sender, receiver), 0.0)) + seconds
            ways[sender, receiver] = at
            waiting.append(receiver)
        arrived[slot] = at

    while waiting:
        stage = waiting.pop()
        tasks, slots = found[stage], order[stage]
        while places[stage] < len(slots) and slots[places[stage]] in arrived:
            slot = slots[places[stage]]
            phase, chunk, m = slot
            start = max(free[stage], arrived[slot])
            end = free[stage] = start + seconds(phase, chunks[chunk], splits)
            tasks.append(Task(stage, chunk, m, phase, start, end))
            places[stage] += 1
            if phase == "F" and chunk < last:
                deliver(Slot("F", chunk + 1, m), end, stage, chunks[chunk].send)
            elif phase == "F":
                arrived[Slot("B", chunk, m)] = end
            elif phase == "B":
                if chunk:
                    deliver(Slot("B", chunk - 1, m), end, stage, chunks[chunk - 1].send)
                arrived[Slot("W", chunk, m)] = end
    return tuple(task for tasks in found for task in tasks)
