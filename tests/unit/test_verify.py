"""Programs that make no sense: each raises an error that says where and why."""

from __future__ import annotations

import textwrap

import pytest
from shardcore import Module, ParseError, ShardcoreError, VerificationError

MESHES = """\
sdy.mesh @mesh = <["x"=2, "y"=4]>
sdy.mesh @other = <["z"=2]>
"""


def error(body: str) -> ShardcoreError:
    with pytest.raises(ShardcoreError) as caught:
        Module.parse(MESHES + textwrap.dedent(body), filename="model.mlir")
    return caught.value


def test_the_error_shows_the_line() -> None:
    caught = error(
        """\
        func.func @main(%arg0: tensor<8x8xf32>) -> tensor<8x8xf32> {
          %0 = stablehlo.abs %arg0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {"x"}]>]>} : tensor<8x8xf32>
          return %0 : tensor<8x8xf32>
        }
        """  # noqa: E501
    )
    assert isinstance(caught, VerificationError)
    assert (caught.code, caught.line, caught.column) == ("axis-overlap", 4, 86)
    assert str(caught).splitlines()[:2] == [
        "error[axis-overlap]: 'stablehlo.abs' op result - duplicate axis ref: \"x\"",
        "  --> model.mlir:4:86",
    ]
    assert caught.hint == "drop one"


@pytest.mark.parametrize(
    ("sharding", "code", "message"),
    [
        ('<@mseh, [{"x"}]>', "unknown-mesh", "unknown mesh: @mseh"),
        ('<@mesh, [{"w"}]>', "unknown-axis", 'unknown axis name: "w"'),
        (
            '<@mesh, [{"y":(3)2}]>',
            "invalid-sub-axis",
            "sub-axis next pre-size 6 doesn't divide the size of the full axis 4",
        ),
        ("<@mesh, [{}, {}]>", "invalid-sharding", "sharding doesn't match tensor rank: 2 != 1"),
    ],
)
def test_bad_shardings_wherever_they_are(sharding: str, code: str, message: str) -> None:
    one = f"{{sdy.sharding = #sdy.sharding{sharding}}}"
    each = f"{{sdy.sharding = #sdy.sharding_per_value<[{sharding}]>}}"
    programs = [
        f"func.func @f(%a: tensor<8xf32> {one}) {{\n  return\n}}",
        f"func.func private @f(tensor<8xf32> {one})",
        f"func.func @f(%a: tensor<8xf32>) -> (tensor<8xf32> {one}) {{\n"
        "  return %a : tensor<8xf32>\n}",
        "func.func @f(%a: tensor<8xf32>) {\n"
        f"  %0 = stablehlo.abs %a {each} : tensor<8xf32>\n  return\n}}",
        "func.func @f(%a: tensor<8xf32>) {\n"
        f"  %0 = sdy.sharding_constraint %a {sharding} : tensor<8xf32>\n  return\n}}",
    ]
    for program in programs:
        caught = error(program)
        assert caught.code == code
        assert message in caught.message
        assert caught.line is not None
        assert caught.line > 2
        assert sharding in (caught.diagnostics[0].source_line or "")


