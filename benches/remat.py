"""Is what is chosen for layers as fast as the best of JAX's policies, within the same memory?

Each model is given 0.8 and 0.6 of the memory that it takes without recomputation. JAX's policies
are tried one by one, around layers as users wrap them; the ratio is that of the steps, ours over
the best of these that fits: at most 1.05 is asked, and a peak within the memory. Run it with
`python -m benches.remat [MODEL ...]`; `SECONDS` is the time of each search.
"""

from __future__ import annotations

import sys
import time

import shardcore
from rich.console import Console
from rich.table import Table
from shardcore import PlanError
from shardcore.units import format_bytes, format_seconds

from tests.remat import models, oracle

SECONDS = 60.0
CHIPS = ("h100", "tpu-v5p")
PARTS = (0.8, 0.6)
ASKED = 1.05
GPT = {"layers": 12, "width": 768, "heads": 12, "batch": 16, "time": 1024, "vocab": 50304}
MODELS = {
    "gpt 12, scanned": lambda: models.gpt(**GPT),
    "gpt 12, unrolled": lambda: models.gpt(**GPT, is_scan=False),
    "llama 24, scanned": models.llama,
    "llama 24, unrolled": lambda: models.llama(is_scan=False),
    "experts 12, scanned": lambda: models.experts(12, 1024, 8, 8, 1024),
    "mlp 16, unrolled": lambda: models.mlp(16, 2048, 16384),
}
COLUMNS = ("model", "chip", "limit", "peak", "step", "best of JAX's", "ratio", "tried", "s", "kept")


def main(names: list[str]) -> None:
    """Print a row for each model, chip and memory."""
    table = Table(*COLUMNS)
    met = count = 0
    for name in names or MODELS:
        for chip in CHIPS:
            model = MODELS[name]()
            rows = oracle.tried(model, chip)
            for part in PARTS:
                limit, start = int(part * rows[0].peak_bytes), time.perf_counter()
                best = oracle.best(rows, limit)
                count += 1
                try:
                    found = shardcore.remat(
                        model.plain, *model.shapes, hardware=chip, memory=limit, seconds=SECONDS
                    )
                except PlanError as error:
                    met += best is None
                    table.add_row(
                        name, chip, format_bytes(limit), "", "", "", "", "", "", error.code
                    )
                    continue
                ratio = found.best.step_seconds / best.step_seconds if best else 0.0
                met += ratio <= ASKED and found.best.peak_bytes <= limit
                table.add_row(
                    name,
                    chip,
                    format_bytes(limit),
                    format_bytes(found.best.peak_bytes),
                    format_seconds(found.best.step_seconds),
                    f"{format_seconds(best.step_seconds)} {best.policy}" if best else "none fits",
                    f"{ratio:.3f}" if best else "",
                    str(len(found.trials)),
                    f"{time.perf_counter() - start:.0f}",
                    found.best.label,
                )
    console = Console(width=200)
    console.print(table)
    console.print(f"{met} of {count} are at most {ASKED} times as slow, and fit")


if __name__ == "__main__":
    main(sys.argv[1:])
