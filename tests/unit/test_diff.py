"""``shardcore diff``: what changed between two versions of a program, line by line."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import shardcore
from shardcore import Diff, Module, Result
from shardcore.cli import main
from shardcore.diff.same_lines import same_lines

PROGRAM = """\
sdy.mesh @mesh = <["data"=2, "model"=4]>
func.func @main(
    %x: tensor<64x512xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>} loc("x"),
    %w: tensor<512x2048xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"model"}]>} loc("p['w']"),
    %v: tensor<2048x512xf32> {sdy.sharding = #sdy.sharding<@mesh, [VSHARDING]>} loc("p['v']"))
    -> (tensor<64x512xf32> {jax.result_info = "y"}) {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
      : (tensor<64x512xf32>, tensor<512x2048xf32>) -> tensor<64x2048xf32> loc("FOLDER/m.py":7:3)
  %1 = stablehlo.tanh %0 : tensor<64x2048xf32> loc("FOLDER/m.py":8:3)
  %2 = stablehlo.dot_general %1, %v, contracting_dims = [1] x [0]
      : (tensor<64x2048xf32>, tensor<2048x512xf32>) -> tensor<64x512xf32> loc("FOLDER/m.py":9:3)
  return %2 : tensor<64x512xf32>
}
"""
GOOD, BAD = '{"model"}, {}', "{}, {}"


def text(sharding: str, folder: str = "base", moved: int = 0) -> str:
    """The program, from a checkout in another folder, whose lines an edit moved."""
    found = PROGRAM.replace("VSHARDING", sharding).replace("FOLDER", folder)
    return re.sub(r'py":(\d+)', lambda line: f'py":{int(line[1]) + moved}', found)


def program(sharding: str, folder: str = "base", moved: int = 0) -> Result:
    return Module.parse(text(sharding, folder, moved), filename=f"{folder}.mlir").propagate()


BASE, HEAD = program(GOOD), program(BAD, "/here/head", 5)


@pytest.fixture(scope="module")
def found() -> Diff:
    return shardcore.diff(BASE, HEAD, "tpu-v5e", expect={"collectives": {"forbid": ["all_reduce"]}})


def test_lines_are_known_again_where_an_edit_moved_them() -> None:
    assert same_lines(BASE, HEAD) == {
        "base/m.py:7": "/here/head/m.py:12",
        "base/m.py:8": "/here/head/m.py:13",
        "base/m.py:9": "/here/head/m.py:14",
    }


def test_an_inserted_and_an_edited_line() -> None:
    edited = Module.parse(
        text(GOOD)
        .replace(
            '  %1 = stablehlo.tanh %0 : tensor<64x2048xf32> loc("base/m.py":8:3)',
            '  %9 = stablehlo.negate %0 : tensor<64x2048xf32> loc("base/m.py":8:3)\n'
            '  %1 = stablehlo.tanh %9 : tensor<64x2048xf32> loc("base/m.py":9:3)',
        )
        .replace('m.py":9:3)\n  return', 'm.py":10:3)\n  return')
    ).propagate()
    lines = same_lines(BASE, edited)
    assert [lines[f"base/m.py:{line}"] for line in (7, 8, 9)] == [
        f"base/m.py:{line}" for line in (7, 9, 10)
    ]
    # A line whose op is another one is the same line, edited.
    other = Module.parse(text(GOOD).replace("stablehlo.tanh", "stablehlo.abs")).propagate()
    assert same_lines(BASE, other)["base/m.py:8"] == "base/m.py:8"


def test_a_program_that_only_moved_does_not_differ() -> None:
    found = shardcore.diff(BASE, program(GOOD, "/here/head", 5))
    assert (found.ports, found.values, found.costs.lines) == ((), (), ())
    assert (found.appeared, found.gone, found.check, found.ok) == ((), (), None, True)


def test_what_changed(found: Diff) -> None:
    assert [(row.name, row.before, row.after) for row in found.ports] == [
        ("p['v']", '[{"model"}, {}]', "replicated")
    ]
    cost = {row.name: (row.before, row.after) for row in found.costs.totals}
    assert cost["peak_bytes"] == (
        BASE.cost("tpu-v5e").peak_bytes,
        HEAD.cost("tpu-v5e").peak_bytes,
    )
    assert all(row.place.startswith("/here/head/m.py:1") for row in found.costs.lines)
    assert found.costs.lines
    assert not found.ok
    record = found.record()
    assert json.loads(json.dumps(record))["costs"] == json.loads(json.dumps(found.costs.record()))
    assert record["check"]["failures"][0]["location"] == "/here/head/m.py:14:3"


def test_values_that_are_sharded_otherwise_are_told_by_line() -> None:
    open_program = text("{?}, {?}").replace('[{}, {"model"}]', "[{}, {}]")
    found = shardcore.diff(BASE, Module.parse(open_program))
    rows = {row.place: (row.op, row.count, row.before, row.after) for row in found.values}
    sharded, whole = ('[{"data"}, {"model"}]',), ('[{"data"}, {}]',)
    assert rows["base/m.py:8"] == ("stablehlo.tanh", 1, sharded, whole)
    assert "base/m.py:9" not in rows


def test_warnings_that_appeared_and_that_are_gone() -> None:
    silent = program("{?}, {?}")
    found = shardcore.diff(BASE, silent)
    assert ("no-effect", "p['v']") in [(each.code, each.value) for each in found.appeared]
    back = shardcore.diff(silent, BASE)
    assert [each.code for each in back.gone] == [each.code for each in found.appeared]


def test_markdown(found: Diff) -> None:
    lines = found.markdown(top=1).splitlines()
    assert lines[0].startswith("#### step ")
    assert "expectation broken" in lines[0]
    assert "| `p['v']` | `[{\"model\"}, {}]` | replicated |" in lines
    assert any(line.startswith("| `collectives.forbid[0]` |") for line in lines)
    assert len(lines) < 40
    rows = [line for line in lines if line.startswith("|")]
    for line in rows:
        assert len(re.findall(r"(?<!\\)\|", line)) >= 4
    # Whatever the program is called, its names make no other cells and no HTML.
    strange = Module.parse(PROGRAM.replace("VSHARDING", BAD).replace("p['v']", "p['a|`<b>']"))
    strange_base = PROGRAM.replace("VSHARDING", GOOD).replace("p['v']", "p['a|`<b>']")
    text_of = shardcore.diff(Module.parse(strange_base), strange).markdown()
    assert "| `` p['a\\|`<b>'] `` |" in text_of


def test_another_mesh_is_told() -> None:
    other = Module.parse(text(GOOD).replace('"data"=2', '"data"=4'))
    found = shardcore.diff(BASE, other)
    assert '`<["data"=4, "model"=4]>`' in found.markdown()


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    paths = tmp_path / "base.mlir", tmp_path / "head.mlir"
    for path, sharding in zip(paths, (GOOD, BAD), strict=True):
        path.write_text(text(sharding))
    return str(paths[0]), str(paths[1])


def test_the_command(
    files: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["diff", *files, "--hardware", "tpu-v5e"]
    assert main(command) == 0
    assert capsys.readouterr().out.startswith("step ")
    expected = tmp_path / "expected.toml"
    expected.write_text("[shardings]\n\"p['v']\" = 'P(\"model\")'\n")
    assert main([*command, "--expect", str(expected), "--json"]) == 1
    record = json.loads(capsys.readouterr().out)
    assert (record["schema"], record["ok"]) == (1, False)
    assert record["ports"][0]["after"] == "replicated"
    assert main([*command, "--expect", str(expected), "--markdown", "--github"]) == 1
    out, err = capsys.readouterr()
    assert out.startswith("#### step ")
    place = str(expected).replace(":", "%3A").replace(",", "%2C")
    assert err == (
        f"::error file={place},line=2,title=shardings.\"p['v']\" does not hold::"
        'expected P("model")%0A[{}, {}]\n'
    )
    assert main(["diff", files[1], files[0], "--expect", str(expected)]) == 0


CHLO = """
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>} loc("a"))
    -> (tensor<8xf32> {jax.result_info = "b"}) {
  %1 = chlo.erf %a : tensor<8xf32> -> tensor<8xf32>
  return %1 : tensor<8xf32>
}
"""


@pytest.mark.parametrize(("flags", "code"), [([], 1), (["--legalize-chlo"], 0)])
def test_ops_of_chlo_are_treated_as_by_check(tmp_path: Path, flags: list[str], code: int) -> None:
    program, expected = tmp_path / "step.mlir", tmp_path / "expected.toml"
    program.write_text(CHLO)
    expected.write_text("[shardings]\nb = 'P(\"x\")'\n")
    files = [str(program)] * 2
    assert main(["check", files[0], "--expect", str(expected), *flags]) == code
    assert main(["diff", *files, "--expect", str(expected), *flags]) == code


def test_mistakes(files: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["diff", "-", "-"])
    assert caught.value.code == 2
    assert main(["diff", files[0], "nothing.mlir"]) == 1
    assert "nothing.mlir" in capsys.readouterr().err
    assert main(["diff", *files, "--hardware", "tpu-v9"]) == 1
    assert "unknown-hardware" in capsys.readouterr().err
    with pytest.raises(TypeError, match="expected a Result"):
        shardcore.diff(BASE, "head.mlir")


STEP = """\
import jax, jax.numpy as jnp
from jax.sharding import PartitionSpec as P


