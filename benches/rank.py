"""Do plans rank by shardcore's bytes as they do by XLA's?

For random plans of five models: Spearman's coefficient between the bytes that a device sends under
the policy `xla` and those in XLA's program right after its partitioner, and what the best of our
ten best sends compared to XLA's best. Plans that XLA fails to compile are left out; the table
counts the others. Run it with `python -m benches.rank [--plans N] [MODEL ...]`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

import shardcore
from jax.errors import JaxRuntimeError

from tests.shardy.xla import sent
from tests.shardy.xla.model_rows import as_all_reduce, sent_by_kind
from tests.shardy.xla.plans import MODELS, plans


def pair(text: str) -> tuple[float, float] | None:
    """Bytes that a device sends: ours and XLA's; ``None`` if XLA fails."""
    cost = shardcore.Module.parse(text).propagate(legalize_chlo=True).cost(compiler="none")
    try:
        theirs = sent.sent_bytes(text)
    except JaxRuntimeError:
        return None
    return sum(sent_by_kind(cost).values()), sum(as_all_reduce(theirs).values())


def pairs_of(model: str, count: int) -> list[tuple[float, float]]:
    """The bytes of ``count`` random plans of ``model``, but for those that XLA fails to compile."""
    pairs = (pair(text) for text in plans(model, count))
    return [each for each in pairs if each is not None]


def spearman(pairs: Sequence[tuple[float, float]]) -> float:
    """Pearson's coefficient of the ranks, equal figures at the mean of theirs."""
    ours, theirs = (_ranks([one[side] for one in pairs]) for side in (0, 1))
    mean = (len(pairs) - 1) / 2
    along = sum((a - mean) * (b - mean) for a, b in zip(ours, theirs, strict=True))
    spread = [sum((rank - mean) ** 2 for rank in ranks) for ranks in (ours, theirs)]
    return float(along / (spread[0] * spread[1]) ** 0.5)


def _ranks(figures: Sequence[float]) -> list[float]:
    below = {one: sum(other < one for other in figures) for one in set(figures)}
    equal = {one: figures.count(one) for one in below}
    return [below[one] + (equal[one] - 1) / 2 for one in figures]


def best_of_ten(pairs: Sequence[tuple[float, float]]) -> float:
    """XLA's bytes of the best of our ten best, over XLA's best."""
    least = min(theirs for _, theirs in pairs)
    found = min(theirs for _, theirs in sorted(pairs)[:10])
    return found / least if least else 1.0 + found


def main() -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--plans", type=int, default=200)
    parser.add_argument("models", nargs="*", choices=[*MODELS, []], metavar="MODEL")
    options = parser.parse_args()
    print("| model | plans | Spearman | within 5 % | best of ten / best |")
    print("| --- | --- | --- | --- | --- |")
    for model in options.models or MODELS:
        pairs = pairs_of(model, options.plans)
        near = sum(abs(ours - xla) <= 0.05 * xla for ours, xla in pairs) / len(pairs)
        row = f"{spearman(pairs):.3f} | {near:.0%} | {best_of_ten(pairs):.2f}"
        print(f"| {model} | {len(pairs)} | {row} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
