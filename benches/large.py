"""Measures time and memory of one program of any size from text to text.

python benches/large.py chain 10000000
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import shardcore

sys.path.insert(0, str(Path(__file__).parents[1]))
from benches import families

Made = TypeVar("Made")


def timed(what: str, work: Callable[[], Made]) -> Made:
    start = time.process_time()
    made = work()
    print(f"{what:9} {time.process_time() - start:6.2f} s")
    return made


def main() -> None:
    """Parse, propagate and print the program that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("family", choices=["chain", "hub", "mlp", "unique_shapes"])
    parser.add_argument("ops", type=int)
    options = parser.parse_args()
    text = getattr(families, options.family)(options.ops)
    module = timed("parse", lambda: shardcore.Module.parse(text))
    passes = shardcore.PassManager.parse("builtin.module(sdy-propagation-pipeline)")
    timed("pipeline", lambda: passes.run(module, max_ops=2 * options.ops))
    printed = timed("print", lambda: str(module))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"{len(text) / 1e9:.2f} GB of text in, {len(printed) / 1e9:.2f} out, peak {peak:.1f} GiB")


main()
