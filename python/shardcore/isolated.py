"""Runs Python files that import what may crash in processes of their own, with limits."""

from __future__ import annotations

import json
import os
import site
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

__all__ = ["run"]

_RUN = """\
import json, runpy, sys
try:
    import resource
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_DATA, (int(sys.argv[3]), int(sys.argv[3])))
except (ImportError, OSError, ValueError):
    pass  # There are no such limits, or there are lower ones.
program, sys.path[:] = sys.argv[1], json.loads(sys.argv[2])
del sys.argv[1:4]
runpy.run_path(program, run_name="__main__")
"""
"""The code that the other process runs. It has the search path of this process, and writes no core
file where it crashes."""


def run(
    program: Path,
    arguments: tuple[str, ...],
    data: bytes,
    *,
    seconds: float,
    memory: int,
    environment: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[bytes]:
    """Run the Python file ``program`` on ``data``, its standard input, and return what it printed.

    Args:
        program: the file; it imports nothing of shardcore.
        arguments: those of its command line.
        data: its standard input.
        seconds: how long it may take.
        memory: how many bytes it may allocate, where the system has such limits.
        environment: its variables; by default those of this process.

    Raises:
        subprocess.TimeoutExpired: it takes longer; it is killed.
    """
    # Isolated (`-I`): modules come neither from the working directory nor from the user's
    # environment, except packages that this process can import too.
    command = [sys.executable, "-I", "-c", _RUN, str(program), json.dumps(_paths()), str(memory)]
    return subprocess.run(
        [*command, *arguments], input=data, capture_output=True, timeout=seconds, env=environment
    )


def _paths() -> list[str]:
    """The search path of this process without the working directory.

    Otherwise a file there named like a package would be imported instead of it.
    """
    here = os.path.realpath(".")
    installed = (*site.getsitepackages(), site.getusersitepackages())
    packages = {os.path.realpath(path) for path in installed}

    def is_trusted(path: str) -> bool:
        real = os.path.realpath(path)
        return os.path.isabs(path) and (real != here or real in packages)

    return [path for path in sys.path if is_trusted(path)]
