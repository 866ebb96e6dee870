"""The standard streams, which may be closed, full, or unable to encode some characters."""

from __future__ import annotations

import errno
import io
import os
import sys
from contextlib import suppress
from typing import NoReturn, TextIO

from shardcore.cli.terminal import for_stream
from shardcore.files import read_all


def prepare() -> None:
    """Make writing to the standard streams safe.

    Characters that a stream cannot encode are escaped. Writing to a closed standard output raises
    an ``OSError``; text for a closed standard error is dropped.
    """
    if sys.stdout is None:
        sys.stdout = _Closed()
    if sys.stderr is None:
        sys.stderr = _Unread()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def standard_input() -> bytes:
    """Read all of standard input.

    Raises:
        OSError: it cannot be read, or exceeds the size limit.
    """
    if sys.stdin is None:
        raise OSError(errno.EBADF, "standard input is closed", "<stdin>")
    return read_all(sys.stdin.buffer, "<stdin>")


def print_error(text: str) -> None:
    """Print ``text`` to standard error, if that can be written to."""
    with suppress(OSError):
        print(for_stream(text, sys.stderr), file=sys.stderr, flush=True)
    flush_or_drop(sys.stderr)


def flush_or_drop(stream: TextIO) -> None:
    """Flush ``stream``; if that fails, drop its buffer and all later text, so that Python does not
    try again at exit.
    """
    try:
        stream.flush()
    except OSError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


class _Closed(io.TextIOBase, TextIO):
    """A closed standard output."""

    def write(self, text: str) -> NoReturn:
        raise OSError(errno.EBADF, "standard output is closed", "<stdout>")


class _Unread(io.TextIOBase, TextIO):
    """A closed standard error."""

    def write(self, text: str) -> int:
        return len(text)
