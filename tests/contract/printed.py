"""What pages of the documentation show as printed, and what is printed now.

    python -m tests.contract.printed            lists the pages that show something else
    python -m tests.contract.printed --write    writes what is printed into the pages

A page shows what Python code prints, in a ``text`` block below a ``python`` block, and what
commands print, in ``console`` blocks: a line with ``$`` is a command, those below it what it
prints. In these ``...`` stands for anything within the line, and alone on the last line for all
that follows. The commands of a page are run in order in a folder that has a copy of ``examples``,
on a terminal of 80 columns.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
EXAMPLE = re.compile(r"```python\n(.*?)```\n(?:\n```text\n(.*?)```)?", re.DOTALL)
CONSOLE = re.compile(r"(?<=```console\n)(.*?)(?=^```)", re.DOTALL | re.MULTILINE)
COMMAND = re.compile(r"^\$ ((?:.*\\\n)*.*)\n", re.MULTILINE)
REST = "...\n"


def output_of_code(code: str) -> str:
    """What Python code prints."""
    printed = io.StringIO()
    here = Path.cwd()
    os.chdir(ROOT)  # Code names files from the root of the checkout.
    try:
        with contextlib.redirect_stdout(printed):
            exec(compile(code, "example.py", "exec"), {"__name__": "example"})
    finally:
        os.chdir(here)
    return printed.getvalue()


def output_of_command(command: str, folder: Path) -> str:
    """What a command prints on standard output in `folder`, and if it fails on standard error."""
    program, *arguments = shlex.split(command.replace("\\\n", " "))
    if program == "cat":
        return Path(folder, *arguments).read_text(encoding="utf-8")
    start = {"shardcore": [sys.executable, "-m", "shardcore"], "python": [sys.executable]}[program]
    paths = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(os.path.abspath, paths))}
    environment |= {"COLUMNS": "80", "NO_COLOR": "1", "PYTHONWARNINGS": "ignore"}
    done = subprocess.run(
        [*start, *arguments],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=300,
    )
    printed = done.stdout + (done.stderr if done.returncode else "")
    return "".join(f"{line.rstrip()}\n" for line in printed.splitlines())


def console(block: str, folder: Path) -> str:
    """The block with what its commands print now."""
    parts = COMMAND.split(block)
    written = parts[0]
    for command, shown in zip(parts[1::2], parts[2::2], strict=True):
        printed = output_of_command(command, folder)
        written += f"$ {command}\n{with_dots(printed, shown)}"
    return written


def with_dots(printed: str, shown: str) -> str:
    """What was printed, with ``...`` where `shown` has it."""
    lines, patterns = printed.splitlines(keepends=True), shown.splitlines(keepends=True)
    if shown.endswith(REST):
        patterns.pop()
        lines[len(patterns) :] = [REST]
    for place, (line, pattern) in enumerate(zip(lines, patterns, strict=False)):
        if re.fullmatch(".*".join(map(re.escape, pattern.split("..."))), line):
            lines[place] = pattern
    return "".join(lines)


def consoles(text: str) -> str:
    """The page with what its commands print now."""
    if not CONSOLE.search(text):
        return text
    with tempfile.TemporaryDirectory() as name:
        shutil.copytree(ROOT / "examples", Path(name, "examples"))
        return CONSOLE.sub(lambda found: console(found[1], Path(name)), text)


def examples(text: str) -> str:
    """The page with what its Python code prints now."""

    def with_output(found: re.Match[str]) -> str:
        if found[2] is None:
            return found[0]
        return f"```python\n{found[1]}```\n\n```text\n{output_of_code(found[1])}```"

    return EXAMPLE.sub(with_output, text)


def main() -> int:
    """List or write the pages that show something else than what is printed."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--write", action="store_true")
    parser.add_argument("pages", nargs="*", type=Path, default=PAGES)
    options = parser.parse_args()
    importlib.import_module("tests.conftest")  # JAX's devices, as in the tests.
    stale = 0
    for page in options.pages:
        text = page.read_text(encoding="utf-8")
        printed = consoles(examples(text))
        if printed != text:
            stale += 1
            print(page)
            if options.write:
                page.write_text(printed, encoding="utf-8")
    return 1 if stale and not options.write else 0


if __name__ == "__main__":
    sys.exit(main())
