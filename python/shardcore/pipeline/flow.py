"""When the tasks of a pipeline start, given the order in which each stage runs them.

Which task waits for which depends on the order alone, and is found once; times then follow for any
seconds of the chunks. A task starts as soon as its stage is free and its inputs have arrived.
Messages between two stages in one direction are sent one after the other; stages compute in the
meantime.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from shardcore.pipeline.orders import Chunk, Order, Slot, seconds

_PHASES = "FBW"


class _Row(NamedTuple):
    """A task, by numbers; -1 is none."""

    task: int
    """Its number: tasks are counted stage by stage, in the order of the stage."""
    stage: int
    kind: int
    """The number of the kind of the task: of its phase and its chunk."""
    receiver: int
    """The task of another stage that waits for it."""
    way: int
    """The number of the pair of stages that its message goes between."""
    sender: int
    """The chunk whose message it is."""


class Flow:
    """The tasks of an order with what they wait for.

    Inputs from the same stage need no waiting: an order has a task after those that it needs.
    """

    def __init__(self, order: Order, num_chunks: int) -> None:
        """Find what each task of ``order`` waits for; of ``num_chunks`` chunks, stages have equally
        many."""
        self.order = order
        self._num_chunks = num_chunks
        self.splits = any(slot.phase == "W" for slot in order[0])
        """Whether gradients of parameters are tasks of their own."""
        self._firsts = [0]
        """The number of the first task of each stage, and of all tasks."""
        for slots in order:
            self._firsts.append(self._firsts[-1] + len(slots))
        self._ways = 0
        self._rows = list(self._sorted())
        self.live = [list(self._live(slots)) for slots in order]
        """For each stage, for how many micro-batches it keeps the activations of each of its
        chunks, and then for how many of these the gradients of parameters of each are left,
        whenever it keeps most."""

    def starts(self, chunks: Sequence[Chunk]) -> tuple[list[float], list[float]]:
        """Return the seconds at which tasks start, and at which each stage has run all of its.

        Takes time linear in the number of tasks.
        """
        took = self._seconds(chunks)
        sends = [chunk.send for chunk in chunks]
        arrived = [0.0] * self._firsts[-1]
        starts = arrived.copy()
        ways = [0.0] * self._ways
        free = [0.0] * len(self.order)
        for task, stage, kind, receiver, way, sender in self._rows:
            start, at = free[stage], arrived[task]
            if at > start:
                start = at
            starts[task] = start
            free[stage] = end = start + took[kind]
            if receiver >= 0:
                sent = ways[way]
                ways[way] = arrived[receiver] = (end if end > sent else sent) + sends[sender]
        return starts, free

    def tasks(self, chunks: Sequence[Chunk], starts: Sequence[float]) -> Iterator[Started]:
        """Yield each task with its stage, and its start and end of ``starts``."""
        took = self._seconds(chunks)
        numbers = iter(range(self._firsts[-1]))
        for stage, slots in enumerate(self.order):
            for slot, task in zip(slots, numbers, strict=False):
                start = starts[task]
                yield Started(stage, slot, start, start + took[self._kind(slot)])

    def first(self, stage: int) -> int:
        """Return the number of the first task of a stage."""
        return self._firsts[stage]

    def _seconds(self, chunks: Sequence[Chunk]) -> list[float]:
        """The seconds of each kind of task."""
        return [seconds(phase, chunk, self.splits) for phase in _PHASES for chunk in chunks]

    def _kind(self, slot: Slot) -> int:
        return _PHASES.index(slot.phase) * self._num_chunks + slot.chunk

    def _sorted(self) -> Iterator[_Row]:
        """The tasks, each after those that it waits for. Each stage proceeds until an input is
        missing, and again when one arrives."""
        order, firsts, stages = self.order, self._firsts, len(self.order)
        last = self._num_chunks - 1
        numbers = {
            slot: number
            for first, slots in zip(firsts, order, strict=False)
            for number, slot in enumerate(slots, first)
            if slot.phase != "W"
        }
        ways: dict[tuple[int, int], int] = {}
        arrived: set[int] = set()
        places = [0] * stages
        waiting = list(range(stages))
        while waiting:
            stage = waiting.pop()
            slots, first = order[stage], firsts[stage]
            while places[stage] < len(slots):
                slot = slots[places[stage]]
                task = first + places[stage]
                from_chunk = slot.chunk + {"F": -1, "B": 1, "W": 0}[slot.phase]
                is_sent = 0 <= from_chunk <= last and from_chunk % stages != stage
                if is_sent and task not in arrived:
                    break
                places[stage] += 1
                to = slot.chunk - {"F": -1, "B": 1, "W": 0}[slot.phase]
                if not 0 <= to <= last or to % stages == stage:
                    yield _Row(task, stage, self._kind(slot), -1, -1, -1)
                    continue
                receiver = numbers[Slot(slot.phase, to, slot.micro_batch)]
                arrived.add(receiver)
                waiting.append(to % stages)
                way = ways.setdefault((stage, to % stages), len(ways))
                yield _Row(task, stage, self._kind(slot), receiver, way, min(slot.chunk, to))
        self._ways = len(ways)

    def _live(self, slots: Sequence[Slot]) -> Iterator[tuple[int, ...]]:
        """How many micro-batches of each of its chunks a stage keeps, and of how many the gradients
        of parameters are left, before it lets go of one, each such state once. They are kept from
        the start of the forward pass to the end of the last phase of the backward pass."""
        stages = len(self.order)
        turns = self._num_chunks // stages
        counts = [0] * (2 * turns)
        freeing = "W" if self.splits else "B"
        states: set[tuple[int, ...]] = set()
        is_more = False
        for slot in slots:
            turn = slot.chunk // stages
            if slot.phase == freeing:
                state = tuple(counts)
                if is_more and state not in states:
                    states.add(state)
                    yield state
                counts[turn] -= 1
                counts[turns + turn] -= self.splits
                is_more = False
            else:
                counts[turn if slot.phase == "F" else turns + turn] += 1
                is_more = True


class Started(NamedTuple):
    """A task with its times in seconds."""

    stage: int
    slot: Slot
    start: float
    end: float
