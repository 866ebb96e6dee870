"""The standard streams, which may be closed, full, or unable to show what is written."""

from __future__ import annotations

import errno
import io
import os
import sys
from contextlib import suppress
from typing import NoReturn, TextIO

from shardcore.files import read_all


def prepare() -> None:
    """Let the standard streams be written to whatever they are.

    What a stream cannot show is escaped. Where standard output is closed, writing to it is an
    ``OSError``; where standard error is, nobody reads it.
    """
    if sys.stdout is None:
        sys.stdout = _Closed()
    if sys.stderr is None:
        sys.stderr = _Unread()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def standard_input() -> bytes:
    """Return what standard input holds.

    Raises:
        OSError: it cannot be read, or is longer than any program.
    """
    if sys.stdin is None:
        raise OSError(errno.EBADF, "standard input is closed", "<stdin>")
    return read_all(sys.stdin.buffer, "<stdin>")


def complain(text: str) -> None:
    """Print ``text`` to standard error, if that can be written to."""
    with suppress(OSError):
        print(text, file=sys.stderr, flush=True)
    settle(sys.stderr)


def settle(stream: TextIO) -> None:
    """Write what ``stream`` still holds; if that fails, drop it and all that comes, so that Python
    does not try once more at its exit.
    """
    try:
        stream.flush()
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


class _Closed(io.TextIOBase, TextIO):
    """Standard output that is closed."""

    def write(self, text: str) -> NoReturn:
        raise OSError(errno.EBADF, "standard output is closed", "<stdout>")


class _Unread(io.TextIOBase, TextIO):
    """Standard error that is closed."""

    def write(self, text: str) -> int:
        return len(text)
