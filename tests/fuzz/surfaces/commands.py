"""Target: command lines, whose files hold programs that were mutated."""

from __future__ import annotations

import argparse
import contextlib
import functools
import io
from pathlib import Path
from random import Random

from shardcore import cli

from tests.fuzz.surfaces import hostile

CORPUS = Path(__file__).resolve().parents[1] / "corpus"
FILES = ["program.mlir", "other.mlir", "missing.mlir", ".", "-"]
CODES = {0, 1, 2}
APART = {"mcp", "measure"}


@functools.cache
def _programs() -> list[str]:
    return [path.read_text() for path in sorted(CORPUS.iterdir())]


@functools.cache
def _commands() -> dict[str, list[argparse.Action]]:
    """The arguments of each command but two: a server has clients, in tests/mcp, and a measurement
    takes as long as it is told, in tests/measure.
    """
    [commands] = [
        action
        for action in cli._parser()._actions
        if isinstance(action, argparse._SubParsersAction)
    ]
    return {name: parser._actions for name, parser in commands.choices.items() if name not in APART}


def _word(random: Random, action: argparse.Action) -> str:
    if action.metavar and "FILE" in str(action.metavar) and random.random() < 0.8:
        return random.choice(FILES)
    if action.choices and random.random() < 0.8:
        return str(random.choice(list(action.choices)))
    text = random.choice(hostile.TEXTS)
    return hostile.mutated(random, text) if random.random() < 0.3 else text


def command_line(random: Random) -> list[str]:
    """A command with some of its flags."""
    name = random.choice(list(_commands()))
    words = [name]
    for action in _commands()[name]:
        is_needed = action.required or not action.option_strings
        if isinstance(action, argparse._HelpAction) or random.random() > (
            0.97 if is_needed else 0.25
        ):
            continue
        words += action.option_strings[:1]
        if action.nargs != 0:
            words.append(_word(random, action))
    if name == "opt":
        words += [
            random.choice(FILES),
            random.choice(["--sdy-propagation-pipeline", *hostile.TEXTS]),
        ]
    return words


def run(seed: int) -> None:
    """Runs the command line of `seed`: it says what is wrong, or nothing is."""
    random = Random(f"commands {seed}")
    for name in FILES[:2]:
        program = random.choice(_programs())
        Path(name).write_text(
            hostile.mutated(random, program) if random.random() < 0.3 else program
        )
    words = command_line(random)
    output, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
        try:
            code = cli.main(words)
        except SystemExit as exit_:
            code = int(exit_.code or 0)
    assert code in CODES, (words, code)
    assert "Traceback" not in errors.getvalue(), words
    assert code == 0 or output.getvalue() or errors.getvalue(), (words, "fails without a word")
    assert "\x1b" not in output.getvalue() + errors.getvalue(), (words, "control characters")
