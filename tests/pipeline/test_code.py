"""The code of pipelines: it computes what a scan computes, on devices and in the simulator."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest
import shardcore.jax
from jax.sharding import AbstractMesh, AxisType
from shardcore import PlanError
from shardcore.pipeline import to_python

from tests.pipeline import run_code

ROOT = Path(__file__).parents[2]


def test_it_runs_on_devices() -> None:
    """Forward and gradients, on eight devices of the host."""
    command = [sys.executable, "-m", "tests.pipeline.run_code"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [f"{len(run_code.COMPILED)} compared"]


@pytest.mark.parametrize("case", run_code.CASES, ids=lambda case: f"{case[0]} {case[1:4]}")
def test_the_simulator_agrees(case: tuple[str, int, int, int, dict[str, int]]) -> None:
    """The program with stages, run on all of them, and the one without."""
    sizes = {"stage": case[1], **case[4]}
    types = (AxisType.Auto,) * len(sizes)
    mesh = AbstractMesh(tuple(sizes.values()), tuple(sizes), axis_types=types)
    x, weights = run_code.arrays()
    programs = [
        shardcore.jax.lower(step, x, weights, mesh=mesh).module
        for step in (run_code.with_gradients(run_code.scanned), run_code.pipelined(*case, mesh))
    ]
    assert "sdy.manual_computation" in str(programs[1])
    assert "collective_permute" in str(programs[1])
    leaves = [np.asarray(leaf) for leaf in jax.tree.leaves((x, weights))]
    expected, found = (program.simulate(*leaves) for program in programs)
    assert len(found) == len(expected) == 5
    for one, other in zip(expected, found, strict=True):
        np.testing.assert_allclose(other, one, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (("1f1b", 8, 2, 1, 4), "1f1b is no loop over a rotating buffer"),
        (("circular", 8, 4, 2, 2), "a micro-batch for each of 4 stages"),
        (("gpipe", 8, 3, 1, 4), "8 layers are not divided evenly into 3 chunks"),
    ],
)
def test_what_has_no_code(arguments: tuple[str, int, int, int, int], part: str) -> None:
    with pytest.raises(PlanError) as raised:
        to_python(*arguments, {})
    assert raised.value.code == "schedule"
    assert part in raised.value.message
    assert raised.value.diagnostics[0].hint


@pytest.mark.parametrize("chunks", [1, 2])
def test_it_is_written_well(chunks: int) -> None:
    text = to_python("circular" if chunks > 1 else "gpipe", 8, 4, chunks, 4, {"data": 2})
    compile(text, "pipelined.py", "exec")
    assert max(map(len, text.splitlines())) <= 100
