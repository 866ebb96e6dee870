"""Are plans from no annotations as good as the usual annotations of the models of the tests?

Each model is planned twice: within the memory of the chip, and within the memory that its own
annotations take. The ratios are those of the steps, plan over annotations; at most 1 is asked, and
at most 12 annotations. Run it with `python -m benches.plans [MODEL ...]`.
"""

from __future__ import annotations

import sys
import time

import shardcore
from rich.console import Console
from rich.table import Column, Table
from shardcore import Module, PlanError

from tests.plan.programs import bare
from tests.shardy.xla.models import catalog

CHIP = "tpu-v5e"
SECONDS = 60.0
MOST_ANNOTATIONS = 12


def planned(module: Module, expert: float, memory: int | None) -> tuple[float, int, float]:
    """The step of a plan over ``expert``, its annotations, and the seconds that it took.

    A plan that is not found has a ratio of infinity.
    """
    start = time.perf_counter()
    try:
        plan = shardcore.plan(bare(module), CHIP, memory, seconds=SECONDS)
    except PlanError:
        return float("inf"), 0, time.perf_counter() - start
    return plan.value / expert, len(plan.specs), time.perf_counter() - start


def main(names: list[str]) -> None:
    model = Column("model", min_width=max(map(len, catalog.names())))
    table = Table(model, "step", "specs", "s", "in its memory", "specs", "s")
    met, chosen = 0, names or catalog.names()
    for name in chosen:
        module = Module.parse(catalog.located(name))
        given = module.session().cost(CHIP)
        found = [planned(module, given.serial_seconds, m) for m in (None, given.peak_bytes)]
        met += all(ratio < 1.0001 and count <= MOST_ANNOTATIONS for ratio, count, _ in found)
        cells = (f"{r:.3f} {n} {s:.1f}".split() for r, n, s in found)
        table.add_row(name, *(cell for three in cells for cell in three))
    console = Console()
    console.print(table)
    console.print(f"{met} of {len(chosen)} models are as fast, with {MOST_ANNOTATIONS} at most")


if __name__ == "__main__":
    main(sys.argv[1:])
