"""Converts MLIR bytecode, including StableHLO portable artifacts, to text by means of jaxlib.

jaxlib is loaded only when there is bytecode to read, in a separate process
(:mod:`shardcore.bytecode_reader`); JAX is not loaded. Locations are kept.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import NamedTuple

from shardcore import isolated
from shardcore.bytecode_reader import NO_JAXLIB
from shardcore.errors import Diagnostic, ParseError

MAGIC = b"ML\xefR"
"""The first bytes of MLIR bytecode."""

SECONDS, SECONDS_PER_MB = 60, 10
"""A time limit for jaxlib, about ten times what the largest programs need."""

BYTES, BYTES_PER_BYTE = (4 << 30) + (os.cpu_count() or 1) * (16 << 20), 512
"""A memory limit for jaxlib, about seven times what the largest programs need, plus thread stacks.

Without it, a damaged length field could make jaxlib reserve any amount of memory.

"""


def to_text(data: bytes, filename: str = "<bytecode>") -> str:
    """Return the program in ``data``, MLIR bytecode, as MLIR text.

    Raises:
        ParseError: jaxlib is not installed, or cannot read the bytecode (``bytecode``).
    """
    found = converted(Path(__file__).with_name("bytecode_reader.py"), data)
    if found.text is not None:
        return found.text
    if found.is_missing:
        raise _mistake(
            f"{filename} is MLIR bytecode, and jaxlib, which reads it, is not installed",
            "install it, pip install jaxlib, or write the program as text",
        )
    raise _mistake(
        f"jaxlib cannot read the bytecode of {filename}: {found.reason}",
        "the file may be damaged, cut off, or written by a later version",
    )


class Converted(NamedTuple):
    """The output of the other process."""

    text: str | None
    """The text; ``None`` if the conversion failed."""
    is_missing: bool
    """Whether jaxlib is not installed."""
    reason: str
    """The first error that jaxlib printed."""


def converted(program: Path, data: bytes, *arguments: str) -> Converted:
    """Run the Python file ``program``, which imports jaxlib, on ``data`` in another process.

    The process has limited time and memory, because damaged data can make jaxlib use any amount.
    """
    seconds = SECONDS + SECONDS_PER_MB * len(data) / 1e6
    memory = BYTES + BYTES_PER_BYTE * len(data)
    try:
        done = isolated.run(program, arguments, data, seconds=seconds, memory=memory)
    except subprocess.TimeoutExpired:
        return Converted(None, False, f"it did not end within {seconds:.0f} s")
    if done.returncode == 0:
        return Converted(done.stdout.decode(), False, "")
    return Converted(None, done.returncode == NO_JAXLIB, _reason(done))


def _reason(done: subprocess.CompletedProcess[bytes]) -> str:
    """The first error that jaxlib printed."""
    printed = done.stderr.decode(errors="replace")
    # The line after "Unable to parse module assembly:" has the reason.
    kinds, nowhere = r"(?:error|RuntimeError|ValueError|Error): ", r'(?:"-":0:0: )?'
    errors = re.findall(rf"{kinds}{nowhere}([^\n]+[^\n:])\n", printed)
    if errors:
        # What is wrong with an op follows its location, which may be a long call stack.
        return re.sub(r"^\".*\): (?='[\w.]+' op )", "", str(errors[0]))[:200]
    return "it gave up" if done.returncode > 0 else f"signal {-done.returncode}"


def _mistake(message: str, hint: str) -> ParseError:
    return ParseError(Diagnostic("bytecode", message, hint))
