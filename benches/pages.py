"""How large are pages of the GPT step, and how long does it take to write one?

Bytes, and the median of the processor time of ``result.report``. Run it with
`python -m benches.pages [--layers N ...]`.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path

from shardcore import Module

from benches.programs import gpt

RUNS = 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--layers", type=int, nargs="+", default=[12, 96])
    for layers in parser.parse_args().layers:
        result = Module.parse(gpt(layers)).propagate()
        seconds = []
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "out.html"
            for _ in range(RUNS):
                start = time.process_time()
                result.report(path, "tpu-v5p", edits=3)
                seconds.append(time.process_time() - start)
            size = path.stat().st_size
        print(f"{layers} layers: {size / 1e6:.1f} MB, {statistics.median(seconds):.2f} s")


if __name__ == "__main__":
    main()
