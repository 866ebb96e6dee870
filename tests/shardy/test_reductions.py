"""How unreduced axes are reduced: text, verification and passes of the versions that say so."""

from __future__ import annotations

import itertools

import pytest
from shardcore import Module, PassManager, ShardcoreError
from shardcore.shardy import default_shardy

from tests.shardy.reference import RejectedError, canonical, run

pytestmark = pytest.mark.skipif(
    default_shardy() == "0.10", reason="the Shardy of jaxlib 0.10 knows sums only"
)

T = "tensor<16x8xf32>"
MESH = 'sdy.mesh @mesh = <["x"=4, "y"=2, "z"=2]>\n'
REDUCTIONS = ("", "max", "min")
VERIFY = "builtin.module(func.func(sdy-verify-unreduced-axes))"
CHANGES = (("", "x"), ("x", ""), ("x", "x"), ("x", "xy"), ("xy", "x"), ("x", "y"))
"""Unreduced axes before and after."""


def sharding(reduction: str, axes: str, dims: str = "[{}, {}]") -> str:
    listed = ", ".join(f'"{axis}"' for axis in axes)
    return f"<@mesh, {dims}{f', unreduced={reduction}{{{listed}}}' if axes else ''}>"


def function(given: str, body: str, returned: str = "%0") -> str:
    argument = f"%a: {T} {{sdy.sharding = #sdy.sharding{given}}}"
    return f"{MESH}func.func @main({argument}) -> {T} {{\n  {body}\n  return {returned} : {T}\n}}\n"


def on_op(given: str) -> str:
    return f"{{sdy.sharding = #sdy.sharding_per_value<[{given}]>}}"


def outcome_of_reference(text: str, pipeline: str | None) -> str:
    try:
        return canonical(text) if pipeline is None else run(text, pipeline)
    except RejectedError as rejected:
        return rejected.errors[0][1]


def outcome(text: str, pipeline: str | None) -> str:
    try:
        module = Module.parse(text)
        if pipeline is not None:
            manager = PassManager.parse(pipeline)
            manager.enable_verifier(True)
            manager.run(module)
        return canonical(str(module))
    except ShardcoreError as error:
        return error.diagnostics[0].message


def assert_same(text: str, pipeline: str | None = None) -> str:
    expected = outcome_of_reference(text, pipeline)
    assert outcome(text, pipeline) == expected, text
    return expected


def both_ways() -> list[tuple[str, str, str, str]]:
    """Reductions and axes before and after."""
    found = [
        (first if before else "", before, second if after else "", after)
        for before, after in CHANGES
        for first, second in itertools.product(REDUCTIONS, REDUCTIONS)
    ]
    return list(dict.fromkeys(found))


@pytest.mark.parametrize("name", ["sdy.reshard", "sdy.sharding_constraint"])
def test_reshards_keep_reductions(name: str) -> None:
    found = {
        assert_same(
            function(sharding(one, before), f"%0 = {name} %a {sharding(other, after)} : {T}")
        )
        for one, before, other, after in both_ways()
    }
    kept = "cannot change the reduction operator of kept unreduced axes from sum to max."
    assert f"'{name}' op {kept}" in found


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("name", ["all_reduce", "reduce_scatter"])
def test_collectives_reduce_what_they_say(name: str, reduction: str) -> None:
    found = set()
    for one, before, other, after in both_ways():
        axis = next((axis for axis in before if axis not in after), "z")
        dims = "[{}, {}]" if name == "all_reduce" else f'[{{"{axis}"}}, {{}}]'
        axes = f'{{"{axis}"}}' if name == "all_reduce" else dims
        result = sharding(other, after, dims)
        body = f"%0 = sdy.{name} {reduction} {axes} %a out_sharding={result} : {T}"
        found.add(assert_same(function(sharding(one, before), body)))
    expected = reduction or "sum"
    wrong = "max" if expected != "max" else "min"
    assert (
        f"'sdy.{name}' op cannot reduce '{wrong}' unreduced axes. Expected '{expected}'." in found
    )
    assert f"'sdy.{name}' op cannot add new unreduced axis 'x'." in found


