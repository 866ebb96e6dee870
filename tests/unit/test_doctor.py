"""``shardcore doctor``: a page on a program, to paste into an issue."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from shardcore import CalculusError, Module
from shardcore.cli import main
from shardcore.diagnose.doctor import checkup

PROGRAM = """sdy.mesh @mesh = <["x"=8]>
func.func @main(
    %cache: tensor<64x8192x1024xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}, {}]>}
        loc("cache"),
    %new: tensor<64x1x1024xf32> loc("new"), %at: tensor<i32> loc("at"),
    %w: tensor<1024x1024xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>} loc("params['w']"))
    -> tensor<64x8192x1024xf32> {
  %z = stablehlo.constant dense<0> : tensor<i32>
  %0 = stablehlo.dynamic_update_slice %cache, %new, %z, %at, %z
    : (tensor<64x8192x1024xf32>, tensor<64x1x1024xf32>, tensor<i32>, tensor<i32>, tensor<i32>)
    -> tensor<64x8192x1024xf32> loc("/home/me/decode.py":41:8)
  %1 = stablehlo.dot_general %0, %w, contracting_dims = [2] x [0]
    : (tensor<64x8192x1024xf32>, tensor<1024x1024xf32>) -> tensor<64x8192x1024xf32>
    loc("/home/me/decode.py":43:8)
  return %1 : tensor<64x8192x1024xf32>
}
"""


def test_the_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "decode.mlir"
    path.write_text(PROGRAM)
    assert main(["doctor", str(path), "--hardware", "h100"]) == 0
    page = capsys.readouterr().out
    assert page.startswith("decode.mlir: ")
    for part in (
        "Shardy of jaxlib",
        "program   7 ops, 4 arguments (2 sharded), 1 result",
        '@mesh = <["x"=8]>',
        "cost      on h100: step ",
        'all_gather along "x" for dot_general at decode.py:43:8: 4.0 MiB',
        """because of cache [{}, {"x"}, {}] and params['w'] [{}, {"x"}]""",
        "annotate params['w'] with [{}, {}]: it goes (step -",
        "where XLA is known to be wrong\n  %0 at decode.py:41:8: if this update starts beyond",
        "https://github.com/openxla/xla/issues/49118, seen with jaxlib 0.10 and 0.12",
    ):
        assert part in page
    # It is pasted where others read it.
    assert str(tmp_path) not in page
    assert "/home/me" not in page


def test_a_program_without_findings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "model.mlir"
    path.write_text(
        "func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> { return %x : tensor<8xf32> }"
    )
    assert main(["doctor", str(path)]) == 0
    page = capsys.readouterr().out
    assert "what to look at: nothing" in page
    assert "collectives that take longest: none" in page
    assert "where XLA is known to be wrong: none of the 3 kinds that are known" in page


def test_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "decode.mlir"
    path.write_text(PROGRAM)
    assert main(["doctor", str(path), "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    [row] = record["xla"]
    assert (row["value"], row["count"]) == ("%0", 1)
    assert record["cost"]["hardware"] == "tpu-v5p"
    assert record["collectives"][0]["edit"]["target"] == "params['w']"


def test_the_versions_of_shardy_differ_in_what_is_known() -> None:
    sliced = PROGRAM.replace(
        "return %1",
        """%2 = stablehlo.dynamic_slice %1, %z, %at, %z, sizes = [64, 4096, 1024]
    : (tensor<64x8192x1024xf32>, tensor<i32>, tensor<i32>, tensor<i32>)
    -> tensor<64x4096x1024xf32>
  return %2""",
    ).replace(
        "    -> tensor<64x8192x1024xf32> {",
        """    -> (tensor<64x4096x1024xf32>
      {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}, {}]>}) {""",
    )
    sliced = sliced.replace("%2 : tensor<64x8192", "%2 : tensor<64x4096")
    issues = {
        version: [
            row["issue"].rsplit("/")[-1]
            for row in checkup(Module.parse(sliced, shardy=version).propagate())["xla"]
        ]
        for version in ("0.10", "0.12")
    }
    assert issues == {"0.10": ["49118", "49122"], "0.12": ["49118"]}


def test_mistakes() -> None:
    with pytest.raises(CalculusError, match="unknown-hardware"):
        checkup(Module.parse(PROGRAM).propagate(), "tpu-v99")
    with pytest.raises(TypeError):
        checkup(Module.parse(PROGRAM))  # type: ignore[arg-type]
