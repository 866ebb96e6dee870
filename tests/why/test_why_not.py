"""Why an axis is not on a dim: each reason once, and on random modules."""

from __future__ import annotations

import subprocess
import sys
from random import Random

import pytest
import shardcore
from shardcore import LocationError, Module, ShardcoreError

from tests.shardy.generator import programs
from tests.why.test_why import NUM_MODULES

HEAD = 'sdy.mesh @mesh = <["x"=2, "y"=4]>\nsdy.mesh @other = <["x"=4]>\n'


def arg(name: str, shape: str, sharding: str = "") -> str:
    """An argument, annotated with the dims ``sharding``."""
    attribute = f" {{sdy.sharding = #sdy.sharding<@mesh, [{sharding}]>}}" if sharding else ""
    return f"%{name}: tensor<{shape}xf32>{attribute}"


def function(arguments: list[str], body: str, result: str, shape: str = "8x8") -> str:
    return (
        f"{HEAD}func.func @main({', '.join(arguments)}) -> tensor<{shape}xf32> {{\n{body}\n"
        f"return %{result} : tensor<{shape}xf32>\n}}\n"
    )


ADD = "%0 = stablehlo.add %a, %b : tensor<8x8xf32>"
KEPT = arg("a", "8x8", '{"x"}, {?}').replace("{?}]", '{?}], replicated={"y"}')
NEGATE = "%0 = stablehlo.negate %a : tensor<8x8xf32>"
RULE = "<([i, j])->([i, j]) {i=8, j=8} blocked_propagation={i}, custom>"
REDUCE = (
    "%c = stablehlo.constant dense<0.0> : tensor<f32>\n"
    "%0 = stablehlo.reduce(%a init: %c) applies stablehlo.add across dimensions = [1]"
    " : (tensor<8x8xf32>, tensor<f32>) -> tensor<8xf32>"
)
PRODUCT = (
    "%1 = stablehlo.dot_general %a, %w, contracting_dims = [1] x [0]"
    " : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>\n"
    "%0 = stablehlo.add %1, %b : tensor<8x8xf32>"
)
MANUAL = """
%0 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{"x"}, {}]>]
    out_shardings=[<@mesh, [{"x"}, {}]>] manual_axes={"x"} (%b: tensor<4x8xf32>) {
  %1 = stablehlo.add %b, %b : tensor<4x8xf32>
  sdy.return %1 : tensor<4x8xf32>
} : (tensor<8x8xf32>) -> tensor<8x8xf32>
"""
CASES = {
    "no-factor": (function([arg("a", "8x8", '{}, {"y"}')], REDUCE, "0", "8"), "%0", 0, "y", "%0"),
    "priority": (
        function([arg("a", "8x8", '{"x"}p1, {}'), arg("b", "8x8", '{"y"}p0, {}')], ADD, "0"),
        "%0",
        0,
        "x",
        "%0",
    ),
    "op-priority": (
        function(
            [arg("a", "8x8", '{"x"}, {}'), arg("w", "8x8"), arg("b", "8x8", '{"y"}, {}')],
            PRODUCT,
            "0",
        ),
        "%1",
        0,
        "x",
        "%1",
    ),
    "non-divisible": (
        function(
            [arg("a", "8x8", '{}, {"y"}')],
            "%1 = stablehlo.slice %a [0:8, 0:6] : (tensor<8x8xf32>) -> tensor<8x6xf32>\n"
            "%0 = stablehlo.reshape %1 : (tensor<8x6xf32>) -> tensor<48xf32>",
            "0",
            "48",
        ),
        "%0",
        0,
        "y",
        "%0",
    ),
    "manual": (function([arg("a", "8x8", '{"x"}, {}')], MANUAL, "0"), "%1", 0, "x", "%1"),
    "sub-axis": (
        function([arg("a", "8x8", '{"y":(1)2, ?}, {}')], "", "a"),
        "%a",
        0,
        "y",
        "%a",
    ),
    "taken": (function([arg("a", "8x8", '{"x"}, {}')], "", "a"), "%a", 1, "x", "%a"),
    "closed": (function([arg("a", "8x8", '{"x"}, {}')], "", "a"), "%a", 1, "y", "%a"),
    "replicated": (
        function(
            [arg("a", "8x8", '{"x"}, {?}').replace("{?}]", '{?}], replicated={"y"}')], "", "a"
        ),
        "%a",
        1,
        "y",
        "%a",
    ),
    "blocked": (
        function(
            [arg("a", "8x8", '{"x"}, {}')],
            f"%0 = stablehlo.custom_call @f(%a) {{sdy.sharding_rule = #sdy.op_sharding_rule{RULE}}}"
            " : (tensor<8x8xf32>) -> tensor<8x8xf32>",
            "0",
        ),
        "%0",
        0,
        "x",
        "%0",
    ),
    "direction": (
        function(
            [arg("a", "8x8")],
            "%0 = sdy.propagation_barrier %a allowed_direction=FORWARD : tensor<8x8xf32>\n"
            '%1 = sdy.sharding_constraint %0 <@mesh, [{"x"}, {}]> : tensor<8x8xf32>',
            "1",
        ),
        "%a",
        0,
        "x",
        "%a",
    ),
    "conflict": (
        function([arg("a", "8x8", '{"x"}, {}'), arg("b", "8x8", '{"y"}, {}')], ADD, "0"),
        "%0",
        0,
        "y",
        "%0",
    ),
    "no-rule": (
        function(
            [arg("a", "8x8", '{"x"}, {}')],
            "%0 = stablehlo.custom_call @unknown(%a) : (tensor<8x8xf32>) -> tensor<8x8xf32>",
            "0",
        ),
        "%0",
        0,
        "x",
        "%0",
    ),
    "trimmed": (
        function([arg("a", "9x8", '{"x"}, {}')], "", "a", "9x8"),
        "%a",
        0,
        "x",
        "%a",
    ),
    "other-mesh": (
        function(
            [
                arg("a", "8x8", '{"x"}, {}'),
                arg("b", "8x8", '{"x"}, {}').replace("@mesh", "@other"),
            ],
            ADD,
            "0",
        ),
        "%0",
        0,
        "x",
        "%0",
    ),
    # "x" shards the summed dims, and that of %w is closed: nothing brings it to its other dim.
    "other-factor": (
        function(
            [arg("a", "8x8", '{}, {"x"}'), arg("w", "8x8", "{}, {?}")],
            PRODUCT.split("\n")[0].replace("%1", "%0"),
            "0",
        ),
        "%w",
        1,
        "x",
        "%w",
    ),
    "never-arrived": (
        function(
            [arg("a", "8x8", '{"x"}, {?}')], "%0 = stablehlo.negate %a : tensor<8x8xf32>", "0"
        ),
        "%0",
        1,
        "y",
        "%0",
    ),
}


