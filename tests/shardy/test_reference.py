"""The wrapper around the reference says what the reference does, also when it refuses or dies."""

from __future__ import annotations

import pytest

from tests.shardy import reference
from tests.shardy.diff import explain
from tests.shardy.programs import registry

SMALL = """
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<4xf32> {
  %0 = stablehlo.add %a, %a : tensor<4xf32>
  return %0 : tensor<4xf32>
}
"""
NO_FUNCTION = "module {}"


@pytest.mark.parametrize("name", ["mlp-train-megatron", "calls-in-loops", "manual-in-scan"])
def test_expanded_pipeline_is_the_pipeline(name: str) -> None:
    text = registry.text(name)
    passes = reference.expand()
    whole = reference.run(text)
    assert reference.run(text, reference.join_passes(passes)) == whole
    assert list(reference.stages(text, passes))[-1] == whole


def test_isolated_run_is_the_same_run() -> None:
    assert reference.run_isolated(SMALL) == reference.run(SMALL)


def test_generic_form_means_the_same() -> None:
    assert '"stablehlo.add"' in reference.generic(SMALL)
    assert reference.canonical(reference.generic(SMALL)) == reference.canonical(SMALL)


@pytest.mark.parametrize("run", [reference.run, reference.run_isolated])
def test_rejection_carries_the_diagnostics(run: object) -> None:
    assert callable(run)
    with pytest.raises(reference.RejectedError) as caught:
        run(SMALL.replace('{"x"}', '{"y"}'))
    assert any('unknown axis name: "y"' in line for line in caught.value.diagnostics)


def test_syntax_errors_are_rejections() -> None:
    with pytest.raises(reference.RejectedError, match="expected"):
        reference.canonical("func.func @main(")


def test_death_is_told_from_rejection() -> None:
    with pytest.raises(reference.DiedError, match="ended with code"):
        reference.run_isolated(NO_FUNCTION)


def test_passes_split_outside_of_brackets_only() -> None:
    nested = ["a{x={b,c} y=1}", "func.func(d,e{z=2})", "f"]
    assert reference.split_passes(",".join(nested)) == nested


def test_a_long_difference_is_cut() -> None:
    theirs = "\n".join(map(str, range(100)))
    assert explain(theirs, theirs) == ""
    shown = explain(theirs, theirs.replace("\n", "!\n"), lines=10).splitlines()
    assert len(shown) == 11
    assert shown[-1] == "..."
