"""The commands that README and docs name without their output run, and errors are as shown."""

from __future__ import annotations

import importlib.util
import re
import shlex
import shutil
from pathlib import Path

import pytest
from shardcore.cli import main

from tests.contract import printed

HAS_JAX = importlib.util.find_spec("jax") is not None

MODEL = """\
sdy.mesh @mesh = <["data"=4, "fsdp"=4, "tensor"=2]>
func.func @main(
    %x: tensor<64x512xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {?}]>} loc("batch['x']"),
    %w: tensor<512x1024xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"fsdp"}, {?}]>}
        loc("params['w']"),
    %v: tensor<1024x512xf32> loc("params['out']['w']"))
    -> (tensor<64x512xf32> {jax.result_info = "result"}) {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
      : (tensor<64x512xf32>, tensor<512x1024xf32>) -> tensor<64x1024xf32> loc("model.py":41:8)
  %1 = stablehlo.tanh %0 : tensor<64x1024xf32> loc("model.py":42:8)
  %2 = stablehlo.dot_general %1, %v, contracting_dims = [1] x [0]
      : (tensor<64x1024xf32>, tensor<1024x512xf32>) -> tensor<64x512xf32> loc("model.py":43:8)
  return %2 : tensor<64x512xf32>
}
"""
BUILD = """\
import jax, jax.numpy as jnp


def build():
    x = jax.ShapeDtypeStruct((8, 4), jnp.float32)
    return jnp.tanh, (x,), {"mesh": {"data": 2}}
"""
GOLDEN = """\
{".params/['w']": {"mesh": {"shape": {"data": 4, "fsdp": 4, "tensor": 2}},
                   "partition_spec": ["fsdp", null], "shape": [512, 1024]}}
"""
PROGRAMS = ("model", "step", "old", "new", "before", "after")
COMMAND = re.compile(r"^    (shardcore (?:.*\\\n)*.*)$", re.MULTILINE)
COMMANDS = sorted(
    {command for page in printed.PAGES for command in COMMAND.findall(page.read_text("utf-8"))}
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files that commands name."""
    folder = tmp_path_factory.mktemp("commands")
    shutil.copytree(printed.ROOT / "examples", folder / "examples")
    for name in PROGRAMS:
        (folder / f"{name}.mlir").write_text(MODEL)
    (folder / "model.py").write_text(BUILD)
    (folder / "named_shardings.json").write_text(GOLDEN)
    for name in ("expected", "step"):
        (folder / f"{name}.toml").write_text("[shardings]\n'params[\"w\"]' = '[{\"fsdp\"}, {}]'\n")
    return folder


def test_there_are_commands() -> None:
    assert len(COMMANDS) > 30


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_run(
    command: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _, *arguments = shlex.split(command.replace("\\\n", " "), comments=True)
    if not HAS_JAX and (
        arguments[0] in ("bench", "maxtext")
        or "--against" in arguments
        or any(".py:build" in one for one in arguments)
    ):
        pytest.skip("jax needs Python 3.11")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("COLUMNS", "80")
    assert main(arguments) == 0
    out, err = capsys.readouterr()
    assert out or "-o" in arguments
    assert "error" not in err


def error_in(page: str, code: str) -> str:
    """The error with this code that ``page`` shows."""
    found = re.search(rf"^```text\n(error\[{code}\].*?)^```", page, re.MULTILINE | re.DOTALL)
    assert found
    return found[1]


def test_the_error_of_a_program_is_as_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (printed.ROOT / "README.md").read_text("utf-8")
    text = page.split('Module.parse("""\n')[1].split('"""')[0]
    (tmp_path / "model.mlir").write_text(text.replace('{"model"}]>}', '{"modle"}]>}'))
    monkeypatch.chdir(tmp_path)
    assert main(["propagate", "model.mlir"]) == 1
    assert capsys.readouterr().err == error_in(page, "unknown-axis")


def test_the_error_of_expectations_is_as_shown(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (printed.ROOT / "docs" / "check.md").read_text("utf-8")
    monkeypatch.chdir(folder)
    kept = Path("step.toml").read_text()
    Path("step.toml").write_text('[memory]\npeek = "16 GiB"\n')
    assert main(["check", "model.mlir", "--expect", "step.toml"]) == 1
    Path("step.toml").write_text(kept)
    assert capsys.readouterr().err == error_in(page, "unknown-expectation")


@pytest.mark.parametrize("name", ["check.md", "diagnostics.md"])
def test_files_of_expectations_have_no_mistakes(
    name: str, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (printed.ROOT / "docs" / name).read_text("utf-8")
    [text] = re.findall(r"^```toml\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    path = tmp_path / "step.toml"
    path.write_text(text)
    # They are of other programs: expectations fail, but none is refused.
    main(["check", str(folder / "model.mlir"), "--expect", str(path)])
    out, err = capsys.readouterr()
    assert "expectation" in out
    assert "error[" not in err
