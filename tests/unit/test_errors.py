"""Errors: what they hold, how they look, and that every code is raised by something."""

from __future__ import annotations

import copy
import inspect
import pickle
from collections.abc import Callable

import pytest
import shardcore
from shardcore import (
    AxisRef,
    Diagnostic,
    Mesh,
    Module,
    OpShardingRule,
    PassManager,
    Place,
    PropagationError,
    ShardcoreError,
    StrategyProblem,
    TensorSharding,
    VerificationError,
    errors,
)
from shardcore._core import error_codes

MESH = Mesh({"x": 4, "y": 2})


def raised(make: Callable[[], object]) -> ShardcoreError:
    with pytest.raises(ShardcoreError) as caught:
        make()
    return caught.value


def test_an_error_shows_where_and_why() -> None:
    error = raised(lambda: TensorSharding.parse('<@mesh,\n  [{"x"}, {"x"}]>', MESH))
    assert str(error) == "\n".join(
        [
            'error[axis-overlap]: duplicate axis ref: "x"',
            "  --> <sharding>:2:12",
            '  2 |   [{"x"}, {"x"}]>',
            "    |     ---    ^^^",
            "    | --- first used here",
            '  help: drop one, or split it, e.g. "x":(1)2 and "x":(2)2',
        ]
    )
    assert (error.code, error.line, error.column) == ("axis-overlap", 2, 12)
    assert error.hint == 'drop one, or split it, e.g. "x":(1)2 and "x":(2)2'
    [diagnostic] = error.diagnostics
    assert (diagnostic.end_column, diagnostic.source_line) == (15, '  [{"x"}, {"x"}]>')
    assert isinstance(error, ValueError)


def test_places_on_two_lines() -> None:
    error = raised(lambda: TensorSharding.parse('<@mesh, [{"x"},\n{"x"}]>', MESH))
    assert str(error).splitlines()[2:6] == [
        '  1 | <@mesh, [{"x"},',
        "    |           --- first used here",
        '  2 | {"x"}]>',
        "    |  ^^^",
    ]


def test_an_op_and_its_part_on_another_line() -> None:
    text = f"sdy.mesh @mesh = {MESH}\nfunc.func @f(\n    %a: tensor<8x8xf32> {{sdy.sharding = "
    text += '#sdy.sharding<@mesh, [{"x"}, {"x"}]>}) {\n  return\n}'
    error = raised(lambda: Module.parse(text))
    line = '  3 |     %a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"x"}]>}) {'
    assert str(error).splitlines()[1:7] == [
        "  --> <string>:2:1",
        "  2 | func.func @f(",
        "    | ^^^^^^^^^",
        line,
        "    | ".ljust(line.index('"x"')) + "---    ^^^",
        "    | --- first used here",
    ]
    [diagnostic] = error.diagnostics
    assert diagnostic.detail is not None
    detail = (diagnostic.detail.line, diagnostic.detail.column)
    assert (diagnostic.line, detail) == (2, (3, line.rindex('"x"') - 5))


def test_a_line_is_shown_once_for_what_is_said_of_it() -> None:
    error = raised(lambda: Mesh.parse('<["x"=]>'))
    assert str(error).splitlines() == [
        "error[syntax]: expected integer value, found ']'",
        "  --> <mesh>:1:7",
        '  1 | <["x"=]>',
        "    |       ^",
        "error[syntax]: failed to parse Sdy_MeshAxis parameter 'size' which is to be a `int64_t`",
        "  --> <mesh>:1:7",
        "error[syntax]: failed to parse Sdy_Mesh parameter 'axes' which is to be a "
        "`::llvm::ArrayRef<MeshAxisAttr>`",
        "  --> <mesh>:1:7",
    ]


def test_all_mistakes_are_in_one_error() -> None:
    error = raised(lambda: TensorSharding.parse('<@mesh, [{"q"}, {"y"}, {"y"}, {"x":(0)2}]>', MESH))
    codes = [diagnostic.code for diagnostic in error.diagnostics]
    assert codes == ["unknown-axis", "axis-overlap", "invalid-sub-axis"]
    assert str(error).count("error[") == 3


