"""Reads and writes XLA's HLO through jaxlib, in a separate process.

:func:`read` takes HLO text and the protos that XLA dumps, before and after partitioning, with their
shardings; :func:`text` writes a program, also a per-device program, as HLO.
"""

from __future__ import annotations

import re
from pathlib import Path

from shardcore._core import Module
from shardcore.bounded import shown
from shardcore.bytecode import converted
from shardcore.errors import Diagnostic, ParseError
from shardcore.expected import expect
from shardcore.protobuf import Message, WireError

__all__ = ["in_dialect", "is_hlo", "is_proto", "optimized_text", "read", "text"]

_SCAN = re.compile(r"^( *%\w+(?::\d+)? = )mhlo\.scan\(", re.MULTILINE)
_END_OF_SCAN = re.compile(r"^( *)mhlo\.return ", re.MULTILINE)


def is_hlo(data: bytes | str) -> bool:
    """Whether ``data`` begins like HLO text.

    Raises:
        TypeError: ``data`` is neither text nor bytes.
    """
    expect(data, str, bytes)
    if isinstance(data, str):
        return data[:4096].lstrip().startswith("HloModule")
    return data[:4096].lstrip().startswith(b"HloModule")


def is_proto(data: bytes) -> bool:
    """Whether ``data`` begins like an ``HloModuleProto`` or ``HloProto``: with the field of the
    name, or of the module, and bytes that no text contains."""
    return data.startswith(b"\n") and re.search(rb"[\x00-\x08\x0e-\x1f]", data[:4096]) is not None


def read(data: str | bytes, *, filename: str = "<hlo>", shardy: str | None = None) -> Module:
    """Return the program of HLO text, of an ``HloModuleProto`` or of an ``HloProto``.

    ``shardy`` is as in :meth:`shardcore.Module.parse`.

    Raises:
        ParseError: jaxlib is not installed, or cannot read the data (``bytecode``); or the program
            has ops that shardcore cannot read.
    """
    expect(data, str, bytes)
    raw = data.encode() if isinstance(data, str) else data
    converted = _convert(raw, "from", f"{filename} is HLO")
    # jaxlib makes ops of MHLO of scans, which CHLO has as well.
    converted = _SCAN.sub(r"\1chlo.scan(", converted)
    converted = _END_OF_SCAN.sub(r"\1stablehlo.return ", converted)
    return Module.parse(converted, filename=filename, shardy=shardy)


def text(module: Module) -> str:
    """Return ``module`` as HLO text.

    Raises:
        ParseError: jaxlib is not installed, or XLA cannot convert the program to HLO
            (``bytecode``).
    """
    expect(module, Module)
    return _convert(str(module).encode(), "to", "HLO is asked for")


def optimized_text(data: bytes, *, filename: str = "<hlo>") -> str:
    """Return the text of an ``HloModuleProto`` or ``HloProto`` unchanged, with its schedule.

    Raises:
        ParseError: jaxlib is not installed, or cannot read the data (``bytecode``).
    """
    expect(data, bytes)
    return _convert(data, "show", f"{filename} is an HLO proto")


def in_dialect(module: Module, dialect: str) -> str:
    """Return ``module`` as text; ``dialect`` is ``"stablehlo"`` or ``"hlo"``.

    Raises:
        ValueError: ``dialect`` is neither.
        ParseError: as for :func:`text`.
    """
    if dialect == "hlo":
        return text(module)
    if dialect == "stablehlo":
        return str(module)
    raise ValueError(f'a program is "stablehlo" or "hlo", not {shown(dialect)}')


def _convert(data: bytes, direction: str, what: str) -> str:
    cut_off = _cut_off(data) if is_proto(data) else None
    if cut_off is not None:
        raise _mistake(f"{what}, and was cut off: {cut_off}", "give it whole")
    program = Path(__file__).with_name("hlo_converter.py")
    found = converted(program, data, direction)
    if found.text is not None:
        return found.text
    if found.is_missing:
        raise _mistake(
            f"{what}, and jaxlib, which converts it, is not installed",
            "install it, pip install jaxlib, or take StableHLO text",
        )
    raise _mistake(f"{what}, and jaxlib cannot convert it: {found.reason}", "see what XLA says")


def _cut_off(data: bytes, start: int = 0) -> WireError | None:
    """Where a proto is truncated: jaxlib reads some of these, and does not say it of others."""
    try:
        for _ in Message(data, start).fields():
            pass
    except WireError as error:
        # What is too long is a computation, or the module of an HloProto: it begins with its name.
        is_message = not start and data[error.at : error.at + 1] == b"\n"
        return (is_message and _cut_off(data, error.at)) or error
    return None


def _mistake(message: str, hint: str) -> ParseError:
    return ParseError(Diagnostic("bytecode", message, hint))
