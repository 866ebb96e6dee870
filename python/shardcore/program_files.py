"""Reads programs by file name, or by the name of a Python function that returns one."""

from __future__ import annotations

import os

from shardcore import entry_point, exported, files, hlo
from shardcore._core import Module
from shardcore.controls import visible
from shardcore.errors import Diagnostic, LoweringError

_PICKLES = tuple(bytes([version]) for version in (2, 3, 4, 5))
"""The second byte of a pickle for each pickle version."""


def read(path: str, shardy: str | None = None) -> Module:
    """Return the program at ``path``: MLIR as text or bytecode, the bytes of an exported function,
    HLO, which is converted, or what ``model.py:build``, a function of a Python file, returns; see
    :mod:`shardcore.entry_point`.

    ``shardy`` is as in :meth:`shardcore.Module.parse`.

    Raises:
        OSError: the file cannot be read, or exceeds the size limit.
        LoweringError: the function returns no program, or ``path`` names none.
        ShardcoreError: as for :meth:`shardcore.Module.parse`.
    """
    text, name = read_text(path)
    return parse(text, name, shardy)


def read_text(path: str) -> tuple[bytes, str]:
    """Return the text of the program at ``path``, and the name that errors give it.

    Raises:
        OSError, LoweringError: as for :func:`read`.
    """
    if ".py" in path:
        entry_point.check_named(path)
        entry = entry_point.split(path)
        if entry is not None:
            return entry_point.program_text(*entry), visible(path)
    return files.read(path), os.fsencode(path).decode("utf-8", "backslashreplace")


def parse(text: bytes | str, name: str, shardy: str | None = None) -> Module:
    """Return the program in a text or bytes. The first bytes tell MLIR, HLO and exported functions
    apart; errors name the program ``name``.

    Raises:
        LoweringError: the data are a pickle (``artifact``).
        ShardcoreError: as for :meth:`shardcore.Module.parse`.
    """
    if isinstance(text, bytes):
        if text[:1] == b"\x80" and text[1:2] in _PICKLES:
            message = (
                f"{name} is a pickle, which may run any code; and of a jax.stages.Lowered there is "
                "none, as JAX cannot pickle it"
            )
            hint = (
                "write lowered.as_text(debug_info=True), or jax.export.export(f)(*args).serialize()"
                ", to a file; or name the function that makes it, model.py:build"
            )
            raise LoweringError(Diagnostic("artifact", message, hint))
        text = exported.program(text) or text
    is_proto = isinstance(text, bytes) and hlo.is_proto(text)
    if is_proto or name.endswith(".hlo.pb") or hlo.is_hlo(text):
        return hlo.read(text, filename=name, shardy=shardy)
    return Module.parse(text, filename=name, shardy=shardy)
