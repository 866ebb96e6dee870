"""The sharding rule of every op is the reference's."""

from __future__ import annotations

from itertools import islice

import pytest
import shardcore

from tests.shardy import reference, rule_cases
from tests.shardy.diff import explain, ours

PASS = "sdy-populate-op-sharding-rules{{conservative-propagation={}}}"
ROUNDS, CHUNK = 12, 50


def programs() -> list[str]:
    """Modules of many functions with one op each."""
    functions = (text for _, text in rule_cases.cases(seed=0, rounds=ROUNDS))
    chunks = iter(lambda: list(islice(functions, CHUNK)), [])
    return [rule_cases.module(chunk) for chunk in chunks]


@pytest.mark.parametrize("conservative", ["false", "true"])
@pytest.mark.parametrize("form", ["generic", "own"])
def test_rules_are_the_references(form: str, conservative: str) -> None:
    pipeline = f"builtin.module(func.func({PASS.format(conservative)}))"
    for text in programs():
        text = reference.canonical(text) if form == "own" else text
        theirs = reference.run(text, pipeline)
        assert theirs.count("sdy.sharding_rule") > CHUNK / 2
        assert not (difference := explain(theirs, ours(text, pipeline))), difference


def test_unknown_shapes_are_refused() -> None:
    args = "%a: tensor<?x4xf32>"
    text = f"func.func @main({args}) {{\n  %0 = stablehlo.tanh %a : tensor<?x4xf32>\n  return\n}}"
    pipeline = f"builtin.module(func.func({PASS.format('false')}))"
    with pytest.raises(reference.RejectedError, match="static shape"):
        reference.run(text, pipeline)
    with pytest.raises(shardcore.ShardcoreError, match=r"tensor<\?x4xf32> has no static shape"):
        ours(text, pipeline)


def test_dropping_rules_keeps_those_of_users() -> None:
    text = programs()[0]
    populated = reference.run(text, f"builtin.module(func.func({PASS.format('false')}))")
    pipeline = "builtin.module(func.func(sdy-drop-sharding-rules))"
    assert not explain(reference.run(populated, pipeline), ours(populated, pipeline))
