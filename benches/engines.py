"""The two engines that are compared, and the measurements."""

from __future__ import annotations

import gc
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

PIPELINE = "builtin.module(sdy-propagation-pipeline)"
# The import part of the pipeline, whose result the user-priority pass runs on.
IMPORT = (
    "builtin.module(symbol-dce,sdy-lift-inlined-meshes,sdy-remove-size-one-axes,"
    "sdy-propagate-sharding-from-func-to-call,sdy-constant-or-scalar-splitter,symbol-dce,"
    "sdy-manual-axes-cleanup,sdy-add-data-flow-edges,sdy-flatten-call-graph,symbol-dce,"
    "sdy-import-func-calls,symbol-dce,sdy-apply-sharding-constraints,sdy-sharding-group-import,"
    "sdy-pre-order-funcs)"
)
PROPAGATE = "builtin.module(sdy-user-priority-propagate)"

STAGES = ("parse", "propagate", "pipeline", "print", "text to text")


class Reference:
    """Shardy inside jaxlib on one thread, without its verifier, which would double its time."""

    def __init__(self) -> None:
        from jax._src.interpreters import mlir as jax_mlir
        from jax._src.lib.mlir import ir, passmanager

        self.context = jax_mlir.make_ir_context()
        self.context.enable_multithreading(False)
        self._ir, self._passmanager = ir, passmanager

    def parse(self, text: str) -> Any:
        with self.context:
            return self._ir.Module.parse(text)

    def run(self, module: Any, pipeline: str) -> None:
        with self.context:
            manager = self._passmanager.PassManager.parse(pipeline)
            manager.enable_verifier(False)
            manager.run(module.operation)

    def canonical(self, text: str) -> str:
        """The program as MLIR prints it."""
        return str(self.parse(text))


class Ours:
    """shardcore."""

    def __init__(self) -> None:
        import shardcore

        self._shardcore = shardcore

    def parse(self, text: str) -> Any:
        return self._shardcore.Module.parse(text)

    def run(self, module: Any, pipeline: str) -> None:
        self._shardcore.PassManager.parse(pipeline).run(module)


def timed(function: Callable[[], Any]) -> tuple[float, Any]:
    """Processor seconds that ``function`` takes, and its result.

    Both engines use one core, so on an idle machine this is the wall time; on a busy one it leaves
    out the time of other processes.
    """
    start = time.process_time()
    result = function()
    return time.process_time() - start, result


def measure(engine: Ours | Reference, text: str) -> tuple[dict[str, float], str]:
    """Seconds of each stage, and the program after the whole pipeline.

    As in :mod:`timeit`, Python's garbage collector does not run in between: its time depends on all
    objects that either engine has loaded.
    """
    gc.collect()
    gc.disable()
    try:
        figures, printed = text_to_text(engine, text)
        imported = engine.parse(text)
        engine.run(imported, IMPORT)
        figures["propagate"], _ = timed(lambda: engine.run(imported, PROPAGATE))
    finally:
        gc.enable()
    return figures, printed


def text_to_text(engine: Ours | Reference, text: str) -> tuple[dict[str, float], str]:
    """Seconds of each stage but propagation by itself, and the program after the pipeline."""
    parse, module = timed(lambda: engine.parse(text))
    pipeline, _ = timed(lambda: engine.run(module, PIPELINE))
    output, printed = timed(lambda: str(module))
    total = parse + pipeline + output
    figures = {"parse": parse, "pipeline": pipeline, "print": output, "text to text": total}
    return figures, printed


def medians(runs: list[dict[str, float]]) -> dict[str, float]:
    """The median of each stage."""
    return {stage: statistics.median(run[stage] for run in runs) for stage in STAGES}


def peak_bytes() -> int:
    """The peak memory of this process in bytes."""
    # The peak of getrusage includes that of the parent process.
    status = Path("/proc/self/status")
    if not status.exists():
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    lines = status.read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


def first_run(path: Path) -> None:
    """Print, as JSON, how long the first run of a process takes on the program in ``path``, and the
    memory it takes at its peak beyond the import and one copy of the input and output text.
    """
    ours = Ours()
    baseline = peak_bytes()
    text = path.read_text()
    figures, printed = text_to_text(ours, text)
    memory = peak_bytes() - baseline - len(text) - len(printed)
    print(json.dumps({**figures, "bytes": max(memory, 0)}))


def cold(path: Path) -> dict[str, float]:
    """The output of :func:`first_run` in a new process."""
    command = [sys.executable, __file__, str(path)]
    run = subprocess.run(command, check=True, capture_output=True, text=True)
    figures: dict[str, float] = json.loads(run.stdout)
    return figures


if __name__ == "__main__":
    first_run(Path(sys.argv[1]))