def test_long_lines_are_shown_in_part() -> None:
    text = "<@mesh, [" + "{}, " * 1000 + '{"q"}' + ", {}" * 1000 + "]>"
    error = raised(lambda: TensorSharding.parse(text, MESH))
    assert error.column == text.index('"q"') + 1
    shown = str(error).splitlines()
    assert len(shown[2]) < 200
    assert shown[2][shown[3].index("^") :].startswith('"q"')


def test_tabs_and_wide_characters_keep_the_caret_in_place() -> None:
    place = Place(1, 3, 5, "\t☃ab")
    assert place.underline("^") == "\t ^^"
    assert Place(1, 5, 5, "abcd").underline("^") == "    ^"


def test_errors_are_values() -> None:
    error = raised(lambda: Mesh({"x": 0, "y": 0}))
    for again in (pickle.loads(pickle.dumps(error)), copy.deepcopy(error)):
        assert type(again) is VerificationError
        assert again.diagnostics == error.diagnostics
        assert str(again) == str(error)
    made = PropagationError(Diagnostic("recursive-call", "functions call each other", "inline one"))
    assert str(made) == "error[recursive-call]: functions call each other\n  help: inline one"
    assert (made.line, made.column) == (None, None)
    with pytest.raises(ValueError, match="at least one"):
        ShardcoreError([])


def test_every_class_is_exported() -> None:
    for name, member in inspect.getmembers(errors, inspect.isclass):
        if issubclass(member, ShardcoreError):
            assert getattr(shardcore, name) is member
            assert name in shardcore.__all__
            assert name in errors.__all__


FUNCTION = """\
func.func @f(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.abs %x : tensor<8xf32>
  return %0 : tensor<8xf32>
}
"""


def function(body: str, *, name: str = "f", more: str = "") -> Module:
    return Module.parse(
        f"func.func @{name}(%x: tensor<8xf32>) -> tensor<8xf32> {{\n{body}\n"
        f"return %x : tensor<8xf32>\n}}\n{more}"
    )


# The manual axis "c" is in neither of the shardings that the computation declares.
CIRCLE = """
sdy.mesh @mesh = <["a"=2, "b"=2, "c"=2]>
func.func @main(%x: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8x8xf32>) {
  %0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{"a"}, {"b", ?}]>]
      out_shardings=[<@mesh, [{"a", ?}, {?}]>] manual_axes={"a", "c"} (%y: tensor<4x8xf32>) {
    %3 = stablehlo.negate %y : tensor<4x8xf32>
    sdy.return %3 : tensor<4x8xf32>
  } : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = stablehlo.broadcast_in_dim %x, dims = [1, 2] {sdy.sharding =
    #sdy.sharding_per_value<[<@mesh, [{}, {"a"}, {"b", "c"}]>]>} :
    (tensor<8x8xf32>) -> tensor<8x8x8xf32>
  %2:3 = stablehlo.while(%a = %x, %b = %x, %c = %0) :
      tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>
    cond {
      %4 = stablehlo.constant dense<false> : tensor<i1>
      stablehlo.return %4 : tensor<i1>
    } do {
      stablehlo.return %a, %c, %c : tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>
    }
  return %2#1, %1 : tensor<8x8xf32>, tensor<8x8x8xf32>
}
"""

UNKNOWN_CALL = """
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.custom_call @nobody_knows(%x) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
"""


def run_within_a_run() -> None:
    module = Module.parse(FUNCTION)
    manager = PassManager.parse("builtin.module(sdy-basic-propagate)")
    manager.run(module, progress=lambda *_: manager.run(module))


