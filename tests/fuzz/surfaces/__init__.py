"""Fuzz targets besides the text of programs: arguments, changed ops, command lines, files, figures.

Whatever is given, the outcome is a result or an error of ours (or a TypeError or ValueError of
Python's own), in bounded time and memory: `isolated.py` runs inputs in a process of their own.
`pytest tests/fuzz` tries a fixed number of each target; `python -m tests.fuzz.surfaces --seconds
600` goes on for as long with each, from a seed of its own. A seed says everything about an input.
"""

from __future__ import annotations

from collections.abc import Callable

from tests.fuzz.surfaces import arguments, changed_ops, commands, expectations, figures

TARGETS: dict[str, Callable[[int], None]] = {
    "arguments": arguments.run,
    "changed-ops": changed_ops.run,
    "commands": commands.run,
    "expectations": expectations.run,
    "figures": figures.run,
}
"""Each runs the input of a seed, and raises what it must not."""
