"""Ours and the reference agree on random modules, over all pipelines."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest
import shardcore

from tests.deep import IS_DEEP, deep
from tests.shardy.generator import compare, coverage, programs, shrink, workers
from tests.shardy.generator.compare import Finding

MODULES = 20_000 if IS_DEEP else 100
CHUNK = 50
REGRESSIONS = Path(__file__).parent / "regressions"
HEADING = "// PIPELINE: "


def show(finding: Finding) -> str:
    return f"{finding.kind} after {finding.pipeline}\n{finding.detail}\n{finding.text}"


def keep(finding: Finding, path: Path) -> None:
    """Shrinks what differs and writes it where it is compared from now on.

    The reference may die of a smaller module, so the smallest one so far is always written.
    """

    def is_interesting(text: str) -> bool:
        again = compare.check(text, finding.pipeline)
        if again is None or again.kind != finding.kind:
            return False
        path.write_text(f"{HEADING}{finding.pipeline}\n{text}")
        return True

    path.write_text(f"{HEADING}{finding.pipeline}\n{finding.text}")
    shrink.shrink(finding.text, is_interesting)


def of_chunk(start: int) -> list[workers.Outcome]:
    return list(workers.run(range(start, start + CHUNK)))


def test_modules() -> None:
    starts = range(0, MODULES, CHUNK)
    # Each chunk forks workers of its own, so these processes must not use the reference themselves.
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        outcomes = [outcome for chunk in pool.map(of_chunk, starts) for outcome in chunk]
    assert not [o for o in outcomes if o.died.startswith("shardcore")]
    died = sum(bool(outcome.died) for outcome in outcomes)
    assert died < len(outcomes) / 4, f"the reference died of {died} modules"
    # What a process says that has worked on others before may be its own trouble.
    differences = []
    for outcome in outcomes:
        if not outcome.findings:
            continue
        (again,) = workers.run([outcome.seed])
        differences += [(outcome.seed, finding) for finding in again.findings]
    for seed, finding in differences if IS_DEEP else []:
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            pool.submit(keep, finding, REGRESSIONS / f"seed-{seed}.mlir").exception()
    assert not differences, show(differences[0][1])


@pytest.mark.parametrize("path", sorted(REGRESSIONS.glob("*.mlir")), ids=lambda path: path.stem)
def test_regression(path: Path) -> None:
    heading, _, text = path.read_text().partition("\n")
    finding = compare.check(text, heading.removeprefix(HEADING))
    assert finding is None, show(finding)


def test_everything_is_hit() -> None:
    hits: Counter[str] = Counter()
    for seed in range(800):
        hits.update(coverage.features(programs.make(seed)))
    print(*(f"{count:6} {name}" for name, count in sorted(hits.items())), sep="\n")
    assert not [name for name in coverage.FEATURES if not hits[name]]
    for op in ("gather", "scatter", "convolution", "dot_general", "reshape", "sort", "fft"):
        assert hits[f"op {op}"], op


CONFLICTS = {
    "factor agrees",
    "factor unsharded",
    "factor stuck at nothing",
    "factor stuck at a prefix",
    "factor conflict between axes",
    "factor conflict about parts or order of an axis",
}
CHANGING = {
    "sdy-lift-inlined-meshes",
    "sdy-remove-size-one-axes",
    "sdy-constant-or-scalar-splitter",
    "sdy-add-data-flow-edges",
    "sdy-apply-sharding-constraints",
    "sdy-user-priority-propagate",
    "sdy-close-shardings",
    "sdy-remove-sub-axes-in-input-output-shardings",
    "sdy-update-non-divisible-input-output-shardings",
}


# Those of mpmd are compared in test_mpmd.
RULES = {
    family for op, family in shardcore.rules.registered().items() if not op.startswith("mpmd.")
} | {"of its own"}
TRIMMED = {
    "an axis to the part that divides",
    "axes that do not divide",
    "sub-axes of inputs and outputs",
    "openness",
}


def hits_of(seeds: range) -> Counter[str]:
    found = (one for outcome in workers.run(seeds, coverage.of_seed) for one in outcome.findings)
    return sum(found, Counter())


@deep
def test_every_outcome_is_hit() -> None:
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        starts = range(0, 600, CHUNK)
        hits = sum(pool.map(hits_of, (range(at, at + CHUNK) for at in starts)), Counter[str]())
    print(*(f"{count:6} {name}" for name, count in sorted(hits.items())), sep="\n")
    assert not CONFLICTS - set(hits)
    assert not {f"pass {name}" for name in CHANGING} - set(hits)
    assert not {f"rule {name}" for name in RULES} - set(hits)
    assert not {f"trimming {name}" for name in TRIMMED} - set(hits)
