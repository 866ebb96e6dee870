"""A slow simulation of a pipeline, written to be read: time goes from event to event."""

from __future__ import annotations

from collections.abc import Sequence

from shardcore.pipeline import Chunk, Timeline


def needs(chunks: Sequence[Chunk], phase: str, chunk: int, micro_batch: int) -> list[tuple]:
    """The tasks that a task waits for, by phase, chunk and micro-batch."""
    last = len(chunks) - 1
    if phase == "F":
        return [("F", chunk - 1, micro_batch)] if chunk else []
    if phase == "W":
        return [("B", chunk, micro_batch)]
    own = [("F", chunk, micro_batch)]
    return [*own, ("B", chunk + 1, micro_batch)] if chunk < last else own


def simulated(timeline: Timeline) -> dict[tuple[str, int, int], tuple[float, float]]:
    """When each task of the order of ``timeline`` starts and ends, by phase, chunk, micro-batch."""
    chunks, stages = timeline.chunks, timeline.stages
    splits = any(task.phase == "W" for task in timeline.tasks)
    queues = [[task for task in timeline.tasks if task.stage == s] for s in range(stages)]
    done: dict[tuple[str, int, int], tuple[float, float]] = {}
    sent: dict[tuple[str, int, int], float] = {}
    ways: dict[tuple[int, int], float] = {}
    free = [0.0] * stages
    while any(queues):
        possible = []
        for stage, queue in enumerate(queues):
            if not queue:
                continue
            head = queue[0]
            wanted = needs(chunks, head.phase, head.chunk, head.micro_batch)
            if all(each in done for each in wanted):
                at = [sent[e] if e[1] != head.chunk else done[e][1] for e in wanted]
                possible.append((max([free[stage], *at]), stage))
        start, stage = min(possible)
        task = queues[stage].pop(0)
        chunk = chunks[task.chunk]
        seconds = {
            "F": chunk.forward,
            "B": chunk.backward_input + (0 if splits else chunk.backward_weight),
            "W": chunk.backward_weight,
        }[task.phase]
        free[stage] = end = start + seconds
        key = (task.phase, task.chunk, task.micro_batch)
        done[key] = (start, end)
        to = {"F": task.chunk + 1, "B": task.chunk - 1, "W": -1}[task.phase]
        if 0 <= to < len(chunks):
            way = (stage, to % stages)
            at = end
            if way[0] != way[1]:
                at = max(end, ways.get(way, 0.0)) + chunks[min(to, task.chunk)].send
                ways[way] = at
            sent[key] = at
    return done
