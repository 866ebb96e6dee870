"""Compares the reference with shardcore on changed ops, and counts how the two answers compare.

    python -m tests.shardy.verification [--op NAME] [--sample N] [--show VERDICT] [--limit N]

Changed are the ops of `sound`, each part in each way of `ways`; then come the `FAMILIES` of
programs in which something else is: functions, locations, resources. The reference runs in a child
process: it may die.
"""

from __future__ import annotations

import argparse
import collections
import random
from collections.abc import Iterator

from tests.shardy.verification.compare import compare
from tests.shardy.verification.sound import quantized, sound
from tests.shardy.verification.texts import FAMILIES
from tests.shardy.verification.ways import variants


def programs(name: str) -> Iterator[tuple[str, list[str]]]:
    """Programs by the name of what is changed in them, for names that hold ``name``."""
    for case in [*sound(), *quantized()]:
        if name in case.name:
            yield case.name, [case.text(), *(other.text() for other in variants(case))]
    for family, texts in FAMILIES.items():
        if name in family:
            yield family, texts()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--op", default="", help="only ops whose name holds this")
    parser.add_argument(
        "--sample",
        type=int,
        help="so many programs of each op, five times as many of what is no op, at random",
    )
    parser.add_argument(
        "--show", default="-", help="verdicts to show programs of, or a part of them"
    )
    parser.add_argument(
        "--limit", type=int, default=10, help="how many programs of each op to show"
    )
    options = parser.parse_args()
    total: collections.Counter[str] = collections.Counter()
    for name, texts in programs(options.op):
        sample = options.sample and options.sample * (5 if name in FAMILIES else 1)
        if sample is not None and sample < len(texts):
            texts = random.Random(name).sample(texts, sample)
        counts: collections.Counter[str] = collections.Counter()
        shown = 0
        for answer in compare(texts):
            counts[answer.verdict] += 1
            if options.show in answer.verdict and shown < options.limit:
                shown += 1
                print(answer.text, answer.theirs, answer.ours, sep="\n", end="\n\n")
        print(f"{name}: {_listed(counts)}", flush=True)
        total += counts
    print(_listed(total))


def _listed(counts: collections.Counter[str]) -> str:
    return ", ".join(f"{verdict} {count}" for verdict, count in sorted(counts.items()))


if __name__ == "__main__":
    main()
