"""No command prints or draws a name such that it imitates a line, or turns text around."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import shardcore
from shardcore.cli import main

FORGED = r"a\0Aerror: x\E2\80\AEevil\E2\81\A6\1B[31m\0D"
"""An end of line, a mark that turns the direction of text, an isolate, a colour, a return."""

PROGRAM = """
sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func @main(%a: tensor<64x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}
        loc("FORGED in"),
    %w: tensor<64x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"y"}]>} loc("FORGED"))
    -> tensor<64x64xf32> {
  %0 = stablehlo.dot_general %a, %w, contracting_dims = [1] x [0]
      : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
      loc("jit(f)/FORGED/dot"("FORGED.py":3:1))
  %1 = stablehlo.tanh %0 : tensor<64x64xf32> loc("FORGED.py":4:1)
  %2 = stablehlo.dot_general %1, %w, contracting_dims = [1] x [0]
      : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32> loc("FORGED.py":5:1)
  return %2 : tensor<64x64xf32>
}
""".replace("FORGED", FORGED)

_TURNS = re.compile("[\x1b\r\u202e\u2066]")


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "forged.mlir"
    path.write_text(PROGRAM)
    return path


@pytest.mark.parametrize(
    "command",
    [
        "propagate FILE",
        "cost FILE --hardware tpu-v5p",
        "cost FILE --hardware tpu-v5p --by scope",
        "cost FILE --hardware tpu-v5p --memory",
        "cost FILE --hardware tpu-v5p --kernels",
        "cost FILE FILE --hardware tpu-v5p",
        "diff FILE FILE",
        "why FILE %0",
        "why FILE --collectives 2",
        "steps FILE",
        "doctor FILE",
        "compare FILE --strategy basic,aggressive",
        "plan FILE --hardware tpu-v5p --seconds 1",
        "partition FILE --prove",
        "explain-time FILE --hardware tpu-v5p",
    ],
)
def test_no_command_prints_it(
    command: str, program: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([part.replace("FILE", str(program)) for part in shlex.split(command)]) == 0
    _is_harmless("".join(capsys.readouterr()))


@pytest.mark.parametrize("name", ["out.svg", "out.dot", "out.html"])
def test_no_picture_or_page_has_it(name: str, program: Path, tmp_path: Path) -> None:
    result = shardcore.Module.from_file(program).propagate()
    path = tmp_path / name
    (result.report if name.endswith("html") else result.graph)(path)
    text = path.read_text(encoding="utf-8")
    _is_harmless(text)
    assert not re.search(r"\\u(202e|2066|001b)", text)


def test_no_steps_have_it(program: Path) -> None:
    _is_harmless(str(shardcore.Module.from_file(program).propagate().steps()))


def test_a_page_keeps_what_is_harmless(tmp_path: Path, program: Path) -> None:
    program.write_text(PROGRAM.replace("FORGED in", "w").replace("\\0Aerror", "\\F0\\9F\\98\\80é"))
    path = tmp_path / "out.html"
    shardcore.Module.from_file(program).propagate().report(path)
    assert r"\ud83d\ude00\u00e9" in path.read_text(encoding="utf-8")


def _is_harmless(text: str) -> None:
    assert not _TURNS.search(text)
    assert not [line for line in text.split("\n") if line.lstrip(" │").startswith("error: x")]
