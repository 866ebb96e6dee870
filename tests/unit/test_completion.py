"""Shells complete commands, flags and values by the scripts that the command prints."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from shardcore.cli import main


def script(shell: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["completion", shell]) == 0
    return capsys.readouterr().out


def run(shell: str, text: str) -> list[str]:
    if shutil.which(shell) is None:
        pytest.skip(f"there is no {shell}")
    options = {"bash": ["--norc"], "zsh": ["-f"], "fish": ["--no-config"]}[shell]
    done = subprocess.run(
        [shell, *options, "-c", text], capture_output=True, text=True, timeout=60, check=True
    )
    return done.stdout.split("\n")


CASES = {
    "shardcore pro": ["propagate"],
    "shardcore w": ["why"],
    "shardcore cost --hardware tpu-v5": ["tpu-v5p", "tpu-v5e"],
    "shardcore partition --pol": ["--policy"],
    "shardcore opt --sdy-close-sh": ["--sdy-close-shardings"],
    "shardcore partition --policy l": ["least"],
    "shardcore cost --policy x": ["xla"],
    "shardcore compare --strategy basic": ["basic", "basic-then-aggressive"],
    "shardcore completion f": ["fish"],
}


@pytest.mark.parametrize("line", CASES)
def test_bash(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = line.split()
    ask = f"COMP_WORDS=({line}); COMP_CWORD={len(words) - 1}; _shardcore; "
    found = run("bash", script("bash", capsys) + ask + 'printf "%s\\n" "${COMPREPLY[@]}"')
    assert [word for word in found if word] == CASES[line]


@pytest.mark.parametrize("line", CASES)
def test_fish(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = run("fish", script("fish", capsys) + f"complete -C '{line}'")
    assert {word.split("\t")[0] for word in found if word} == set(CASES[line])


def test_zsh(capsys: pytest.CaptureFixture[str]) -> None:
    # Completion itself needs a terminal.
    text = script("zsh", capsys)
    defined = "compdef() { print compdef $@ }\n" + text + "whence -w _shardcore\n"
    found = run("zsh", defined)
    assert found[:2] == ["compdef _shardcore shardcore", "_shardcore: function"]
    assert "--policy[how to choose where an op can be computed in more than one way]" in text


def test_a_misspelt_command_is_suggested(capsys: pytest.CaptureFixture[str]) -> None:
    for wrong, hint in (
        ("propagte", 'did you mean "propagate"?'),
        ("reprot", 'did you mean "report"?'),
        ("\x1b[31m", "there is "),
    ):
        with pytest.raises(SystemExit) as caught:
            main([wrong, "model.mlir"])
        assert caught.value.code == 2
        error = capsys.readouterr().err
        assert hint in error
        assert "\x1b" not in error
