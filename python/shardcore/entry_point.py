"""Programs that a Python function returns, given as ``model.py:build_step``.

The function runs in a separate process, like a user's script: in its own folder, with its prints on
standard error. It takes no arguments and returns one of

- a function and its arguments, ``step, (state, batch)``, with the keyword arguments of
  :func:`shardcore.jax.lower` behind them, if there are any: ``step, args, {"mesh": ...}``;
  or the arguments one after the other, ``step, state, batch``;
- what ``shardcore.jax.lower`` takes by itself, such as a ``jax.stages.Lowered``;
- what ``shardcore.jax.lower`` returns, or a :class:`shardcore.Module`.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from shardcore import files
from shardcore.errors import Diagnostic, LoweringError, Place
from shardcore.signature import Signature

_STANDARD_ERROR = 2
"""The file descriptor of standard error."""
_ENTRY = re.compile(r"(?P<file>.+\.py):(?P<name>[A-Za-z_]\w*)\Z", re.DOTALL | re.ASCII)


def split(path: str) -> tuple[str, str] | None:
    """Return the file and the function that ``path`` names; ``None`` if it names a file only."""
    found = _ENTRY.match(path)
    if found is None or os.path.exists(path):
        return None
    return found["file"], found["name"]


def check_named(path: str) -> None:
    """Check that ``path`` does not name a Python file without a function.

    Raises:
        LoweringError: it does (``lowering``).
    """
    if path.endswith(".py") and os.path.isfile(path):
        message = f"{path} is a Python file, and which function makes the program is not said"
        raise LoweringError(Diagnostic("lowering", message, f"name it: {path}:build"))


def program_text(file: str, name: str, sources: Mapping[str, str] | None = None) -> bytes:
    """Return the program that the function ``name`` of ``file`` returns, as MLIR text.

    Args:
        file: a Python file.
        name: a function in it.
        sources: texts that are run in place of Python files, by their real paths.

    Raises:
        OSError: the file cannot be read.
        LoweringError: the function fails, or returns nothing that can be lowered (``lowering``), or
            makes another mistake, which has its own code.
    """
    return _made(file, name, "program", sources=dict(sources or {}))


def signature(file: str, name: str) -> Signature | None:
    """Return the signature of the step that the function ``name`` of ``file`` returns with its
    arguments; ``None`` if it returns something else.

    Raises:
        OSError: the file cannot be read.
        LoweringError: as for :func:`program_text`.
    """
    found = _made(file, name, "signature")
    return Signature.from_json(found) if found else None


def remat(file: str, name: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the layers of the loss should keep that the function ``name`` of ``file``
    returns, with arguments: the ``record`` and the ``text`` of a :class:`shardcore.Remat`.

    Args:
        file: a Python file.
        name: a function in it.
        options: those of :func:`shardcore.remat`, as plain data, over what the function returns.

    Raises:
        OSError: the file cannot be read.
        LoweringError: as for :func:`program_text`, or another mistake that :mod:`shardcore` has a
            code for.
    """
    found: dict[str, Any] = json.loads(_made(file, name, "remat", options=dict(options)))
    return found


def _made(file: str, name: str, make: str, **given: object) -> bytes:
    """What the runner writes for a function: ``make`` says what, ``given`` of what more."""
    # A file that is not there is the usual mistake.
    files.read(file)
    runner = Path(__file__).with_name("entry_point_runner.py")
    with tempfile.TemporaryDirectory(prefix="shardcore-") as folder:
        output = Path(folder, "program.mlir")
        request = Path(folder, "request.json")
        request.write_text(json.dumps({"make": make, **given}), encoding="utf-8")
        paths = os.path.abspath(file), name, str(output), str(request)
        command = [sys.executable, str(runner), *paths]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=_STANDARD_ERROR)
        if done.returncode == 0 and output.exists():
            return files.read(output)
        failed = output.read_text(encoding="utf-8") if output.exists() else ""
    found = (
        json.loads(failed) if failed else {"reason": f"it ended with {_ending(done.returncode)}"}
    )
    if "diagnostics" in found:
        raise LoweringError([_diagnostic(*fields) for fields in found["diagnostics"]])
    if "raised" in found:
        message = f"{name} of {file} raised {found['raised']}"
        hint = "the traceback above says where"
        if "mesh" in found["raised"]:
            hint += '; the mesh is given so: return step, args, {"mesh": {"data": 2, "model": 4}}'
        raise LoweringError(Diagnostic("lowering", message, hint))
    raise LoweringError(
        Diagnostic(
            "lowering",
            f"{name} of {file} makes no program: {found['reason']}",
            "it takes no arguments, and returns a function and its arguments: step, (state, batch)",
        )
    )


def _diagnostic(
    code: str,
    message: str,
    hint: str | None,
    filename: str | None,
    place: Sequence[Any] | None,
    related: tuple[Sequence[Any], str] | None,
    detail: Sequence[Any] | None,
    *rest: Any,
) -> Diagnostic:
    """A diagnostic made of the fields that the runner wrote as JSON."""
    other = None if related is None else (Place(*related[0]), related[1])
    at, inside = (None if found is None else Place(*found) for found in (place, detail))
    return Diagnostic(code, message, hint, filename, at, other, inside, *rest)


def _ending(code: int) -> str:
    return f"exit code {code}" if code >= 0 else f"signal {-code}"
