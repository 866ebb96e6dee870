"""Prints published runs beside their costs: ``python -m tests.published.report [NAME...]``."""

from __future__ import annotations

import sys
from typing import Any

import shardcore
from shardcore.bench.kernels import with_attention
from shardcore.bench.step import lower
from shardcore.calculus.hardware import hardware

from tests.measured.steps import spread
from tests.published.runs import Run, runs

A3_BYTES_PER_SECOND = 1.25e11 / 8
"""What a chip sends out of an A3 node, which has fewer links than the ``h100`` of hardware.toml:
1000 Gb/s for eight chips, cloud.google.com/compute/docs/gpus/gpu-network-bandwidth."""


def cost_of(run: Run, **options: Any) -> shardcore.Cost:
    """The cost of the program of ``run`` on its chip."""
    chip = hardware(run.chip)
    if run.platform == "cuda":
        options.setdefault("dcn", A3_BYTES_PER_SECOND)
    else:
        chip = with_attention(chip, run.training)
    return lower(run.training).propagate().cost(chip, slices=run.slices, **options)


def main(names: list[str]) -> None:
    """Print a row for each run whose name has one of ``names`` in it."""
    print(f"{'run':24} {'published':>9} {'lower':>6} {'point':>6} {'upper':>6} {'exposed':>7}")
    misses: dict[str, list[float]] = {}
    for run in runs():
        if names and not any(name in run.name for name in names):
            continue
        cost = cost_of(run)
        took = run.step_seconds
        misses.setdefault(run.chip, []).append(took / cost.step_seconds)
        lower, point, upper = (
            seconds / took
            for seconds in (cost.step_seconds_lower, cost.step_seconds, cost.step_seconds_upper)
        )
        print(
            f"{run.name:24} {took:8.3f}s {lower:6.2f} {point:6.2f} {upper:6.2f} "
            f"{cost.exposed_seconds / cost.step_seconds:7.1%}",
            flush=True,
        )
    for chip, ratios in misses.items():
        print(f"{chip}: {len(ratios)} runs, spread {spread(ratios):.3f}")


if __name__ == "__main__":
    main(sys.argv[1:])