def test_every_code_has_a_case() -> None:
    assert {*CASES} == {*shardcore.WHY_NOT}


@pytest.mark.parametrize("code", list(CASES))
def test_each_reason(code: str) -> None:
    text, value, dim, axis, at = CASES[code]
    found = Module.parse(text).propagate().why_not(value, dim, axis)
    assert found.code == code, str(found)
    assert found.at[0] == at
    assert found.record()["code"] in shardcore.WHY_NOT
    assert shardcore.WHY_NOT[found.code] in str(found)


def test_an_axis_after_a_part_of_one_is_removed_with_it() -> None:
    """The size of the dim divides; what is removed first is the part of an axis in an open dim."""
    text = function([arg("a", "8x8", '{"y":(1)2, "x"}, {}'), arg("b", "8x8")], ADD, "0")
    result = Module.parse(text).propagate()
    assert result.why_not("%b", 0, "x").code == "sub-axis"
    assert result.why_not("%b", 0, "y").code == "sub-axis"
    # Of a closed dim the size decides.
    closed = function([arg("a", "6x8", '{"x", "y":(1)2}, {}')], "", "a", "6x8")
    assert Module.parse(closed).propagate().why_not("%a", 0, "y").code == "trimmed"


def test_the_way_there_is_searched() -> None:
    text = function(
        [arg("a", "8x8", '{"x"}, {}'), arg("b", "8x8", '{"y"}, {}')],
        f"{ADD}\n%1 = stablehlo.negate %0 : tensor<8x8xf32>",
        "1",
    )
    result = Module.parse(text).propagate()
    have = [str(axis.axis) for axis in result.why("%1").axes]
    missing = "x" if have != ['"x"'] else "y"
    found = result.why_not("%1", 0, missing)
    assert (found.code, found.at, found.op) == ("conflict", ("%0", 0), "stablehlo.add")
    assert found.instead is not None


