"""The inputs of :func:`shardcore.explain`: dumps and programs in all their forms."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from shardcore import files, hlo
from shardcore._core import Module, Result
from shardcore.controls import visible
from shardcore.errors import Diagnostic, ParseError

__all__ = ["completed", "dump_text"]


def dump_text(compiled: Any, filename: str | None) -> tuple[str, str]:
    """Return the text of a compiled module, and the name that errors give it.

    Raises:
        ParseError: ``compiled`` is a proto that cannot be read, or no text.
        OSError: the file cannot be read.
        TypeError: ``compiled`` is no dump.
    """
    executable = getattr(compiled, "executable", compiled)
    if callable(getattr(executable, "as_text", None)):
        return str(executable.as_text()), filename or "<compiled>"
    if isinstance(compiled, str) and hlo.is_hlo(compiled):
        return compiled, filename or "<hlo>"
    if isinstance(compiled, (str, os.PathLike)):
        path = _dump_in(Path(compiled))
        return _decoded(files.read(path), filename or visible(str(path)))
    if isinstance(compiled, bytes):
        return _decoded(compiled, filename or "<hlo>")
    raise TypeError(
        f"expected a compiled function, or a dump of one, not {type(compiled).__name__}"
    )


def _dump_in(path: Path) -> Path:
    """``path``, or, if it is a folder that XLA dumped to, the largest dump in it."""
    if not path.is_dir():
        return path
    found = sorted(path.glob("*after_optimizations.txt*"), key=lambda each: each.stat().st_size)
    if not found:
        message = f"no dump of an optimized module is in {path}"
        hint = "give the folder of --xla_dump_to, or a file *after_optimizations.txt"
        raise ParseError(Diagnostic("syntax", message, hint))
    return found[-1]


def _decoded(data: bytes, name: str) -> tuple[str, str]:
    data = files.unzipped(data, name)
    if hlo.is_hlo(data) or not _is_proto(data):
        return data.decode("utf-8", "replace"), name
    return hlo.optimized_text(data, filename=name), name


def _is_proto(data: bytes) -> bool:
    """Whether ``data`` contains bytes that no text contains."""
    return any(byte < 9 for byte in data[:4096])


def completed(program: Any) -> Result | None:
    """Return ``program`` propagated as XLA does.

    Raises:
        ShardcoreError: as for :meth:`Module.propagate`.
        TypeError: ``program`` is no program.
    """
    if program is None or isinstance(program, Result):
        return program
    if isinstance(program, Module):
        return program.propagate(legalize_chlo=True)
    inner = getattr(program, "result", None)
    if isinstance(inner, Result):
        return inner
    inner = getattr(program, "module", None)
    if isinstance(inner, Module):
        return inner.propagate(legalize_chlo=True)
    if callable(getattr(program, "as_text", None)):
        return Module.parse(program.as_text(debug_info=True)).propagate(legalize_chlo=True)
    raise TypeError(f"expected a program, not {type(program).__name__}")
