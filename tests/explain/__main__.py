"""Prints how much of the collectives of compiled models is explained, and whether it is right.

python -m tests.explain [MODEL ...]               compiled for hosts, held against XLA's metadata
python -m tests.explain --compiler tpu|gpu ...    compiled for chips, where the compiler is
python -m tests.explain --compiler gpu --judge    likewise, held against XLA's metadata
python -m tests.explain --edits N ...             edits of the N longest collectives made, and
                                                  whether these are gone
python -m tests.explain --compiler gpu --edits N ...   likewise, compiled for chips
python -m tests.explain --record                  the dumps that tests keep, made anew
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence

import shardcore

from tests.explain import dumps
from tests.explain.truth import (
    COMPILERS,
    MODELS,
    counterfactuals,
    judged,
    merged,
    result,
    summary,
)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="*")
    parser.add_argument("--compiler", choices=COMPILERS, default="cpu")
    parser.add_argument("--judge", action="store_true")
    parser.add_argument("--edits", type=int, default=0)
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    names = options.models or MODELS
    if options.record:
        dumps.record()
    elif options.edits:
        _edits(names, options.edits, options.compiler)
    elif options.judge or options.compiler == "cpu":
        _judged(names, options.compiler)
    else:
        _explained(names, options.compiler)


def _judged(names: Sequence[str], compiler: str) -> None:
    rows = []
    for name in names:
        rows.append(row := judged(name, compiler))
        print(
            f"{name:26} parts {row.parts:4} planned {row.planned:4} confirmed {row.confirmed:4} "
            f"unjudged {row.unjudged:3} wrong {len(row.wrong)} {'; '.join(row.wrong)}",
            flush=True,
        )
    sums = {
        what: sum(getattr(row, what) for row in rows)
        for what in ("parts", "planned", "known", "confirmed", "unjudged")
    }
    print(sums, "wrong", sum(len(row.wrong) for row in rows))


def _explained(names: Sequence[str], compiler: str) -> None:
    parts = planned = known = 0
    for name in names:
        try:
            found = shardcore.explain(merged(name, compiler), result(name))
        except Exception as error:  # A compiler that cannot compile a model says so.
            print(f"{name:26} {str(error).splitlines()[0][:150]}")
            continue
        parts += len(found.parts)
        planned += sum(part.planned is not None for part in found.parts)
        known += round(found.attributed * len(found.parts))
        print(f"{name:26} attributed {found.attributed:.1%} {summary(found)}", flush=True)
    print(f"parts {parts}, of the plan {planned}, op or line known of {known}")


def _edits(names: Sequence[str], most: int, compiler: str) -> None:
    verdicts: Counter[str] = Counter()
    for name in names:
        try:
            rows = counterfactuals(name, most, compiler)
        except Exception as error:  # A compiler that cannot compile a model says so.
            print(f"{name:26} {str(error).splitlines()[0][:150]}", flush=True)
            continue
        for row in rows:
            verdicts[row.verdict] += 1
            print(f"{row.verdict:7} {name:26} {row.what} | {row.edit}", flush=True)
    none = verdicts.pop("none", 0)
    print(f"{verdicts.total()} edits: {dict(verdicts)}; {none} collectives have none")


main()
