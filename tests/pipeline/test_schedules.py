"""Schedules of pipelines: what is known of them, and a slow simulation."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shardcore import PlanError
from shardcore.pipeline import SCHEDULES, Chunk, Timeline, run
from shardcore.pipeline.orders import SPLIT
from shardcore.report.pipeline_text import gantt_text

from tests.pipeline.oracle import needs, simulated

SIZES = [(2, 2), (4, 8), (4, 4), (8, 32), (3, 7), (5, 20)]


def equal(schedule: str, stages: int, micro_batches: int, turns: int = 1) -> Timeline:
    """Stages that take a second for each phase of a micro-batch."""
    chunk = Chunk(1 / turns, 1 / turns, 1 / turns, activations=1 / turns)
    return run(schedule, [chunk] * (stages * turns), stages, micro_batches)


@pytest.mark.parametrize(("stages", "micro_batches"), SIZES)
@pytest.mark.parametrize("schedule", ["gpipe", "1f1b", "circular", "interleaved"])
def test_the_bubble_of_equal_stages(schedule: str, stages: int, micro_batches: int) -> None:
    found = equal(schedule, stages, micro_batches)
    for bubble in found.bubbles:
        assert bubble == pytest.approx((stages - 1) / (micro_batches + stages - 1))


@pytest.mark.parametrize(("stages", "micro_batches"), SIZES)
def test_what_stages_keep(stages: int, micro_batches: int) -> None:
    """GPipe keeps all micro-batches, 1F1B as many as there are stages from there on."""
    assert set(equal("gpipe", stages, micro_batches).peak_live) == {micro_batches}
    ahead = tuple(min(stages - s, micro_batches) for s in range(stages))
    assert equal("1f1b", stages, micro_batches).peak_live == ahead


@pytest.mark.parametrize("schedule", ["interleaved", "circular"])
@pytest.mark.parametrize("turns", [2, 3, 4])
@pytest.mark.parametrize(("stages", "micro_batches"), [(2, 4), (4, 8), (8, 32)])
def test_chunks_divide_the_bubble(
    schedule: str, turns: int, stages: int, micro_batches: int
) -> None:
    waits = equal(schedule, stages, micro_batches, turns).step_seconds - 3 * micro_batches
    assert waits == pytest.approx(3 * (stages - 1) / turns)


@pytest.mark.parametrize(("stages", "micro_batches"), [(2, 6), (4, 12), (4, 8), (8, 32)])
def test_zero_bubble_h1(stages: int, micro_batches: int) -> None:
    """A third of what 1F1B waits, in the memory of its first stage."""
    plain, found = (equal(name, stages, micro_batches) for name in ("1f1b", "zb-h1"))
    busy = 3 * micro_batches
    assert found.step_seconds - busy == pytest.approx((plain.step_seconds - busy) / 3)
    assert max(found.peak_live) == max(plain.peak_live)


@pytest.mark.parametrize(("stages", "micro_batches"), [(2, 6), (4, 12), (4, 8), (8, 32)])
def test_zero_bubble_h2(stages: int, micro_batches: int) -> None:
    """No stage waits between its first and its last task, in up to twice the memory."""
    found = equal("zb-h2", stages, micro_batches)
    assert found.period_seconds == pytest.approx(3 * micro_batches)
    assert max(found.peak_live) <= 2 * stages - 1


@pytest.mark.parametrize("weight", [0.0, 0.5, 1.0])
def test_zero_bubble_formulas(weight: float) -> None:
    """(stages - 1) (F + B - W) for H1, (stages - 1) (F + B - 2 W) for H2."""
    stages, micro_batches = 4, 16
    busy = micro_batches * (2 + weight)
    chunks = [Chunk(1.0, 1.0, weight)] * stages
    one, two = (run(name, chunks, stages, micro_batches) for name in SPLIT)
    assert one.period_seconds <= busy + (stages - 1) * (2 - weight) + 1e-9
    assert two.period_seconds <= busy + (stages - 1) * (2 - 2 * weight) + 1e-9


seconds = st.floats(0.1, 4.0)
chunk = st.builds(Chunk, seconds, seconds, seconds, st.floats(0.0, 1.0), st.floats(0.0, 3.0))


@st.composite
def pipelines(draw: st.DrawFn) -> Timeline:
    """A schedule of up to four stages of other times, with up to three chunks."""
    schedule = draw(st.sampled_from(SCHEDULES))
    stages = draw(st.integers(1, 4))
    turns = draw(st.integers(1, 3)) if schedule in ("interleaved", "circular") else 1
    micro_batches = draw(st.integers(1, 8))
    if turns > 1 and schedule == "interleaved":
        micro_batches = draw(st.integers(1, 3)) * stages
    elif turns > 1:
        micro_batches = max(micro_batches, stages)
    chunks = draw(st.lists(chunk, min_size=stages * turns, max_size=stages * turns))
    finish = draw(st.lists(seconds, min_size=stages, max_size=stages))
    return run(schedule, chunks, stages, micro_batches, finish)


@settings(max_examples=150, deadline=None)
@given(pipelines())
def test_tasks_start_when_an_oracle_starts_them(found: Timeline) -> None:
    times = simulated(found)
    assert len(times) == len(found.tasks)
    for task in found.tasks:
        start, end = times[task.phase, task.chunk, task.micro_batch]
        assert (task.start, task.end) == (pytest.approx(start), pytest.approx(end))


@settings(max_examples=150, deadline=None)
@given(pipelines())
def test_every_task_runs_once_after_what_it_needs(found: Timeline) -> None:
    by_key = {(task.phase, task.chunk, task.micro_batch): task for task in found.tasks}
    phases = "FBW" if found.schedule in SPLIT else "FB"
    assert len(found.tasks) == len(phases) * len(found.chunks) * found.micro_batches
    assert len(by_key) == len(found.tasks)
    for (phase, chunk_, m), task in by_key.items():
        assert task.stage == chunk_ % found.stages
        for needed in needs(found.chunks, phase, chunk_, m):
            assert by_key[needed].end <= task.start + 1e-9
    for stage in range(found.stages):
        own = [task for task in found.tasks if task.stage == stage]
        assert all(a.end <= b.start + 1e-9 for a, b in pairwise(own))


@settings(max_examples=100, deadline=None)
@given(pipelines())
def test_what_is_kept_is_what_is_live(found: Timeline) -> None:
    last = "W" if found.schedule in SPLIT else "B"
    for stage in range(found.stages):
        kept = [task for task in found.tasks if task.stage == stage]
        freed = {(t.chunk, t.micro_batch): t.end for t in kept if t.phase == last}
        most = 0.0
        for task in kept:
            live = [
                t
                for t in kept
                if t.phase == "F" and t.start <= task.start < freed[t.chunk, t.micro_batch]
            ]
            most = max(most, sum(found.chunks[t.chunk].activations for t in live))
        assert found.peak_activations[stage] == pytest.approx(most)
        if found.schedule in SPLIT:
            left, most_left = 0, 0
            for task in kept:
                left += {"F": 0, "B": 1, "W": -1}[task.phase]
                most_left = max(most_left, left)
            chunks = [replace(each, activations=0.0, delayed=2.0) for each in found.chunks]
            assert replace(found, chunks=tuple(chunks)).peak_activations[stage] == 2.0 * most_left
    if found.schedule in SPLIT:
        times = SPLIT.index(found.schedule) + 1
        assert max(found.peak_live) <= times * (found.stages - 1) + 1


@settings(max_examples=60, deadline=None)
@given(st.lists(chunk, min_size=1, max_size=4), st.integers(1, 8))
def test_splitting_gradients_is_never_slower(chunks: list[Chunk], micro_batches: int) -> None:
    steps = [
        run(name, chunks, len(chunks), micro_batches).step_seconds
        for name in ("1f1b", "zb-h1", "zb-h2")
    ]
    assert steps[1] <= steps[0] * (1 + 1e-9)
    assert steps[2] <= steps[1] * (1 + 1e-9)


@pytest.mark.parametrize(
    ("schedule", "chunks", "stages", "micro_batches", "part"),
    [
        ("1f2b", 4, 4, 8, "no schedule is called '1f2b'"),
        ("gpipe", 4, 0, 8, "0 stages"),
        ("gpipe", 8, 4, 8, "gpipe has no 8 chunks on 4 stages"),
        ("interleaved", 8, 4, 6, "groups of 4 micro-batches"),
        ("circular", 8, 4, 3, "a micro-batch for each of 4 stages"),
    ],
)
def test_what_is_no_schedule(
    schedule: str, chunks: int, stages: int, micro_batches: int, part: str
) -> None:
    with pytest.raises(PlanError) as raised:
        run(schedule, [Chunk()] * chunks, stages, micro_batches)
    assert raised.value.code == "schedule"
    assert part in raised.value.message
    assert raised.value.diagnostics[0].hint


def test_a_chart_of_text() -> None:
    found = run("zb-h1", [Chunk()] * 2, 2, 3, [1.0, 1.0])
    assert gantt_text(found, 22).splitlines() == [
        "zb-h1, 2 stages, 3 micro-batches: 11 s",
        "stage 0   FFFF..BBWWFFBBWWBBWWUU   9.1% waits",
        "stage 1   ..FFBBFFBBWWFFBBWWWWUU   9.1% waits",
        "          F forward, B backward, W gradients of parameters, U update, . waits",
    ]
    assert str(found).startswith("zb-h1, 2 stages")


def test_a_picture() -> None:
    found = run("interleaved", [Chunk()] * 4, 2, 4, [1.0, 0.0])
    root = ElementTree.fromstring(found.svg())
    bars = [each for each in root if each.tag.endswith("rect") and len(each)]
    assert len(bars) == len(found.tasks) + 1
    assert found._repr_svg_() == found.svg()
    assert "interleaved, 2 stages, 4 micro-batches" in found.svg()
    assert "<shardcore.pipeline.Timeline interleaved: 2 stages" in repr(found)
    record = found.record()
    assert record["step_seconds"] == found.step_seconds
    assert len(record["tasks"]) == len(found.tasks)
