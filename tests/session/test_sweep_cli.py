"""``shardcore sweep``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from shardcore.cli import main
from shardcore.cli.sweep import parts

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
        (["--set", "x="], 2, "--set takes TARGET=SHARDING|..."),
        (["--set", "x=P()|"], 2, "--set takes TARGET=SHARDING|..."),
        (["--set", "x=P()", "--hardware", "tpu-v55"], 1, 'unknown hardware "tpu-v55"'),
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
        found = main(["sweep", program, "--hardware", "tpu-v5e", *arguments])
    except SystemExit as error:
        found = error.code
    printed = capsys.readouterr()
    assert found == code
    assert message in printed.out + printed.err


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x=P()|none", ["x", "P()|none"]),
        ("p['a=b'][\"=|\"]=P()", ["p['a=b'][\"=|\"]", "P()"]),
        ("p['it\\'s = x']=P()", ["p['it\\'s = x']", "P()"]),
        ("it's=P()", ["it's", "P()"]),
        ("x=<mesh<['q'=2]>, [{}]>", ["x", "<mesh<['q'=2]>, [{}]>"]),
        ("x", ["x"]),
    ],
)
def test_targets_may_have_the_characters_that_divide(text: str, expected: list[str]) -> None:
    assert parts(text, "=", most=1) == expected


def test_what_is_given_twice_is_tried_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "odd.mlir"
    path.write_text(TEXT.replace("params['a']['w']", "params['a=b']['w|\u00e9']"))
    command = ["sweep", str(path), "--hardware", "tpu-v5e", "--json"]
    command += ["--set", "params['a=b']['w|\u00e9']=P()|P(None, 'data')|P()"]
    command += ["--set", "params['a=b']['w|\u00e9']=P('model') | none|P()"]
    command += ["--mesh", "data=2,model=4", "--mesh", "data=2,model=4"]
    assert main(command) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    tried = {row["edit"]["params['a=b']['w|\u00e9']"] for row in rows}
    assert len(rows) == 4
    assert tried == {"P()", "P(None, 'data')", "P('model')", None}