def test_axes_that_become_unreduced_join_others_of_their_reduction() -> None:
    refused = "op cannot change reduction_op of existing unreduced axes"
    for one, other in itertools.product(REDUCTIONS, REDUCTIONS):
        replicated = '%0 = sdy.replicated_to_unreduced {{"y"}} %a out_sharding={} : {}'
        body = replicated.format(sharding(other, "xy"), T)
        found = assert_same(function(sharding(one, "x"), body))
        assert (refused in found) == (one != other)
        sharded = '%0 = sdy.sharded_to_unreduced [{{"y"}}, {{}}] %a out_sharding={} : {}'
        body = sharded.format(sharding(other, "xy"), T)
        found = assert_same(function(sharding(one, "x", '[{"y"}, {}]'), body))
        assert (refused in found) == (one != other)


@pytest.mark.parametrize(
    "given",
    [
        'unreduced=sum{"x"}',
        'unreduced=max{"x"}',
        'unreduced{"x"}',
        'unreduced=min{"x"}, replicated={"y"}',
        'unreduced= max {"x"}',
    ],
)
def test_texts_that_are_shardings(given: str) -> None:
    assert_same(function(f"<@mesh, [{{}}, {{}}], {given}>", "", "%a"))


@pytest.mark.parametrize(
    "given",
    [
        "unreduced",
        "unreduced=",
        "unreduced=max",
        "unreduced=max{}",
        'unreduced=most{"x"}',
        'unreduced="max"{"x"}',
        'unreduced max{"x"}',
        'replicated=max{"x"}',
        'unreduced=max{"x"}, unreduced={"y"}',
    ],
)
def test_texts_that_are_none(given: str) -> None:
    text = function(f"<@mesh, [{{}}, {{}}], {given}>", "", "%a")
    with pytest.raises(RejectedError):
        canonical(text)
    with pytest.raises(ShardcoreError):
        Module.parse(text)


def generic(written: str) -> str:
    axes = 'reduction_axes = #sdy<axis_ref_list{"x"}>'
    out = f"out_sharding = #sdy.sharding{sharding('', '')}"
    return f'%0 = "sdy.all_reduce"(%a) <{{{out}, {axes}{written}}}> : ({T}) -> {T}'


def test_generic_form() -> None:
    for written, reduction in (("", ""), ("0", ""), ("1", "max"), ("2", "min")):
        attribute = written and f", reduction_op = {written} : i32"
        found = assert_same(function(sharding(reduction, "x"), generic(attribute)))
        assert f"sdy.all_reduce {reduction}".rstrip() + ' {"x"}' in found
    for wrong in ("3 : i32", "1 : i64", '"max"'):
        found = assert_same(function(sharding("", "x"), generic(f", reduction_op = {wrong}")))
        assert "Invalid attribute `reduction_op`" in found


@pytest.mark.parametrize(
    "body",
    [
        f'%0 = sdy.all_reduce {{"x"}} %a out_sharding={sharding("", "")} '
        f"{{reduction_op = 1 : i32}} : {T}",
        f"%0 = sdy.reshard %a {sharding('', '')} {{sharding = 1 : i32}} : {T}",
        f"%0 = func.call @main(%a) {{callee = @main}} : ({T}) -> {T}",
    ],
)
def test_dictionaries_have_nothing_that_is_in_the_syntax(body: str) -> None:
    found = assert_same(function(sharding("", ""), body))
    assert "cannot be parsed from attr-dict" in found


KEPT = f"%0 = sdy.sharding_constraint %a {sharding('', '')} : {T}"
BODIES = {
    "elementwise": f"%0 = stablehlo.add %a, %a ON_OP : {T}",
    "product": "%p = stablehlo.dot_general %a, %a, contracting_dims = [1] x [1] ON_OP : "
    f"({T}, {T}) -> tensor<16x16xf32>\n  {KEPT}",
    "loop": f"""%0 = stablehlo.while(%i = %a) : {T} attributes ON_OP cond {{
    %t = stablehlo.constant dense<true> : tensor<i1>
    stablehlo.return %t : tensor<i1>
  }} do {{
    stablehlo.return %i : {T}
  }}""",
    **{
        f"reduction by {name}": f"""%c = stablehlo.constant dense<0.0> : tensor<f32>
  %r = stablehlo.reduce(%a init: %c) applies stablehlo.{name} across dimensions = [0] ON_OP
    : ({T}, tensor<f32>) -> tensor<8xf32>
  {KEPT}"""
        for name in ("add", "maximum", "minimum", "multiply")
    },
    "manual computation": f"""%0 = sdy.manual_computation(%a) in_shardings=[{sharding("max", "x")}]
    out_shardings=[SHARDING] manual_axes={{"z"}} (%b: {T}) {{
    sdy.return %b : {T}
  }} : ({T}) -> {T}""",
}
"""Ops with a place for the sharding of their result."""


