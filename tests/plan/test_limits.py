"""Limits are kept, and an existing plan is changed step by step."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import shardcore
from shardcore import PlanError
from shardcore.cli import main
from shardcore.plan.limits import Limits, parse_limits

from tests.plan.programs import mlp, mlp_step

CHIP = "tpu-v5e"
MESH = {"data": 4, "model": 4}


def axes_of(plan: shardcore.Plan, target: str) -> set[str]:
    [port] = [each for each in plan.result.arguments() if each.label == target]
    dims = port.sharding.dims if port.sharding else ()
    return {axis.name for dim in dims for axis in dim.axes}


def test_axes_are_for_what_they_may_be_for() -> None:
    limits = {"memory": "500MiB", "data": ["data", "fsdp"], "model": "tensor"}
    plan = shardcore.plan(mlp(), CHIP, mesh=MESH, limits=limits)
    assert plan.limit == 500 * 2**20
    assert "model" not in axes_of(plan, "x")
    free = shardcore.plan(mlp(), CHIP, "500MiB", mesh=MESH)
    assert free.value <= plan.value * 1.001
    other = shardcore.plan(mlp(), CHIP, mesh=MESH, limits={"data": "tensor", "model": "tensor"})
    assert not axes_of(other, "x")
    assert other.kind in ("tensor", "replicated")


def test_a_device_has_so_many_of_the_batch() -> None:
    plan = shardcore.plan(mlp_step(64, 512, 512), CHIP, devices=16, limits={"micro_batch": 16})
    [x] = [each for each in plan.result.arguments() if each.label == "x"]
    assert x.local_shape is not None
    assert x.local_shape[0] >= 16


@pytest.mark.parametrize(
    "limits",
    [
        {"micro_batch": 0},
        {"memory": "much"},
        {"data": "everything"},
        {"schedules": ["1f2b"]},
    ],
)
def test_what_is_no_limit_is_refused(limits: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="is"):
        Limits.of(limits)


def test_limits_as_text() -> None:
    texts = ["memory=16GiB", "micro-batch=2", "model=tensor,expert", "schedules=1f1b"]
    found = Limits.of(parse_limits(texts))
    assert (found.memory, found.micro_batch) == (16 * 2**30, 2)
    assert found.axes == {"model": ("tensor", "expert")}
    assert found.schedules == ("1f1b",)
    for text in ("memory", "micro-batch=two", "=3GiB"):
        with pytest.raises(ValueError, match="is"):
            Limits.of(parse_limits([text]))


def test_changes_lead_from_one_plan_to_the_other() -> None:
    start = {
        "mesh": MESH,
        "annotations": {"x": "P('data')", "p['w1']": "P('model')", "p['w2']": "P('data')"},
    }
    module = mlp_step(4096, 2048, 8192)
    plan = shardcore.plan(module, CHIP, mesh=MESH, start=start)
    first, *others = plan.changes
    assert first.what == "as it is"
    session = module.session(mesh=MESH)
    session.set(start["annotations"])
    assert first.step_seconds == session.cost(CHIP).step_seconds
    assert others
    steps = [each.step_seconds or 0.0 for each in plan.changes]
    # The last may be the rest, together, which may cost something in this measure.
    assert steps[:-1] == sorted(steps[:-1], reverse=True)
    assert steps[-1] == pytest.approx(plan.step_seconds, rel=0.05)
    assert others[0].what in str(plan)
    assert plan.record()["changes"][0]["step_seconds"] == first.step_seconds


def test_another_mesh_is_one_change() -> None:
    start = {"mesh": {"x": 16}, "annotations": []}
    plan = shardcore.plan(mlp_step(4096, 2048, 8192), CHIP, mesh=MESH, start=start)
    assert plan.changes[1].what.startswith("1 stages over data=4,model=4")


def test_a_record_that_is_none_is_refused() -> None:
    with pytest.raises(PlanError, match="not the record of a plan"):
        shardcore.plan(mlp_step(64, 64, 64), CHIP, devices=2, start={"mesh": 3})


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program, record = tmp_path / "step.mlir", tmp_path / "plan.json"
    program.write_text(str(mlp_step(4096, 2048, 8192)))
    command = ["plan", str(program), "--hardware", CHIP, "--mesh", "data=4,model=4", "--json"]
    assert main([*command, "--limits", "model=tensor", "micro-batch=4"]) == 0
    record.write_text(capsys.readouterr().out)
    assert main([*command, "--from", str(record)]) == 0
    assert json.loads(capsys.readouterr().out)["changes"][0]["what"] == "as it is"
    with pytest.raises(SystemExit):
        main([*command, "--limits", "model=much"])
    record.write_text("{")
    with pytest.raises(SystemExit):
        main([*command, "--from", str(record)])
