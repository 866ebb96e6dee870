"""Compares many seeds in processes of their own, because the reference may take its process down.

Workers are forked from a process that has imported everything and has run nothing.
"""

from __future__ import annotations

import dataclasses
import multiprocessing
from collections.abc import Callable, Iterable, Iterator
from multiprocessing.connection import Connection
from typing import Any

from tests.shardy.generator import compare
from tests.shardy.generator.compare import Finding

PATIENCE = 20
"""Seconds for one step of a module. A process that dies of broken memory may hang instead."""


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What came of one seed. Only `ours` says whether it was this engine that died."""

    seed: int
    findings: list[Any]
    died: str = ""


Job = Callable[[int, Callable[[str], None]], list[Any]]
"""What is done with a seed; it says whose turn it is."""


def compare_both(seed: int, on_step: Callable[[str], None]) -> list[Finding]:
    """All differences in the tasks of a seed."""
    found = (compare.check(*task, on_step=on_step) for task in compare.of_seed(seed))
    return [finding for finding in found if finding is not None]


def _work(seeds: list[int], pipe: Connection, job: Job) -> None:
    for seed in seeds:
        pipe.send(("seed", seed))
        pipe.send(("done", job(seed, lambda step: pipe.send(("step", step)))))


def run(seeds: Iterable[int], job: Job = compare_both) -> Iterator[Outcome]:
    """What comes of each seed, one after the other."""
    left = list(seeds)
    processes = multiprocessing.get_context("fork")
    while left:
        receiver, sender = processes.Pipe(duplex=False)
        worker = processes.Process(target=_work, args=(left, sender, job), daemon=True)
        worker.start()
        sender.close()
        step = "reference"
        try:
            while left:
                if not receiver.poll(PATIENCE):
                    step += " takes too long"
                    break
                kind, what = receiver.recv()
                if kind == "step":
                    step = what
                elif kind == "seed":
                    step = "reference"
                elif kind == "done":
                    yield Outcome(left.pop(0), what)
        except EOFError:
            pass
        finally:
            worker.kill()
            worker.join()
        if left:
            yield Outcome(left.pop(0), [], step)