def test_all_mistakes_are_reported_at_once() -> None:
    caught = error(
        """\
        func.func @f(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) {
          %0 = sdy.sharding_constraint %a <@mesh, []> : tensor<8xf32>
          %1 = sdy.propagation_barrier %a allowed_direction=BOTH : tensor<8xf32>
          return
        }
        """
    )
    assert [diagnostic.line for diagnostic in caught.diagnostics][-1] in (4, 5)
    assert len(caught.diagnostics) >= 2


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("<([i])->([i]) {i=0}>", "dim 0 of operand 0 has size 8, and its factors i have 0"),
        ("<([i])->([i]) {i=7}>", "dim 0 of operand 0 has size 8, and its factors i have 7"),
        ("<([i], [i])->([i]) {i=8}>", "number of operands and mappings must match: 1 != 2"),
        (
            "<([i, j])->([i]) {i=8, j=1}>",
            "operand - mapping rank must match: 2 != 1",
        ),
        ("<([i])->([i]) {i=8} reduction={i}>", "reduction factor cannot be in result mappings"),
    ],
)
def test_bad_rules(rule: str, message: str) -> None:
    caught = error(
        f"""\
        func.func @f(%a: tensor<8xf32>) -> tensor<8xf32> {{
          %0 = stablehlo.custom_call @g(%a) {{sdy.sharding_rule = #sdy.op_sharding_rule{rule}}} : (tensor<8xf32>) -> tensor<8xf32>
          return %0 : tensor<8xf32>
        }}
        """  # noqa: E501
    )
    assert caught.code == "invalid-rule"
    assert caught.message.endswith(message)
    assert caught.line == 4


def test_rules_of_empty_tensors_have_factors_of_size_0() -> None:
    Module.parse(
        "func.func @f(%a: tensor<0xf32>) {\n"
        "  %0 = stablehlo.abs %a {sdy.sharding_rule = "
        "#sdy.op_sharding_rule<([i])->([i]) {i=0}>} : tensor<0xf32>\n  return\n}"
    )


def manual(shardings: str, axes: str, inner: str) -> str:
    return f"""\
        func.func @f(%a: tensor<8xf32>) -> tensor<8xf32> {{
          %0 = sdy.manual_computation(%a) {shardings} manual_axes={axes} (%b: {inner}) {{
            sdy.return %b : {inner}
          }} : (tensor<8xf32>) -> tensor<8xf32>
          return %0 : tensor<8xf32>
        }}
        """


def test_manual_computations() -> None:
    both = 'in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{"x"}]>]'
    Module.parse(MESHES + manual(both, '{"x"}', "tensor<4xf32>"))
    caught = error(manual(both, '{"x"}', "tensor<8xf32>"))
    assert len(caught.diagnostics) == 2
    assert "Expected local shape 'tensor<4xf32>', actual local shape 'tensor<8xf32>'" in (
        caught.message
    )
    assert error(manual(both, '{"w"}', "tensor<8xf32>")).code == "unknown-axis"
    late = both.replace('{"x"}', '{"y", "x"}')
    order = 'Saw manual axis "x" after free axis "y"'
    assert order in error(manual(late, '{"x"}', "tensor<4xf32>")).message


def test_attributes_that_earlier_ops_had_are_told_apart() -> None:
    """What is written like an op that was verified needs no second look, and nothing else."""
    types = "(tensor<2x8x4xf32>, tensor<3x4x5xf32>) -> tensor<2x6x5xf32>"
    window = "window = {stride = [1], pad = [[0, 0]], rhs_dilate = [1]}"
    dims = "[b, 0, f]x[0, i, o]->[b, 0, f]"

    def custom(window: str = window, dims: str = dims, groups: str = "1 : i64") -> str:
        counts = f"{{batch_group_count = 1 : i64, feature_group_count = {groups}}}"
        return f"stablehlo.convolution(%a, %b) dim_numbers = {dims}, {window} {counts} : {types}"

    def generic(stride: str) -> str:
        counts = "batch_group_count = 1 : i64, feature_group_count = 1 : i64"
        numbers = f"dimension_numbers = #stablehlo.conv<{dims}>"
        body = f"{counts}, {numbers}, window_strides = {stride}"
        return f'"stablehlo.convolution"(%a, %b) <{{{body}}}> : {types}'

    def program(*ops: str) -> str:
        body = "".join(f"  %{at} = {op}\n" for at, op in enumerate(ops))
        arguments = "%a: tensor<2x8x4xf32>, %b: tensor<3x4x5xf32>"
        return f"func.func @f({arguments}) {{\n{body}  return\n}}\n"

    Module.parse(program(custom(), custom(), generic("array<i64: 1>"), custom()))
    for wrong in (
        custom(window.replace("stride = [1]", "stride = [2]")),
        custom(dims=dims.replace("[0, i, o]", "[0, o, i]")),
        custom(groups="2 : i64"),
        custom(groups="1 : i32"),
        generic("dense<1> : tensor<1xi64>"),
    ):
        caught = error(program(custom(), generic("array<i64: 1>"), custom(), wrong))
        # The lines of the mesh, of the function, and of three ops come before.
        assert caught.line == MESHES.count("\n") + 5


