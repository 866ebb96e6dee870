"""Does a random plan that fits send less, compiled by XLA, than the plan that is found?

Five models are planned for the fewest bytes within a part of the memory that they take unsharded.
Of random plans of the same model, those that fit are compiled, and what a device sends is counted
in XLA's program right after its partitioner; an all-reduce of which each device uses its own slice
is a reduce-scatter. Plans that XLA fails to compile are left out, and counted. Run it with
`python -m benches.random_plans [--plans N] [MODEL ...]`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass

import shardcore
from jax.errors import JaxRuntimeError
from shardcore import Module

from tests.shardy.xla.plans import MODELS, plans, unannotated
from tests.shardy.xla.sent import sent_bytes

CHIP = "trainium2"
"""No compiler is modelled for it, so that collectives are those of the partitioner."""
SHARE = 0.6
"""The part of the memory that a program takes unsharded which a plan may take."""


def limit(module: Module) -> int:
    """The memory that a plan of ``module`` may take; without annotations it does not fit."""
    session = module.session()
    for target in list(session.annotations):
        session.unset(target)
    return int(session.cost(CHIP).peak_bytes * SHARE)


def planned(module: Module) -> shardcore.Plan:
    """The plan of ``module`` for the fewest bytes."""
    return shardcore.plan(module, CHIP, limit(module), minimize="bytes", seconds=60)


def xla_bytes(text: str) -> float:
    """What a device sends in XLA's program for ``text``."""
    return sum(sent_bytes(text, scatters=True).values())


@dataclass(frozen=True)
class Comparison:
    """The bytes that a device sends under XLA: of the plan, and of each random plan that fits."""

    plan: float
    random: tuple[float, ...]
    failed: int
    """The random plans that fit and that XLA fails to compile."""

    @property
    def ratio(self) -> float:
        """Those of the best random plan over those of the plan."""
        return min(self.random) / self.plan


def compared(model: str, count: int) -> Comparison:
    """Compare the plan of ``model`` with ``count`` random ones."""
    module = Module.parse(unannotated(model))
    found = list(_fitting(model, count, limit(module)))
    sent = tuple(each for each in found if each is not None)
    plan = xla_bytes(str(planned(module).session.module))
    return Comparison(plan, sent, len(found) - len(sent))


def _fitting(model: str, count: int, most: int) -> Iterator[float | None]:
    """What those of ``count`` random plans send that take ``most`` bytes of memory at most;
    ``None`` if XLA fails."""
    for text in plans(model, count):
        cost = Module.parse(text).propagate(legalize_chlo=True).cost(CHIP)
        if cost.peak_bytes <= most:
            try:
                yield xla_bytes(text)
            except JaxRuntimeError:
                yield None


def main() -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", default=list(MODELS))
    parser.add_argument("--plans", type=int, default=200)
    options = parser.parse_args()
    print("| model | plan, MB | random plans that fit | XLA fails | best of them / plan |")
    print("| --- | --- | --- | --- | --- |")
    for model in options.models:
        found = compared(model, options.plans)
        fitting = f"{len(found.random) + found.failed} of {options.plans} | {found.failed}"
        row = f"| {model} | {found.plan / 1e6:.3f} | {fitting} | {found.ratio:.2f} |"
        print(row, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
