"""Compares shardcore with the reference on one program.

python -m tests.shardy.diff FILE [--pipeline PIPELINE] [--bisect] [--locations]

prints a unified diff of the two canonical prints and fails if there is one. With `--bisect` both
run the pipeline pass by pass, and the diff is that after the first pass where they part.
"""

from __future__ import annotations

import argparse
import difflib
import sys
from collections.abc import Iterator
from pathlib import Path

import shardcore

from tests.shardy import reference


def ours(text: str, pipeline: str = reference.PROPAGATION, locations: bool = False) -> str:
    """The canonical print of `text` after shardcore ran `pipeline` on it."""
    module = shardcore.Module.parse(text)
    shardcore.PassManager.parse(pipeline).run(module)
    return reference.canonical(str(module), locations)


def unified(theirs: str, mine: str, context: int = 2) -> Iterator[str]:
    """The lines of a unified diff; none if the texts are the same."""
    # Far faster than `unified_diff` alone when, as usual, nothing differs.
    if theirs == mine:
        return iter(())
    return difflib.unified_diff(
        theirs.splitlines(), mine.splitlines(), "reference", "shardcore", n=context, lineterm=""
    )


def explain(theirs: str, mine: str, lines: int = 30) -> str:
    """The first lines of the diff, for a test's message; empty if the texts are the same."""
    shown: list[str] = []
    for line in unified(theirs, mine):
        if len(shown) == lines:
            return "\n".join([*shown, "..."])
        shown.append(line if len(line) <= 800 else f"{line[:500]} ... {line[-300:]}")
    return "\n".join(shown)


def assert_same(theirs: str, mine: str) -> None:
    # A plain comparison of texts would make pytest print both, and spend minutes on their diff.
    difference = explain(theirs, mine)
    assert not difference, f"\n{difference}"


def our_stages(text: str, passes: list[str], locations: bool = False) -> Iterator[str]:
    """The canonical print of one module after each of `passes` in turn."""
    module = shardcore.Module.parse(text)
    for one in passes:
        shardcore.PassManager.parse(reference.join_passes([one])).run(module)
        yield reference.canonical(str(module), locations)


def bisect(text: str, pipeline: str, locations: bool = False) -> tuple[str, str, str] | None:
    """The first pass after which the two differ, with the reference's print and ours."""
    passes = reference.expand(pipeline)
    theirs = reference.stages(text, passes, locations)
    mine = our_stages(text, passes, locations)
    for one, expected, got in zip(passes, theirs, mine, strict=True):
        if expected != got:
            return one, expected, got
    return None


def main() -> int:
    parser = argparse.ArgumentParser(description="Compare shardcore with the reference.")
    parser.add_argument("file", type=Path)
    parser.add_argument("--pipeline", default=reference.PROPAGATION)
    parser.add_argument("--bisect", action="store_true", help="find the pass where they part")
    parser.add_argument("--locations", action="store_true", help="compare source locations too")
    options = parser.parse_args()

    text = options.file.read_text()
    if options.bisect:
        found = bisect(text, options.pipeline, options.locations)
        if found is None:
            print("the same after every pass")
            return 0
        print(f"different after {found[0]}")
        expected, got = found[1:]
    else:
        expected = reference.run(text, options.pipeline, locations=options.locations)
        got = ours(text, options.pipeline, options.locations)
    print(*unified(expected, got), sep="\n")
    return int(expected != got)


if __name__ == "__main__":
    sys.exit(main())
