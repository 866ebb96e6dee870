"""Writes what ``shardcore bench steps --calibrate`` prints now into ``docs/bench_steps.md``.

python -m tests.bench.page
"""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

from shardcore.cli import main

PAGE = Path(__file__).resolve().parents[2] / "docs" / "bench_steps.md"
BLOCK = re.compile(r"(?<=^```text\n).*?(?=^```$)", re.DOTALL | re.MULTILINE)


def printed() -> str:
    """What the command prints."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        main(["bench", "steps", "--calibrate"])
    return "".join(f"{line.rstrip()}\n" for line in out.getvalue().splitlines())


if __name__ == "__main__":
    text = printed()
    PAGE.write_text(BLOCK.sub(lambda _: text, PAGE.read_text("utf-8"), count=1), "utf-8")
