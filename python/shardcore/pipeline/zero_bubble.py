"""Schedules that fill waiting time with gradients of parameters (zero bubble)."""

from __future__ import annotations

import heapq
from collections.abc import Sequence

from shardcore.pipeline.orders import Chunk, Order, Slot, seconds


def lagging(stages: int, micro_batches: int, times: int) -> Order:
    """Return the order of ``1f1b`` in which a stage is ahead by ``times`` as many forward passes as
    there are stages after it, and delays its gradients of parameters by as many micro-batches as
    there are stages before it. Without any ``times``, these follow the gradient of the input at
    once.
    """

    def order(stage: int) -> list[Slot]:
        ahead = min(max(times, 1) * (stages - stage - 1), micro_batches)
        late = min(times * stage, micro_batches)
        found = [Slot("F", stage, m) for m in range(ahead)]
        for m in range(micro_batches):
            if ahead + m < micro_batches:
                found.append(Slot("F", stage, ahead + m))
            found.append(Slot("B", stage, m))
            if m >= late:
                found.append(Slot("W", stage, m - late))
        return [*found, *(Slot("W", stage, m) for m in range(micro_batches - late, micro_batches))]

    return [order(stage) for stage in range(stages)]


def greedy(
    chunks: Sequence[Chunk], stages: int, micro_batches: int, times_memory: int
) -> list[Order]:
    """Return orders that depend on the times of chunks and keep as many micro-batches as the first
    stage of ``1f1b``, or twice as many minus one.
    """
    most = min(times_memory * (stages - 1) + 1, micro_batches)
    return [_greedy(chunks, stages, micro_batches, most, patient) for patient in (False, True)]


def _greedy(
    chunks: Sequence[Chunk], stages: int, micro_batches: int, most: int, patient: bool
) -> Order:
    """Each stage runs the first possible of these: the gradient of an input; a forward pass, if it
    keeps fewer than ``most`` micro-batches; a gradient of parameters. If ``patient``, it runs the
    last only if no task with a known arrival time would have to wait for it.
    """
    order: Order = [[] for _ in range(stages)]
    # For each stage the inputs that have arrived or are on the way, by time and micro-batch.
    inputs: dict[str, list[list[tuple[float, int]]]] = {
        phase: [[] for _ in range(stages)] for phase in "FB"
    }
    inputs["F"][0] = [(0.0, m) for m in range(micro_batches)]
    weights: list[list[int]] = [[] for _ in range(stages)]
    live, free = [0] * stages, [0.0] * stages
    events = [(0.0, stage) for stage in range(stages)]
    while events:
        now, stage = heapq.heappop(events)
        if now < free[stage]:
            continue
        fits = live[stage] < most
        coming = inputs["B"][stage][:1] + (inputs["F"][stage][:1] if fits else [])
        chunk = chunks[stage]
        slot: Slot | None = None
        for phase in "BF" if fits else "B":
            arrivals = inputs[phase][stage]
            if slot is None and arrivals and arrivals[0][0] <= now:
                slot = Slot(phase, stage, heapq.heappop(arrivals)[1])
        if slot is None and weights[stage]:
            waits = min((at for at, _ in coming), default=float("inf"))
            if not patient or waits >= now + chunk.backward_weight:
                slot = Slot("W", stage, weights[stage].pop(0))
        if slot is None:
            if coming:
                heapq.heappush(events, (max(min(coming)[0], now), stage))
            continue
        order[stage].append(slot)
        end = now + seconds(slot.phase, chunk, True)
        free[stage] = end
        live[stage] += {"F": 1, "B": 0, "W": -1}[slot.phase]
        heapq.heappush(events, (end, stage))
        if slot.phase == "W":
            continue
        if slot.phase == "F":
            phase, to, send = ("F", stage + 1, chunk.send)
            if to == stages:
                phase, to, send = "B", stage, 0.0
        else:
            weights[stage].append(slot.micro_batch)
            phase, to = "B", stage - 1
            send = chunks[to].send if to >= 0 else 0.0
        if to >= 0:
            heapq.heappush(inputs[phase][to], (end + send, slot.micro_batch))
            heapq.heappush(events, (max(end + send, free[to]), to))
    return order
