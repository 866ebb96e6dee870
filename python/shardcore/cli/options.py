"""What several commands share: numbers, files, the layout of help, the progress bar."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.progress import Progress

PROGRESS_AFTER_SECONDS = 1.0
"""Work shorter than this shows no progress bar."""


class HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Keeps line ends, and has room for names beside what they mean."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=28)


def count(text: str) -> int:
    """A number that is not negative."""
    if not text.isascii() or not text.isdigit():
        raise argparse.ArgumentTypeError(f"expected a number >= 0, got {text!r}")
    return int(text)


def shape(text: str) -> tuple[int, ...]:
    """Sizes, as ``8x16`` or ``8,16``; nothing is a scalar."""
    sizes = tuple(count(size) for size in text.replace("x", ",").split(",")) if text else ()
    if any(size >= 1 << 63 for size in sizes):
        raise argparse.ArgumentTypeError(f"{text} is larger than any tensor")
    return sizes


def read_text(path: str) -> tuple[str | bytes, str]:
    """The text of ``path`` and the name it goes by in errors."""
    if path == "-":
        return sys.stdin.buffer.read(), "<stdin>"
    return Path(path).read_bytes(), path


def write(path: str, text: str) -> None:
    """Write ``text`` to ``path``, or to standard output for ``-``."""
    if path == "-":
        sys.stdout.write(text if text.endswith("\n") else text + "\n")
    else:
        Path(path).write_text(text, encoding="utf-8")


@contextmanager
def progress_bar() -> Iterator[Callable[[str, float], None]]:
    """A callback ``(what, fraction)`` that shows a bar once the work takes longer than a second."""
    draw_from = time.perf_counter() + PROGRESS_AFTER_SECONDS
    bar: Progress | None = None

    def progress(what: str, fraction: float) -> None:
        nonlocal bar
        if bar is None:
            if time.perf_counter() < draw_from or not sys.stderr.isatty():
                return
            # Only long work pays for the import.
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
