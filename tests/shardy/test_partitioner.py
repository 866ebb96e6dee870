"""Partitioning passes do what those of jaxlib 0.12 do, and their pipeline is the reference's."""

from __future__ import annotations

import importlib.metadata

import pytest
import shardcore

from tests.shardy import random_reshards, reference
from tests.shardy.diff import assert_same, ours
from tests.shardy.partitioner_cases import (
    MESHES,
    ON_DEVICES,
    OPTIMIZE,
    PERMUTES,
    REDUCTIONS,
    REFUSED_ON_DEVICES,
    TWO_AXES_AT_ONCE,
)

pytestmark = pytest.mark.skipif(
    importlib.metadata.version("jaxlib").startswith("0.10."),
    reason="jaxlib 0.10 has neither these passes nor these options",
)
INSERT = "sdy-insert-explicit-reshards{{enable-full-version={} {}={}}}"
MARK = "mark-partial-result-with-unreduced-axes"
STAGES = [
    "unspecified",
    "resolve-permutation-factors",
    "reshard-to-collectives",
    "optimize-collectives",
    "pad-for-divisibility",
    "resolve-single-device-sharding",
    "convert-global-to-local",
]
COLLECTIVES = "enable-insert-explicit-collectives=true"
EXPORTS = [
    "",
    "avoid-export-for-partitioning=true",
    "inline-meshes=false",
    "keep-sharding-rules=true dump-sharding-origins=true",
    f"{COLLECTIVES} remove-all-gather-reduce-scatter-for-cmv1=true",
    f"{COLLECTIVES} {MARK}=true",
    *(f"partitioner-stage={stage}" for stage in STAGES),
    *(
        f"partitioner-stage={stage} {COLLECTIVES} {MARK}=false partition-count=3 "
        "remove-all-gather-reduce-scatter-for-cmv1=true rng-bit-generator-unsafe=false"
        for stage in STAGES
    ),
]


def assert_done_alike(text: str, passes: str) -> None:
    text, pipeline = MESHES + text, f"builtin.module({passes})"
    assert_same(reference.run(text, pipeline), ours(text, pipeline))


@pytest.mark.parametrize("name", PERMUTES)
def test_permutes(name: str) -> None:
    assert_done_alike(PERMUTES[name], OPTIMIZE)


def test_all_to_alls_of_several_axes_stay() -> None:
    text, pipeline = MESHES + TWO_AXES_AT_ONCE, f"builtin.module({OPTIMIZE})"
    with pytest.raises(reference.RejectedError, match="overlapping source/target"):
        reference.run(text, pipeline)
    assert_same(reference.canonical(text), ours(text, pipeline))


@pytest.mark.parametrize("block", range(8))
def test_random_reshards(block: int) -> None:
    pipeline = "builtin.module(func.func(sdy-reshard-to-collectives,sdy-optimize-collectives))"
    compared = 0
    for seed in range(100 * block, 100 * (block + 1)):
        text = random_reshards.make(seed)
        try:
            theirs = reference.run(text, pipeline)
        except reference.RejectedError:
            # It splits an axis in ways that do not fit each other.
            continue
        assert_same(theirs, ours(text, pipeline))
        compared += 1
    assert compared > 90


@pytest.mark.parametrize("is_full", ["true", "false"])
@pytest.mark.parametrize("name", ON_DEVICES)
def test_single_devices(name: str, is_full: str) -> None:
    insert = INSERT.format(is_full, MARK, "false")
    passes = [insert, "sdy-reshard-to-collectives", "sdy-resolve-single-device-sharding"]
    for count in range(1, len(passes) + 1):
        assert_done_alike(ON_DEVICES[name], f"func.func({','.join(passes[:count])})")


@pytest.mark.parametrize("name", REFUSED_ON_DEVICES)
def test_single_devices_that_are_refused(name: str) -> None:
    text = MESHES + REFUSED_ON_DEVICES[name]
    pipeline = f"builtin.module(func.func({INSERT.format('true', MARK, 'false')}))"
    with pytest.raises(reference.RejectedError, match="single-device"):
        reference.run(text, pipeline)
    with pytest.raises(shardcore.ShardcoreError, match="single-device"):
        ours(text, pipeline)


@pytest.mark.parametrize("marks", ["true", "false"])
@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions(name: str, marks: str) -> None:
    assert_done_alike(REDUCTIONS[name], f"func.func({INSERT.format('true', MARK, marks)})")


@pytest.mark.parametrize("options", EXPORTS)
def test_export_pipeline(options: str) -> None:
    pipeline = f"builtin.module(sdy-export-pipeline{{{options}}})"
    with reference.context():
        theirs = str(reference.passmanager.PassManager.parse(pipeline))
    assert theirs.split() == str(shardcore.PassManager.parse(pipeline)).split()
