"""Options and output that several commands share: numbers, files, help, the progress bar."""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections.abc import Callable
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn

import shardcore
from shardcore import files, program_files
from shardcore.cli.streams import print_error, standard_input
from shardcore.cli.terminal import for_stream
from shardcore.controls import escaped, json_escape, mlir_escape, visible

if TYPE_CHECKING:
    from collections.abc import Iterator

    from _typeshed import SupportsWrite
    from rich.progress import Progress

_MAX_INDENTED_ROWS = 1000
_MAX_DIGITS = 18
_MAX_COUNT = 2**63 - 1

_PROGRAM_HELP = (
    "the program: MLIR as text or bytecode, bytes of jax.export, HLO of any stage as text or "
    "proto; - is standard input; or model.py:build, a Python function that returns a function and "
    "its arguments"
)
JSON_SCHEMA = 1
"""The version of the JSON of all commands; raised when a key is removed or changes its meaning."""
PROGRESS_AFTER_SECONDS = 1.0
"""No progress bar is shown before this time."""


class HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Keeps line breaks in help texts, and has a wide column for names."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=28)


class Parser(argparse.ArgumentParser):
    """An argument parser that replaces control characters in its errors."""

    def error(self, message: str) -> NoReturn:
        """Print the usage and ``message``, and exit with code 2."""
        super().error(visible(message))

    def _print_message(self, message: str, file: SupportsWrite[str] | None = None) -> None:
        """Print ``message``; unlike ``argparse``, fail if standard output cannot be written."""
        if file is not None and file is sys.stdout:
            file.write(message)
        else:
            super()._print_message(message, file)


def seconds(text: str) -> float:
    """A time above 0, as the type of an argument."""
    try:
        found = float(text)
    except ValueError:
        found = 0.0
    if not 0 < found < float("inf"):
        raise argparse.ArgumentTypeError(f"expected seconds above 0, got {text!r}")
    return found


def count(text: str) -> int:
    """An integer from 0 to :data:`_MAX_COUNT`."""
    if not text.isascii() or not text.isdigit():
        raise argparse.ArgumentTypeError(f"expected a number >= 0, got {text!r}")
    return int(text) if len(text) <= _MAX_DIGITS else _MAX_COUNT


def counts(text: str) -> list[int]:
    """The numbers above 0 that ``text``, ``2,4,8``, denotes, as the type of an argument."""
    found = [count(part) for part in text.split(",")]
    if not all(0 < each <= 1 << 16 for each in found):
        raise argparse.ArgumentTypeError(f"expected numbers above 0, got {text!r}")
    return found


def shape(text: str) -> tuple[int, ...]:
    """A shape, ``8x16`` or ``8,16``; the empty text is the shape of a scalar."""
    sizes = tuple(count(size) for size in text.replace("x", ",").split(",")) if text else ()
    if any(size >= _MAX_COUNT for size in sizes):
        raise argparse.ArgumentTypeError(f"{text} is larger than any tensor")
    return sizes


def read_text(path: str) -> tuple[bytes, str]:
    """The contents of ``path``, or of standard input for ``-``, and the name used in errors.

    Raises:
        OSError, LoweringError: as for :func:`shardcore.program_files.read`.
    """
    return (standard_input(), "<stdin>") if path == "-" else program_files.read_text(path)


def add_program(parser: argparse.ArgumentParser) -> None:
    """Add ``FILE``, the program, and ``--shardy``, the version of Shardy to follow."""
    parser.add_argument("file", metavar="FILE", help=_PROGRAM_HELP)
    add_shardy(parser)


def add_shardy(parser: argparse.ArgumentParser) -> None:
    """Add ``--shardy``, the version of Shardy to follow."""
    parser.add_argument(
        "--shardy",
        metavar="VERSION",
        help=f"follow the Shardy of this jaxlib, one of {', '.join(shardcore.SHARDY_VERSIONS)} "
        "[that of the installed jaxlib, else the newest]",
    )


def read_module(path: str, shardy: str | None) -> shardcore.Module:
    """The program at ``path``, or on standard input for ``-``; HLO is converted.

    ``shardy`` is as in :meth:`shardcore.Module.parse`.

    Raises:
        OSError: as for :func:`read_text`.
        ShardcoreError: as for :meth:`shardcore.Module.parse`.
    """
    text, name = read_text(path)
    return program_files.parse(text, name, shardy)


def write(path: str, text: str) -> None:
    """Write the program ``text`` to the file at ``path``, or to standard output for ``-``.

    On standard output, which may be a terminal, control characters are escaped as in MLIR.

    Raises:
        OSError: the file cannot be written; an existing file is unchanged.
    """
    if path == "-":
        text = escaped(text, mlir_escape)
        sys.stdout.write(text if text.endswith("\n") else text + "\n")
    else:
        files.write(path, text)


def warn(result: shardcore.Result) -> None:
    """Print the warnings of ``result`` to standard error."""
    for warning in result.warnings:
        print_error(str(warning))


def print_text(text: object = "", end: str = "\n") -> None:
    """Print ``text`` to standard output, which may be a terminal."""
    sys.stdout.write(visible(str(text)) + end)


def print_fitted(text: object) -> None:
    """Print ``text``, a tree or a message; on a terminal, lines fit its width."""
    print_text(for_stream(str(text), sys.stdout))


def print_json(record: dict[str, Any]) -> None:
    """Print ``record`` to standard output as strict JSON, with its schema version.

    Infinities and NaN become ``null``, and control characters are escaped. A record with a long
    list is printed on one line, which Python does five times as fast.
    """
    record = {"schema": JSON_SCHEMA, **record}
    lists = (value for value in record.values() if isinstance(value, list))
    indent = None if sum(map(len, lists)) > _MAX_INDENTED_ROWS else 1
    try:
        text = json.dumps(record, indent=indent, ensure_ascii=False, allow_nan=False)
    except ValueError:
        text = json.dumps(_finite(record), indent=indent, ensure_ascii=False)
    sys.stdout.write(escaped(text, json_escape) + "\n")


def _finite(record: Any) -> Any:
    """``record`` with ``None`` for infinities and NaN."""
    if isinstance(record, float):
        return record if math.isfinite(record) else None
    if isinstance(record, dict):
        return {key: _finite(value) for key, value in record.items()}
    return [_finite(value) for value in record] if isinstance(record, (list, tuple)) else record


@contextmanager
def progress_bar() -> Iterator[Callable[[str, float], None]]:
    """A callback ``(what, fraction)`` that shows a progress bar once the work takes over a
    second."""
    draw_from = time.perf_counter() + PROGRESS_AFTER_SECONDS
    bar: Progress | None = None

    def progress(what: str, fraction: float) -> None:
        nonlocal bar
        if bar is None:
            if time.perf_counter() < draw_from or not sys.stderr.isatty():
                return
            # Imported only if the work takes long.
            from rich.console import Console
            from rich.progress import Progress

            bar = Progress(console=Console(stderr=True), transient=True)
            bar.add_task("", total=1.0)
            bar.start()
        bar.update(bar.task_ids[0], description=what, completed=fraction)

    try:
        yield progress
    finally:
        if bar is not None:
            bar.stop()
