"""Shardy, "Propagation"."""

from __future__ import annotations

import json

import pytest
from shardcore import Module, OpShardingRule, ShardcoreError
from shardcore.cli import main

RULES = [
    ("024: a matmul", "(i, k), (k, j) -> (i, j)", [[8, 4], [4, 16]], [[8, 16]],
     "<([i, j], [j, k])->([i, k]) {i=8, j=4, k=16} reduction={j}>"),
    ("035: dims are merged", "(i,j,k) -> ((ij), k) : i=2, j=4, k=32", [[2, 4, 32]], [[8, 32]],
     "<([i, j, k])->([ij, k]) {i=2, j=4, k=32}>"),
    ("039: a dim is split", "((ij), k) -> (i,j,k) : i=2, j=4, k=32", [[8, 32]], [[2, 4, 32]],
     "<([ij, k])->([i, j, k]) {i=2, j=4, k=32}>"),
    ("044: no whole dim is a factor", "((ij), k) -> (i,(jk)) : i=2, j=4, k=4", [[8, 4]], [[2, 16]],
     "<([ij, k])->([i, jk]) {i=2, j=4, k=4}>"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "operands", "results", "rule"), [row[1:] for row in RULES], ids=[row[0] for row in RULES]
)  # fmt: skip
def test_001_rules_as_the_document_writes_them(text, operands, results, rule) -> None:
    found = OpShardingRule.parse(text, operands, results)
    assert str(found).removeprefix("#sdy.op_sharding_rule") == rule
    if ":" in text:
        assert OpShardingRule.parse(text) == found


@pytest.mark.parametrize(
    "text", ["ik,kj->ij", "(i, k) (k, j -> (i, j)", "[i, k], [k, j] -> [i, j]", "i k, k j -> i* j"]
)
def test_001_024_what_is_no_rule_gets_help(text: str) -> None:
    with pytest.raises(ShardcoreError) as caught:
        OpShardingRule.parse(text, [[8, 4], [4, 16]], [[8, 16]])
    for form in ("i k, k j -> i j", "(i, k), (k, j) -> (i, j)", "<([i, k], [k, j])->([i, j])"):
        assert form in (caught.value.hint or "")


# Line 85: the table of the document as an op: along F0 "a", "b" go to all tensors, along F1 "c".
CONFLICT = """
sdy.mesh @mesh = <["a"=2, "b"=2, "c"=2, "d"=2, "e"=2, "f"=2, "g"=2]>
func.func @main(
    %t0: tensor<16x16x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", ?}, {?}, {?}], replicated={"f"}>},
    %t1: tensor<16x16x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", "b", ?}, {"c", "d", ?}, {?}], replicated={"g"}>},
    %t2: tensor<16x16x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"c", "e", ?}, {?}]>})
    -> tensor<16x16x16xf32> {
  %0 = stablehlo.clamp %t0, %t1, %t2 : tensor<16x16x16xf32>
  return %0 : tensor<16x16x16xf32>
}"""


def test_001_085_the_longest_compatible_axes_of_each_factor() -> None:
    table = Module.parse(CONFLICT).factor_table("%0")
    after = [list(row.values()) for row in table.after.values()]
    assert after[:3] == [
        ['"a", "b", ?', '"c", ?', "?"],
        ['"a", "b", ?', '"c", "d", ?', "?"],
        ['"a", "b", ?', '"c", "e", ?', "?"],
    ]


BASIC = """
sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @main(
    %a: tensor<64x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>},
    %b: tensor<64x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>}) -> tensor<64x64xf32> {
  %0 = stablehlo.add %a, %b : tensor<64x64xf32>
  %1 = stablehlo.tanh %0 : tensor<64x64xf32>
  return %1 : tensor<64x64xf32>
}"""


