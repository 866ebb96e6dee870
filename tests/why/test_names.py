"""Sources and steps have the names of the program given, whatever import makes of it."""

from __future__ import annotations

import pytest
from shardcore import Module, Result, Why

from tests.shardy.generator import programs
from tests.why.chains import check, values

MESH = 'sdy.mesh @mesh = <["x"=2, "y"=2]>\n'
TENSOR = "tensor<12x2xf32>"


def propagated(arguments: str, body: str, returned: str) -> Result:
    names = ", ".join(returned.split())
    types = ", ".join(TENSOR for _ in returned.split())
    return Module.parse(
        f"{MESH}func.func @main({arguments}) -> ({types}) {{\n{body}\n"
        f"return {names} : {types}\n}}\n"
    ).propagate()


def sources(why: Why) -> set[tuple[str, str]]:
    return {(axis.source.kind, axis.source.name) for axis in why.axes}


GROUPED = f"""
  %v2 = stablehlo.negate %b : {TENSOR}
  %v5 = stablehlo.cosine %a : {TENSOR}
  sdy.sharding_group %v5 group_id=12 : {TENSOR}
  sdy.sharding_group %v2 group_id=12 : {TENSOR}
  %v6 = sdy.sharding_constraint %v5 <@mesh, [{{"x"}}, {{}}]> : {TENSOR}
"""


def test_a_group_has_the_number_that_the_program_gives_it() -> None:
    result = propagated(f"%a: {TENSOR}, %b: {TENSOR}", GROUPED, "%v5 %v2")
    assert sources(result.why("%b")) == {("group", "group 12")}
    assert result.why("%b").axes[0].chain[0].from_value == "group 12"
    # Import numbers the groups anew, and merges those with a value in common.
    merged = GROUPED.replace("%v2 group_id=12", "%v2 group_id=7") + (
        f"  sdy.sharding_group %v2 group_id=12 : {TENSOR}\n"
        f"  sdy.sharding_group %c group_id=7 : {TENSOR}\n"
    )
    result = propagated(f"%a: {TENSOR}, %b: {TENSOR}, %c: {TENSOR}", merged, "%v5 %v2 %c")
    assert sources(result.why("%b")) == {("group", "group 12")}
    assert sources(result.why("%c")) == {("group", "group 7")}


def test_a_constraint_on_a_member_of_a_group_whose_annotations_differ() -> None:
    """Propagation puts another constraint on each member, which takes the uses of the member."""
    sharded = 'sdy.sharding = #sdy.sharding<@mesh, [{"y", ?}, {?}]>'
    grouped = GROUPED.replace("group %v2", "group %b")
    result = propagated(f"%a: {TENSOR}, %b: {TENSOR} {{{sharded}}}", grouped, "%v5 %b")
    assert sources(result.why("%v5")) == {("constraint", "%v6")}


def test_a_copy_of_a_constant_is_called_as_the_constant() -> None:
    body = f"""
      %c = stablehlo.constant {{sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{{"x"}}, {{}}]>]>}}
        dense<2.0> : {TENSOR}
      %0 = stablehlo.add %a, %c : {TENSOR}
      %1 = stablehlo.multiply %b, %c : {TENSOR}
    """
    result = propagated(f"%a: {TENSOR}, %b: {TENSOR}", body, "%0 %1 %c")
    for name in ("%0", "%1", "%a", "%b"):
        assert sources(result.why(name)) == {("op", "%c")}, result.why(name)


@pytest.mark.parametrize(
    "seed",
    [
        # Calls of one function whose operands and results are resharded to its shardings.
        *(1000049, 1000069, 1000156, 1000704, 1000879),
        # A group with an argument of the body of a loop.
        1000703,
    ],
)
def test_every_axis_has_a_source(seed: int) -> None:
    result = Module.parse(programs.make(seed)).propagate()
    for value in values(result):
        assert not check(value, result.why(value))


def test_an_axis_of_another_mesh() -> None:
    sharded = f'%a: {TENSOR} {{sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}, {{}}]>}}'
    text = (
        f'{MESH}sdy.mesh @other = <["z"=2]>\nfunc.func @main({sharded}) -> {TENSOR} {{\n'
        f"  %0 = stablehlo.tanh %a : {TENSOR}\n  return %0 : {TENSOR}\n}}\n"
    )
    result = Module.parse(text).propagate()
    for name, dim in (("%a", 0), ("%a", 1), ("%0", 0)):
        found = result.why_not(name, dim, "z")
        assert found.code == "other-mesh", str(found)
