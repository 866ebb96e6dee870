"""What docs/deviations.md lists and no other test shows."""

from __future__ import annotations

import pytest
from shardcore import Module, PassManager, PipelineError, ShardcoreError


def test_unknown_ops_are_accepted() -> None:
    text = 'func.func @main() {\n  "my.frob"() {a = #my.attr<b>} : () -> ()\n  return\n}\n'
    assert str(Module.parse(text)) == text


def test_text_is_kept() -> None:
    text = (
        "// A comment.\n"
        "func.func @main(%left:tensor<8xf32>) -> tensor<8xf32> {\n"
        "  %sum   = stablehlo.add %left, %left   : tensor<8xf32>\n"
        "  return %sum : tensor<8xf32>\n}\n"
    )
    assert str(Module.parse(text)) == text
    assert "%sum   = stablehlo.add %left, %left   : tensor" in str(
        Module.parse(text).propagate().module
    )


@pytest.mark.parametrize("name", ["cse", "inline", "stablehlo-refine-shapes"])
def test_passes_that_are_not_here(name: str) -> None:
    with pytest.raises(PipelineError, match=f"no pass or pipeline is called {name}"):
        PassManager.parse(f"builtin.module({name})")


def test_elements_of_other_dialects() -> None:
    text = (
        "func.func @f(%a: tensor<4x8x!q.i<8>>, %t: !q.t) {{\n"
        "  %0 = stablehlo.transpose %a, dims = {} : (tensor<4x8x!q.i<8>>) -> tensor<8x4x!q.i<9>>\n"
        "  stablehlo.custom_call @g(%t) {{has_side_effect = true}} : (!q.t) -> ()\n"
        "  return\n}}"
    )
    Module.parse(text.format("[1, 0]"))
    for dims, problem in [("[1, 9]", "must be a permutation"), ("[0, 1]", "are incompatible")]:
        with pytest.raises(ShardcoreError, match=problem):
            Module.parse(text.format(dims))


def test_pipelines_print_as_text_that_parses() -> None:
    manager = PassManager.parse("builtin.module(sdy-propagation-pipeline)")
    assert "sdy-save-module" in str(manager)
    assert str(PassManager.parse(str(manager))) == str(manager)


def test_priorities_beyond_the_last_are_all_of_them() -> None:
    text = (
        'sdy.mesh @mesh = <["x"=2]>\n'
        "func.func @main(%a: tensor<8xf32>"
        ' {sdy.sharding = #sdy.sharding<@mesh, [{"x"}p3]>}) -> tensor<8xf32> {\n'
        "  %0 = stablehlo.tanh %a : tensor<8xf32>\n  return %0 : tensor<8xf32>\n}\n"
    )
    module = Module.parse(text)
    assert str(module.propagate(up_to_priority=2)["%0"].sharding) != '<@mesh, [{"x"}]>'
    assert str(module.propagate(up_to_priority=9)["%0"].sharding) == '<@mesh, [{"x"}]>'
