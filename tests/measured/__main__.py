"""Prints measured steps beside their costs, and how far these are off; with ``--leave-one-out``,
how far they are with constants of the chip that are fitted without each."""

from __future__ import annotations

import math
import sys

from tests.measured.leave_one_out import CHIP, errors
from tests.measured.steps import spread, steps

if "--leave-one-out" in sys.argv:
    print(f"{'program':10} {'error':>6} {'fitted without it':>17}")
    left_out = []
    for name, known, left in errors():
        print(f"{name:10} {math.expm1(known):+6.1%} {math.expm1(left):+17.1%}", flush=True)
        left_out.append(math.exp(left))
    print(f"{CHIP}: {len(left_out)} programs, spread {spread(left_out):.3f}")
    sys.exit()

ROW = "{:6} {:10} {:>10} {:>6} {:>6} {:>6} {:>6} {:>8} {:>6}"
print(ROW.format("chip", "program", "measured", "lower", "low", "point", "high", "kernels", "peak"))
for step in steps():
    cost, took = step.cost(), step.step_seconds
    ends = cost.step_seconds_lower, cost.confidence.low, cost.step_seconds, cost.confidence.high
    shares = [f"{seconds / took:.2f}" for seconds in ends]
    kernels = f"{len(cost.kernels) / step.kernels:.2f}"
    peak = f"{cost.peak_bytes / step.peak_bytes:.2f}"
    print(ROW.format(step.chip, step.program, f"{took * 1e3:.3f} ms", *shares, kernels, peak))
for chip in sorted({step.chip for step in steps()}):
    own = [step for step in steps() if step.chip == chip]
    ratios = sorted(step.step_seconds / step.cost().step_seconds for step in own)
    misses = sorted(abs(1 / ratio - 1) for ratio in ratios)
    print(f"{chip}: {len(own)} programs, spread {spread(ratios):.3f}, ", end="")
    print(f"median error {misses[len(misses) // 2]:.1%}, largest {misses[-1]:.1%}")
