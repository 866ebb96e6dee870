"""Reads users' files up to a size limit, and replaces them atomically.

A write that fails, because the disk is full or the process is killed, leaves the file as it was.
Devices and FIFOs are written to directly.
"""

from __future__ import annotations

import errno
import gzip
import io
import os
import secrets
import stat
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Protocol

MAX_TEXT_BYTES = 2**31 - 1
"""The size limit of program files."""
MAX_TABLE_BYTES = 1 << 26
"""The size limit of TOML files: parsed, they take a hundred times as much memory."""

_PIECE = 1 << 20
_DESCRIPTORS = ("/dev/", "/proc/")
"""Names in these directories may denote open file descriptors, such as ``/dev/stdout``."""


class Readable(Protocol):
    """An object from which bytes can be read."""

    def read(self, size: int, /) -> bytes | None:
        """Return at most ``size`` bytes, none at the end."""


def read(path: str | os.PathLike[str], limit: int = MAX_TEXT_BYTES) -> bytes:
    """Return the contents of the file at ``path``, at most ``limit`` bytes.

    Raises:
        OSError: the file cannot be read, or is longer than ``limit`` (``EFBIG``).
        TypeError: ``path`` is no path.
    """
    try:
        # A number is no path: `open` would take it for a descriptor of the caller, and close it.
        with open(os.fspath(path), "rb", buffering=0) as file:
            return read_all(file, path, limit)
    except ValueError as error:
        raise _invalid_name_error(path, error) from None


def read_all(file: Readable, path: str | os.PathLike[str], limit: int = MAX_TEXT_BYTES) -> bytes:
    """Return the remaining bytes of ``file``, at most ``limit``; errors name it ``path``.

    Raises:
        OSError: as for :func:`read`.
    """
    pieces: list[bytes] = []
    length = 0
    while piece := _piece(file, path):
        length += len(piece)
        if length > limit:
            raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), os.fspath(path))
        pieces.append(piece)
    return b"".join(pieces)


def unzipped(data: bytes, name: str, limit: int = MAX_TEXT_BYTES) -> bytes:
    """Return ``data``, decompressed if it is gzip data; at most ``limit`` bytes.

    Raises:
        OSError: the gzip data are damaged, or longer than ``limit`` (``EFBIG``).
    """
    if not data.startswith(b"\x1f\x8b"):
        return data
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(data)) as packed:
            found = packed.read(limit + 1)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise OSError(errno.EIO, f"damaged: {error}", name) from None
    if len(found) > limit:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG), name)
    return found


def _piece(file: Readable, path: str | os.PathLike[str]) -> bytes | None:
    """The next bytes of ``file``; a read error gets the name of the file."""
    try:
        return file.read(_PIECE)
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, os.fspath(path)) from None


def is_regular(path: str | os.PathLike[str]) -> bool:
    """Whether ``path`` is a regular file or does not exist, and is no open file descriptor."""
    status = _status(path)
    named = os.path.abspath(path)
    return (status is None or stat.S_ISREG(status.st_mode)) and not named.startswith(_DESCRIPTORS)


def write(path: str | os.PathLike[str], text: str) -> None:
    """Write ``text`` as UTF-8 to the file at ``path``: all of it or, should that fail, nothing.

    The text goes to a new file in the same directory, which then takes the place of the old one,
    with its permissions. Links are followed. Devices, FIFOs and open descriptors are written to
    directly.

    Raises:
        OSError: the file cannot be written; the old file is unchanged.
    """
    data = text.encode()
    path = os.fspath(path)
    try:
        if is_regular(path) and os.path.basename(path):
            _replace(Path(os.path.realpath(path)), _status(path), data)
        else:
            with open(path, "wb") as file:
                file.write(data)
    except ValueError as error:
        raise _invalid_name_error(path, error) from None
    except OSError as error:
        # The error names the user's file, not the temporary one.
        raise OSError(error.errno, error.strerror, os.fspath(path)) from None


def _status(path: str | os.PathLike[str]) -> os.stat_result | None:
    """The status of the file at ``path``, links followed; ``None`` if there is none."""
    try:
        return os.stat(path)
    except FileNotFoundError:
        return None


def _replace(target: Path, status: os.stat_result | None, data: bytes) -> None:
    """Replace ``target``, whose status is ``status``, by a file with the contents ``data``."""
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
    """Give ``path`` the owner and group in ``status``, where the system permits it."""
    if hasattr(os, "chown"):
        with suppress(PermissionError):
            os.chown(path, status.st_uid, status.st_gid)


def _invalid_name_error(path: str | os.PathLike[str], error: ValueError) -> OSError:
    """The ``OSError`` for a name that no file can have: with a NUL or a lone surrogate."""
    return OSError(errno.EINVAL, str(error), os.fspath(path))