def test_what_won_says_where_it_comes_from_and_when_it_got_there() -> None:
    text = function(
        [arg("a", "8x8", '{"x"}, {}'), arg("w", "8x8", '{?}, {"x"}')],
        PRODUCT.split("\n")[0].replace("%1", "%0"),
        "0",
    )
    result = Module.parse(text).propagate()
    [have] = result.why("%0").axes
    found = result.why_not("%0", 1 - have.dim, "x")
    assert found.winner == have
    instead = found.record()["instead"]
    assert instead["source"]["name"] == have.source.name
    assert (instead["priority"], instead["step"]) == (0, have.chain[-1].step)
    assert str(found).endswith(
        f", from {have.source.name} at priority 0, step {have.chain[-1].step}"
    )
    # What is annotated itself won when nothing had happened yet.
    found = result.why_not("%a", 1, "x")
    assert str(found).endswith('dim 0 of %a has "x": the argument is annotated')
    assert (found.record()["instead"]["priority"], found.record()["instead"]["step"]) == (
        None,
        None,
    )


def test_what_won_and_was_removed_by_the_export() -> None:
    text = function([arg("a", "8x9", '{}, {"x", ?}')], "", "a", "8x9")
    found = Module.parse(text).propagate().why_not("%a", 0, "x")
    assert (found.code, found.instead, found.is_trimmed) == ("taken", ("%a", 1, ("x",)), True)
    assert str(found).endswith('dim 1 of %a had "x", until the export removed it')
    assert found.record()["instead"]["is_trimmed"]


def test_what_won_in_a_call_and_was_removed_by_the_export() -> None:
    """The result of a call is trimmed with the argument that its callee returns."""
    text = """sdy.mesh @mesh = <["a"=4, "b"=4]>
func.func public @main(%arg0: tensor<32x18xi32>) -> tensor<32x18xi32> {
  %0 = call @f(%arg0) : (tensor<32x18xi32>) -> tensor<32x18xi32>
  return %0 : tensor<32x18xi32>
}
func.func private @f(%arg0: tensor<32x18xi32>
    {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"b":(2)2, "a":(2)2, ?}]>}) -> tensor<32x18xi32> {
  %0 = stablehlo.negate %arg0 : tensor<32x18xi32>
  return %0 : tensor<32x18xi32>
}"""
    result = Module.parse(text, shardy="0.10").propagate()
    found = result.why_not("%0", 0, "a")
    assert found.instead == ("%0", 1, ("b:(2)2", "a:(2)2"))
    assert str(result["%0"].sharding) == '<@mesh, [{}, {"b":(2)2}]>'
    assert found.is_trimmed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("%a", 0, "x"), "x is on dim 0 of %a"),
        (("%a", 2, "x"), "it has no dim 2"),
        (("%a", -1, "x"), "it has no dim -1"),
        (("%a", 0, "z"), "no mesh of the program has an axis z"),
        (("%q", 0, "x"), "no value %q"),
    ],
)
def test_mistakes(arguments: tuple[str, int, str], message: str) -> None:
    result = Module.parse(function([arg("a", "8x8", '{"x"}, {}')], "", "a")).propagate()
    with pytest.raises(LocationError) as caught:
        result.why_not(*arguments)
    assert message in str(caught.value)


def test_a_call_is_no_op_without_a_rule() -> None:
    text = """sdy.mesh @mesh = <["x"=2, "y"=4]>
    func.func @main(%a: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>})
        -> tensor<8x4x4xf32> {
      %0 = stablehlo.negate %a : tensor<8x4xf32>
      %1 = call @hot(%0) : (tensor<8x4xf32>) -> tensor<8x4x4xf32>
      return %1 : tensor<8x4x4xf32>
    }
    func.func private @hot(%b: tensor<8x4xf32>) -> tensor<8x4x4xf32> {
      %0 = stablehlo.broadcast_in_dim %b, dims = [0, 1]
        : (tensor<8x4xf32>) -> tensor<8x4x4xf32>
      %1 = sdy.sharding_constraint %0 <@mesh, [{"x"}, {}, {"y"}]> : tensor<8x4x4xf32>
      return %1 : tensor<8x4x4xf32>
    }"""
    found = Module.parse(text).propagate().why_not("%0", 1, "y")
    assert found.code == "no-factor"
    assert found.op == "stablehlo.broadcast_in_dim"


