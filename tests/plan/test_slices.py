"""Plans over slices that a network connects: the fewest bytes over the slowest links."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
import shardcore
from shardcore.cli import main

from tests.plan.programs import mlp_step

CHIP = "tpu-v5e"
MESH = {"pod": 2, "data": 4}


def test_fewest_bytes_between_slices() -> None:
    module = mlp_step(4096, 2048, 8192)
    plan = shardcore.plan(module, CHIP, "60MiB", mesh=MESH, minimize="slowest-link", slices=2)
    assert plan.value == plan.cost.rows.slowest_link_bytes < plan.cost.rows.sent_bytes
    rng = random.Random(0)
    axes = ["None", "'pod'", "'data'", "('pod', 'data')"]
    edits = [
        {target: f"P({rng.choice(axes)}, None)" for target in ("x", "p/w1", "p/w2", "result 0")}
        for _ in range(30)
    ]
    rows = mlp_step(4096, 2048, 8192).session(mesh=MESH).evaluate(edits, CHIP, slices=2)
    fitting = [row for row in rows if (row.peak_bytes or 0) <= plan.limit]
    assert all((row.slowest_link_bytes or 0) >= plan.value for row in fitting)


def test_without_slices_all_links_are_the_slowest() -> None:
    [row] = mlp_step(256, 256, 512).session(mesh=MESH).evaluate([{"x": "P('data')"}], CHIP)
    assert row.slowest_link_bytes == row.comm_bytes
    assert row.comm_bytes


@pytest.mark.parametrize("axis", ["pod", "data"])
def test_what_stays_within_a_slice_is_not_counted(axis: str) -> None:
    session = mlp_step(256, 256, 512).session(mesh=MESH)
    [row] = session.evaluate([{"x": f"P('{axis}')"}], CHIP, slices=2)
    assert row.comm_bytes
    assert row.slowest_link_bytes == (row.comm_bytes if axis == "pod" else 0)


def test_the_command_minimizes_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "step.mlir"
    path.write_text(str(mlp_step(4096, 2048, 8192)))
    command = ["plan", str(path), "--hardware", CHIP, "--mesh", "pod=2,data=4", "--slices", "2"]
    command += ["--memory", "20MiB", "--minimize", "slowest-link", "--json"]
    assert main(command) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["objective"] == "slowest-link"
    assert record["value"] > 0
