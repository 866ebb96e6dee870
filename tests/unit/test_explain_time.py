"""What the time of a step hangs on: figures made worse one by one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from shardcore import Module
from shardcore.cli import main
from shardcore.costs.sensitivity import MEASURED_BY, explain_time

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"

PRODUCT = """func.func @main(%x: tensor<8192x8192xbf16>) -> tensor<8192x8192xbf16> {
  %0 = stablehlo.dot_general %x, %x, contracting_dims = [1] x [0]
      : (tensor<8192x8192xbf16>, tensor<8192x8192xbf16>) -> tensor<8192x8192xbf16>
  return %0 : tensor<8192x8192xbf16>
}"""
SUM = """func.func @main(%x: tensor<16384x16384xf32>) -> tensor<16384x16384xf32> {
  %0 = stablehlo.add %x, %x : tensor<16384x16384xf32>
  return %0 : tensor<16384x16384xf32>
}"""


@pytest.mark.parametrize(("text", "figure"), [(PRODUCT, "products"), (SUM, "memory")])
def test_the_figure_that_a_step_hangs_on(text: str, figure: str) -> None:
    found = explain_time(Module.parse(text), "h100")
    assert found.terms[0].figure == figure
    assert found.terms[0].slope == pytest.approx(1, abs=0.05)
    assert found.halving == (figure,)


def test_shares_of_the_width_are_all_of_it() -> None:
    found = explain_time(Module.from_file(EXAMPLES / "gpt_step.mlir"), "h100")
    assert {term.figure for term in found.terms} <= MEASURED_BY.keys()
    assert 0.99 < sum(term.share for term in found.terms) <= 1 + 1e-9
    left = [term.share for term in found.terms if term.figure not in found.halving]
    assert sum(left) <= 0.25
    assert found.terms == tuple(sorted(found.terms, key=lambda term: -term.slope))


def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    file = str(EXAMPLES / "mlp.mlir")
    assert main(["explain-time", file, "--hardware", "tpu-v5e", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["step_seconds"] > 0
    assert record["terms"][0]["figure"] in MEASURED_BY
    assert main(["explain-time", file, "--hardware", "tpu-v5e"]) == 0
    assert "the interval is half as wide" in capsys.readouterr().out
