"""Runs inputs in a process of their own, which may die, hang or ask for all memory there is."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
SECONDS = 20
"""What one input may take; far more than any of these needs."""
MEMORY = 6 << 30
"""Bytes that a process may ask for."""


def serve() -> None:
    """Runs the inputs whose target and seed standard input names, and says what became of each."""
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    from tests.fuzz.surfaces import TARGETS

    # What an input reads or prints does not mix with what is asked and answered.
    asked, answers = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w")
    for standard in (0, 1):
        os.dup2(os.open(os.devnull, os.O_RDWR), standard)
    for line in asked:
        target, seed = line.split()
        # The default action ends the process, wherever it is.
        signal.alarm(SECONDS)
        try:
            TARGETS[target](int(seed))
            found = ""
        except BaseException:
            found = traceback.format_exc(limit=-6)
        signal.alarm(0)
        print(repr(found), file=answers, flush=True)


class Worker:
    """A process that runs inputs, started again after each that took it down."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self._process: subprocess.Popen[str] | None = None

    def _start(self) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", "from tests.fuzz.surfaces.isolated import serve; serve()"]
        return subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd=self._folder.name,
            env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'python'}"},
        )

    def run(self, target: str, seed: int) -> str:
        """What is wrong with the outcome of an input; empty if nothing is."""
        if self._process is None:
            self._process = self._start()
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(f"{target} {seed}\n")
        process.stdin.flush()
        answer = process.stdout.readline()
        if answer:
            return str(eval(answer))
        self._stop()
        code = process.returncode
        if code == -signal.SIGALRM:
            return f"took over {SECONDS} seconds"
        return f"took the process down ({code})"

    def _stop(self) -> None:
        if self._process is not None:
            self._process.communicate()
            self._process = None

    def close(self) -> None:
        """Ends the process, and removes the files of inputs."""
        self._stop()
        self._folder.cleanup()


def run(target: str, seeds: Iterable[int]) -> Iterable[tuple[int, str]]:
    """What is wrong with each of these inputs; empty if nothing is."""
    worker = Worker()
    try:
        for seed in seeds:
            yield seed, worker.run(target, seed)
    finally:
        worker.close()
