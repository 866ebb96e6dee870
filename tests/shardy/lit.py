"""Runs the lit tests of a Shardy checkout through the reference and through shardcore.

    python -m tests.shardy.lit CHECKOUT [--only NAME] [--show N]

Every piece of every file is given the passes of its RUN lines. Where the reference accepts the
piece, the functions of both results are compared in jaxlib's canonical print; where it refuses,
shardcore has to refuse too, and the figures say how many of the errors that the file expects, and
of those that jaxlib gives, stand in shardcore's messages at the same line. Pieces that take the
reference down, and passes that jaxlib does not have, are counted apart. The files are read where
they are and nothing of them is kept.
"""

from __future__ import annotations

import argparse
import collections
import difflib
import json
import os
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import shardcore

from tests.shardy import reference
from tests.shardy.messages import Message, expected, missing, of_error

RUN = re.compile(r"//\s*RUN:\s*sdy_opt\s+(.*?)\s*(?:2>&1)?\s*(?:\||$)", re.MULTILINE)
SAVE = re.compile(r",?sdy-save-module(\{[^}]*\})?")

COUNTED = (
    "functions",
    "different",
    "expected",
    "found",
    "jaxlib says",
    "we say too",
    "pieces that say all",
)


def flag_lists(text: str) -> Iterator[list[str]]:
    """The pass flags of each RUN line."""
    for command in RUN.findall(text.replace("\\\n//  RUN:", "").replace("\\\n// RUN:", "")):
        words = [word for word in shlex.split(command) if word != "%s"]
        ignored = ("--", "-split-input-file", "-verify-diagnostics", "-allow-unregistered-dialect")
        yield [word for word in words if word.lstrip("-") not in {i.lstrip("-") for i in ignored}]


def functions(text: str) -> dict[str, str]:
    """The canonical text of each op at the top level of ``text``, by its symbol."""
    with reference.context():
        module = reference.ir.Module.parse(text)
        ops = {}
        for number, op in enumerate(module.body.operations):
            has_name = "sym_name" in op.attributes
            ops[str(op.attributes["sym_name"]) if has_name else str(number)] = str(op)
        return ops


def judge(piece: str, flags: list[str]) -> dict[str, Any]:
    """What came of one piece: a verdict, with counts and what to show."""
    try:
        pipeline = SAVE.sub("", str(shardcore.PassManager.from_flags(flags)))
    except shardcore.ShardcoreError as error:
        return {"verdict": "unknown pass", "show": str(error)}
    try:
        theirs: str | None = reference.run(piece, pipeline)
        refusal: list[Message] = []
    except reference.RejectedError as rejected:
        theirs, refusal = None, rejected.errors
        if "does not refer to a registered pass" in str(rejected):
            return {"verdict": "not in jaxlib", "show": str(rejected)}
    try:
        module = shardcore.Module.parse(piece)
        shardcore.PassManager.parse(pipeline).run(module)
        ours: str | None = str(module)
        problem: list[Message] = []
    except shardcore.ShardcoreError as error:
        ours, problem = None, of_error(error)
    if theirs is None:
        return refused(refusal, expected(piece), problem)
    if ours is None:
        return {"verdict": "refused, should accept", "show": "\n".join(map(str, problem))}
    try:
        mine = functions(ours)
    except Exception as error:
        return {"verdict": "not MLIR", "show": f"{error}\n{ours}"}
    wanted = functions(theirs)
    different = [name for name in wanted if mine.get(name) != wanted[name]]
    different += [name for name in mine if name not in wanted]
    if not different:
        return {"verdict": "equal", "functions": len(wanted)}
    name = different[0]
    diff = difflib.unified_diff(
        wanted.get(name, "").split("\n"),
        mine.get(name, "").split("\n"),
        "reference",
        "ours",
        "",
        "",
        1,
    )
    show = "\n".join(diff)
    return {
        "verdict": "different",
        "functions": len(wanted) - len(different),
        "different": len(different),
        "show": show,
    }


def refused(
    refusal: list[Message], file_expects: list[Message], ours: list[Message]
) -> dict[str, Any]:
    """The verdict on a piece that the reference refuses with ``refusal``."""
    lost = [*missing(refusal, ours), *missing(file_expects, ours)]
    show = [*(f"theirs: {m}" for m in lost), *(f"  ours: {m}" for m in ours)]
    return {
        "verdict": "refused" if ours else "accepted, should refuse",
        "show": "\n".join(show) if lost else "",
        "expected": len(file_expects),
        "found": len(file_expects) - len(missing(file_expects, ours)),
        "jaxlib says": len(refusal),
        "we say too": len(refusal) - len(missing(refusal, ours)),
        "pieces that say all": int(not lost),
    }


def pieces(text: str) -> list[str]:
    """The pieces between separator lines."""
    return re.split(r"^// -----.*$", text, flags=re.MULTILINE)


def run_file(path: Path) -> Iterator[tuple[int, list[str], dict[str, Any]]]:
    """Judges every piece of a file in child processes, since the reference may die of one."""
    text = path.read_text(encoding="utf-8")
    split = pieces(text) if "split-input-file" in text else [text]
    jobs = [
        (number, flags, piece) for flags in flag_lists(text) for number, piece in enumerate(split)
    ]
    start = 0
    while start < len(jobs):
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(read)
            devnull = os.open(os.devnull, os.O_WRONLY)
            os.dup2(devnull, 2)
            with os.fdopen(write, "w") as out:
                for number, flags, piece in jobs[start:]:
                    out.write(json.dumps([number, flags, judge(piece, flags)]) + "\n")
                    out.flush()
            os._exit(0)
        os.close(write)
        done = 0
        with os.fdopen(read) as answers:
            for line in answers:
                number, flags, verdict = json.loads(line)
                yield number, flags, verdict
                done += 1
        _, status = os.waitpid(child, 0)
        start += done
        if status != 0 and start < len(jobs):
            yield jobs[start][0], jobs[start][1], {"verdict": "reference died", "show": str(status)}
            start += 1


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("checkout", type=Path)
    parser.add_argument("--only", default="", help="files with this in their path")
    parser.add_argument("--show", type=int, default=0, help="how many differences to show a file")
    options = parser.parse_args()
    reference.context().allow_unregistered_dialects = True
    total: collections.Counter[str] = collections.Counter()
    for path in sorted(options.checkout.glob("shardy/dialect/sdy/**/*.mlir")):
        if options.only not in str(path) or "RUN: sdy_opt" not in path.read_text(encoding="utf-8"):
            continue
        counts: collections.Counter[str] = collections.Counter()
        shown = 0
        for number, flags, verdict in run_file(path):
            counts[verdict["verdict"]] += 1
            for key in COUNTED:
                counts[f"n {key}"] += verdict.get(key, 0)
            wrong = verdict["verdict"] not in ("equal", "not in jaxlib", "reference died")
            wrong &= verdict["verdict"] != "refused" or bool(verdict["show"])
            if wrong and shown < options.show:
                shown += 1
                print(f"--- {path} piece {number} {' '.join(flags)}: {verdict['verdict']}")
                print(verdict["show"][:3000])
        total += counts
        summary = ", ".join(
            f"{key.removeprefix('n ')} {n}" for key, n in sorted(counts.items()) if n
        )
        print(f"{path.relative_to(options.checkout / 'shardy/dialect/sdy')}: {summary}", flush=True)
    print(
        "total:",
        ", ".join(f"{key.removeprefix('n ')} {n}" for key, n in sorted(total.items()) if n),
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
