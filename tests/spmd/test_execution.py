"""Programs of one device, executed: random shardings of programs of every family of ops.

They run in processes of their own, since a wrong collective may never return.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor

import pytest

pytest.importorskip("jax", reason="jax 0.10.2 needs Python 3.11")

from shardcore.partition.policies import POLICIES

from tests.deep import IS_DEEP, sampled_pairs
from tests.spmd import programs, texts

SEEDS = 300 if IS_DEEP else 1
"""Shardings of each program, under each policy."""
SECONDS = 3600 if IS_DEEP else 500


def prove(name: str, seeds: range, policy: str) -> list[str]:
    """What is wrong with program ``name`` under the shardings of ``seeds``."""
    from tests.spmd import proof

    return [problem for seed in seeds for problem in proof.problems(name, seed, policy)]


def prove_combinations(name: str) -> list[str]:
    """What is wrong with program ``name`` under all shardings of its first two arguments."""
    from tests.spmd import proof

    found = []
    for seed, given in enumerate(proof.combinations(name)):
        found += proof.problems(name, seed, "least", given)
    return found


@pytest.fixture(scope="module")
def pool() -> Iterator[ProcessPoolExecutor]:
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(max_workers=os.cpu_count(), mp_context=context) as executor:
        yield executor
        executor.shutdown(wait=False, cancel_futures=True)


def test_devices_compute_what_the_global_program_does(pool: ProcessPoolExecutor) -> None:
    pairs = sampled_pairs([*programs.OPS, *texts.TEXTS], [*POLICIES, "xla-tpu"], 2)
    asked = [pool.submit(prove, name, range(SEEDS), policy) for name, policy in pairs]
    wrong = [problem for answer in asked for problem in answer.result(timeout=SECONDS)]
    assert not wrong, "\n\n".join(wrong[:3])


def test_all_combinations_of_sharded_dims(pool: ProcessPoolExecutor) -> None:
    names = programs.OPS if IS_DEEP else ["outer", "slice"]
    asked = [pool.submit(prove_combinations, name) for name in names]
    wrong = [problem for answer in asked for problem in answer.result(timeout=SECONDS)]
    assert not wrong, "\n\n".join(wrong[:3])
