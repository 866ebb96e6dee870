"""What is in memory when: the largest moment is the peak, and groups of values add up to it."""

from __future__ import annotations

import json
import pickle
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
from shardcore import Cost, Module
from shardcore.cli import main
from shardcore.costs import MemoryTimeline
from shardcore.costs.memory import GROUPS

TEXT = """
sdy.mesh @mesh = <["x"=2]>
func.func @main(
    %x: tensor<64x512xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>},
    %w: tensor<512x2048xf32>, %v: tensor<2048x512xf32>) -> tensor<64x512xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
      : (tensor<64x512xf32>, tensor<512x2048xf32>) -> tensor<64x2048xf32> loc(#up)
  %1 = stablehlo.tanh %0 : tensor<64x2048xf32> loc(#up)
  %2 = stablehlo.dot_general %1, %v, contracting_dims = [1] x [0]
      : (tensor<64x2048xf32>, tensor<2048x512xf32>) -> tensor<64x512xf32> loc(#down)
  %3 = stablehlo.reverse %2, dims = [1] : tensor<64x512xf32> loc(#down)
  return %3 : tensor<64x512xf32>
}
#up = loc("jit(f)/layer_0/up/dot_general"("/home/me/mlp.py":3:8))
#down = loc("jit(f)/transpose(jvp(layer_1))/down/dot_general"("/home/me/mlp.py":5:8))
"""

ROW = "tensor<1024xf32>"
SQUARE = "tensor<1024x1024xf32>"

LOOP = f"""
func.func @main(%a: {ROW}, %b: {ROW}) -> {ROW} {{
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %n = stablehlo.constant dense<8> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %before = stablehlo.reverse %b, dims = [0] : {ROW}
  %r:2 = stablehlo.while(%i = %zero, %s = %before) : tensor<i32>, {ROW}
  cond {{
    %c = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  }} do {{
    %j = stablehlo.add %i, %one : tensor<i32>
    %t = stablehlo.dot_general %s, %b, contracting_dims = [] x [] : ({ROW}, {ROW}) -> {SQUARE}
    %u = stablehlo.dot_general %t, %b, contracting_dims = [1] x [0] : ({SQUARE}, {ROW}) -> {ROW}
    stablehlo.return %j, %u : tensor<i32>, {ROW}
  }}
  %after = stablehlo.reverse %r#1, dims = [0] : {ROW}
  return %after : {ROW}
}}"""

CASE = f"""
func.func @main(%p: tensor<i1>, %a: {ROW}) -> {ROW} {{
  %0 = "stablehlo.if"(%p) ({{
    %1 = stablehlo.reverse %a, dims = [0] : {ROW}
    %2 = stablehlo.reverse %1, dims = [0] : {ROW}
    %3 = stablehlo.add %1, %2 : {ROW}
    %4 = stablehlo.reverse %3, dims = [0] : {ROW}
    stablehlo.return %4 : {ROW}
  }}, {{
    stablehlo.return %a : {ROW}
  }}) : (tensor<i1>) -> {ROW}
  return %0 : {ROW}
}}"""

NOTHING = f"func.func @main(%a: {ROW}) -> {ROW} {{ return %a : {ROW} }}"


def cost_of(text: str) -> Cost:
    return Module.parse(text).propagate().cost("tpu-v5e", compiler="none")


def timeline_of(text: str = TEXT) -> MemoryTimeline:
    return cost_of(text).memory_timeline()


@pytest.mark.parametrize("text", [TEXT, LOOP, CASE, NOTHING])
def test_the_largest_moment_is_the_peak(text: str) -> None:
    cost = cost_of(text)
    timeline = cost.memory_timeline()
    assert max(point.bytes for point in timeline.points) == cost.peak_bytes
    for place, point in enumerate(timeline.points):
        assert sum(row.value.bytes for row in timeline.live(place)) == point.bytes
    live = sorted((row.name, row.bytes) for row in cost.live_at_peak)
    assert sorted((row.value.name, row.value.bytes) for row in timeline.live(timeline.peak)) == live


def test_values_are_there_from_their_op_to_their_last_use() -> None:
    timeline = timeline_of()
    names = [point.value for point in timeline.points]
    rows = {row.value.name: row for row in timeline.values}
    assert [row.role for row in timeline.values][:4] == ["argument"] * 3 + ["output"]
    assert (rows["%x"].first, rows["%x"].last) == (0, len(names) - 1)
    # The result of the first product is read by the second.
    assert rows["%1"].first <= names.index("%1") < rows["%1"].last == names.index("%2")


def test_reshapes_between_ops_and_their_matrices_are_no_points() -> None:
    cube = "tensor<4x256x512xf32>"
    timeline = timeline_of(f"""
    func.func @main(%x: {cube}, %w: tensor<512x512xf32>) -> {cube} {{
      %0 = stablehlo.reverse %x, dims = [1] : {cube}
      %1 = stablehlo.dot_general %0, %w, contracting_dims = [2] x [0]
          : ({cube}, tensor<512x512xf32>) -> {cube}
      %2 = stablehlo.reverse %1, dims = [1] : {cube}
      return %2 : {cube}
    }}""")
    assert [point.value for point in timeline.points] == ["%0", "%1", "%2"]