REDUCE = '"stablehlo.reduce"(%a, %z) <{dimensions = array<i64: 0>}>'
REDUCE_TYPES = "(tensor<8xf32>, tensor<f32>) -> tensor<f32>"
BODY = """({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %s = stablehlo.add %x, %y : tensor<f32>
    stablehlo.return %s : tensor<f32>
})"""


@pytest.mark.parametrize(
    ("right", "wrong", "says"),
    [
        (
            f"{REDUCE} {BODY} : {REDUCE_TYPES}",
            f"{REDUCE} : {REDUCE_TYPES}",
            "'stablehlo.reduce' op requires one region",
        ),
        (
            f"{REDUCE} {BODY} : {REDUCE_TYPES}",
            f"{REDUCE} {BODY.replace('%s : tensor', '%a : tensor<8x')} : {REDUCE_TYPES}".replace(
                "<8x<", "<8x"
            ),
            "reduction-region",
        ),
        (
            '"stablehlo.not"(%p) {a = 1 : i32} : (tensor<8xi1>) -> tensor<8xi1>',
            '"stablehlo.not"(%p) <{a = 1 : i32}> : (tensor<8xi1>) -> tensor<8xi1>',
            "this operation has empty properties",
        ),
    ],
)
@pytest.mark.parametrize("apart", [False, True])
def test_what_signatures_do_not_say_is_looked_at_again(
    right: str, wrong: str, says: str, apart: bool
) -> None:
    """Regions, and which attributes are properties, are in no signature."""

    def program(*ops: str) -> str:
        body = "".join(f"  %{at} = {op}\n" for at, op in enumerate(ops))
        arguments = "%a: tensor<8xf32>, %z: tensor<f32>, %p: tensor<8xi1>"
        return f"func.func @f({arguments}) {{\n{body}  return\n}}\n"

    Module.parse(program(right, right))
    caught = error(program(wrong) if apart else program(right, wrong))
    assert says in caught.message


def test_a_program_is_verified_like_the_first_time_whatever_was_verified_before() -> None:
    def program(attribute: str, alias: str = "") -> str:
        call = f"stablehlo.transpose %a, dims = {attribute}"
        generic = f'"stablehlo.transpose"(%a) <{{permutation = {attribute}}}>'
        op = generic if attribute.startswith("#") else call
        line = f"%0 = {op} : (tensor<2x3xf32>) -> tensor<3x2xf32>"
        return f"{alias}\nfunc.func @f(%a: tensor<2x3xf32>) {{\n  {line}\n  return\n}}\n"

    for _ in range(2):
        Module.parse(program("[1, 0]"))
        # The alias means something else in each program.
        Module.parse(program("#p", "#p = array<i64: 1, 0>"))
        for wrong in (program("[0, 1]"), program("#p", "#p = array<i64: 0, 1>")):
            assert "incompatible with return type" in error(wrong).message


def test_a_comma_may_end_the_window_of_a_convolution() -> None:
    types = "(tensor<1x8x3xf32>, tensor<3x3x4xf32>) -> tensor<1x3x4xf32>"
    window = "window = {stride = [2],}"
    groups = "{batch_group_count = 1 : i64, feature_group_count = 1 : i64}"
    dims = "[b, 0, f]x[0, i, o]->[b, 0, f]"
    op = f"stablehlo.convolution(%a, %b) dim_numbers = {dims}, {window} {groups} : {types}"
    text = f"func.func @f(%a: tensor<1x8x3xf32>, %b: tensor<3x3x4xf32>) {{\n%0 = {op}\nreturn\n}}\n"
    assert Module.parse(text)


