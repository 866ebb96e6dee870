"""Text on a terminal: trees and messages are wrapped between words, sources cut, hints whole."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path

import pytest
import shardcore
from shardcore.cli import main
from shardcore.cli.options import print_fitted
from shardcore.cli.terminal import fitted
from shardcore.report.table import print_result

TREE = """\
params['down'] [{"model"}, {}]
├─ "model" on dim 0
│  ← dot_general mlp.py:23:13 (factor j, backward, priority 0, step 2) from @closed_call %16
└─ "data" on dim 1
   ← params['up'] [{}, {"model"}] (the argument is annotated)"""

WARNING = """\
warning[no-rule]: propagation stops at my.op, which has no sharding rule: %0 is replicated
  --> /home/me/a/long/path/to/a/model/of/somebody/who/likes/folders/more/than/files/model.py:12:13
  12 |     y = kernel(x, lambda a: a, window=3, padding="same", and_more=True, and_even_more=1)
     |         ^^^^^^
  help: give one: @shardcore.rule("my.op"), or if elementwise shardcore.rule("my.op", "i -> i")"""


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_trees_are_wrapped_below_where_they_begin() -> None:
    lines = fitted(TREE, 60).split("\n")
    assert max(map(len, lines)) <= 60
    assert lines[2:5] == [
        "│  ← dot_general mlp.py:23:13 (factor j, backward, priority",
        "│      0, step 2) from @closed_call %16",
        '└─ "data" on dim 1',
    ]
    # No word is lost or cut.
    assert " ".join(lines).replace("│", "").split() == TREE.replace("│", "").split()


def test_carets_stay_below_their_places_and_hints_stay_whole() -> None:
    head, rest, place, source, caret, hint = fitted(WARNING, 80).split("\n")
    assert f"{head} {rest.strip()}" == WARNING.split("\n")[0]
    assert [place, caret, hint] == [WARNING.split("\n")[at] for at in (1, 3, 4)]
    assert len(source) == 80
    assert source.endswith("…")
    assert source[caret.index("^") :].startswith("kernel(x")
    # Where the caret has no room the source stays, too.
    assert WARNING.split("\n")[2] in fitted(WARNING.replace("    ^^", " " * 80 + "^^"), 80)


def test_text_with_room_stays_as_it_is() -> None:
    assert fitted(TREE, 200) == TREE
    assert fitted(TREE, 10) == TREE


def test_only_terminals_are_fitted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    print_fitted(TREE)
    assert capsys.readouterr().out == f"{TREE}\n"
    monkeypatch.setattr("sys.stdout", terminal := Terminal())
    print_fitted(TREE)
    assert terminal.getvalue() == f"{fitted(TREE, 60)}\n"


def test_strategies_of_products_fit_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr("sys.stdout", terminal := Terminal())
    product = ["matmul", "A[I, J_X] * B[J, K] -> C[I, K]", "--sizes", "I=128,J=8192,K=32768"]
    chips = ["--dtype", "bf16", "--mesh", "X=4,Y=4", "--hardware", "tpu-v5e"]
    assert main([*product, *chips]) == 0
    lines = terminal.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[3].split()[:2] == ["total", "chunked"]
    assert lines[4] == "  strategy"
    assert lines[5].split()[:2] == ["96.12", "us"]
    assert lines[6] == "  Slice_{Y,I}(A); AllGather_X(A); Slice_{X,K}(B); AllGather_{YX}(C)"


def test_names_cannot_forge_lines(capsys: pytest.CaptureFixture[str]) -> None:
    """A location with line ends and marks that turn the direction of text stays in its line."""
    name = r"a\0Aerror: x\E2\80\8Fq\E2\80\A8r"
    module = shardcore.Module.parse(f"""
sdy.mesh @mesh = <["x"=2]>
func.func @main(%w: tensor<8x8xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}, {{}}]>}}
    loc("{name}")) -> tensor<8x8xf32> {{
  %0 = stablehlo.tanh %w : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}}""")
    result = module.propagate()
    print_result(result, limit=0)
    cost = shardcore.cost(result.partition(), "tpu-v5p")
    forged = shardcore.SimulationError(
        shardcore.Diagnostic("invalid-op", "a\nerror[b]: c", "d\nerror[e]: f", location="g\nerror")
    )
    texts = [capsys.readouterr().out, str(result), str(result.why("%w")), str(cost), str(forged)]
    for text in texts:
        assert not any(line.lstrip(" │").startswith("error: x") for line in text.split("\n"))
        assert not {"\u200f", "\u2028"} & set(text)
    assert "␊error:" in texts[0]
    assert [line for line in texts[-1].split("\n") if line.startswith("error")] == [
        "error[invalid-op]: a"
    ]


@pytest.mark.parametrize("command", ["cost", "propagate", "partition"])
def test_a_closed_pipe_is_silent(command: str, tmp_path: Path) -> None:
    path = tmp_path / "model.mlir"
    path.write_text(PROGRAM)
    chip = ["--hardware", "tpu-v5p"] if command == "cost" else []
    read, write = os.pipe()
    os.close(read)
    arguments = [sys.executable, "-m", "shardcore", command, str(path), *chip]
    done = subprocess.run(arguments, stdout=write, stderr=subprocess.PIPE, check=False)
    os.close(write)
    assert (done.returncode, done.stderr) == (141, b"")


PROGRAM = """
sdy.mesh @mesh = <["x"=2]>
func.func @main(%w: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>})
    -> tensor<8x8xf32> {
  %0 = stablehlo.tanh %w : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}"""


def test_what_passes_inserted_comes_last_in_short_tables() -> None:
    """A constant that several ops use is one for each of them."""
    from shardcore.report.table import selection

    result = shardcore.Module.parse("""
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %c = stablehlo.constant dense<1.0> : tensor<8x8xf32>
  %0 = stablehlo.add %a, %c : tensor<8x8xf32>
  %1 = stablehlo.multiply %c, %0 : tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}""").propagate()
    assert any(value.name.startswith("%shc") for value in result.values())
    assert [value.name for value in selection(result, 2)[0]] == ["%a", "%0"]
    assert [value.name for value in selection(result, 3)[0]] == ["%a", "%0", "%1"]