RAISING: dict[str, Callable[[], object]] = {
    "syntax": lambda: Mesh.parse("<"),
    "invalid-mesh": lambda: Mesh({"x": 0}),
    "unpartitionable": lambda: Module.parse(UNKNOWN_CALL).propagate().partition(),
    "shardy-version": lambda: Module.parse("", shardy="0.1"),
    "invalid-problem": lambda: StrategyProblem([], []).evaluate([0]),
    "unknown-location": lambda: Module.parse("").at("model.py:3"),
    "unknown-mesh": lambda: TensorSharding("@mesh", []).replication_factor,
    "unknown-axis": lambda: TensorSharding(MESH, ["z"]),
    "axis-overlap": lambda: TensorSharding(MESH, ["x", "x"]),
    "invalid-sub-axis": lambda: AxisRef("x", 0, 2),
    "invalid-sharding": lambda: TensorSharding(MESH, [["x"]]).local_shape([1, 2]),
    "invalid-rule": lambda: OpShardingRule([2], [[[0]]], [[[0]]], reduction=[0]),
    "nested-too-deeply": lambda: Module.parse('"a.b"() ({\n' * 100_000),
    "undefined-value": lambda: function('"a.b"(%y) : (tensor<8xf32>) -> ()'),
    "redefined-value": lambda: function('%x = "a.b"() : () -> tensor<8xf32>'),
    "type-mismatch": lambda: function('"a.b"(%x) : (tensor<4xf32>) -> ()'),
    "redefined-symbol": lambda: Module.parse("func.func private @f()\nfunc.func private @f()"),
    "unknown-symbol": lambda: function("call @g() : () -> ()"),
    "invalid-op": lambda: function(
        "%0 = sdy.propagation_barrier %x allowed_direction=BOTH : tensor<8xf32>"
    ),
    "invalid-group": lambda: function(
        """%0 = stablehlo.slice %x [0:4] : (tensor<8xf32>) -> tensor<4xf32>
        sdy.sharding_group %x group_id=0 : tensor<8xf32>
        sdy.sharding_group %0 group_id=0 : tensor<4xf32>"""
    ).propagate(),
    "recursive-call": lambda: function(
        "%0 = call @f(%x) : (tensor<8xf32>) -> tensor<8xf32>"
    ).propagate(),
    "program-too-large": lambda: function(
        "%0 = call @f(%x) : (tensor<8xf32>) -> tensor<8xf32>", name="main", more=FUNCTION
    ).propagate(max_ops=2),
    "unsupported-type": lambda: Module.parse(
        "func.func @f(%x: tensor<?xf32>) -> tensor<?xf32> {\n"
        "  %0 = stablehlo.abs %x : tensor<?xf32>\n  return %0 : tensor<?xf32>\n}"
    ).propagate(),
    "no-convergence": lambda: PassManager.parse(
        "builtin.module(sdy-add-data-flow-edges,sdy-aggressive-propagate)"
    ).run(Module.parse(CIRCLE)),
    "busy": run_within_a_run,
    "invalid-pipeline": lambda: PassManager.parse("builtin.module(no-such-pass)"),
}
"""A mistake for each code."""

NOT_A_MISTAKE = {"io", "interrupted"}
"""Codes that become an OSError and a KeyboardInterrupt."""

CANNOT_HAPPEN = {"internal-error"}
"""What no program can raise; tests in Rust do."""


def test_codes_are_unique_and_each_has_a_case() -> None:
    codes = error_codes()
    assert len(set(codes)) == len(codes)
    assert set(codes) == RAISING.keys() | NOT_A_MISTAKE | CANNOT_HAPPEN


@pytest.mark.parametrize("code", RAISING)
def test_every_code_is_raised(code: str) -> None:
    assert code in {diagnostic.code for diagnostic in raised(RAISING[code]).diagnostics}


def test_of_many_warnings_that_follow_the_first_of_each_code_are_shown() -> None:
    codes = ["large-replicated"] * 6 + ["output-moved", "does-not-fit"]
    follows = tuple(shardcore.Diagnostic(code, f"number {n}") for n, code in enumerate(codes))
    root = shardcore.Diagnostic("axis-lost", "here", severity="warning", follows=follows)
    shown = [line for line in str(root).splitlines() if "from it follows" in line]
    assert [line.split()[-1] for line in shown[:-1]] == ["0", "1", "2", "6", "7"]
    assert shown[-1] == "  from it follows more: 3 large-replicated"
    assert "more" not in str(root._replace(follows=follows[:5]))
