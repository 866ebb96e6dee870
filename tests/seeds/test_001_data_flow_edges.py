"""Shardy, "Propagation": data-flow edges (lines 104 to 133)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import shardcore
from shardcore import Module
from shardcore.rules import EdgeGroup, Signature

MESH = 'sdy.mesh @mesh = <["x"=2, "y"=2]>\n'
WHILE = (
    MESH
    + """
func.func @main(%x: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", ?}, {?}]>}, %n: tensor<i32>)
    -> tensor<8x4xf32> {
  %0:2 = stablehlo.while(%a = %x, %i = %n) : tensor<8x4xf32>, tensor<i32>
  cond {
    %1 = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %2 = stablehlo.tanh %a : tensor<8x4xf32>
    stablehlo.return %2, %i : tensor<8x4xf32>, tensor<i32>
  }
  return %0#0 : tensor<8x4xf32>
}"""
)
OPS = {
    "109: optimization_barrier": (
        "%0 = stablehlo.optimization_barrier %x : tensor<8x4xf32>",
        [("stablehlo.optimization_barrier", ["%x"], ["%0"])],
    ),
    "110: case": (
        """%0 = "stablehlo.case"(%i) ({
    stablehlo.return %x : tensor<8x4xf32>
  }, {
    %1 = stablehlo.tanh %x : tensor<8x4xf32>
    stablehlo.return %1 : tensor<8x4xf32>
  }) : (tensor<i32>) -> tensor<8x4xf32>""",
        [("stablehlo.case", ["%x", "%1"], ["%0"])],
    ),
    "111: manual_computation": (
        """%0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{"x"}, {}]>]
      out_shardings=[<@mesh, [{"x"}, {}]>] manual_axes={"x"} (%b: tensor<4x4xf32>) {
    %1 = stablehlo.tanh %b : tensor<4x4xf32>
    sdy.return %1 : tensor<4x4xf32>
  } : (tensor<8x4xf32>) -> tensor<8x4xf32>""",
        [
            ("sdy.manual_computation", ["%x"], ["%b"]),
            ("sdy.manual_computation", ["%1"], ["%0"]),
        ],
    ),
}


def edges_of(module: Module) -> list[tuple[str, list[str], list[str]]]:
    return [
        (edge.op, [value.name for value in edge.sources], [value.name for value in edge.targets])
        for edge in module.edges()
    ]


def test_001_120_the_edges_of_a_while() -> None:
    # "The i-th data-flow edge is between sources x_i, return_value_i, and targets y_i, pred_arg_i,
    # body_arg_i."
    module = Module.parse(WHILE)
    first, second = module.edges()
    assert edges_of(module) == [
        ("stablehlo.while", ["%x", "%2"], ["%0#0", "%a", "%a"]),
        ("stablehlo.while", ["%n", "%i"], ["%0#1", "%i", "%i"]),
    ]
    assert (first.owner, first.targets[0]) == (module["%0#0"],) * 2
    assert first.owner.name == "%0#0"
    assert first.sharding is None
    assert second.rule.num_factors == 0
    (completed, _) = module.propagate().module.edges()
    assert str(completed.sharding) == '<@mesh, [{"x"}, {}]>'
    assert {str(value.sharding) for value in completed.targets} == {str(completed.sharding)}


@pytest.mark.parametrize(("op", "expected"), OPS.values(), ids=OPS.keys())
def test_001_109_ops_with_data_flow_edges(op: str, expected: list) -> None:
    module = Module.parse(
        f"{MESH}func.func @main(%x: tensor<8x4xf32>, %i: tensor<i32>) -> tensor<8x4xf32> {{\n  {op}\n"
        "  return %0 : tensor<8x4xf32>\n}"
    )
    assert edges_of(module) == expected


def test_001_124_an_edge_has_the_identity_rule() -> None:
    # "As if this was a regular op, where the sources are the operands and the targets are the
    # results, and an identity sdy.op_sharding_rule."
    module = Module.parse(WHILE)
    edge, _ = module.edges()
    assert edge.rule.notation == "i j, i j -> i j, i j, i j"
    table = edge.factor_table()
    before, after = list(table.before.values()), list(table.after.values())
    assert before[0] == {"i": '"x", ?', "j": "?"}
    # Forward from the operand, and backward to the value that the body returns.
    assert {row["i"] for row in after} == {'"x", ?'}
    for target in ("%0#0", "%a", edge):
        assert str(module.factor_table(target)) == str(table)


def test_001_124_the_edges_of_a_manual_computation_have_tables() -> None:
    module = Module.parse(
        f"{MESH}func.func @main(%x: tensor<8x4xf32>, %i: tensor<i32>) -> tensor<8x4xf32> {{\n"
        f"  {OPS['111: manual_computation'][0]}\n  return %0 : tensor<8x4xf32>\n}}"
    )
    into, out = (edge.factor_table() for edge in module.edges())
    # Outside with the manual axis, inside without it.
    assert [row["i"] for row in into.after.values()] == ['"x", ?', '"x"']
    assert [row["i"] for row in out.before.values()] == ["?", ""]


LOOP = (
    MESH
    + """
