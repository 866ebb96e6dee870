"""Programs that a Python function returns: ``model.py:build_step``.

The function is run in a separate process, as the user's own program: from its folder, with what it
prints on standard error. It takes no arguments and returns one of

- a function and its arguments, a tuple, ``step, (state, batch)``, with the keyword arguments of
  :func:`shardcore.jax.lower` behind them, if there are any: ``step, args, {"mesh": ...}``;
- what ``shardcore.jax.lower`` takes by itself, such as a ``jax.stages.Lowered``;
- what it returns, or a :class:`shardcore.Module`.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from shardcore import files
from shardcore.errors import Diagnostic, LoweringError

_STANDARD_ERROR = 2
"""A file descriptor."""
_ENTRY = re.compile(r"(?P<file>.+\.py):(?P<name>[A-Za-z_]\w*)\Z", re.DOTALL | re.ASCII)


def split(path: str) -> tuple[str, str] | None:
    """Return the file and the function that ``path`` names; ``None`` if it is a file's name."""
    found = _ENTRY.match(path)
    if found is None or os.path.exists(path):
        return None
    return found["file"], found["name"]


def check_named(path: str) -> None:
    """Check that ``path`` is not a Python file alone.

    Raises:
        LoweringError: it is (``lowering``).
    """
    if path.endswith(".py") and os.path.isfile(path):
        message = f"{path} is a Python file, and which function makes the program is not said"
        raise LoweringError(Diagnostic("lowering", message, f"name it: {path}:build"))


def program_text(file: str, name: str) -> bytes:
    """Return the program that the function ``name`` of ``file`` makes, as MLIR text.

    Raises:
        OSError: the file cannot be read.
        LoweringError: the function fails, or returns nothing that can be lowered
            (``lowering``).
    """
    # A file that is not there is the usual mistake.
    files.read(file)
    runner = Path(__file__).with_name("entry_point_runner.py")
    with tempfile.TemporaryDirectory(prefix="shardcore-") as folder:
        output = Path(folder, "program.mlir")
        command = [sys.executable, str(runner), os.path.abspath(file), name, str(output)]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=_STANDARD_ERROR)
        if done.returncode == 0 and output.exists():
            return files.read(output)
        reason = output.read_text(encoding="utf-8") if output.exists() else ""
    said = reason or f"it ended with {_ending(done.returncode)}"
    raise LoweringError(
        Diagnostic(
            "lowering",
            f"{name} of {file} makes no program: {said}",
            "it takes no arguments, and returns a function and its arguments: step, (state, batch)",
        )
    )


def _ending(code: int) -> str:
    return f"exit code {code}" if code >= 0 else f"signal {-code}"
