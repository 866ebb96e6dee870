"""Compares many seeds in processes of their own, because the reference may take its process down.

Workers are forked from a process that has imported everything and has run nothing.
"""

from __future__ import annotations

import dataclasses
import multiprocessing
from collections.abc import Iterable, Iterator
from multiprocessing.connection import Connection

from tests.shardy.generator import compare
from tests.shardy.generator.compare import Finding

PATIENCE = 20
"""Seconds for one step of a module. A process that dies of broken memory may hang instead."""


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What came of one seed. Only `ours` says whether it was this engine that died."""

    seed: int
    findings: list[Finding]
    died: str = ""


def _work(seeds: list[int], pipe: Connection) -> None:
    for seed in seeds:
        pipe.send(("seed", seed))
        findings = []
        for text, pipeline in compare.of_seed(seed):
            finding = compare.check(text, pipeline, on_step=lambda step: pipe.send(("step", step)))
            if finding is not None:
                findings.append(finding)
        pipe.send(("done", findings))


def run(seeds: Iterable[int]) -> Iterator[Outcome]:
    """What comes of each seed, one after the other."""
    left = list(seeds)
    processes = multiprocessing.get_context("fork")
    while left:
        receiver, sender = processes.Pipe(duplex=False)
        worker = processes.Process(target=_work, args=(left, sender), daemon=True)
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