func.func @main(
    %a: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>},
    %b: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"y"}]>}) {
  %0:2 = "my.op"(%a, %b) ({
  ^bb0(%i: tensor<i32>, %c: tensor<8x4xf32>, %d: tensor<8x4xf32>):
    "my.yield"(%d, %c) : (tensor<8x4xf32>, tensor<8x4xf32>) -> ()
  }) {swaps = true} : (tensor<8x4xf32>, tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<8x4xf32>)
  return
}"""
)


@pytest.fixture(autouse=True)
def no_edges() -> Iterator[None]:
    yield
    shardcore.data_flow_edges("my.op")


def test_001_132_a_custom_op_as_the_document_draws_it() -> None:
    # n edges between return_value_i and y_i, n between x_i and body_arg_i; here argument 0 of the
    # body is a counter.
    module = Module.parse(LOOP)
    assert module.edges() == []
    shardcore.data_flow_edges("my.op", first_operand=0)
    assert edges_of(module) == [("my.op", ["%a"], ["%0#0"]), ("my.op", ["%b"], ["%0#1"])]
    shardcore.data_flow_edges(
        "my.op",
        EdgeGroup(first_operand=0, block_args=[0], arg_order=[1, 2]),
        EdgeGroup(returns=[0]),
    )
    assert edges_of(module)[:2] == [
        ("my.op", ["%a"], ["%0#0", "%c"]),
        ("my.op", ["%b"], ["%0#1", "%d"]),
    ]
    assert "%d" in str(module.factor_table("%d"))


def test_001_132_edges_with_a_permutation() -> None:
    # Result 0 is operand 1, and result 1 is operand 0.
    shardcore.data_flow_edges("my.op", first_operand=0, operand_order=[1, 0])
    result = Module.parse(LOOP).propagate()
    assert str(result["%0#0"].sharding) == '<@mesh, [{}, {"y"}]>'
    assert str(result["%0#1"].sharding) == '<@mesh, [{"x"}, {}]>'
    with pytest.raises(ValueError, match="two edges"):
        shardcore.data_flow_edges("my.op", first_operand=0, operand_order=[1, 1])


def test_001_132_edges_by_signature() -> None:
    asked: list[Signature] = []

    def edges(signature: Signature) -> EdgeGroup | None:
        asked.append(signature)
        if "swaps" not in signature.attributes:
            return None
        return EdgeGroup(first_operand=0, operand_order=[1, 0])

    shardcore.data_flow_edges("my.op", edges)
    module = Module.parse(LOOP)
    assert edges_of(module) == [("my.op", ["%b"], ["%0#0"]), ("my.op", ["%a"], ["%0#1"])]
    assert [signature.name for signature in asked] == ["my.op"]
    assert asked[0].operand_types[0] == ((8, 4), "f32")
    result = module.propagate()
    assert str(result["%0#1"].sharding) == '<@mesh, [{"x"}, {}]>'
    plain = Module.parse(LOOP.replace("swaps = true", ""))
    assert plain.edges() == []
    assert plain.propagate()["%0#1"].sharding is None


@pytest.mark.parametrize(
    ("answer", "message"), [(3, "edge"), ([3], "EdgeGroups, not int"), ("boom", "boom")]
)
def test_001_132_mistakes_in_functions_have_a_place(answer: object, message: str) -> None:
    def edges(signature: Signature) -> EdgeGroup:
        if answer == "boom":
            raise RuntimeError("boom")
        return answer  # type: ignore[return-value]

    shardcore.data_flow_edges("my.op", edges)
    with pytest.raises(shardcore.ShardcoreError, match=message) as caught:
        Module.parse(LOOP).propagate()
    assert caught.value.code == "invalid-rule"
    assert caught.value.line == 6
    with pytest.raises(TypeError, match="edge groups"):
        shardcore.data_flow_edges("my.op", EdgeGroup(), edges)


STORED = (
    MESH
    + """