def test_a_loop_stands_for_one_trip() -> None:
    timeline = timeline_of(LOOP)
    names = [point.value for point in timeline.points]
    product = names.index("%t")
    assert names.index("%before") < product < names.index("%after")
    # The product is in memory inside of the loop alone, what the loop carries until its end.
    rows = {row.value.name: row for row in timeline.values}
    assert rows["%t"].last < names.index("%after") <= rows["%r#1"].last
    assert rows["%r#1"].first <= rows["%t"].first == product == timeline.peak


@pytest.mark.parametrize(
    ("scaled_by", "moments"), [("x", ["%1", "%4"]), ("scale", ["%scale", "%1", "%4"])]
)
def test_what_a_comparator_reads_outside_is_written(scaled_by: str, moments: list[str]) -> None:
    text = f"""
func.func @main(%a: {ROW}, %b: tensor<f32>) -> {ROW} {{
  %scale = stablehlo.exponential %b : tensor<f32>
  %1 = "stablehlo.sort"(%a) ({{
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %2 = stablehlo.multiply %x, %{scaled_by} : tensor<f32>
    %3 = stablehlo.compare LT, %2, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %3 : tensor<i1>
  }}) {{dimension = 0 : i64}} : ({ROW}) -> {ROW}
  %4 = stablehlo.reverse %1, dims = [0] : {ROW}
  return %4 : {ROW}
}}"""
    assert [point.value for point in timeline_of(text).points] == moments


@pytest.mark.parametrize("group", GROUPS)
def test_groups_add_up(group: str) -> None:
    timeline = timeline_of()
    groups = timeline.by(group)
    sums = [sum(row[place] for row in groups.values()) for place in range(len(timeline.points))]
    assert sums == [point.bytes for point in timeline.points]
    chosen = [0, timeline.peak]
    some = timeline.by(group, chosen)
    assert {name: [row[place] for place in chosen] for name, row in groups.items()} == {
        name: some.get(name, [0, 0]) for name in groups
    }


def test_names_of_groups() -> None:
    timeline = timeline_of()
    assert timeline.by().keys() == {
        "(arguments)",
        "(outputs)",
        "layer_*/up",
        "layer_*/down, backward",
    }
    assert "/home/me/mlp.py:3:8" in timeline.by("line")
    with pytest.raises(ValueError, match="expected one of scope, line, role, value, got 'layer'"):
        timeline.by("layer")


def test_copies_are_equal() -> None:
    cost = cost_of(TEXT)
    assert pickle.loads(pickle.dumps(cost)).memory_timeline() == cost.memory_timeline()
    assert repr(cost.memory_timeline()) == (
        f"<shardcore.MemoryTimeline of {len(timeline_of().points)} ops, "
        f"{cost.peak_bytes} bytes at the peak>"
    )


def test_plain_data() -> None:
    timeline = timeline_of()
    record = json.loads(timeline.to_json())
    assert record == json.loads(json.dumps(timeline.record()))
    assert record["points"][record["peak"]]["bytes"] == record["peak_bytes"]
    assert sum(record["peak_by_scope"].values()) == record["peak_bytes"]
    assert sum(record["peak_by_line"].values()) == record["peak_bytes"]


@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("text", [TEXT, NOTHING])
def test_a_picture(text: str, group: str) -> None:
    timeline = timeline_of(text)
    picture = ElementTree.fromstring(timeline.svg(group))
    texts = [each.text or "" for each in picture.iter("{http://www.w3.org/2000/svg}text")]
    assert texts[0].startswith("peak ")
    assert "fits tpu-v5e (14.9 GiB)" in texts[0]
    layers = [each for each in texts if each.endswith(" at most")]
    assert len(layers) == len([row for row in timeline.by(group).values() if any(row)])
    assert timeline._repr_svg_() == timeline.svg("scope")


def test_a_chart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, picture = tmp_path / "mlp.mlir", tmp_path / "memory.svg"
    path.write_text(TEXT)
    given = ["cost", str(path), "--hardware", "tpu-v5e", "--compiler", "none", "--memory"]
    assert main([*given, "--svg", str(picture), "--by", "line"]) == 0
    printed = capsys.readouterr().out
    lines = [line.rstrip() for line in printed.rstrip().split("\n")]
    assert lines == str(timeline_of()).split("\n")
    assert re.search(r"\n *\d+ .* #+ <- peak +\w+ +mlp.py:\d:8", printed)
    assert picture.read_text() == timeline_of().svg("line")
    assert main([*given, "--svg", "-"]) == 0
    assert capsys.readouterr().out.startswith("<svg ")
    assert main([*given, "--json"]) == 0
    record = json.loads(timeline_of().to_json())
    assert json.loads(capsys.readouterr().out) == {"schema": 1, **record}


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--svg", "out.svg"], "--svg and --by line go with --memory"),
        (["--by", "line"], "--svg and --by line go with --memory"),
        (["--memory", "--hardware", "all"], "--memory takes one program"),
        (["--memory", "--policy", "xla,least"], "--memory takes one program"),
    ],
)
def test_flags_that_do_not_go_together(
    flags: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["cost", "mlp.mlir", *flags])
    assert message in capsys.readouterr().err
