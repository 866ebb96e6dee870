"""Annotations on the lines of a pull request, through workflow commands in a job's output.

Source: "Workflow commands" in GitHub's documentation of Actions.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from shardcore.cli.streams import print_error
from shardcore.controls import visible
from shardcore.labels import line_of

if TYPE_CHECKING:
    from shardcore.errors import Diagnostic
    from shardcore.expect import Check


def add_github(parser: argparse.ArgumentParser) -> None:
    """Add ``--github``."""
    parser.add_argument(
        "--github",
        action="store_true",
        help="say on standard error what fails as workflow commands, which GitHub shows beside "
        "the lines of a pull request",
    )


def annotate_failures(check: Check) -> None:
    """Print a workflow command for each failed expectation: at the source line that breaks it, if
    that is known and in this folder, else at the line of the expectation.
    """
    from shardcore.expect.mistakes import dotted

    for failure in check.failures:
        message = "\n".join([f"expected {failure.expected}", *failure.actual])
        place = _here(failure.location) or (check.filename, failure.line)
        _print("error", f"{dotted(failure.path)} does not hold", message, *place)


def annotate_mistakes(mistakes: Iterable[Diagnostic]) -> None:
    """Print a workflow command for each of ``mistakes``."""
    for each in mistakes:
        message = each.message if each.hint is None else f"{each.message}\n{each.hint}"
        place = _here(each.location) or (each.filename, each.line)
        _print(each.severity, each.code, message, *place)


def _here(location: str | None) -> tuple[str, int] | None:
    """The file of a location, relative to this folder, and the line; ``None`` if it is outside."""
    line = line_of(location)
    if line is None:
        return None
    file = os.path.relpath(line[0])
    return None if file.startswith(os.pardir) else (Path(file).as_posix(), line[1])


def _print(kind: str, title: str, message: str, file: str | None, line: int | None) -> None:
    properties = {"file": file, "line": None if line is None else str(line), "title": title}
    text = ",".join(
        f"{name}={_escaped(value, ':,')}" for name, value in properties.items() if value is not None
    )
    print_error(f"::{kind} {text}::{_escaped(message)}")


def _escaped(text: str, more: str = "") -> str:
    """``text`` escaped onto one line; ``more`` are further characters to escape."""
    for char in f"%\r\n{more}":
        text = text.replace(char, f"%{ord(char):02X}")
    return visible(text)