def test_001_014_the_strategies_side_by_side(tmp_path, capsys) -> None:
    module = Module.parse(BASIC)
    basic = module.propagate(strategy="basic")["%0"].sharding
    aggressive = module.propagate(strategy="aggressive")["%0"].sharding
    assert basic is None or basic.is_fully_replicated
    assert str(aggressive) == '<@mesh, [{"x"}, {}]>'
    path = tmp_path / "model.mlir"
    path.write_text(BASIC)
    command = ["compare", str(path), "--strategy", "basic,aggressive"]
    assert main([*command, "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert [row["value"] for row in record["values"]] == ["%0", "%1"]
    rows = record["strategies"]
    # Line 14: less memory, at the price of communication.
    assert rows["aggressive"]["bytes_per_device"] < rows["basic"]["bytes_per_device"]
    assert rows["aggressive"]["sharded_values"] == 4
    assert main(command) == 0
    shown = capsys.readouterr().out
    assert "values whose shardings differ" in shown
    with pytest.raises(SystemExit):
        main(["compare", str(path), "--strategy", "basic"])
    assert "two or more of basic, aggressive" in capsys.readouterr().err


PRIORITIES = """
sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @main(
    %a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}p1, {?}]>},
    %b: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"y"}p0]>}) -> tensor<8x8xf32> {
  %0 = stablehlo.add %a, %b : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}"""


def test_001_010_the_hierarchy_of_conflict_resolution_step_by_step() -> None:
    # "Like nested for loops: for each user priority a full op-priority propagation is applied."
    steps = Module.parse(PRIORITIES).propagate().steps()
    numbers = [(step.priority, step.step) for step in steps]
    assert numbers == sorted(numbers)
    assert {priority for priority, _ in numbers} == {0, 1}
    assert [step for priority, step in numbers if priority == 0] == [
        step for priority, step in numbers if priority == 1
    ]
    first = [
        (step.priority, change.value)
        for step, visit in steps.visits()
        if visit.op == "stablehlo.add"
        for change in visit.changes
    ]
    assert first[0][0] == 0
    assert (1, "%0") in first
    # Each tensor is after a change as it is before the next one.
    state: dict[str, str | None] = {}
    for _, visit in steps.visits():
        for change in visit.changes:
            assert state.get(change.value, change.before) == change.before
            state[change.value] = change.after
    assert '[{"x"' in str(steps)
    assert "dims that take part" in str(steps)


def test_001_012_op_priorities() -> None:
    # "Pass-through" ops propagate before those that change shapes: the add has its sharding from
    # the negate, not from the dot, which comes first in the program.
    module = Module.parse("""
sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @main(
    %a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}, %b: tensor<8x8xf32>,
    %c: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>}) -> tensor<8x8xf32> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
      : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = stablehlo.negate %c : tensor<8x8xf32>
  %2 = stablehlo.add %0, %1 : tensor<8x8xf32>
  return %2 : tensor<8x8xf32>
}""")
    result = module.propagate()
    assert str(result["%2"].sharding) == '<@mesh, [{}, {"x"}]>'
    steps = {visit.op: step.step for step, visit in result.steps().of("%2").visits()}
    assert steps["stablehlo.add"] == 0


DOT = """
sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @main(%a: tensor<4x8x16xf32>, %b: tensor<4x16x32xf32>) -> tensor<4x8x32xf32> {
  %0 = stablehlo.dot_general %a, %b, batching_dims = [0] x [0], contracting_dims = [2] x [1]
      : (tensor<4x8x16xf32>, tensor<4x16x32xf32>) -> tensor<4x8x32xf32>
  return %0 : tensor<4x8x32xf32>
}"""


def test_001_018_the_rule_of_an_op_is_asked_for_by_the_op() -> None:
    rule = Module.parse(DOT).rule("%0")
    assert rule.notation.replace("(", "").count("->") == 1
    assert len(rule.reduction) == 1
    assert rule.num_factors == 4


def test_001_067_factors_that_a_tensor_does_not_have() -> None:
    # C = dot(A, B): four factors, and in each row one cell with N.
    table = Module.parse(DOT).factor_table("%0")
    cells = [set(row) for row in table.before.values()]
    factors = {symbol for symbol, _, _ in table.factors}
    assert [len(factors - row) for row in cells] == [1, 1, 1]
    kinds = [kind for _, _, kind in table.factors]
    assert kinds.count("reduction") == 1
    drawn = str(table)
    assert drawn.count(" - ") + drawn.count(" -\n") >= 3


def test_001_053_shardings_propagate_along_factors_not_dims() -> None:
    # Dim 0 of the operand has the factors i=2 and j=4; "x" of size 2 shards i, "y" shards j.
    module = Module.parse("""
sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func @main(%a: tensor<8x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", "y"}, {}]>}) -> tensor<2x4x32xf32> {
  %0 = stablehlo.reshape %a : (tensor<8x32xf32>) -> tensor<2x4x32xf32>
  return %0 : tensor<2x4x32xf32>
}""")
    assert str(module.propagate()["%0"].sharding) == '<@mesh, [{"x"}, {"y"}, {}]>'


def test_001_006_forward_and_backward_until_nothing_changes() -> None:
    # Sharding goes from the one annotated value to all others, in both directions.
    module = Module.parse("""
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = stablehlo.tanh %a : tensor<8x8xf32>
  %1 = stablehlo.add %0, %b {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x", ?}, {?}]>]>} : tensor<8x8xf32>
  %2 = stablehlo.negate %1 : tensor<8x8xf32>
  return %2 : tensor<8x8xf32>
}""")
    result = module.propagate()
    tensors = [*result.arguments(), *result.results(), *(result[f"%{n}"] for n in range(3))]
    assert {str(tensor.sharding) for tensor in tensors} == {'<@mesh, [{"x"}, {}]>'}


def test_001_003_along_a_matmul() -> None:
    # From the free dims of both operands to those of the result, and between the summed ones.
    def shardings(a: str, b: str) -> list[str]:
        module = Module.parse(f"""
sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @main(%a: tensor<8x8xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{a}]>}},
    %b: tensor<8x8xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{b}]>}}) -> tensor<8x8xf32> {{
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
      : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}}""")
        result = module.propagate()
        found = [result.arguments()[0], result.arguments()[1], result["%0"]]
        return [str(each.sharding).removeprefix("<@mesh, ").removesuffix(">") for each in found]

    assert shardings('{"x"}, {}', '{}, {"y"}')[2] == '[{"x"}, {"y"}]'
    assert shardings('{?}, {"x", ?}', "{?}, {?}")[1] == '[{"x"}, {}]'
    assert shardings("{?}, {?}", '{"x", ?}, {?}')[0] == '[{}, {"x"}]'


RESHAPES = [
    ("034", "2x4x32", "8x32", "<([i, j, k])->([ij, k]) {i=2, j=4, k=32}>"),
    ("038", "8x32", "2x4x32", "<([ij, k])->([i, j, k]) {i=2, j=4, k=32}>"),
    ("043", "8x4", "2x16", "<([ij, k])->([i, jk]) {i=2, j=4, k=4}>"),
]


@pytest.mark.parametrize(
    ("before", "after", "rule"), [r[1:] for r in RESHAPES], ids=[r[0] for r in RESHAPES]
)
def test_001_033_the_rules_of_the_reshapes(before: str, after: str, rule: str) -> None:
    module = Module.parse(
        f"func.func @main(%in: tensor<{before}xf32>) -> tensor<{after}xf32> {{\n"
        f"  %out = stablehlo.reshape %in : (tensor<{before}xf32>) -> tensor<{after}xf32>\n"
        f"  return %out : tensor<{after}xf32>\n}}"
    )
    assert str(module.rule("%out")).removeprefix("#sdy.op_sharding_rule") == rule


def test_001_013_a_lower_priority_is_not_overridden() -> None:
    # "Propagation does not override user-defined shardings with lower priority (> i), even if they
    # are ignored in earlier iterations."
    module = Module.parse(PRIORITIES.replace('{?}, {"y"}p0', '{"y"}p0, {?}'))
    result = module.propagate()
    assert str(result.arguments()[0].sharding) == '<@mesh, [{"x"}, {}]>'
    assert str(result["%0"].sharding) == '<@mesh, [{"y"}, {}]>'


def test_001_066_an_axis_is_used_once_in_a_tensor() -> None:
    # "Axes in one row cannot overlap": "x" goes along one factor of the result only.
    module = Module.parse(BASIC)
    table = module.factor_table("%0")
    for row in table.after.values():
        cells = [cell for cell in row.values() if '"x"' in cell]
        assert len(cells) <= 1
