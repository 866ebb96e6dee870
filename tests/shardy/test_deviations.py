"""What shardcore deliberately does otherwise, as `docs/deviations.md` lists it."""

from __future__ import annotations

import pytest
import shardcore

from tests.shardy import reference
from tests.shardy.diff import ours
from tests.shardy.messages import missing, of_error

MESHES = """
sdy.mesh @mesh = <["x"=2, "y"=4]>
sdy.mesh @other = <["x"=2, "z"=4]>
"""
RESHARDS = "builtin.module(func.func(sdy-insert-explicit-reshards))"
SHARE = "builtin.module(sdy-export-named-computations,sdy-unflatten-call-graph)"


def test_unreduced_operand_of_op_without_results() -> None:
    text = f"""{MESHES}
func.func @main(
    %a: tensor<8xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{}}], unreduced={{"x"}}>}}) {{
  stablehlo.custom_call @keep(%a) {{has_side_effect = true}} : (tensor<8xf32>) -> ()
  return
}}"""
    with pytest.raises(reference.DiedError):
        reference.run_isolated(text, RESHARDS)
    with pytest.raises(shardcore.ShardcoreError, match="unreduced axes, and no results"):
        ours(text, RESHARDS)


def test_unreduced_axes_over_another_mesh() -> None:
    text = f"""{MESHES}
func.func @main(%a: tensor<8xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"y"}}]>}})
    -> tensor<8xf32> {{
  %0 = sdy.reshard %a <@other, [{{}}], unreduced={{"x"}}> : tensor<8xf32>
  return %0 : tensor<8xf32>
}}"""
    with pytest.raises(reference.DiedError):
        reference.run_isolated(text, RESHARDS)
    with pytest.raises(shardcore.ShardcoreError, match="over another mesh"):
        ours(text, RESHARDS)


def test_dead_op_with_a_priority() -> None:
    text = f"""{MESHES}
func.func @main(%a: tensor<8x8xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}p1, {{?}}]>}})
    -> tensor<8x8xf32> {{
  %0 = stablehlo.negate %a {{sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{{?}}, {{"y"}}p2]>]>}}
    : tensor<8x8xf32>
  return %a : tensor<8x8xf32>
}}"""
    assert '(tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>})' in ours(text)


def test_sizes_of_a_written_rule() -> None:
    text = """
func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.custom_call @foo(%a)
    {sdy.sharding_rule = #sdy.op_sharding_rule<([i])->([i]) {i=4}, custom>}
    : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}"""
    assert "i=4" in reference.canonical(text)
    with pytest.raises(shardcore.ShardcoreError, match="dim 0 of operand 0 has size 8"):
        shardcore.Module.parse(text)


@pytest.mark.parametrize("special", ["", " reduction={k}", " need_replication={l}"])
def test_a_factor_of_size_one_stands_for_a_dim_without_one(special: str) -> None:
    """As in the rules that XLA writes for ragged products."""
    text = f"""{MESHES}
func.func @main(
    %a: tensor<16x64xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"x", ?}}, {{?}}]>}},
    %b: tensor<64x8xf32>,
    %g: tensor<4xi32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"y", ?}}]>}}) -> tensor<16x8xf32> {{
  %0 = stablehlo.custom_call @foo(%a, %b, %g) {{sdy.sharding_rule = #sdy.op_sharding_rule<
      ([i, k], [k, j], [l])->([i, j]) {{i=16, j=8, k=64, l=1}}{special}, custom>}}
    : (tensor<16x64xf32>, tensor<64x8xf32>, tensor<4xi32>) -> tensor<16x8xf32>
  return %0 : tensor<16x8xf32>
}}"""
    pipeline = (
        "builtin.module(sdy-propagation-pipeline,"
        "sdy-export-pipeline{enable-insert-explicit-collectives=true})"
    )
    assert ours(text, pipeline) == reference.run(text, pipeline)


def test_functions_of_inner_modules_stay() -> None:
    text = """
module @inner {
  func.func private @dead() {
    return
  }
}
func.func private @gone() {
  return
}
func.func @main() {
  return
}"""
    pipeline = "builtin.module(symbol-dce)"
    assert "@dead" not in reference.run(text, pipeline)
    assert "@dead" in ours(text, pipeline)
    assert "@gone" not in ours(text, pipeline)


def test_functions_that_constants_hold_stay() -> None:
    text = """
func.func private @f(%a: tensor<2xf32>) -> tensor<2xf32> {
  return %a : tensor<2xf32>
}
func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {
  %f = func.constant @f : (tensor<2xf32>) -> tensor<2xf32>
  %0 = func.call_indirect %f(%a) : (tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}"""
    pipeline = "builtin.module(symbol-dce)"
    assert ours(text, pipeline) == reference.run(text, pipeline)


PRIORITY_OF_AN_EMPTY_DIM = f"""{MESHES}
func.func @main(%a: tensor<8xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{?}}p1]>}})
    -> tensor<8xf32> {{
  return %a : tensor<8xf32>
}}"""
CLOSE = "builtin.module(sdy-close-shardings)"
"""It closes the dim, which makes its priority invalid."""


