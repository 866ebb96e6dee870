"""Passes after propagation do what the reference's do, alone and in their place in the pipeline."""

from __future__ import annotations

from functools import cache

import pytest
import shardcore

from tests.deep import sampled_pairs
from tests.shardy import reference
from tests.shardy.diff import assert_same, ours
from tests.shardy.export_cases import CASES, MESHES
from tests.shardy.programs import registry

PARTITION = reference.join_passes(
    [
        "func.func(sdy-insert-explicit-reshards{enable-full-version=true})",
        "canonicalize{enable-patterns=sdy-reshard}",
        "func.func(sdy-reshard-to-collectives)",
        "canonicalize{enable-patterns=sdy-collective}",
    ]
)
PASSES = reference.expand()
FIRST = next(at for at, name in enumerate(PASSES) if name == "sdy-export-named-computations")
PROGRAMS = [
    "mlp-train-megatron",
    "calls-in-loops",
    "manual-in-scan",
    "gpt-scan-full",
    "moe-scatter",
    "resnet-spatial",
    "every-collective",
]


@pytest.mark.parametrize("name", CASES)
def test_pass(name: str) -> None:
    pipeline, body = CASES[name]
    text = MESHES + body
    assert_same(reference.run(text, pipeline), ours(text, pipeline))


# An argument of a region that a pass makes has no text to hold its location.
WITHOUT_NEW_ARGUMENTS = [name for name in CASES if name != "resolve-permutation-factors"]


@pytest.mark.parametrize("name", WITHOUT_NEW_ARGUMENTS)
def test_pass_keeps_and_forgets_locations_alike(name: str) -> None:
    pipeline, body = CASES[name]
    text = MESHES + body
    with_locations = reference.canonical(text, locations=True)
    theirs = reference.run(with_locations, pipeline, locations=True)
    assert_same(theirs, ours(with_locations, pipeline, locations=True))


def short(part: str | int) -> str:
    """The name of a program, or of the pass at a place."""
    return part if isinstance(part, str) else PASSES[part].split("{")[0]


@cache
def stages(name: str) -> list[str]:
    """The reference's print of a program after each pass of the propagation pipeline."""
    return list(reference.stages(registry.text(name), PASSES))


@pytest.mark.parametrize(
    ("name", "at"), sampled_pairs(PROGRAMS, range(FIRST, len(PASSES)), 3), ids=short
)
def test_pass_on_program(name: str, at: int) -> None:
    before, pipeline = stages(name)[at - 1], reference.join_passes([PASSES[at]])
    assert_same(reference.run(before, pipeline), ours(before, pipeline))


@pytest.mark.parametrize("name", PROGRAMS)
def test_partitioner_on_program(name: str) -> None:
    before = stages(name)[-1]
    assert_same(reference.run(before, PARTITION), ours(before, PARTITION))


def test_module_without_main_is_refused() -> None:
    text = """
        func.func @f() { return }
        func.func @g() { return }
    """
    module = shardcore.Module.parse(text)
    manager = shardcore.PassManager.parse("builtin.module(sdy-propagate-to-func-results)")
    with pytest.raises(shardcore.ShardcoreError, match="main"):
        manager.run(module)


def test_results_that_disagree_on_unreduced_axes_are_refused() -> None:
    text = (
        MESHES
        + """
        func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> {
          %0:2 = stablehlo.custom_call @two(%a) {sdy.sharding = #sdy.sharding_per_value<[
            <@mesh, [{}], unreduced={"x"}>, <@mesh, [{}]>]>}
            : (tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>)
          return %0#0 : tensor<8xf32>
        }
        """
    )
    module = shardcore.Module.parse(text)
    manager = shardcore.PassManager.parse("builtin.module(func.func(sdy-insert-explicit-reshards))")
    with pytest.raises(shardcore.ShardcoreError, match="unreduced"):
        manager.run(module)
