"""The pytest fixture, as a user's tests have it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

TEST = '''
import pytest
import shardcore

PROGRAM = """
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>} loc("a"))
    -> tensor<8xf32> {
  return %a : tensor<8xf32>
}"""

def test_file(check_shardings):
    check_shardings(shardcore.Module.parse(PROGRAM).propagate(), "expected.toml")

def test_mapping(check_shardings):
    check_shardings(shardcore.Module.parse(PROGRAM).propagate(), {"shardings": {"a": "P('x')"}})
'''


def run(directory: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *flags]
    return subprocess.run(command, cwd=directory, capture_output=True, text=True)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "test_step.py").write_text(TEST)
    (tmp_path / "expected.toml").write_text("[shardings]\na = 'P()' # of old\n")
    return tmp_path


def test_a_difference_fails_and_is_shown(project: Path) -> None:
    done = run(project)
    assert done.returncode == 1, done.stderr
    assert "1 failed, 1 passed" in done.stdout
    assert 'shardings.a (line 2)\n  - P()\n  + [{"x"}]' in done.stdout
    assert "Traceback" not in done.stdout


def test_a_flag_writes_the_file(project: Path) -> None:
    done = run(project, "--update-shardings")
    assert done.returncode == 0, done.stdout
    assert (project / "expected.toml").read_text() == "[shardings]\na = \"P('x')\" # of old\n"
    assert run(project).returncode == 0


def test_a_first_run_says_how_the_file_is_made(project: Path) -> None:
    (project / "expected.toml").unlink()
    done = run(project)
    assert done.returncode == 1, done.stderr
    assert "yet: pytest --update-shardings writes it" in done.stdout
    assert run(project, "--update-shardings").returncode == 0
    assert run(project).returncode == 0