def test_parse_errors_come_first() -> None:
    assert isinstance(error("func.func @f( {"), ParseError)


@pytest.mark.parametrize(
    ("blocks", "message"),
    [
        ("", None),
        ("^bb0:", None),
        ('"a.b"() : () -> ()\n^bb1:\n"a.c"() : () -> ()', None),
        ("^bb0: ^bb1:", "empty block: expect at least a terminator"),
        ('"a.b"() : () -> () ^bb1:', "empty block: expect at least a terminator"),
        (
            '"a.b"() : () -> ()\n^bb1:\n%1 = stablehlo.abs %x : tensor<f32>',
            "block with no terminator",
        ),
    ],
)
def test_blocks_of_ops_of_other_dialects_end_with_terminators(
    blocks: str, message: str | None
) -> None:
    """Where there are several."""
    text = f'func.func @f(%x: tensor<f32>) {{ "a.z"() ({{{blocks}}}) : () -> () return }}'
    if message is None:
        Module.parse(text)
        return
    assert message in error(text).message


def test_wrong_ops_are_found_wherever_they_stand() -> None:
    """Known ops are passed by, with the regions that their syntax implies, and no others."""
    types = "(tensor<8xf32>, tensor<f32>) -> tensor<f32>"
    known = f"stablehlo.reduce(%a init: %z) applies stablehlo.add across dimensions = [0] : {types}"
    wrong = '"stablehlo.add"(%a, %z) : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>'
    text = f"""\
func.func @f(%a: tensor<8xf32>, %z: tensor<f32>, %i: tensor<i32>) {{
  %0 = {known}
  %1 = {wrong}
  %2 = {known}
  %3 = stablehlo.while(%w = %z) : tensor<f32>
  cond {{
    %4 = {known}
    %5 = {wrong}
    %6 = stablehlo.compare LT, %w, %4 : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %6 : tensor<i1>
  }} do {{
    %4 = {wrong}
    %5 = {known}
    stablehlo.return %5 : tensor<f32>
  }}
  %7 = "stablehlo.case"(%i) ({{
    %8 = {known}
    stablehlo.return %8 : tensor<f32>
  }}, {{
    %8 = {known}
    %9 = {wrong}
    stablehlo.return %8 : tensor<f32>
  }}) : (tensor<i32>) -> tensor<f32>
  "a.graph"() ({{
    "a.use"(%late) : (tensor<f32>) -> ()
    %10 = {wrong}
    %late = {known}
  }}) : () -> ()
  return
}}
func.func @g(%a: tensor<8xf32>, %z: tensor<f32>) {{
  %0 = {known}
  %1 = {wrong}
  return
}}
"""
    first = MESHES.count("\n") + 1
    expected = [at for at, line in enumerate(text.split("\n"), first) if wrong in line]
    caught = error(text)
    assert [diagnostic.line for diagnostic in caught.diagnostics] == expected


def test_properties_are_told_from_attributes_in_a_dictionary() -> None:
    def said(*forms: str) -> list[str]:
        types = "(tensor<2x3xf32>) -> tensor<3x2xf32>"
        ops = "".join(f'  "stablehlo.transpose"(%x) {form} : {types}\n' for form in forms)
        caught = error(f"func.func @f(%x: tensor<2x3xf32>) {{\n{ops}  return\n}}\n")
        return [diagnostic.message for diagnostic in caught.diagnostics]

    as_property, in_dictionary = (
        "<{permutation = array<i32: 1, 0>}>",
        "{permutation = array<i32: 1, 0>}",
    )
    alone = [said(form) for form in (as_property, in_dictionary)]
    assert alone[0] != alone[1]
    assert said(as_property, in_dictionary) == alone[0] + alone[1]
    assert said(in_dictionary, as_property) == alone[1] + alone[0]