def test_a_loop_is_no_op_without_a_rule() -> None:
    text = """sdy.mesh @mesh = <["x"=2]>
    func.func @main(
        %a: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>},
        %b: tensor<4x4xf32>, %i: tensor<i32>) -> (tensor<8x4xf32>, tensor<4x4xf32>) {
      %0:3 = stablehlo.while(%c = %a, %d = %b, %n = %i)
          : tensor<8x4xf32>, tensor<4x4xf32>, tensor<i32>
        cond {
          %1 = stablehlo.compare LT, %n, %i : (tensor<i32>, tensor<i32>) -> tensor<i1>
          stablehlo.return %1 : tensor<i1>
        } do {
          %1 = stablehlo.negate %c : tensor<8x4xf32>
          %2 = stablehlo.negate %d : tensor<4x4xf32>
          stablehlo.return %1, %2, %n : tensor<8x4xf32>, tensor<4x4xf32>, tensor<i32>
        }
      return %0#0, %0#1 : tensor<8x4xf32>, tensor<4x4xf32>
    }"""
    result = Module.parse(text).propagate()
    for name in ("%b", "%d", "%0#1", "%2"):
        found = result.why_not(name, 0, "x")
        assert (found.code, found.op) == ("never-arrived", None)
        assert "\n" not in str(found)


def test_every_absence_on_random_modules_has_a_reason() -> None:
    codes, refused = set(), []
    for seed in range(NUM_MODULES):
        rng = Random(seed)
        module = Module.parse(programs.make(seed))
        try:
            result = module.propagate()
        except ShardcoreError:
            continue
        axes = sorted({name for mesh in result.module.meshes.values() for name in mesh.axis_names})
        values = [value for value in result.values() if value.shape]
        for value in rng.sample(values, min(len(values), 8)):
            if not axes or value.shape is None:
                continue
            dim, axis = rng.randrange(len(value.shape)), rng.choice(axes)
            try:
                found = result.why_not(value, dim, axis)
            except LocationError as error:
                refused.append(error.message)
                continue
            codes.add(found.code)
            assert found.code in shardcore.WHY_NOT
            if found.code == "taken" and found.at == (found.value, dim):
                assert found.instead is not None
                assert found.instead[0] == found.value
                assert found.instead[1] != dim
    assert len(codes) >= 12, codes
    assert all("is on dim" in text or "by the export" in text for text in refused)


def test_an_axis_that_is_manual_is_nowhere_in_the_body() -> None:
    """Not closed dims, which nobody can open, but the computation is the reason."""
    result = Module.parse(
        HEAD
        + """func.func @main(%a: tensor<8x8xf32>) -> tensor<8x8xf32> {
      %0 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{"x"}, {}]>]
          out_shardings=[<@mesh, [{"x"}, {}]>] manual_axes={"x"} (%b: tensor<4x8xf32>) {
        %1 = stablehlo.negate %b : tensor<4x8xf32>
        sdy.return %1 : tensor<4x8xf32>
      } : (tensor<8x8xf32>) -> tensor<8x8xf32> loc("model.py":7:2)
      return %0 : tensor<8x8xf32>
    }"""
    ).propagate()
    for value in ("%b", "%1"):
        for dim in range(2):
            found = result.why_not(value, dim, "x")
            assert (found.code, found.at, found.op, found.location) == (
                *("manual", (value, dim), "sdy.manual_computation", "model.py:7:2"),
            )
            assert result.why_not(value, dim, "y").code != "manual"
    [why] = result.why("%a").axes
    assert (why.source.kind, why.source.location) == ("manual", "model.py:7:2")


def test_the_first_answer_imports_no_calculus() -> None:
    """Importing it takes ten times as long as the answer."""
    script = f"""
import sys
from shardcore import Module
text = {function([arg("a", "8x8", '{"x"}, {}'), arg("b", "8x8")], ADD, "0")!r}
result = Module.parse(text).propagate()
str(result.why("%0"))
str(result.why_not("%0", 0, "y"))
assert "shardcore.calculus" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", script], check=True)
