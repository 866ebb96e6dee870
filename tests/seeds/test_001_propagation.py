"""Shardy, "Propagation"."""

from __future__ import annotations

import pytest
from shardcore import OpShardingRule, ShardcoreError

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
