"""``shardcore sweep``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from shardcore.cli import main

from tests.session.test_session import TEXT

ARGUMENTS = ["--set", "params/**/w=P(None, 'data')|P()", "--set", "x=none|P('data')"]


@pytest.fixture
def program(tmp_path: Path) -> str:
    path = tmp_path / "model.mlir"
    path.write_text(TEXT)
    return str(path)


def test_rows_are_sorted(program: str, capsys: pytest.CaptureFixture[str]) -> None:
    meshes = ["--mesh", "data=2,model=4", "--mesh", "data=4,model=2"]
    command = ["sweep", program, *ARGUMENTS, *meshes, "--hardware", "tpu-v5e", "--json"]
    assert main(command) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    seconds = [row["step_seconds"] for row in rows]
    assert len(rows) == 8
    assert seconds == sorted(seconds)
    assert len({(row["mesh"], *map(str, row["edit"].values())) for row in rows}) == 8


def test_the_table(program: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sweep", program, *ARGUMENTS, "--hardware", "tpu-v5e", "--top", "3"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split()[:4] == ["params/**/w", "x", "step", "compute"]
    assert lines[-1] == "1 more are not shown (--top)"


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--set", "params/**/v=P()"], 1, "no argument or result matches params/**/v"),
        (["--set", "P()"], 2, "--set takes TARGET=SHARDING|..."),
        ([], 2, "there is nothing to try"),
        (["--mesh", "data"], 2, "argument --mesh"),
        (["--mesh", "i=8"], 1, "unknown axis name"),
        (["--set", "x=P('q')"], 1, "1 refused, the first because of"),
    ],
)
def test_mistakes(
    program: str,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    code: int,
    message: str,
) -> None:
    try:
        found = main(["sweep", program, *arguments, "--hardware", "tpu-v5e"])
    except SystemExit as error:
        found = error.code
    printed = capsys.readouterr()
    assert found == code
    assert message in printed.out + printed.err
