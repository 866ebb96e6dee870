"""Op sharding rules: text, pieces and invariants."""

from __future__ import annotations

import copy
import pickle

import pytest
from shardcore import OpShardingRule, ParseError, VerificationError

MATMUL = "<([i, k], [k, j])->([i, j]) {i=8, j=16, k=32} reduction={k}>"


def test_text_and_pieces_give_the_same_rule() -> None:
    rule = OpShardingRule.parse(MATMUL)
    pieces = OpShardingRule([8, 16, 32], [[[0], [2]], [[2], [1]]], [[[0], [1]]], reduction=[2])
    assert rule == pieces
    assert hash(rule) == hash(pieces)
    assert str(rule) == "#sdy.op_sharding_rule" + MATMUL
    assert OpShardingRule.parse(str(rule)) == rule
    assert eval(repr(rule)) == rule
    assert pickle.loads(pickle.dumps(rule)) == rule
    assert copy.deepcopy(rule) == rule
    assert rule.factor_names == ["i", "j", "k"]
    assert rule.factor_sizes == (8, 16, 32)
    assert rule.operand_mappings == (((0,), (2,)), ((2,), (1,)))
    assert rule.result_mappings == (((0,), (1,)),)
    assert (rule.reduction, rule.pass_through) == ((2,), (0, 1))
    assert not rule.is_custom


def test_short_notation() -> None:
    rule = OpShardingRule.parse("i k, k j -> i j", [[8, 32], [32, 16]], [[8, 16]])
    assert rule.notation == "i j, j k -> i k"
    assert OpShardingRule.parse("i k, k j -> i j {i=8, j=16, k=32}") == rule
    assert OpShardingRule.parse(MATMUL).notation == "i k, k j -> i j"
    split = OpShardingRule.parse("<([ij])->([i, j]) {i=2, j=4} permutation={j}>")
    assert split.notation == "(i j) -> i j permutation={j}"
    assert OpShardingRule.parse(split.notation, [[8]], [[2, 4]]) == split
    hidden = OpShardingRule.parse("<([i, j])->([i]) {i=2, j=4}>")
    assert hidden.notation == "i j -> i pass_through={j}"
    assert OpShardingRule.parse(hidden.notation, [[2, 4]], [[2]]) == hidden
    with pytest.raises(VerificationError) as caught:
        OpShardingRule.parse("i k, k j -> i j")
    assert caught.value.hint == "give the shapes, or the sizes: {i=8, j=16}"
    with pytest.raises(VerificationError, match="has size 3"):
        OpShardingRule.parse("i j -> i", [[2, 2]], [[3]])
    with pytest.raises(TypeError):
        OpShardingRule.parse("i -> i", [[2]])


def test_all_lists() -> None:
    text = (
        "<([i, jk, l])->([i, j]) {i=8, j=2, k=4, l=3} reduction={k} need_replication={l} "
        "permutation={i} blocked_propagation={i, j}, custom>"
    )
    rule = OpShardingRule.parse(text)
    assert str(rule).endswith(text)
    assert (rule.reduction, rule.need_replication, rule.permutation) == ((2,), (3,), (0,))
    assert rule.blocked_propagation == (0, 1)
    assert rule.is_custom
    assert rule.num_factors == 4


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<([i])->([i]) {i=0}>", "factor i has size 0; it must be at least 1"),
        ("<([i, i])->([i]) {i=2}>", "operand - cannot reuse factors for the same tensor value"),
        (
            "<([ij])->([i]) {i=2, j=1}>",
            "operand - dim mapping can't have a factor of size 1 if there are multiple factors",
        ),
        (
            "<([i])->([i]) {i=2, j=2}>",
            "has factor j=2 that isn't used in operand and result mappings",
        ),
        (
            "<([i])->([i]) {i=2} reduction={i}>",
            "reduction factor cannot be in result mappings",
        ),
        (
            "<([i, j])->([]) {i=2, j=2} reduction={j, i}>",
            "indices of special factors must be sorted",
        ),
        (
            "<([i])->([]) {i=2} reduction={i} permutation={i}>",
            "a factor can only be in one of the reduction, need replication, or permutation "
            "factor sets",
        ),
        (
            "<([i])->([j]) {i=2}>",
            "result - expecting factor indices to be within 0<=...<num_factors; received: 1, "
            "num_factors: 1",
        ),
        ("<([i], [,i])->([i]) {i=2}>", "operand 1 - dim mapping must have at least one factor"),
    ],
)
def test_broken_rules(text: str, message: str) -> None:
    with pytest.raises(VerificationError) as caught:
        OpShardingRule.parse(text)
    assert caught.value.code == "invalid-rule"
    assert caught.value.message == message
    assert caught.value.line == 1


def test_bad_pieces() -> None:
    with pytest.raises(VerificationError, match="factor 1 has no size"):
        OpShardingRule([2], [[[0, 1]]], [[[0]]])
    with pytest.raises(VerificationError, match="size 0"):
        OpShardingRule([0], [[[0]]], [[[0]]])
    for text in ["", "<", "<()->([i]) {i=2}>", "<([a])->([i]) {i=2}>", MATMUL + ">"]:
        with pytest.raises(ParseError):
            OpShardingRule.parse(text)


def test_shapes_have_to_fit() -> None:
    rule = OpShardingRule.parse(MATMUL)
    rule.check_shapes([[8, 32], [32, 16]], [[8, 16]])
    with pytest.raises(VerificationError) as caught:
        rule.check_shapes([[8, 31], [32, 16]], [[8, 16], [8]])
    assert [diagnostic.message for diagnostic in caught.value.diagnostics] == [
        "dim 1 of operand 0 has size 31, and its factors k have 32",
        "number of results and mappings must match: 2 != 1",
    ]