@pytest.mark.parametrize("name", BODIES)
def test_the_pass_says_what_the_reference_says(name: str) -> None:
    found = set()
    for one, before, other, after in both_ways():
        dims = "[{}]" if "reduction" in name else "[{}, {}]"
        result = sharding(other, after, dims)
        body = BODIES[name].replace("SHARDING", result).replace("ON_OP", on_op(result))
        text = function(sharding(one, before), body)
        found.add(assert_same(text, VERIFY))
    assert any("op" in message and "unreduced" in message for message in found)
    assert any("@main" in module for module in found)


def test_results_agree_on_their_reduction() -> None:
    listed = f"{sharding('max', 'x')}, {sharding('', 'y')}"
    results = f"{T}, {T}"
    body = f"%0:2 = stablehlo.custom_call @f(%a) {on_op(listed)} : ({T}) -> ({results})"
    found = assert_same(function(sharding("", ""), body, "%0#0"), VERIFY)
    assert "results introduce unreduced axes with conflicting reduction ops" in found


@pytest.mark.parametrize("inside", [("", ""), ("", "x"), ("max", "x"), ("", "xy")])
@pytest.mark.parametrize("outside", [("", ""), ("", "x"), ("max", "x")])
def test_calls_agree_with_functions(inside: tuple[str, str], outside: tuple[str, str]) -> None:
    body = f"%0 = func.call @f(%a) {on_op(sharding(*outside))} : ({T}) -> {T}"
    declared = sharding(*inside, '[{}, {"z"}]')
    result = f"{T} {{sdy.sharding = #sdy.sharding{declared}}}"
    callee = f"func.func private @f(%a: {T}) -> ({result}) {{\n  return %a : {T}\n}}\n"
    text = function(sharding("", ""), body) + callee
    for pipeline in (VERIFY, "builtin.module(sdy-insert-func-call-reshards)"):
        assert_same(text, pipeline)


@pytest.mark.parametrize(
    "pipeline",
    [
        "sdy-apply-sharding-constraints",
        "sdy-aggressive-propagate",
        "sdy-user-priority-propagate",
        "sdy-close-shardings",
        "sdy-remove-size-one-axes",
        "sdy-update-non-divisible-input-output-shardings",
        "sdy-inline-meshes,sdy-lift-inlined-meshes",
        "func.func(sdy-insert-explicit-reshards)",
        "func.func(sdy-insert-explicit-reshards,sdy-reshard-to-collectives)",
        "canonicalize",
    ],
)
@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_passes_carry_reductions(pipeline: str, reduction: str) -> None:
    unreduced = sharding(reduction, "x", '[{"y", ?}, {}]')
    body = f"""%1 = sdy.sharding_constraint %a {unreduced} : {T}
  %2 = sdy.manual_computation(%1) in_shardings=[{unreduced}] out_shardings=[{unreduced}]
    manual_axes={{"z"}} (%b: {T}) {{
    sdy.return %b : {T}
  }} : ({T}) -> {T}
  %3 = sdy.reshard %2 {sharding("", "", '[{"y", "x"}, {}]')} : {T}
  %0 = stablehlo.negate %3 : {T}"""
    assert_same(function(unreduced, body), f"builtin.module({pipeline})")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("[{}]", '[{"x"}], unreduced=max{"y"}'),
        ('[{}], unreduced=max{"y"}', '[{"x"}], unreduced=max{"y"}'),
        ('[{"x"}], unreduced=min{"y"}', '[{"z"}], unreduced=min{"y"}'),
        ('[{}], unreduced=max{"y","z"}', '[{"x"}], unreduced=max{"y"}'),
    ],
)
def test_collectives_of_reshards_do_not_say_how_to_reduce(before: str, after: str) -> None:
    ty = "tensor<16xf32>"
    text = f"""sdy.mesh @mesh = <["x"=2, "y"=2, "z"=4]>
func.func @main(%a: {ty} {{sdy.sharding = #sdy.sharding<@mesh, {before}>}}) -> {ty} {{
  %0 = sdy.reshard %a <@mesh, {after}> : {ty}
  return %0 : {ty}
}}"""
    pipeline = "builtin.module(func.func(sdy-reshard-to-collectives))"
    wanted = run(text, pipeline)
    assert "unreduced={" in wanted.partition("%0")[2]
    module = Module.parse(text)
    PassManager.parse(pipeline).run(module)
    assert canonical(str(module)) == wanted
