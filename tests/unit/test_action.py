"""The action for pull requests, whose steps run here as GitHub's runner runs them; and the commands
by which lines of a pull request get annotations.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import shardcore
from shardcore.cli import main

from tests.unit.test_diff import BAD, GOOD, text

ROOT = Path(__file__).resolve().parents[2]


def git(folder: Path, *arguments: str) -> str:
    names = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"]
    done = subprocess.run(
        ["git", *names, *arguments], cwd=folder, check=True, capture_output=True, text=True
    )
    return done.stdout.strip()


def script() -> str:
    """What the last step runs."""
    found = (ROOT / "action.yml").read_text("utf-8").split("      run: |\n")[1]
    return "\n".join(line.removeprefix(" " * 8) for line in found.splitlines())


@pytest.mark.skipif(shutil.which("git") is None or os.name == "nt", reason="needs git and bash")
def test_the_action_compares_with_the_base(tmp_path: Path) -> None:
    checkout, bin, temporary = (tmp_path / name for name in ("checkout", "bin", "temp"))
    for folder in (checkout, bin, temporary):
        folder.mkdir()
    command = bin / "shardcore"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m shardcore "$@"\n')
    command.chmod(0o755)
    (checkout / "step.mlir").write_text(text(GOOD))
    (checkout / "expected.toml").write_text("[shardings]\n\"p['v']\" = 'P(\"model\")'\n")
    git(checkout, "init", "--quiet")
    git(checkout, "add", ".")
    git(checkout, "commit", "--quiet", "-m", "base")
    base = git(checkout, "rev-parse", "HEAD")
    (checkout / "step.mlir").write_text(text(BAD))
    summary, output = tmp_path / "summary.md", tmp_path / "output"
    environment = {
        **os.environ,
        "PATH": f"{bin}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(Path(shardcore.__file__).parents[1]),
        "RUNNER_TEMP": str(temporary),
        "GITHUB_STEP_SUMMARY": str(summary),
        "GITHUB_OUTPUT": str(output),
        **{"PROGRAM": "step.mlir", "BASE": base, "HARDWARE": "tpu-v5e", "OPTIONS": "--top 3"},
        "EXPECT": "expected.toml",
    }

    def run() -> subprocess.CompletedProcess[str]:
        bash = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script()]
        return subprocess.run(
            bash, cwd=checkout, env=environment, capture_output=True, text=True, check=False
        )

    failed = run()
    assert failed.returncode == 1
    assert failed.stderr.startswith("::error file=expected.toml,line=2,title=shardings")
    assert '`[{"model"}, {}]` | replicated |' in summary.read_text()
    assert output.read_text() == f"markdown={temporary / 'shardcore-diff.md'}\n"
    assert git(checkout, "worktree", "list").count("\n") == 0
    environment["EXPECT"] = ""
    assert run().returncode == 0
    # A program that is new, and a branch.
    (checkout / "new.mlir").write_text(text(BAD))
    for change in ({"PROGRAM": "new.mlir"}, {"PROGRAM": "step.mlir", "BASE": "0" * 40}):
        environment |= change
        new = run()
        assert new.returncode == 0
        assert new.stdout == f"::notice::{change['PROGRAM']} is new: it is compared with itself\n"
    assert summary.read_text().count("as before") >= 2
    environment["PROGRAM"] = "other.mlir"
    missing = run()
    assert missing.returncode == 1
    assert "other.mlir" in missing.stderr


def test_the_inputs_of_the_action_are_used() -> None:
    action = (ROOT / "action.yml").read_text("utf-8")
    inputs = re.findall(r"^  (\w+):\n    description", action.split("outputs:")[0], re.MULTILINE)
    assert inputs
    for name in inputs:
        assert f"inputs.{name}" in action
    # What others write, as names of branches, is never part of a script.
    assert "${{" not in script()


def test_failures_stand_at_the_lines_that_break_expectations(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("step.mlir").write_text(text(BAD, str(tmp_path)))
    Path("expected.toml").write_text("[collectives]\nforbid = ['all_reduce']\n[memory]\npeak = 1\n")
    command = ["check", "step.mlir", "--expect", "expected.toml", "--github"]
    assert main(command) == 1
    first, second = capsys.readouterr().err.splitlines()
    assert first.startswith("::error file=m.py,line=9,title=collectives.forbid[0] does not hold::")
    assert "%0A" in first
    assert second.startswith("::error file=m.py,line=")
    # Sources that are not here are no files of the pull request.
    Path("step.mlir").write_text(text(BAD, "/elsewhere"))
    assert main(command) == 1
    err = capsys.readouterr().err
    assert err.startswith("::error file=expected.toml,line=2,title=collectives")
    Path("expected.toml").write_text("[memory]\npeek = 1\n")
    assert main(command) == 1
    assert capsys.readouterr().err.startswith(
        "::error file=expected.toml,line=2,title=unknown-expectation::"
    )
    Path("step.mlir").write_text("func.func @main(")
    assert main(command) == 1
    assert capsys.readouterr().err.startswith("::error file=step.mlir,line=1,title=syntax::")