func.func @main(%a: tensor<8x4xf32>, %b: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %0:2 = "my.op"(%a, %b) ({
  ^bb0(%c: tensor<8x4xf32>, %d: tensor<8x4xf32>):
    %1 = stablehlo.tanh %c : tensor<8x4xf32>
    "my.yield"(%1, %d) : (tensor<8x4xf32>, tensor<8x4xf32>) -> ()
  }) {in_shardings = #sdy.sharding_per_value<[<@mesh, [{"x"}, {?}]>, <@mesh, [{?}, {?}]>]>}
      : (tensor<8x4xf32>, tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<8x4xf32>)
  return %0#0 : tensor<8x4xf32>
}"""
)


def stored_edges() -> None:
    shardcore.data_flow_edges(
        "my.op",
        EdgeGroup(owner_region=0, first_operand=0, stored_in="in_shardings"),
        EdgeGroup(returns=[0]),
    )


def attribute_of(module: Module) -> str:
    (op,) = (op for op in module.ops() if op.name == "my.op")
    return op.attributes["in_shardings"]


def test_001_120_the_sharding_of_an_owner_is_read_and_written() -> None:
    # "The user also has to say how the sharding of the edge owner is got and set."
    module = Module.parse(STORED)
    assert module.edges() == []
    stored_edges()
    into, other, *out = module.edges()
    assert (into.owner.name, str(into.sharding)) == ("%c", '<@mesh, [{"x"}, {?}]>')
    assert str(other.sharding) == "<@mesh, [{?}, {?}]>"
    assert [edge.sharding for edge in out] == [None, None]
    assert next(iter(into.factor_table().after.values()))["i"] == '"x", ?'
    # Forward to the body and the result, and backward to the operand.
    result = module.propagate()
    for value in ("%a", "%c", "%1", "%0#0"):
        assert str(result[value].sharding) == '<@mesh, [{"x"}, {}]>'
    assert attribute_of(result.module) == (
        '#sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>, <@mesh, [{}, {}]>]>'
    )
    # The text has all of it.
    again = Module.parse(str(result.module)).propagate()
    assert str(again.module) == str(result.module)
    assert str(module.session().result.module) == str(result.module)


def test_001_120_what_flows_into_an_owner_is_written() -> None:
    stored_edges()
    text = STORED.replace(
        "%b: tensor<8x4xf32>)",
        '%b: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"y"}]>})',
    )
    for attribute in ("in_shardings = ", None):
        given = text if attribute else text.replace(f"in_shardings = {IN}", "other = 1 : i32")
        found = attribute_of(Module.parse(given).propagate().module)
        first = '[{"x"}, {}]' if attribute else "[{}, {}]"
        assert found == f'#sdy.sharding_per_value<[<@mesh, {first}>, <@mesh, [{{}}, {{"y"}}]>]>'


IN = '#sdy.sharding_per_value<[<@mesh, [{"x"}, {?}]>, <@mesh, [{?}, {?}]>]>'


def test_001_120_an_alias_of_the_shardings() -> None:
    stored_edges()
    text = f"#in = {IN}\n{STORED.replace(IN, '#in')}"
    result = Module.parse(text).propagate()
    assert str(result["%0#0"].sharding) == '<@mesh, [{"x"}, {}]>'
    assert attribute_of(result.module).startswith("#sdy.sharding_per_value<")


@pytest.mark.parametrize(
    ("shardings", "code", "message"),
    [
        ('#sdy.sharding_per_value<[<@mesh, [{"z"}, {}]>, <@mesh, [{}, {}]>]>', "unknown-axis", "z"),
        ("#sdy.sharding_per_value<[<@mesh, [{}, {}]>]>", "invalid-sharding", "1 shardings of 2"),
        ("#sdy.sharding_per_value<[<@mesh, [{}]>, <@mesh, [{}]>]>", "invalid-sharding", "rank"),
        ("3 : i32", "syntax", "expected"),
    ],
)
def test_001_120_mistakes_in_stored_shardings(shardings: str, code: str, message: str) -> None:
    stored_edges()
    module = Module.parse(STORED.replace(IN, shardings))
    for use in (Module.propagate, Module.edges):
        with pytest.raises(
            shardcore.ShardcoreError, match=f"in_shardings of my.op: .*{message}"
        ) as caught:
            use(module)
        assert (caught.value.code, caught.value.line) == (code, 4)


def test_001_120_results_store_their_own() -> None:
    with pytest.raises(ValueError, match="stored_in needs owner_region"):
        shardcore.data_flow_edges("my.op", EdgeGroup(first_operand=0, stored_in="in_shardings"))
