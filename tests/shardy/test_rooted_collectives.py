"""Collectives from or to a root, and `is_stable` of `chlo.top_k`, are verified as jaxlib does."""

from __future__ import annotations

import pytest
from shardcore import Module, PassManager, ShardcoreError

from tests.shardy import reference
from tests.shardy.messages import of_error

T, ROOT, ROOTS = "tensor<4xf32>", "tensor<1xi32>", "tensor<2xi32>"
GROUPS = "replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>"
CHANNEL = "channel_handle = #stablehlo.channel_handle<handle = {}, type = 1>"
BY_AXES = (
    "replica_groups = #stablehlo.replica_group_mesh_axes<mesh = @{}, "
    'axes = [#stablehlo.axis_ref<name = "x">]>'
)
BODY = """ ({
^bb0(%x: tensor<f32>, %y: tensor<f32>):
  %s = stablehlo.add %x, %y : tensor<f32>
  stablehlo.return %s : tensor<f32>
})"""
PAIRS = """ ({
^bb0(%x: tensor<f32>, %y: tensor<f32>, %z: tensor<f32>, %w: tensor<f32>):
  stablehlo.return %x, %z : tensor<f32>, tensor<f32>
})"""
WIDE = BODY.replace("f32", "f64")

CALLS = {
    "one": ("%a", GROUPS, f"({T}) -> {T}"),
    "two": ("%a, %b", GROUPS, f"({T}, {T}) -> ({T}, {T})"),
    "too few results": ("%a, %b", GROUPS, f"({T}, {T}) -> {T}"),
    "too many results": ("%a", GROUPS, f"({T}) -> ({T}, {T})"),
    "nothing": ("", GROUPS, "() -> ()"),
    "nothing with root": ("", f"{GROUPS}, has_dynamic_root", "() -> ()"),
    "root": ("%a, %root", f"{GROUPS}, has_dynamic_root", f"({T}, {ROOT}) -> {T}"),
    "roots": (
        "%a, %b, %roots",
        f"{GROUPS}, has_dynamic_root",
        f"({T}, {T}, {ROOTS}) -> ({T}, {T})",
    ),
    "too many roots": ("%a, %roots", f"{GROUPS}, has_dynamic_root", f"({T}, {ROOTS}) -> {T}"),
    "any number of roots": (
        "%a, %d",
        f"{GROUPS}, has_dynamic_root",
        f"({T}, tensor<?xi32>) -> {T}",
    ),
    "root of another type": ("%a, %b", f"{GROUPS}, has_dynamic_root", f"({T}, {T}) -> {T}"),
    "root without dims": ("%a, %s", f"{GROUPS}, has_dynamic_root", f"({T}, tensor<i32>) -> {T}"),
    "root alone": ("%root", f"{GROUPS}, has_dynamic_root", f"({ROOT}) -> ()"),
    "root as result": (
        "%a, %root",
        f"{GROUPS}, has_dynamic_root",
        f"({T}, {ROOT}) -> ({T}, {ROOT})",
    ),
    "no unit": ("%a, %root", f"{GROUPS}, has_dynamic_root = false", f"({T}, {ROOT}) -> {T}"),
    "another size": ("%a", GROUPS, f"({T}) -> tensor<5xf32>"),
    "another element": ("%a, %b", GROUPS, f"({T}, {T}) -> ({T}, tensor<4xi32>)"),
    "a device twice": ("%a", GROUPS.replace("1]]", "0]]"), f"({T}) -> {T}"),
    "no device": ("%a", GROUPS.replace("1]]", "-2]]"), f"({T}) -> {T}"),
    "no groups": ("%a", CHANNEL.format(1), f"({T}) -> {T}"),
    "groups by axes": ("%a", BY_AXES.format("mesh"), f"({T}) -> {T}"),
    "groups of no mesh": ("%a", BY_AXES.format("other"), f"({T}) -> {T}"),
    "channel": ("%a", f"{GROUPS}, {CHANNEL.format(1)}", f"({T}) -> {T}"),
    "integers": ("%root", GROUPS, f"({ROOT}) -> {ROOT}"),
}
REGIONS = {
    "none": "",
    "empty": " ({})",
    "of pairs": PAIRS,
    "of another type": WIDE,
}
TOP_K = "(tensor<4xf32>) -> (tensor<2xf32>, tensor<2xi32>)"


def broadcast(name: str) -> str:
    operands, attributes, types = CALLS[name]
    return f'"stablehlo.collective_broadcast"({operands}) <{{{attributes}}}> : {types}'


def reduce(name: str, body: str = BODY) -> str:
    operands, attributes, types = CALLS[name]
    return f'"stablehlo.collective_reduce"({operands}) <{{{attributes}}}>{body} : {types}'


def program(op: str) -> str:
    """The op in a function."""
    count = op.rpartition("->")[2].count("tensor")
    results = f"%r:{count} = " if count else ""
    return f"""sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: {T} {{sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}]>}}, %b: {T}, %root: {ROOT},
    %roots: {ROOTS}, %s: tensor<i32>, %d: tensor<?xi32>) {{
  {results}{op}
  return
}}"""


def check(op: str) -> None:
    """Both say the same of the op, or propagate through it alike."""
    text = program(op)
    wanted, refused = None, []
    try:
        wanted = reference.run(text)
    except reference.RejectedError as error:
        refused = error.errors
    if wanted is None:
        with pytest.raises(ShardcoreError) as ours:
            Module.parse(text)
        assert of_error(ours.value) == refused
    else:
        module = Module.parse(text)
        PassManager.parse(reference.PROPAGATION).run(module)
        assert reference.canonical(str(module)) == wanted


@pytest.mark.parametrize("name", CALLS)
def test_broadcasts(name: str) -> None:
    if name == "no unit" and not reference.IS_NEW:
        pytest.skip("up to jaxlib 0.10 the op has no such attribute")
    check(broadcast(name))


@pytest.mark.skipif(not reference.IS_NEW, reason="up to jaxlib 0.10 StableHLO has no such op")
@pytest.mark.parametrize("name", [*CALLS, "global"])
def test_reductions(name: str) -> None:
    if name == "global":
        for number in range(2):
            attributes = f"{GROUPS}, {CHANNEL.format(number)}, use_global_device_ids"
            check(reduce("one").replace(GROUPS, attributes))
    else:
        check(reduce(name))


@pytest.mark.skipif(not reference.IS_NEW, reason="up to jaxlib 0.10 StableHLO has no such op")
@pytest.mark.parametrize("name", REGIONS)
def test_computations(name: str) -> None:
    check(reduce("one", REGIONS[name]))
    check(reduce("two", REGIONS[name]))


@pytest.mark.parametrize("value", ["", " = true", " = false", " = 3 : i64", ' = "a"', " = unit"])
def test_top_k(value: str) -> None:
    check(f'"chlo.top_k"(%a) <{{k = 2 : i64, is_stable{value}}}> : {TOP_K}')
    short = TOP_K.replace("(tensor<4xf32>)", "tensor<4xf32>", 1)
    check(f"chlo.top_k(%a, k = 2) {{is_stable{value}}} : {short}")


def test_what_one_version_takes_another_refuses() -> None:
    text = program(broadcast("two"))
    for _ in range(2):
        Module.parse(text, shardy="0.12")
        with pytest.raises(ShardcoreError, match="requires one result"):
            Module.parse(text, shardy="0.10")
