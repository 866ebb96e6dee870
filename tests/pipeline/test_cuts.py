"""Cuts of layers into chunks, against all cuts there are."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shardcore.pipeline import Layers, Part, find_layers, run
from shardcore.pipeline.cuts import Cut, chunk, cut, neighbours, parts, seconds

from tests.pipeline import programs

times = st.floats(0.01, 5.0)
bytes_ = st.integers(0, 100)
part = st.builds(Part, times, times, times, times, times, times, activation_bytes=bytes_)
COST = find_layers(programs.step(8)).cost


@st.composite
def layered(draw: st.DrawFn) -> Layers:
    layers = draw(st.lists(part, min_size=1, max_size=7))
    return Layers(draw(part), tuple(layers), draw(part), Part(), 0, None, 0, 0, True, COST)


def all_cuts(count: int, chunks: int) -> Iterator[Cut]:
    for ends in combinations(range(1, count), chunks - 1):
        yield tuple(b - a for a, b in pairwise([0, *ends, count]))


@settings(max_examples=150, deadline=None)
@given(layered(), st.integers(1, 5), st.integers(1, 6), st.integers(0, 400))
def test_no_cut_has_a_faster_slowest_chunk(
    layers: Layers, chunks: int, micro_batches: int, limit: int
) -> None:
    def slowest(sizes: Cut) -> float:
        return max(seconds(each, micro_batches) for each in parts(layers, sizes))

    def fits(number: int, each: Part) -> bool:
        # The first chunks keep more micro-batches.
        return each.activation_bytes * (chunks - number) <= limit

    possible = [
        sizes
        for sizes in all_cuts(len(layers.layers), chunks)
        if all(fits(number, each) for number, each in enumerate(parts(layers, sizes)))
    ]
    found = cut(layers, chunks, micro_batches, fits)
    if found is None:
        assert not possible
        return
    assert found in possible
    assert slowest(found) <= min(map(slowest, possible)) * (1 + 1e-6)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(0.1, 3.0), min_size=2, max_size=7), st.integers(1, 4), st.integers(1, 6))
def test_no_cut_is_faster_where_phases_take_alike(
    sizes: list[float], stages: int, micro_batches: int
) -> None:
    """A pipeline of equal micro-batches takes its stages once, and its slowest stage for all
    others: which cut is the fastest does not depend on how stages follow each other.
    """
    if stages > len(sizes):
        return
    layers = tuple(Part(size, size, size) for size in sizes)
    whole = Layers(Part(1.0, 1.0, 1.0), layers, Part(), Part(), 0, None, 0, 0, True, COST)

    def step(found: Cut) -> float:
        chunks = [chunk(each, micro_batches, 0.0) for each in parts(whole, found)]
        return run("gpipe", chunks, stages, micro_batches).step_seconds

    found = cut(whole, stages, micro_batches, lambda *_: True)
    assert found is not None
    fastest = min(map(step, all_cuts(len(sizes), stages)))
    assert step(found) == pytest.approx(fastest, rel=1e-6)


def test_neighbours_move_one_layer() -> None:
    assert set(neighbours((2, 1, 3))) == {(1, 2, 3), (2, 2, 2), (3, 1, 2), (1, 1, 4)}


def test_parts_add_up() -> None:
    layers = find_layers(programs.step(8))
    found = parts(layers, (3, 5))
    total = sum(each.seconds for each in found) + layers.rest.seconds
    assert total == pytest.approx(layers.cost.step_seconds)
    assert sum(each.parameter_bytes for each in found) == sum(
        each.parameter_bytes for each in (layers.before, *layers.layers, layers.after)
    )
