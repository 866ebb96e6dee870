"""Pipelines that are found: as good as the best of all, and within the memory."""

from __future__ import annotations

import itertools
import json
import math
import random
from dataclasses import replace
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from shardcore import Module, PlanError
from shardcore.calculus.hardware import hardware
from shardcore.cli import main
from shardcore.pipeline import SCHEDULES, Candidate, Part, Pipeline, find, find_layers, run
from shardcore.pipeline.answer import Setup
from shardcore.pipeline.cuts import chunk, parts
from shardcore.pipeline.schedules import LOOPED, check
from shardcore.pipeline.search import PipelineSearch, links_of

from tests.pipeline import programs

ROOT = Path(__file__).parents[2]
MIB = 1 << 20


@pytest.fixture(scope="module")
def found() -> Pipeline:
    return find(programs.step(8), "tpu-v5p", stages=(2, 4))


def test_the_best_is_the_best_of_those_shown(found: Pipeline) -> None:
    assert found.others
    for other in found.others:
        assert other.device_seconds >= found.best.device_seconds
    names = [found.best.schedule, *(other.schedule for other in found.others)]
    assert set(names) == set(SCHEDULES)


def test_each_says_what_it_is(found: Pipeline) -> None:
    for each in (found.best, *found.others):
        assert sum(each.cut) == 8
        assert len(each.cut) == each.stages * each.turns
        assert sum(each.layers_by_stage) == 8
        assert each.devices == 4 * each.stages
        assert each.peak_bytes <= found.limit
        assert (programs.BATCH // 4) % each.micro_batches == 0
        assert each.timeline.step_seconds == each.step_seconds
        assert each.send.bytes == found.layers.boundary_bytes // each.micro_batches
        assert each.sent_bytes == 2 * each.turns * each.send.bytes * each.micro_batches
        assert each.send.achieved > 0


def every_cut(found: Pipeline, once: bool) -> list[tuple[float, float]]:
    """The step and the most memory of each cut into stages as that of the best, with parameters
    prepared once a step or for each micro-batch."""
    best = found.best
    stages, batches = best.stages, best.micro_batches
    layers = found.layers.split(batches, once=once)
    rows = []
    count = len(layers.layers)
    for ends in combinations(range(1, count), stages * best.turns - 1):
        every = parts(layers, tuple(b - a for a, b in pairwise([0, *ends, count])))
        of_stages = [every[stage::stages] for stage in range(stages)]
        finish = [
            sum(each.update for each in own) + layers.rest.seconds / stages for own in of_stages
        ]
        chunks = [chunk(each, batches, best.send.achieved) for each in every]
        timeline = run(best.schedule, chunks, stages, batches, finish)
        working = max(layers.working_bytes - layers.gathered_bytes, 0)
        work = (working + 2 * layers.boundary_bytes) / batches
        work += 0 if once else layers.gathered_bytes
        memory = [
            sum(each.parameter_bytes + each.gradient_bytes for each in own)
            + sum(each.prepared_bytes for each in own) * once
            + layers.rest.parameter_bytes
            + work
            + kept
            for own, kept in zip(of_stages, timeline.peak_activations, strict=True)
        ]
        rows.append((timeline.step_seconds, max(memory)))
    return rows


@pytest.mark.parametrize(
    ("schedule", "stages"),
    [("interleaved", 2), *((name, n) for name in ("gpipe", "1f1b", "zb-h1") for n in (2, 3))],
)
def test_no_cut_is_much_faster(schedule: str, stages: int) -> None:
    turns = 2 if schedule == "interleaved" else 1
    found = find(programs.step(8), stages=stages, schedules=schedule, chunks=turns, micro_batches=4)
    steps = [step for step, _ in every_cut(found, found.best.once)]
    assert found.best.step_seconds >= min(steps) * (1 - 1e-9)
    assert found.best.step_seconds <= min(steps) * 1.01


@pytest.mark.parametrize("part", [0.95, 0.8, 0.7, 0.6])
def test_no_cut_that_fits_is_much_faster(part: float) -> None:
    """Where the fastest cut does not fit, the fastest of those that do is found."""
    program = Module.from_file(ROOT / "examples/gpt_step.mlir")

    def search(memory: float | None) -> Pipeline:
        return find(program, stages=4, schedules="1f1b", micro_batches=8, memory=memory)

    free = search(None)
    limit = free.best.peak_bytes * part
    every = (*every_cut(free, True), *every_cut(free, False))
    fitting = [step for step, memory in every if memory <= limit]
    if not fitting:
        with pytest.raises(PlanError, match="does-not-fit"):
            search(limit)
        return
    found = search(limit).best
    assert found.peak_bytes <= limit
    assert min(fitting) * (1 - 1e-9) <= found.step_seconds <= min(fitting) * 1.01


def test_less_memory_takes_longer() -> None:
    program = programs.step(8, scans=False)
    free = find(program, stages=2, schedules=("gpipe", "1f1b"), micro_batches=4)
    tight = find(
        program,
        stages=2,
        schedules=("gpipe", "1f1b"),
        micro_batches=4,
        memory=min(each.peak_bytes for each in (free.best, *free.others)) * 1.01,
    )
    assert tight.best.schedule == "1f1b"
    assert tight.best.peak_bytes <= tight.limit
    assert tight.best.step_seconds >= free.best.step_seconds * (1 - 1e-9)


def test_micro_batches_make_stages_wait_less() -> None:
    program = Module.from_file(ROOT / "examples/gpt_step.mlir")
    waits = [
        find(program, stages=4, schedules="1f1b", micro_batches=count).best for count in (1, 4)
    ]
    assert waits[1].timeline.bubble < waits[0].timeline.bubble
    assert waits[1].step_seconds < waits[0].step_seconds


@pytest.mark.parametrize(
    ("options", "code", "part"),
    [
        ({"memory": MIB}, "does-not-fit", "of a device, which has 1.0 MiB"),
        ({"micro_batches": 3}, "schedule", "3 micro-batches do not divide the 4 of the batch"),
        ({"stages": 16}, "schedule", "8 layers are fewer"),
        ({"schedules": "1f2b"}, "schedule", "no schedule is called '1f2b'"),
        ({"schedules": "interleaved", "stages": 8}, "schedule", "8 layers are fewer"),
    ],
)
def test_what_cannot_be(options: dict[str, object], code: str, part: str) -> None:
    with pytest.raises(PlanError) as raised:
        find(programs.step(8), **{"stages": 2, **options})
    assert raised.value.code == code
    assert part in raised.value.message
    assert raised.value.diagnostics[0].hint


def test_memory_has_to_be_bytes() -> None:
    with pytest.raises(ValueError, match="expected a number of bytes"):
        find(programs.step(8), memory="much")


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, picture = tmp_path / "step.mlir", tmp_path / "out.svg"
    file.write_text(str(programs.step(8)))
    command = ["pipeline", str(file), "--hardware", "tpu-v5e", "--stages", "2,4"]
    assert main([*command, "--schedule", "1f1b,zb-h1", "--svg", str(picture)]) == 0
    text = capsys.readouterr().out
    assert "stage 0   F" in text
    assert "each of layers 0 to 7" in text
    ElementTree.fromstring(picture.read_text())
    assert main([*command, "--json", "--micro-batches", "2,4", "--memory", "8GiB"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["best"]["micro_batches"] in (2, 4)
    assert record["limit_bytes"] == 8 << 30
    assert len(record["layers"]["layers"]) == 8
    assert record["best"]["tasks"]
    with pytest.raises(SystemExit):
        main([*command[:-1], "0"])
    assert "expected numbers above 0" in capsys.readouterr().err


def test_text(found: Pipeline) -> None:
    assert str(found).startswith(found.best.schedule)
    assert found.best.schedule in repr(found)
    assert found._repr_svg_() == found.best.timeline.svg()


def test_a_cut_that_is_given() -> None:
    """The ends may compute nothing but what comes before and after the layers."""
    layers = find_layers(programs.step(8), "tpu-v5p")
    links = links_of(layers.cost.hardware, {})
    steps = {}
    for sizes in ((0, 4, 4, 0), (2, 2, 2, 2), None):
        search = PipelineSearch(layers, math.inf, links, None)
        search.add("1f1b", 4, 1, 4, sizes)
        assert search.best is not None
        assert search.best.cut == (sizes or search.best.cut)
        steps[sizes] = search.best.step_seconds
    assert steps[None] <= steps[2, 2, 2, 2] < steps[0, 4, 4, 0]


@pytest.mark.parametrize("name", SCHEDULES)
def test_no_pipeline_is_below_its_bound(name: str) -> None:
    """What is not computed, as its bound is too long, is not faster than that."""
    rng = random.Random(name)

    def part() -> Part:
        return Part(*(rng.choice([0.0, rng.random()]) for _ in range(6)))

    layers = replace(
        find_layers(programs.step(8), "tpu-v5p"),
        before=part(),
        layers=tuple(part() for _ in range(8)),
        after=part(),
    )
    search = PipelineSearch(layers, math.inf, links_of(hardware("tpu-v5p"), {}), None)
    for stages, micro_batches in itertools.product((1, 2, 4), (1, 3, 4, 8)):
        for turns in (1, 2) if name in LOOPED else (1,):
            try:
                check(name, stages * turns, stages, micro_batches)
            except PlanError:
                continue
            for sizes in rng.sample(cuts_of(8, stages * turns), 1):
                send = search._send(stages, micro_batches)
                setup = Setup(name, stages, turns, micro_batches, once=False)
                found = search._candidate(setup, sizes, send)
                bound = search._bound(setup, sizes, send.achieved)
                assert bound <= found.step_seconds * (1 + 1e-9)


def cuts_of(count: int, chunks: int) -> list[tuple[int, ...]]:
    """The ways to divide so many layers."""
    inner = combinations(range(1, count), chunks - 1)
    return [tuple(b - a for a, b in pairwise([0, *ends, count])) for ends in inner]


def test_parameters_are_prepared_once_where_that_fits() -> None:
    program = programs.step(8, shards=True)

    def best(memory: float | None = None) -> Candidate:
        kind: Any = {"stages": 2, "schedules": "1f1b", "micro_batches": 4, "memory": memory}
        return find(program, **kind).best

    free = best()
    assert free.once
    lean = best(free.peak_bytes - 1)
    assert not lean.once
    assert lean.peak_bytes < free.peak_bytes
    assert lean.step_seconds > free.step_seconds
    assert not find(program, stages=2, micro_batches=1).best.once
    assert not find(programs.step(8), stages=2, micro_batches=4).best.once
