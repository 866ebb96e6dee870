"""Why, of the values that a line of the source made; and what a program without a mesh says."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from shardcore import LocationError, Module
from shardcore.cli import main

MESH = 'sdy.mesh @mesh = <["x"=2, "y"=2]>\n'
TENSOR = "tensor<12x2xf32>"

LINES = (
    f"{MESH}func.func @main(%a: {TENSOR} "
    '{sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<12x2xf32> {\n'
    f'  %0 = stablehlo.tanh %a : {TENSOR} loc("model.py":12:8)\n'
    f'  %1 = stablehlo.exponential %0 : {TENSOR} loc("model.py":12:3)\n'
    f"  return %1 : {TENSOR}\n}}\n"
)


def test_the_values_that_a_line_made(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "model.mlir"
    path.write_text(LINES)
    result = Module.parse(LINES).propagate()
    wanted = [str(result.why(name)) for name in ("%0", "%1")]
    assert main(["why", str(path), "model.py:12"]) == 0
    assert capsys.readouterr().out == "\n".join(wanted) + "\n"
    assert main(["why", str(path), "model.py:12", "--dim", "0", "--axis", "x"]) == 0
    assert capsys.readouterr().out == "\n".join(wanted) + "\n"
    assert main(["why", str(path), "model.py:12", "--axis", "y"]) == 0
    missing = [str(result.why_not(name, dim, "y")) for name in ("%0", "%1") for dim in (0, 1)]
    assert capsys.readouterr().out == "\n".join(missing) + "\n"
    assert main(["why", str(path), "model.py:12", "--dim", "1"]) == 0
    assert capsys.readouterr().out.count("no dim has an axis") == 2
    assert main(["why", str(path), "model.py:13"]) == 1
    assert "no value comes from model.py:13" in capsys.readouterr().err


def test_records_of_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "model.mlir"
    path.write_text(LINES)
    assert main(["why", str(path), "model.py:12", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert [each["value"] for each in record["values"]] == ["%0", "%1"]
    assert record["why_not"] == []
    assert main(["why", str(path), "model.py:12", "--axis", "y", "--dim", "1", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert [(each["value"], each["dim"]) for each in record["why_not"]] == [("%0", 1), ("%1", 1)]


def test_a_program_without_a_mesh_has_no_axis() -> None:
    bare = f"func.func @main(%a: {TENSOR}) -> {TENSOR} {{\n  return %a : {TENSOR}\n}}\n"
    with pytest.raises(LocationError, match="the program has no mesh, and so no axis x"):
        Module.parse(bare).propagate().why_not("%a", 0, "x")


def test_a_scalar_is_shown_without_its_mesh(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "model.mlir"
    path.write_text(
        f"{MESH}func.func @main(%a: tensor<f32> {{sdy.sharding = #sdy.sharding<@mesh, []>}})"
        " -> tensor<f32> {\n  return %a : tensor<f32>\n}\n"
    )
    assert main(["propagate", str(path)]) == 0
    assert "<@mesh" not in capsys.readouterr().out


@pytest.mark.parametrize("command", ["propagate", "why", "cost", "check", "report", "plan"])
def test_help_says_that_a_program_may_be_python(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main([command, "--help"])
    assert "model.py:build" in capsys.readouterr().out


def test_a_closed_dim_says_what_closes_it_and_how_to_open_it() -> None:
    result = Module.parse(LINES).propagate()
    found = result.why_not("%a", 0, "y")
    assert found.code == "closed"
    assert found.closed_by is not None
    assert (found.closed_by.name, found.record()["closed_by"]["kind"]) == ("%a", "argument")
    assert str(found).endswith(
        '\n  by %a [{"x"}, {}] (the argument is annotated)\n  open it: {"x", ?} as dim 0'
    )
    # What is said to open it does.
    opened = LINES.replace('[{"x"}, {}]', '[{"x", ?}, {}]')
    assert Module.parse(opened).propagate().why_not("%a", 0, "y").code != "closed"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["compare", "a.mlir", "--hardwear", "x"], "usage: shardcore compare"),
        (["why", "a.mlir", "--colectives=2"], "did you mean --collectives?"),
        (["cost", "a.mlir", "b.mlir", "c.mlir"], "unrecognized arguments: c.mlir"),
    ],
)
def test_an_unknown_option_shows_the_usage_of_its_command(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    assert message in capsys.readouterr().err


def test_the_help_fits_80_columns(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit):
        main(["--help"])
    assert [line for line in capsys.readouterr().out.splitlines() if len(line) > 80] == []


def test_an_argument_whose_path_looks_like_a_line_is_an_argument(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "named.mlir"
    path.write_text("""sdy.mesh @mesh = <["x"=2]>
    func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>} loc("w:0"))
        -> tensor<8xf32> {
      return %a : tensor<8xf32>
    }""")
    assert main(["why", str(path), "w:0"]) == 0
    assert 'w:0 [{"x"}]' in capsys.readouterr().out


CALLED = (
    f"{MESH}func.func @main(%a: {TENSOR} "
    '{sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<12x2xf32> {\n'
    f'  %0 = call @tril(%a) : ({TENSOR}) -> {TENSOR} loc("model.py":12:8)\n'
    f"  return %0 : {TENSOR}\n}}\n"
    f'func.func private @tril(%b: {TENSOR} loc("model.py":12:8)) -> {TENSOR} {{\n'
    f'  %1 = stablehlo.tanh %b : {TENSOR} loc("model.py":12:8)\n'
    f"  return %1 : {TENSOR}\n}}\n"
)


def test_what_functions_of_a_line_make_comes_after_its_own_values(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "model.mlir"
    path.write_text(CALLED)
    assert main(["propagate", str(path), "--at", "model.py:12"]) == 0
    rows = capsys.readouterr().out.splitlines()[1:]
    names = [row.partition("  ")[0] for row in rows]
    assert names[0] == "%0"
    assert "@tril %1" in names[1:]


INDEXED = (
    f"{MESH}func.func @main(%a: {TENSOR} "
    '{sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}, %i: tensor<12x2xi32>) '
    f"-> {TENSOR} {{\n"
    '  %0 = stablehlo.add %i, %i : tensor<12x2xi32> loc("model.py":12:8)\n'
    "  %1 = stablehlo.compare LT, %i, %0 : (tensor<12x2xi32>, tensor<12x2xi32>) "
    '-> tensor<12x2xi1> loc("model.py":12:8)\n'
    f'  %2 = stablehlo.select %1, %a, %a : tensor<12x2xi1>, {TENSOR} loc("model.py":12:8)\n'
    f"  return %2 : {TENSOR}\n}}\n"
)


@pytest.mark.parametrize("is_json", [False, True])
def test_index_arithmetic_comes_after_what_a_line_computes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], is_json: bool
) -> None:
    path = tmp_path / "model.mlir"
    path.write_text(INDEXED)
    assert main(["propagate", str(path), "--at", "model.py:12", *["--json"] * is_json]) == 0
    shown = capsys.readouterr().out
    if is_json:
        names = [row["name"] for row in json.loads(shown)["values"]]
    else:
        names = [row.partition(" ")[0] for row in shown.splitlines()[1:]]
    assert names == ["%2", "%0", "%1"]
