"""The command line: what it prints, where, and its exit codes."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import shardcore
from shardcore.cli import main

MLP = """\
sdy.mesh @mesh = <["data"=2, "model"=4]>
func.func @main(
    %x: tensor<64x512xbf16> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {?}]>},
    %w: tensor<512x2048xbf16> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"model"}]>})
    -> tensor<64x2048xbf16> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
      : (tensor<64x512xbf16>, tensor<512x2048xbf16>) -> tensor<64x2048xbf16> loc("mlp.py":7:3)
  return %0 : tensor<64x2048xbf16>
}
"""
PLACE = "mlp.py:7"
PIPELINE = "builtin.module(sdy-propagation-pipeline)"


def completed(text: str = MLP, pipeline: str = PIPELINE) -> str:
    module = shardcore.Module.parse(text)
    shardcore.PassManager.parse(pipeline).run(module)
    return str(module)


@pytest.fixture
def mlp(tmp_path: Path) -> str:
    path = tmp_path / "mlp.mlir"
    path.write_text(MLP)
    return str(path)


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]):
    """Runs a command line and returns its exit code, standard output and standard error."""

    def run(*arguments: str) -> tuple[int, str, str]:
        try:
            code = main(arguments)
        except SystemExit as stop:
            code = int(stop.code or 0)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


def stdin(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))


def test_propagate_shows_every_value(run, mlp: str) -> None:
    code, out, err = run("propagate", mlp)
    assert (code, err) == (0, "")
    header, *lines = out.splitlines()
    assert header.split("  ")[0] == "value"
    assert [line.split()[0] for line in lines[:3]] == ["%x", "%w", "%0"]
    assert lines[2].endswith("mlp.py:7:3")
    assert "3 of 3 values are sharded (annotated: 2)" in lines
    assert "\x1b" not in out


def test_propagate_limits_rows(run, mlp: str) -> None:
    code, out, _ = run("propagate", mlp, "--limit", "2")
    assert code == 0
    assert "... 1 argument and 0 results of ops more (--limit 0 shows all)" in out
    assert "%w" not in out
    assert "%w" in run("propagate", mlp, "--limit", "0")[1]


def test_a_program_without_annotations_says_what_to_type(run, tmp_path: Path) -> None:
    path = tmp_path / "bare.mlir"
    body = (
        'func.func @main(%x: tensor<64x8xf32> loc("x")) -> tensor<64x8xf32> {\n'
        "  %0 = stablehlo.negate %x : tensor<64x8xf32>\n  return %0 : tensor<64x8xf32>\n}\n"
    )
    mesh = 'sdy.mesh @mesh = <["one"=1, "data"=8]>\n'
    said = {}
    for name, text in {
        "bare": body,
        "mesh": mesh + body,
        "annotated": mesh
        + body.replace("xf32> loc", "xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>} loc"),
        "constrained": mesh
        + body.replace("stablehlo.negate %x", "sdy.sharding_constraint %x <@mesh, [{}, {}]>"),
        "one device": 'sdy.mesh @mesh = <["one"=1]>\n' + body,
    }.items():
        path.write_text(text)
        code, out, err = run("propagate", str(path))
        assert (code, err) == (0, "")
        _, _, said[name] = out.partition("note: ")
    assert said["bare"].startswith("the program has no mesh and no annotation")
    assert "shardcore plan FILE --devices 8" in said["bare"]
    assert said["mesh"].startswith("nothing is annotated, so each of 8 devices holds")
    assert 'x with [{"data"}, {}]' in said["mesh"]
    assert said["annotated"] == said["constrained"] == said["one device"] == ""


def test_propagate_writes_json(run, mlp: str) -> None:
    code, out, _ = run("propagate", mlp, "--json")
    assert code == 0
    record = json.loads(out)
    keys = {"schema", "values", "summary", "warnings", "diagnostics"}
    assert set(record) == keys
    assert record["values"][2] == {
        "name": "%0",
        "function": "main",
        "op": "stablehlo.dot_general",
        "shape": [64, 2048],
        "dtype": "bf16",
        "sharding": '<@mesh, [{"data"}, {"model"}]>',
        "local_shape": [32, 512],
        "bytes_per_device": 32 * 512 * 2,
        "location": "mlp.py:7:3",
        "traceback": ["mlp.py:7:3"],
        "scope": "",
    }
    assert record["values"][0]["op"] is None
    assert record["summary"] == shardcore.Module.parse(MLP).propagate().summary()


def test_propagate_writes_the_program(run, mlp: str, tmp_path: Path) -> None:
    path = tmp_path / "done.mlir"
    code, out, _ = run("propagate", mlp, "-o", str(path))
    assert code == 0
    assert "%0" in out
    assert path.read_text() == completed()
    assert run("propagate", mlp, "-o", "-") == (0, completed(), "")
    code, out, _ = run("propagate", mlp, "--json", "-o", str(path))
    assert json.loads(out)["values"]


def test_propagate_reads_standard_input(run, monkeypatch: pytest.MonkeyPatch) -> None:
    stdin(monkeypatch, MLP)
    assert run("propagate", "-", "-o", "-") == (0, completed(), "")
    stdin(monkeypatch, "func.func @f(")
    code, _, err = run("propagate", "-")
    assert code == 1
    assert "--> <stdin>:1:" in err


def test_propagate_takes_options(run, tmp_path: Path) -> None:
    path = tmp_path / "sub.mlir"
    path.write_text(MLP.replace('{"model"}', '{"model":(1)2, ?}').replace('{"data"}', '{"data"}p1'))
    kept = run("propagate", str(path), "--keep-sub-axes-on-io")[1]
    assert '[{}, {"model":(1)2}]' in kept
    assert '[{}, {"model":(1)2}]' not in run("propagate", str(path))[1]
    early = run("propagate", str(path), "--up-to-priority", "0")[1]
    assert '[{"data"}, {' not in early


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["propagate", "missing.mlir"], 1, "error[io]: missing.mlir: No such file or directory"),
        (["propagate", "."], 1, "error[io]: .: Is a directory"),
        (
            ["check", "MLP", "--expect", "missing.toml"],
            1,
            "error[io]: missing.toml: No such file or directory\n  help: --update writes it",
        ),
        (["opt", "missing.mlir"], 1, "error[io]: missing.mlir: No such file or directory"),
        (["propagate", "MLP", "-o", "no/such/dir"], 1, "error[io]: no/such/dir: No such file"),
        ([], 2, "required: COMMAND"),
        (["propagate"], 2, "required: FILE"),
        (["propagte", "MLP"], 2, "no command is called 'propagte': did you mean"),
        (["propagate", "MLP", "--limit", "-1"], 2, "expected a number >= 0, got '-1'"),
        (["propagate", "MLP", "--json", "-o", "-"], 2, "both want standard output"),
        (["opt", "MLP", "other.mlir"], 2, "unrecognized arguments: other.mlir"),
        (["opt", "MLP", "--sdy-close-sharding"], 2, "did you mean sdy-close-shardings?"),
        (["opt", "MLP", "--sdy-basic-propagate=x=1"], 2, "has no option x"),
        (["opt", "MLP", "--pass-pipeline", "builtin.module(a)"], 2, "no pass or pipeline"),
        (
            ["opt", "MLP", "--sdy-close-shardings", f"--pass-pipeline={PIPELINE}"],
            2,
            "cannot be used together",
        ),
    ],
)
def test_mistakes(run, mlp: str, arguments: list[str], code: int, message: str) -> None:
    found, out, err = run(*(mlp if argument == "MLP" else argument for argument in arguments))
    assert (found, out) == (code, "")
    assert message in err


def test_mistakes_in_programs_are_shown_in_place(run, tmp_path: Path) -> None:
    path = tmp_path / "typo.mlir"
    path.write_text(MLP.replace('"model"}', '"modle"}'))
    code, out, err = run("propagate", str(path))
    assert (code, out) == (1, "")
    assert f"--> {path}:2:" in err
    assert "\n  4 | " in err
    assert 'did you mean "model"?' in err
    path.write_bytes(b"\x80\x81")
    assert "byte 0x80 is not UTF-8" in run("opt", str(path))[2]


def test_help_and_version(run) -> None:
    assert run("--version") == (0, f"shardcore {shardcore.__version__}\n", "")
    assert "shardcore propagate model.mlir" in run("--help")[1]
    assert "--limit" in run("propagate", "--help")[1]
    passes = run("opt", "--help")[1]
    assert all(f"  {name}\n" in passes for name in shardcore.PassManager.pass_names())


def test_opt_runs_passes_in_order(run, mlp: str, tmp_path: Path) -> None:
    assert run("opt", mlp) == (0, MLP, "")
    assert run("opt", mlp, "--sdy-propagation-pipeline") == (0, completed(), "")
    assert run("opt", "--sdy-propagation-pipeline", mlp) == (0, completed(), "")
    assert run("opt", mlp, f"--pass-pipeline={PIPELINE}") == (0, completed(), "")
    passes = "sdy-basic-propagate{keep-sharding-rules=true},sdy-close-shardings"
    path = tmp_path / "out.mlir"
    flags = ["--sdy-basic-propagate=keep-sharding-rules=true", "-sdy-close-shardings"]
    assert run("opt", mlp, *flags, "-o", str(path)) == (0, "", "")
    assert path.read_text() == completed(pipeline=f"builtin.module({passes})")


def test_opt_reads_standard_input(run, monkeypatch: pytest.MonkeyPatch) -> None:
    for arguments in (["opt"], ["opt", "-"], ["opt", "-o", "-"]):
        stdin(monkeypatch, MLP)
        assert run(*arguments) == (0, MLP, "")


def test_opt_splits_files(run, tmp_path: Path) -> None:
    path = tmp_path / "two.mlir"
    path.write_text(f"{MLP}// -----\n{MLP}")
    code, out, _ = run("opt", str(path), "--split-input-file", "--sdy-propagation-pipeline")
    assert code == 0
    assert [piece.strip() for piece in out.split("// -----")] == [completed().strip()] * 2
    path.write_text(f"{MLP}// -----\n{MLP.replace('dot_general', 'dot_genral')}")
    code, out, err = run("opt", str(path), "--split-input-file")
    assert (code, out) == (1, "")
    assert f"--> {path}:{MLP.count(chr(10)) + 7}:" in err


def test_readers_may_leave_early(mlp: str) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-m", "shardcore", "opt", mlp],
        stdout=writer,
        stderr=subprocess.PIPE,
        text=True,
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, "")


def test_any_terminal_can_be_written_to(mlp: str) -> None:
    Path(mlp).write_text(MLP.replace("mlp.py", "größe.py"), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "shardcore", "propagate", mlp],
        capture_output=True,
        # Nobody says how wide the terminal is, which pytest-xdist does.
        env={**os.environ, "PYTHONIOENCODING": "ascii", "COLUMNS": ""},
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"gr\\xf6\\xdfe.py:7:3" in done.stdout


def test_the_values_of_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "mlp.mlir"
    file.write_text(MLP)
    assert main(["propagate", str(file), "--at", PLACE]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in shown] == ["value", "%0"]
    assert main(["propagate", str(file), "--at", PLACE, "--json"]) == 0
    [value] = json.loads(capsys.readouterr().out)["values"]
    assert (value["name"], value["location"]) == ("%0", "mlp.py:7:3")
    assert main(["propagate", str(file), "--at", "mlp.py:8"]) == 1
    assert "nearest to it that made values: 7" in capsys.readouterr().err
