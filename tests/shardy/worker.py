"""The reference in a process of its own that answers many questions, and is replaced if it dies."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from threading import Timer

from tests.shardy import reference


class Worker:
    """Asks the reference about programs that may take it down."""

    def __init__(self, seconds: float = 120) -> None:
        """Start none yet; after ``seconds`` without an answer a process is killed."""
        self._process: subprocess.Popen[str] | None = None
        self._seconds = seconds

    def run(self, text: str, pipeline: str, verify: bool = True) -> str:
        """`reference.run`; raises `DiedError` if the reference did not survive the question."""
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-m", __name__],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                cwd=Path(__file__).parents[2],
                text=True,
            )
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        line = ""
        timer = Timer(self._seconds, process.kill)
        timer.start()
        try:
            process.stdin.write(json.dumps([text, pipeline, verify]) + "\n")
            process.stdin.flush()
            line = process.stdout.readline()
        except BrokenPipeError:
            pass
        finally:
            timer.cancel()
        if not line:
            self.close()
            raise reference.DiedError("the reference died")
        answer = json.loads(line)
        if "diagnostics" in answer:
            raise reference.RejectedError(answer["diagnostics"], map(tuple, answer["errors"]))
        return str(answer["text"])

    def close(self) -> None:
        """Ends the process, if there is one."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None


def _serve() -> None:
    for line in sys.stdin:
        text, pipeline, verify = json.loads(line)
        try:
            answer: dict[str, object] = {"text": reference.run(text, pipeline, verify)}
        except reference.RejectedError as error:
            answer = {"diagnostics": error.diagnostics, "errors": error.errors}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    _serve()