def test_result_that_is_invalid() -> None:
    with pytest.raises(reference.RejectedError, match="empty and closed but has a priority"):
        reference.run(PRIORITY_OF_AN_EMPTY_DIM, CLOSE)
    module = shardcore.Module.parse(PRIORITY_OF_AN_EMPTY_DIM)
    shardcore.PassManager.parse(CLOSE).run(module)
    assert "[{}p1]" in reference.run(PRIORITY_OF_AN_EMPTY_DIM, CLOSE, verify=False)
    assert "[{}p1]" in str(module)


MESH_DROPPED = f"""{MESHES}
func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> {{
  %0 = sdy.sharding_constraint %a <@mesh, [{{?}}]> : tensor<8xf32>
  return %0 : tensor<8xf32>
}}"""
DROP = "builtin.module(sdy-drop-sharding-and-mesh)"
"""Up to jaxlib 0.10 it drops meshes that constraints refer to."""


@pytest.mark.parametrize(
    ("text", "pipeline"), [(PRIORITY_OF_AN_EMPTY_DIM, CLOSE), (MESH_DROPPED, DROP)]
)
def test_the_verifier_says_what_the_reference_says(text: str, pipeline: str) -> None:
    if reference.IS_NEW and pipeline == DROP:
        assert "sdy.mesh @mesh =" in reference.run(text, pipeline)
        manager = shardcore.PassManager.parse(pipeline)
        manager.enable_verifier(True)
        module = shardcore.Module.parse(text)
        manager.run(module)
        assert reference.canonical(str(module)) == reference.run(text, pipeline)
        return
    with pytest.raises(reference.RejectedError) as theirs:
        reference.run(text, pipeline)
    manager = shardcore.PassManager.parse(pipeline)
    manager.enable_verifier(True)
    with pytest.raises(shardcore.ShardcoreError) as raised:
        manager.run(shardcore.Module.parse(text))
    assert missing(theirs.value.errors, of_error(raised.value)) == []


def test_named_computations_in_the_input() -> None:
    text = f"""{MESHES}
func.func @main(%a: tensor<8xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}]>}})
    -> tensor<8xf32> {{
  %0 = sdy.named_computation<"part">(%a) (%b: tensor<8xf32>) {{
    %1 = stablehlo.tanh %b : tensor<8xf32>
    sdy.return %1 : tensor<8xf32>
  }} : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}}"""
    with pytest.raises(reference.RejectedError, match="expected input of"):
        reference.run_isolated(text)
    with pytest.raises(reference.DiedError):
        reference.run_isolated(text, verify=False)
    assert "call @part(" in ours(text)
    values = shardcore.Module.parse(text).propagate().values()
    assert [str(value.sharding) for value in values] == ['<@mesh, [{"x"}]>'] * 4
    dedup = "builtin.module(sdy-propagation-pipeline{dedup-functions-fully=true})"
    assert ours(text, dedup) == reference.run(text, dedup)


def _two_computations(first: str, second: str) -> str:
    """Two named computations of one name."""
    return f"""{MESHES}
func.func @main(%a: tensor<8xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}]>}})
    -> tensor<8xf32> {{
  %0 = sdy.named_computation<"part">(%a) (%b: tensor<8xf32>) {{
    %1 = {first} %b : tensor<8xf32>
    sdy.return %1 : tensor<8xf32>
  }} : (tensor<8xf32>) -> tensor<8xf32>
  %2 = sdy.named_computation<"part">(%0) (%c: tensor<8xf32>) {{
    %3 = {second} %c : tensor<8xf32>
    sdy.return %3 : tensor<8xf32>
  }} : (tensor<8xf32>) -> tensor<8xf32>
  return %2 : tensor<8xf32>
}}"""


def test_named_computations_with_other_bodies() -> None:
    text = _two_computations("stablehlo.tanh", "stablehlo.negate")
    # The reference calls the first one twice.
    assert "call @part_0(" not in reference.run(text, SHARE)
    result = ours(text)
    assert result.count("call @part(") == result.count("call @part_0(") == 1
    assert shardcore.prove(shardcore.Module.parse(text).propagate().partition()).is_proven


def test_named_computations_that_use_other_constants() -> None:
    # Without the names of values both have the same text.
    first = """stablehlo.constant dense<2.0> : tensor<8xf32>
    %9 = stablehlo.constant dense<3.0> : tensor<8xf32>
    %8 = stablehlo.subtract %1, %9 : tensor<8xf32>
    %7 = stablehlo.multiply %8, %1 : tensor<8xf32>
    %6 = stablehlo.add %7,"""
    text = _two_computations(first, first).replace("return %1", "return %6")
    text = text.replace("return %3", "return %6").replace("%3 = stablehlo", "%1 = stablehlo")
    assert ours(text).count("call @part(") == 2
    head, last, tail = text.rpartition("multiply %8, %1")
    text = head + "multiply %8, %9" + tail
    assert last
    assert ours(text).count("call @part_0(") == 1
    assert shardcore.prove(shardcore.Module.parse(text).propagate().partition()).is_proven


