"""`canonicalize` does what the reference's does, with whichever options."""

from __future__ import annotations

import pytest
import shardcore

from tests.shardy import reference
from tests.shardy.canonicalize_cases import TEXTS
from tests.shardy.diff import explain, ours

OPTIONS = [
    "",
    "top-down=false",
    "enable-patterns=sdy-reshard",
    "enable-patterns=sdy-collective,sdy-reshard",
    "disable-patterns=sdy-reshard",
    "disable-patterns=sdy-reshard,sdy-collective top-down=false",
    "enable-patterns=sdy-reshard disable-patterns=sdy-reshard",
    "filter-dialects=stablehlo",
    "filter-dialects=sdy",
    "max-iterations=1",
    "max-iterations=1 top-down=false",
    "max-num-rewrites=1",
    "max-num-rewrites=2 max-iterations=1",
    "max-iterations=1 region-simplify=disabled",
    "max-iterations=-1 region-simplify=aggressive",
]


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("name", TEXTS)
def test_options(name: str, options: str) -> None:
    pipeline = f"builtin.module(canonicalize{{{options}}})"
    difference = explain(reference.run(TEXTS[name], pipeline), ours(TEXTS[name], pipeline))
    assert not difference, f"\n{difference}"


@pytest.mark.parametrize("name", TEXTS)
def test_locations(name: str) -> None:
    text = reference.canonical(TEXTS[name], locations=True)
    pipeline = "builtin.module(canonicalize)"
    theirs = reference.run(text, pipeline, locations=True)
    difference = explain(theirs, ours(text, pipeline, locations=True))
    assert not difference, f"\n{difference}"


def test_giving_up_is_an_error_only_if_asked() -> None:
    text = TEXTS["collectives"]
    shardcore.PassManager.parse("builtin.module(canonicalize{max-iterations=1})").run(
        shardcore.Module.parse(text)
    )
    manager = shardcore.PassManager.parse(
        "builtin.module(canonicalize{max-iterations=1 test-convergence=true})"
    )
    with pytest.raises(shardcore.ShardcoreError, match="not converged"):
        manager.run(shardcore.Module.parse(text))
    with pytest.raises(reference.RejectedError):
        reference.run(text, "builtin.module(canonicalize{max-iterations=1 test-convergence=true})")


def test_merging_equal_ops_is_refused() -> None:
    manager = shardcore.PassManager.parse(
        "builtin.module(canonicalize{cse-between-iterations=true})"
    )
    with pytest.raises(shardcore.ShardcoreError, match="merges no equal ops"):
        manager.run(shardcore.Module.parse(TEXTS["case"]))


def test_unknown_labels_are_refused() -> None:
    with pytest.raises(shardcore.ShardcoreError, match="sdy-reshards"):
        shardcore.PassManager.parse("builtin.module(canonicalize{enable-patterns=sdy-reshards})")


def test_patterns_of_other_dialects_do_not_run() -> None:
    text = """
func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> {
  %0 = "chlo.constant_like"(%a) <{value = 1.0 : f32}> : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}"""
    pipeline = "builtin.module(canonicalize)"
    assert "chlo.constant_like" in ours(text, pipeline)
    assert "chlo.constant_like" not in reference.run(text, pipeline)
