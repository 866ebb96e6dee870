"""The order in which each stage of a pipeline runs its tasks, by schedule.

=================  =============================================================================
``gpipe``          all forward passes, then all backward passes
``1f1b``           alternating forward and backward passes, once the pipeline is full
``interleaved``    ``1f1b`` with several chunks per stage, in groups of as many micro-batches
                   as there are stages
``circular``       all forward passes chunk by chunk, as computed by a loop whose buffer goes
                   round several times; then backward in the same way, as its derivative does
``zb-h1``          ``1f1b``, with gradients of parameters where the stage would wait, within the
                   memory that ``1f1b`` needs on its first stage
``zb-h2``          ``zb-h1`` within twice that memory
=================  =============================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True)
class Chunk:
    """Layers that a stage runs as one. Seconds and bytes are for one micro-batch."""

    forward: float = 1.0
    """Seconds of the forward pass."""
    backward_input: float = 1.0
    """Seconds of the gradient of the input, for which the previous stage waits."""
    backward_weight: float = 1.0
    """Seconds of the gradients of the parameters, for which no stage waits."""
    send: float = 0.0
    """Seconds to send the activations, or later their gradient, between two chunks."""
    activations: float = 1.0
    """Bytes that the forward pass keeps for the backward pass."""
    delayed: float = 0.0
    """Bytes that the gradient of the input keeps for the gradients of the parameters besides, if
    the schedule splits them."""


class Slot(NamedTuple):
    """A task without its time."""

    phase: str
    chunk: int
    micro_batch: int


Order = list[list[Slot]]
"""The tasks of each stage, in order."""

KEEPING = ("gpipe", "circular")
"""The schedules that keep the activations of all micro-batches."""
SPLIT = ("zb-h1", "zb-h2")
"""The schedules in which gradients of parameters are separate tasks."""


def _gpipe(stages: int, _: int, micro_batches: int) -> Order:
    forward, backward = range(micro_batches), range(micro_batches - 1, -1, -1)
    return [
        [*(Slot("F", stage, m) for m in forward), *(Slot("B", stage, m) for m in backward)]
        for stage in range(stages)
    ]


def _circular(stages: int, rounds: int, micro_batches: int) -> Order:
    def order(stage: int) -> list[Slot]:
        chunks = [stage + stages * turn for turn in range(rounds)]
        forward = [(chunk, m) for chunk in chunks for m in range(micro_batches)]
        return [*(Slot("F", *at) for at in forward), *(Slot("B", *at) for at in forward[::-1])]

    return [order(stage) for stage in range(stages)]


def _alternating(stages: int, rounds: int, micro_batches: int) -> Order:
    """Fills the pipeline, then alternates forward and backward passes, then drains it."""

    def places(backward: bool) -> Iterator[tuple[int, int]]:
        """Rounds and micro-batches, in groups of as many micro-batches as there are stages."""
        for first in range(0, micro_batches, stages):
            for turn in range(rounds):
                for m in range(first, min(first + stages, micro_batches)):
                    yield rounds - 1 - turn if backward else turn, m

    def order(stage: int) -> list[Slot]:
        forward = [Slot("F", stage + stages * turn, m) for turn, m in places(False)]
        backward = [Slot("B", stage + stages * turn, m) for turn, m in places(True)]
        ahead = stages - stage - 1
        if rounds > 1:
            ahead += stages - stage - 1 + (rounds - 1) * stages
        ahead = min(ahead, len(forward))
        found = forward[:ahead]
        for place, each in enumerate(backward):
            if ahead + place < len(forward):
                found.append(forward[ahead + place])
            found.append(each)
        return found

    return [order(stage) for stage in range(stages)]


ORDERS: dict[str, Callable[[int, int, int], Order]] = {
    "gpipe": _gpipe,
    "1f1b": _alternating,
    "interleaved": _alternating,
    "circular": _circular,
}
"""The order of each schedule, given the stages, the chunks per stage and the micro-batches."""


def seconds(phase: str, chunk: Chunk, splits: bool) -> float:
    """Return the seconds of a phase of ``chunk``; unless the schedule ``splits`` it, the backward
    pass includes both gradients.
    """
    if phase == "F":
        return chunk.forward
    if phase == "W":
        return chunk.backward_weight
    return chunk.backward_input + (0.0 if splits else chunk.backward_weight)