def test_a_named_computation_with_the_name_of_a_function() -> None:
    function = (
        "func.func private @part(%a: tensor<8xf32>) -> tensor<8xf32> { return %a : tensor<8xf32> }"
    )
    text = _two_computations("stablehlo.tanh", "stablehlo.tanh") + function
    text = text.replace(
        "return %2", "%4 = call @part(%2) : (tensor<8xf32>) -> tensor<8xf32> return %4"
    )
    result = ours(text)
    assert result.count("call @part(") == 1
    assert result.count("call @part_0(") == 2
    assert shardcore.prove(shardcore.Module.parse(text).propagate().partition()).is_proven


def test_named_computations_with_one_body_are_shared() -> None:
    text = _two_computations("stablehlo.tanh", "stablehlo.tanh")
    assert ours(text, SHARE) == reference.run(text, SHARE)
    assert ours(text).count("call @part(") == 2


def test_named_computations_that_differ_in_shardings_are_shared() -> None:
    """Also by the pass that gives others names of their own."""
    text = _two_computations("stablehlo.tanh", "stablehlo.tanh")
    sharding = '{sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>}'
    text = text.replace("stablehlo.tanh %c", f"stablehlo.tanh %c {sharding}")
    imports = "builtin.module(sdy-import-func-calls)"
    for passes in (imports, SHARE):
        assert ours(text, passes) == reference.run(text, passes)
    assert shardcore.prove(shardcore.Module.parse(text).propagate().partition()).is_proven


def test_origins_of_annotated_ops() -> None:
    text = f"""{MESHES}
func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> {{
  %0 = stablehlo.tanh %a {{sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{{"x"}}]>]>}}
    : tensor<8xf32>
  return %0 : tensor<8xf32>
}}"""
    pipeline = "builtin.module(sdy-basic-propagate{debug-sharding-origins=true})"
    if reference.IS_NEW:
        assert "sdy.sharding_origins" not in ours(text, pipeline)
        assert ours(text, pipeline) == reference.run(text, pipeline)
        return
    assert ours(text, pipeline).count('sdy.sharding_origins = {x = ": 0"}') == 2


def test_several_special_factors_in_one_item() -> None:
    text = """
func.func @main(%a: tensor<8x4xf32>) -> tensor<f32> {
  %0 = stablehlo.custom_call @sum(%a)
    {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([]) {i=8, j=4} reduction={ij}, custom>}
    : (tensor<8x4xf32>) -> tensor<f32>
  return %0 : tensor<f32>
}"""
    assert "reduction={i}" in reference.canonical(text)
    with pytest.raises(shardcore.ShardcoreError, match="expecting single factor symbol: j"):
        shardcore.Module.parse(text)


def test_manual_axes_without_values() -> None:
    text = """
func.func @main() {
  sdy.manual_computation() in_shardings=[] out_shardings=[] manual_axes={"a"} () {
    %0 = stablehlo.constant dense<1.0> : tensor<8xf32>
    sdy.return
  } : () -> ()
  return
}"""
    pipeline = "builtin.module(sdy-manual-axes-cleanup)"
    said = "op has manual_axes when there are no in/out shardings and the body is not empty"
    with pytest.raises(reference.RejectedError, match=f"{said}.*contact"):
        reference.run(text, pipeline)
    with pytest.raises(shardcore.ShardcoreError, match=said) as caught:
        ours(text, pipeline)
    assert "contact" not in str(caught.value)


@pytest.mark.parametrize(
    "attribute",
    [
        "#vhlo.nope<1>",
        "#llvm.nope",
        "#gpu<nope>",
        "#sdy.axis_ref<1>",
        "affine_map<(d0) -> (d1)>",
    ],
)
def test_attributes_that_are_not_looked_into(attribute: str) -> None:
    text = f"module attributes {{a.b = {attribute}}} {{\n}}"
    with pytest.raises(reference.RejectedError):
        reference.run(text, "builtin.module()")
    assert attribute in str(shardcore.Module.parse(text))


def test_arguments_named_by_the_first_block() -> None:
    text = "func.func @f(tensor<8xf32>) {\n^bb0(%a: tensor<8xf32>):\n  return\n}"
    reference.run(text, "builtin.module()")
    with pytest.raises(shardcore.ShardcoreError, match="so its arguments need names"):
        shardcore.Module.parse(text)


def test_short_forms_of_ops_of_other_dialects() -> None:
    body = "func.func @f() {{\n  {}\n^bb1:\n  return\n}}"
    reference.run(body.format("cf.br ^bb1"), "builtin.module()")
    with pytest.raises(shardcore.ShardcoreError, match=r"the short form of cf\.br is not known"):
        shardcore.Module.parse(body.format("cf.br ^bb1"))
    shardcore.Module.parse(body.format('"cf.br"()[^bb1] : () -> ()'))
