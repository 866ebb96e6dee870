"""MaxText's golden files of shardings, read as expectations."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from shardcore import ExpectationError, Module, Result

PROGRAM = """\
#file = loc("attentions.py":41:8)
sdy.mesh @mesh = <["data"=2, "fsdp"=4]>
func.func @main(
    %0: tensor<i32> loc("state.step"),
    %1: tensor<512x28x2048xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"fsdp"}, {}, {}]>}
      loc("state.params['params']['decoder']['layers']['mlp']['wi_0']['kernel']"),
    %2: tensor<512x28x2048xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}, {"fsdp"}]>}
      loc("state.opt_state[0].mu['params']['decoder']['layers']['mlp']['wi_0']['kernel']"),
    %3: tensor<8x128xbf16> loc("batch")) -> tensor<8x128xbf16> {
  %4 = stablehlo.tanh %3 : tensor<8x128xbf16>
  %5 = sdy.sharding_constraint %4 <@mesh, [{"data", "fsdp"}, {}]> : tensor<8x128xbf16> loc(#file)
  return %5 : tensor<8x128xbf16>
}
"""
MESH = {
    "axis_names": ["data", "stage", "fsdp", "tensor"],
    "shape": {"data": 2, "stage": 1, "fsdp": 4, "tensor": 1},
}
KERNEL = ".params/['params']/['decoder']/['layers']/['mlp']/['wi_0']/['kernel']"
MOMENT = f".opt_state/[0]/.mu{KERNEL.removeprefix('.params')}"
SHAPE = [512, 28, 2048]
NAMED = {
    ".step": {"mesh": MESH, "partition_spec": [], "shape": []},
    KERNEL: {"mesh": MESH, "partition_spec": [["fsdp", "tensor"], "stage", None], "shape": SHAPE},
    MOMENT: {"mesh": MESH, "partition_spec": [None, "stage", "fsdp"], "shape": SHAPE},
}
LOGICAL = {KERNEL: {"partition_spec": ["embed", "layers", "mlp"], "shape": SHAPE}}
SPEC = "P(('data', 'fsdp'), None)"
INPUT = {
    "Activation Sharding Dump": [
        {"attentions/query: bfloat16[8,128]": {"logic_axes": "Unknown", "PartitionSpec": SPEC}}
    ]
}


@pytest.fixture(scope="module")
def result() -> Result:
    return Module.parse(PROGRAM).propagate()


def write(path: Path, data: Any) -> Path:
    path.write_text(data if isinstance(data, str) else json.dumps(data, indent=2))
    return path


def changed(data: Any, old: object, new: object) -> Any:
    return json.loads(json.dumps(data).replace(json.dumps(old), json.dumps(new)))


@pytest.mark.parametrize(("data", "count"), [(NAMED, 7), (LOGICAL, 1), (INPUT, 1)])
def test_what_holds(result: Result, data: Any, count: int, tmp_path: Path) -> None:
    found = result.check(write(tmp_path / "golden.json", data))
    assert found, found
    assert found.num_expectations == count


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        (changed(NAMED, "fsdp", "data"), ["P('data', None, None)", '[{"fsdp"}, {}, {}]']),
        (changed(NAMED, [None, "stage", "fsdp"], ["fsdp"]), ["mu", '[{}, {}, {"fsdp"}]']),
        (changed(NAMED, SHAPE, [512, 28, 1024]), ["[512x28x1024]", "+ [512x28x2048] of state"]),
        (changed(LOGICAL, SHAPE, [512, 2048]), ["[512x2048]"]),
        (changed(LOGICAL, KERNEL, ".params/['nothing']"), ["nothing is called that"]),
        (changed(NAMED, MESH["shape"], {"data": 4, "fsdp": 2}), ["- data=4, fsdp=2", "data=2, f"]),
        (changed(INPUT, SPEC, "P('data',)"), ['[{"data", "fsdp"}, {}] of %', "attentions.py:41"]),
        (
            changed(INPUT, "attentions/query: bfloat16[8,128]", "moe/query: bfloat16[8,128]"),
            ["no tensor of that type is constrained in moe"],
        ),
        (
            changed(INPUT, "attentions/query: bfloat16[8,128]", "attentions/x: float32[8,128]"),
            ["no tensor of that type is constrained"],
        ),
    ],
)
def test_what_does_not_hold(result: Result, data: Any, shown: list[str], tmp_path: Path) -> None:
    found = result.check(write(tmp_path / "golden.json", data))
    assert not found
    for part in shown:
        assert part in str(found), str(found)
    for failure in found.failures:
        assert failure.path == ("mesh",) or failure.line is not None


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("{", "it is not JSON"),
        ("[" * 100000, "it is not JSON"),
        ([], "are no shardings"),
        ({}, "are no shardings"),
        ({"a": 3}, "has no partition_spec"),
        ({"a": {"partition_spec": [{}]}}, "has no partition_spec"),
        ({"a": {"partition_spec": ["x"], "mesh": 3}}, "its mesh"),
        ({"a": {"partition_spec": ["x"], "mesh": {"shape": {"x": "2"}}}}, "is no count"),
        ({"a": {"partition_spec": [], "shape": ["x"]}}, "is no shape"),
        (NAMED | {"a": {"partition_spec": [], "mesh": {"shape": {"data": 3}}}}, "its mesh"),
        ({"Activation Sharding Dump": 3}, "has no PartitionSpec"),
        ({"Activation Sharding Dump": [3]}, "has no PartitionSpec"),
        ({"Activation Sharding Dump": [{"f: f32[3]": {"PartitionSpec": "P("}}]}, "no sharding"),
    ],
)
def test_mistakes(result: Result, data: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(ExpectationError, match=message):
        result.check(write(tmp_path / "golden.json", data))


def test_a_golden_file_is_not_updated(result: Result, tmp_path: Path) -> None:
    path = write(tmp_path / "golden.json", NAMED)
    with pytest.raises(ExpectationError, match="MaxText writes it"):
        result.check(path, update=True)
    assert json.loads(path.read_text()) == NAMED


def test_the_same_in_toml(result: Result) -> None:
    expected = {
        "mesh": {"data": 2, "fsdp": 4},
        "shapes": {"batch": [8, 128]},
        "constraints": {"bf16[8,128]": "P(('data', 'fsdp'))"},
    }
    assert result.check(expected)
    broken = result.check({"shapes": {"batch": [8]}, "constraints": {"batch": "P()"}})
    assert "it is no type" in str(broken)
    assert len(broken.failures) == 2


def test_shapes_are_updated(result: Result, tmp_path: Path) -> None:
    path = write(tmp_path / "expected.toml", "[shapes]\nbatch = [8, 64]\n'%9' = [1]\n")
    found = result.check(path, update=True)
    assert found.updated == ("shapes.batch",)
    assert path.read_text() == "[shapes]\nbatch = [8, 128]\n'%9' = [1]\n"
    assert len(found.failures) == 1
