"""Cuts layers into the chunks of a pipeline."""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate

import numpy as np

from shardcore.pipeline.layers import Layers
from shardcore.pipeline.orders import Chunk
from shardcore.pipeline.part import Part

Cut = tuple[int, ...]
"""The number of layers of each chunk; those with what comes before or after the layers may have
none."""


def parts(layers: Layers, cut: Cut) -> list[Part]:
    """Return the cost of each chunk; the first chunk includes what comes before the layers, the
    last what comes after them.
    """
    sums = layers.sums
    ends = accumulate(cut)
    found = [sums[end] - sums[end - size] for end, size in zip(ends, cut, strict=True)]
    found[0] = layers.before + found[0]
    found[-1] = found[-1] + layers.after
    return found


def chunk(part: Part, micro_batches: int, send: float) -> Chunk:
    """Return the cost of a chunk for one of ``micro_batches``; it sends each micro-batch on in
    ``send`` seconds.
    """
    return Chunk(
        forward=part.forward / micro_batches + part.fixed_forward,
        backward_input=part.backward_input / micro_batches + part.fixed_backward,
        backward_weight=part.backward_weight / micro_batches,
        send=send,
        activations=part.activation_bytes / micro_batches,
        delayed=part.delayed_bytes / micro_batches,
    )


def seconds(part: Part, micro_batches: int) -> float:
    """Return the seconds in which a stage with ``part`` computes in a step."""
    of_one = chunk(part, micro_batches, 0.0)
    times = of_one.forward + of_one.backward_input + of_one.backward_weight
    return times * micro_batches + part.update


def cut(
    layers: Layers, chunks: int, micro_batches: int, fits: Callable[[int, Part], bool] | None = None
) -> Cut | None:
    """Return the cut with the fastest slowest chunk among those whose chunks all fit; ``None`` if
    there is none.

    The result is exact. A chunk with more layers takes more time and memory; so, for a given time
    of the slowest chunk, chunks that take as many layers as they can leave the fewest for the last
    one. The optimal time is that of some run of layers, and is found by bisection.

    Args:
        layers: the layers.
        chunks: the number of chunks.
        micro_batches: the number of micro-batches.
        fits: whether a chunk, given by its number and cost, fits; more layers never make it fit.
            Without it all do.
    """
    count = len(layers.layers)
    if chunks > count:
        return None
    sums = layers.sums
    times = [seconds(part, micro_batches) for part in sums]
    ends = seconds(layers.before, micro_batches), seconds(layers.after, micro_batches)
    last = chunks - 1

    def time(number: int, first: int, end: int) -> float:
        """Seconds of the chunk ``number`` with the layers from ``first`` to ``end``."""
        found = times[end] - times[first]
        return found + (0 if number else ends[0]) + (ends[1] if number == last else 0)

    def part(number: int, first: int, end: int) -> Part:
        found = sums[end] - sums[first]
        found = found if number else layers.before + found
        return found + layers.after if number == last else found

    def within(most: float) -> Cut | None:
        """A cut whose chunks take at most ``most`` seconds each; ``None`` if there is none."""

        def allowed(number: int, first: int, end: int) -> bool:
            is_fast = time(number, first, end) <= most * (1 + 1e-9)
            return is_fast and (fits is None or fits(number, part(number, first, end)))

        sizes, first = [], 0
        for number in range(chunks):
            # Each later chunk needs at least one layer.
            high = count - (last - number)
            low = high if number == last else first + 1
            if not allowed(number, first, low):
                return None
            while low < high:
                middle = (low + high + 1) // 2
                if allowed(number, first, middle):
                    low = middle
                else:
                    high = middle - 1
            sizes.append(low - first)
            first = low
        return tuple(sizes)

    inside = np.array(times)
    runs = np.unique((inside - inside[:, None])[np.triu_indices(count + 1, 1)])
    extra = {ends[0] + (0 if last else ends[1]), ends[1] if last else 0.0, 0.0}
    possible = np.unique(np.concatenate([runs + more for more in extra]))
    low, high = 0, len(possible) - 1
    if within(possible[high]) is None:
        return None
    while low < high:
        middle = (low + high) // 2
        if within(possible[middle]) is None:
            low = middle + 1
        else:
            high = middle
    return within(possible[low])


def neighbours(found: Cut) -> list[Cut]:
    """Return the cuts that move one layer from one chunk to another, those between nearby chunks
    first.
    """
    count = len(found)
    moved = []
    for distance in range(1, count):
        for at in range(count - distance):
            for one, other in ((at, at + distance), (at + distance, at)):
                if found[one] > 1:
                    sizes = list(found)
                    sizes[one] -= 1
                    sizes[other] += 1
                    moved.append(tuple(sizes))
    return moved
