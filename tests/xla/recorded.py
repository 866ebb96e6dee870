"""What XLA's compilers made of `examples/mlp.mlir`, as the process that compiles writes it.

`python -m tests.xla.recorded` compiles it anew, where the compilers are installed.
"""

from __future__ import annotations

import bisect
import gzip
import subprocess
from pathlib import Path
from typing import Any
from unittest.mock import patch

from shardcore import isolated, program_files
from shardcore.costs import Cost
from shardcore.explain import hlo_text
from shardcore.xla import Against, against
from shardcore.xla.buffers import heap_bytes

PROGRAM = Path(__file__).resolve().parents[2] / "examples" / "mlp.mlir"
KEPT = Path(__file__).with_name("recorded")
CHIPS = ("tpu-v5e", "h100")


def cost(chip: str) -> Cost:
    """Ours."""
    return program_files.read(str(PROGRAM)).propagate().cost(chip)


def replay(chip: str) -> Any:
    """A context in which compilers write what is recorded for ``chip``."""

    def run(program: Path, arguments: tuple[str, ...], data: bytes, **limits: Any) -> Any:
        for file in (KEPT / chip).iterdir():
            Path(arguments[0], file.stem).write_bytes(gzip.decompress(file.read_bytes()))
        return subprocess.CompletedProcess([], 0, b"", b"")

    return patch.object(isolated, "run", run)


def record(chip: str) -> Against:
    """Compile the program, and keep what is written."""
    compiled = isolated.run

    def run(program: Path, arguments: tuple[str, ...], data: bytes, **limits: Any) -> Any:
        done = compiled(program, arguments, data, **limits)
        for file in Path(arguments[0]).iterdir():
            kept = file.read_bytes()
            if file.name == "executable":
                kept = buffer_assignment(kept, file.with_name("module.txt").read_text())
            (KEPT / chip).mkdir(parents=True, exist_ok=True)
            path = KEPT / chip / f"{file.name}.gz"
            path.write_bytes(gzip.compress(kept, mtime=0))
        return done

    with patch.object(isolated, "run", run):
        return against(cost(chip))


def buffer_assignment(executable: bytes, hlo: str) -> bytes:
    """The part of an executable that has its buffer assignment."""
    [module] = hlo_text.read(hlo)
    sizes = range(len(executable) + 1)

    def is_whole(data: bytes) -> bool:
        return heap_bytes(data, module.name) is not None

    end = bisect.bisect_left(sizes, True, key=lambda size: is_whole(executable[:size]))
    kept = executable[:end]
    start = bisect.bisect_left(sizes, True, hi=end, key=lambda size: not is_whole(kept[size:]))
    return kept[start - 1 :]


if __name__ == "__main__":
    for each in CHIPS:
        print(record(each))
