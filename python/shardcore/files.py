"""Files that users name: read up to a limit, and written beside and then moved.

A write that fails, because the disk is full or the process is killed, leaves the file as it was.
What is no regular file, as a device or a FIFO, is written to as it is.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from contextlib import suppress
from pathlib import Path
from typing import Protocol

MAX_TEXT_BYTES = 2**31 - 1
"""Longer programs are refused, so no more of a file is read."""
MAX_TABLE_BYTES = 1 << 26
"""Longer files of TOML are not read: their tables take a hundred times as much memory."""

_PIECE = 1 << 20
_DESCRIPTORS = ("/dev/", "/proc/")
"""Names in these directories may be links to what is open already, as ``/dev/stdout`` is."""


class Readable(Protocol):
    """What bytes can be read from."""

    def read(self, size: int, /) -> bytes | None:
        """Return at most ``size`` bytes, none at the end."""


def read(path: str | os.PathLike[str], limit: int = MAX_TEXT_BYTES) -> bytes:
    """Return what the file at ``path`` holds, ``limit`` bytes at most.

    Raises:
        OSError: it cannot be read, or is longer (``EFBIG``).
    """
    try:
        with open(path, "rb", buffering=0) as file:
            return read_all(file, path, limit)
    except ValueError as error:
        raise _nameless(path, error) from None


def read_all(file: Readable, path: str | os.PathLike[str], limit: int = MAX_TEXT_BYTES) -> bytes:
    """Return what ``file``, which goes by ``path``, still holds, ``limit`` bytes at most.

    Raises:
        OSError: as for :func:`read`.
    """
    pieces: list[bytes] = []
    length = 0
    while piece := file.read(_PIECE):
        length += len(piece)
        if length > limit:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), os.fspath(path))
        pieces.append(piece)
    return b"".join(pieces)


def is_regular(path: str | os.PathLike[str]) -> bool:
    """Whether ``path`` leads to a file on a disk, or to nothing yet, and is not open already."""
    status = _status(path)
    named = os.path.abspath(path)
    return (status is None or stat.S_ISREG(status.st_mode)) and not named.startswith(_DESCRIPTORS)


def write(path: str | os.PathLike[str], text: str) -> None:
    """Write ``text`` as UTF-8 to the file at ``path``: all of it or, should that fail, nothing.

    The text goes to a new file in the same directory, which then takes the place of the old one,
    with its permissions. Links are followed. Devices, FIFOs and open descriptors are written to as
    they are.

    Raises:
        OSError: the file cannot be written; it is as it was.
    """
    data = text.encode()
    try:
        if is_regular(path) and os.path.basename(path):
            _replace(Path(os.path.realpath(path)), _status(path), data)
        else:
            with open(path, "wb") as file:
                file.write(data)
    except ValueError as error:
        raise _nameless(path, error) from None
    except OSError as error:
        # The name of the file beside it means nothing to a user.
        raise OSError(error.errno, error.strerror, os.fspath(path)) from None


def _status(path: str | os.PathLike[str]) -> os.stat_result | None:
    """The status of what ``path`` leads to; ``None`` if there is nothing."""
    try:
        return os.stat(path)
    except FileNotFoundError:
        return None


def _replace(target: Path, status: os.stat_result | None, data: bytes) -> None:
    """Put a file that holds ``data`` in the place of ``target``, whose status is ``status``."""
    if status is not None and not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(target))
    beside = target.with_name(f".shardcore-{secrets.token_hex(8)}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    descriptor = os.open(beside, flags, 0o666)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(descriptor)
        if status is not None:
            _keep_owner(beside, status)
            os.chmod(beside, stat.S_IMODE(status.st_mode))
        os.replace(beside, target)
    except BaseException:
        os.unlink(beside)
        raise


def _keep_owner(path: Path, status: os.stat_result) -> None:
    """Give ``path`` the owner and group in ``status``, where the system has them and lets us."""
    if hasattr(os, "chown"):
        with suppress(PermissionError):
            os.chown(path, status.st_uid, status.st_gid)


def _nameless(path: str | os.PathLike[str], error: ValueError) -> OSError:
    """What the system says of a name that no file can have, with a NUL or half a character."""
    return OSError(errno.EINVAL, str(error), os.fspath(path))
