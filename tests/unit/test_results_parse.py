"""The text of every result is read again; where it would not be, there is no result."""

from __future__ import annotations

import pytest
import shardcore
from shardcore import Module, PassManager, ShardcoreError

MESH = 'sdy.mesh @mesh = <["x"=2, "y"=4]>\n'

# A function whose result is sharded over "x" is called where "x" is manual.
CALL_IN_MANUAL = (
    MESH
    + """func.func private @inner(%a: tensor<8xf32>)
    -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", ?}]>}) {
  %0 = stablehlo.tanh %a : tensor<8xf32>
  return %0 : tensor<8xf32>
}
func.func @main(%a: tensor<16xf32>) -> tensor<16xf32> {
  %0 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{"x"}]>]
      out_shardings=[<@mesh, [{"x"}]>] manual_axes={"x"} (%b: tensor<8xf32>) {
    %1 = func.call @inner(%b) : (tensor<8xf32>) -> tensor<8xf32>
    sdy.return %1 : tensor<8xf32>
  } : (tensor<16xf32>) -> tensor<16xf32>
  return %0 : tensor<16xf32>
}
"""
)


def test_an_axis_that_becomes_manual_where_it_is_used() -> None:
    module = Module.parse(CALL_IN_MANUAL)
    with pytest.raises(ShardcoreError, match="already bound by a parent"):
        module.propagate()
    # A pipeline does what its passes do, as MLIR's does without its verifier.
    PassManager.parse("builtin.module(sdy-propagation-pipeline)").run(module)
    with pytest.raises(ShardcoreError):
        Module.parse(str(module))


def test_an_axis_that_is_manual_elsewhere() -> None:
    result = Module.parse(CALL_IN_MANUAL.replace('[{"x", ?}]', '[{"y", ?}]')).propagate()
    assert 'out_shardings=[<@mesh, [{"x"' in str(result.module)
    for module in (result.module, result.with_collectives):
        assert str(Module.parse(str(module))) == str(module)


def test_named_computations_of_one_name_and_two_types() -> None:
    text = (
        MESH
        + """func.func @main(%a: tensor<8xf32>, %b: tensor<4xf32>)
    -> (tensor<8xf32>, tensor<4xf32>) {
  %0 = sdy.named_computation<"part">(%a) (%c: tensor<8xf32>) {
    sdy.return %c : tensor<8xf32>
  } : (tensor<8xf32>) -> tensor<8xf32>
  %1 = sdy.named_computation<"part">(%b) (%d: tensor<4xf32>) {
    sdy.return %d : tensor<4xf32>
  } : (tensor<4xf32>) -> tensor<4xf32>
  return %0, %1 : tensor<8xf32>, tensor<4xf32>
}
"""
    )
    result = Module.parse(text).propagate()
    assert "func.func private @part_0(%d: tensor<4xf32>)" in str(result.module)
    assert str(Module.parse(str(result.module))) == str(result.module)


def test_sums_over_axes_that_the_mesh_of_the_result_does_not_have() -> None:
    text = """sdy.mesh @mesh = <["x"=2]>
sdy.mesh @empty = <[]>
func.func @main(%a: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>},
    %b: tensor<4x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<8xf32> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [0] x [0]
      {sdy.sharding = #sdy.sharding_per_value<[<@empty, [{}]>]>}
      : (tensor<4xf32>, tensor<4x8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
"""
    result = Module.parse(text).propagate()
    with_collectives = str(result.with_collectives)
    assert 'sdy.all_reduce {"x"}' in with_collectives
    assert str(Module.parse(with_collectives)) == with_collectives


def test_costs_do_not_need_the_text() -> None:
    # Moving between parts of an axis that do not nest takes an op that no text can say.
    text = """sdy.mesh @mesh = <["x"=12]>
func.func @main(%a: tensor<12xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x":(1)2}]>})
    -> (tensor<12xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x":(1)3}]>}) {
  %0 = stablehlo.tanh %a {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x":(1)3}]>]>}
      : tensor<12xf32>
  return %0 : tensor<12xf32>
}
"""
    result = Module.parse(text).propagate(keep_sub_axes_on_io=True)
    with pytest.raises(ShardcoreError, match="overlapping sub-axes"):
        _ = result.with_collectives
    assert result.cost("tpu-v5p").step_seconds_upper > 0


def test_results_of_random_modules() -> None:
    from tests.shardy.generator import programs

    read = 0
    for seed in range(400):
        try:
            result = Module.parse(programs.make(seed)).propagate()
            texts = [str(result.module), str(result.with_collectives)]
        except shardcore.ShardcoreError:
            continue
        for text in texts:
            assert str(Module.parse(text)) == text
        read += 1
    assert read > 300


NAMES = ["a\\22b", "\\5C", "\\\\", "a\\0Ab", "\\C3\\A9", "é", "\\61", "a b", "a-b", "</script>"]
"""As they stand in the text of a program."""


@pytest.mark.parametrize("name", NAMES)
def test_names_that_have_to_be_escaped(name: str) -> None:
    text = f"""sdy.mesh @"{name}" = <["{name}"=2, "y"=4]>
func.func @main(%a: tensor<8xf32> {{sdy.sharding = #sdy.sharding<@"{name}", [{{"{name}"}}]>}})
    -> tensor<8xf32> {{
  %0 = stablehlo.tanh %a : tensor<8xf32>
  return %0 : tensor<8xf32>
}}"""
    result = Module.parse(text).propagate()
    known = result["%a"].sharding
    assert result["%0"].sharding == known
    for module in (result.module, result.with_collectives):
        [(_, mesh)] = module.meshes.items()
        assert Module.parse(str(module))["%0"].sharding.mesh == mesh == known.mesh
    module = Module.parse(text)
    PassManager.parse("builtin.module(sdy-lift-inlined-meshes)").run(module)
    assert "stablehlo.mesh" in str(module)
    again = str(Module.parse(str(module)))
    assert again == str(module)


def test_a_mesh_is_found_by_what_its_name_stands_for() -> None:
    text = """sdy.mesh @"\\61" = <["x"=2]>
func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@a, [{"x"}]>}) -> tensor<8xf32> {
  return %a : tensor<8xf32>
}"""
    assert list(Module.parse(text).meshes) == ["a"]
    with pytest.raises(ShardcoreError, match="redefinition of symbol"):
        Module.parse('sdy.mesh @a = <["x"=2]>\n' + text)
