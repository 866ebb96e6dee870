"""`sdy-per-instruction-partitioning` does what that of jaxlib 0.12 does."""

from __future__ import annotations

import pytest
import shardcore
from shardcore import PassManager

from tests.shardy import reference
from tests.shardy.diff import assert_same, ours
from tests.shardy.generator import pipelines, programs
from tests.shardy.per_instruction_cases import CASES, FILTERS, REFUSED, functions
from tests.shardy.worker import Worker

needs_pass = pytest.mark.skipif(not reference.IS_NEW, reason="jaxlib 0.10 has no such pass")
PASS = "builtin.module(sdy-per-instruction-partitioning)"


@needs_pass
@pytest.mark.parametrize("name", CASES)
def test_ops(name: str) -> None:
    assert_same(reference.run(CASES[name], PASS), ours(CASES[name], PASS))


@needs_pass
@pytest.mark.parametrize("filter", FILTERS)
def test_filters(filter: str) -> None:
    pipeline = f"builtin.module(sdy-per-instruction-partitioning{{filter={filter}}})"
    for name in ("ops in a row", "a product of slices"):
        assert_same(reference.run(CASES[name], pipeline), ours(CASES[name], pipeline))


@needs_pass
@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str) -> None:
    with pytest.raises(reference.RejectedError):
        reference.run(REFUSED[name], PASS)
    with pytest.raises(shardcore.ShardcoreError, match="sharded over several meshes"):
        ours(REFUSED[name], PASS)


@needs_pass
@pytest.mark.parametrize(
    "names",
    [("f", "g"), ("f", "main"), ("private f", "main"), ("private f",), ("private f", "g", "h")],
)
def test_only_the_entry_function_is_partitioned(names: tuple[str, ...]) -> None:
    text = functions(*names)
    assert_same(reference.run(text, PASS), ours(text, PASS))


@needs_pass
def test_the_export_pipeline_runs_it() -> None:
    options = (
        "partitioner-stage=convert-global-to-local enable-per-instruction-partitioning=true "
        "per-instruction-partitioning-filter=add,abs partition-count=2"
    )
    pipeline = f"builtin.module(sdy-export-pipeline{{{options}}})"
    with reference.context():
        theirs = str(reference.passmanager.PassManager.parse(pipeline))
    assert theirs.split() == str(PassManager.parse(pipeline)).split()
    text = CASES["ops in a row"]
    assert_same(reference.run(text, pipeline), ours(text, pipeline))


@pytest.mark.parametrize("stage", ["", "partitioner-stage=pad-for-divisibility"])
def test_the_export_pipeline_runs_it_only_for_the_program_of_one_device(stage: str) -> None:
    options = f"enable-per-instruction-partitioning=true {stage}"
    pipeline = f"builtin.module(sdy-export-pipeline{{{options}}})"
    with pytest.raises(shardcore.ShardcoreError, match="not up to a stage"):
        PassManager.parse(pipeline, shardy="0.12")
    if reference.IS_NEW:
        with pytest.raises(reference.DiedError):
            reference.run_isolated(functions("main"), pipeline)


def test_a_module_needs_an_entry_function() -> None:
    text = functions("private f", "private g")
    manager = PassManager.parse(PASS, shardy="0.12")
    with pytest.raises(shardcore.ShardcoreError, match="no function `main`"):
        manager.run(shardcore.Module.parse(text, shardy="0.12"))
    if reference.IS_NEW:
        with pytest.raises(reference.DiedError):
            reference.run_isolated(text, PASS)


@needs_pass
def test_random_modules() -> None:
    """Of kinds of ops that Shardy lowers to programs that compute the same."""
    insert = "sdy-insert-explicit-reshards{enable-full-version=true}"
    before = f"builtin.module({pipelines.whole(False)},func.func({insert}))"
    worker, compared = Worker(), 0
    for seed in range(1000, 1040):
        try:
            text = worker.run(programs.make(seed), before, verify=False)
            theirs = worker.run(text, pipelines.PER_INSTRUCTION)
        except (reference.RejectedError, reference.DiedError):
            continue
        assert_same(theirs, ours(text, pipelines.PER_INSTRUCTION))
        compared += 1
    worker.close()
    assert compared > 25