def step(x, w):
    hidden = jnp.tanh(x @ w)
    return hidden @ w.T


def build():
    x, w = (jax.ShapeDtypeStruct(shape, jnp.float32) for shape in ((64, 512), (512, 2048)))
    specs = (P("data"), P(None, "model"))
    return step, (x, w), {"mesh": {"data": 2, "model": 4}, "in_shardings": specs}
"""


def test_two_checkouts_of_a_function(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("jax")
    # The process that runs the function takes the package from where it is here.
    monkeypatch.setenv("PYTHONPATH", str(Path(shardcore.__file__).parents[1]))
    monkeypatch.chdir(tmp_path)
    constraint = '    hidden = jax.lax.with_sharding_constraint(hidden, P("data", None))\n'
    versions = {
        "base": STEP,
        "moved": STEP.replace("\n\ndef step", "\n\n# More.\n\n\ndef step"),
        "head": STEP.replace("    return hidden", f"{constraint}    return hidden"),
    }
    for folder, code in versions.items():
        (tmp_path / folder / "src").mkdir(parents=True)
        (tmp_path / folder / "src" / "model.py").write_text(code)

    def changes(head: str) -> Any:
        assert (
            main(["diff", "base/src/model.py:build", f"{head}/src/model.py:build", "--json"]) == 0
        )
        return json.loads(capsys.readouterr().out)

    moved = changes("moved")
    assert (moved["costs"]["lines"], moved["ports"], moved["values"]) == ([], [], [])
    head = changes("head")
    places = [str(tmp_path / "head" / "src" / f"model.py:{line}") for line in (6, 8)]
    # The second product, which moved down, and what the constraint gathers.
    assert {row["place"] for row in head["costs"]["lines"]} == set(places)
    assert {row["place"] for row in head["values"]} <= set(places)
