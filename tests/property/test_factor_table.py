"""The projection of an op's tensors to factors, before and after a visit, against the oracle."""

from __future__ import annotations

from collections.abc import Sequence

import shardcore
from hypothesis import given

from tests.oracle.graph import Program
from tests.oracle.printing import to_mlir
from tests.oracle.projection import FactorSharding, project, unproject_tensor
from tests.oracle.rule import OpShardingRule, factor_symbol
from tests.oracle.sharding import TensorSharding
from tests.oracle.visit import Strategy, SweepOptions, visit
from tests.property.programs import single_ops

Table = list[dict[str, str]]


def cell_text(sharding: FactorSharding) -> str:
    """Draw one cell: its axes, a bar and the overflow axes, and ? if it is open."""
    text = ", ".join(map(str, sharding.axes))
    if sharding.overflow:
        text = f"{text} | {', '.join(map(str, sharding.overflow))}".strip()
    return text if sharding.is_closed else f"{text}, ?".removeprefix(", ")


def table(
    rule: OpShardingRule, shardings: Sequence[TensorSharding | None], program: Program
) -> Table:
    count = len(rule.operands)
    projection = project(rule, shardings[:count], shardings[count:], program.meshes["mesh"])
    return [
        {factor_symbol(factor): cell_text(row.factors[factor]) for factor in sorted(row.factors)}
        for row in projection.tensors
    ]


@given(single_ops())
def test_factor_table(program: Program) -> None:
    op = program.ops[0]
    assert op.rule is not None
    shardings = [program.shardings.get(value) for value in op.operands + op.results]
    if not any(shardings):
        return
    count = len(op.operands)
    sweep = SweepOptions(program.meshes, Strategy.AGGRESSIVE)
    updates = dict(visit(op.rule, shardings[:count], shardings[count:], sweep))
    updated = [updates.get(index, sharding) for index, sharding in enumerate(shardings)]

    module = shardcore.Module.parse(to_mlir(program))
    mine = module.factor_table("%0" if len(op.results) == 1 else "%0#0")
    assert list(mine.before.values()) == table(op.rule, shardings, program)
    assert list(mine.after.values()) == table(op.rule, updated, program)


@given(single_ops())
def test_projecting_back_restores_shardings(program: Program) -> None:
    op, mesh = program.ops[0], program.meshes["mesh"]
    assert op.rule is not None
    shardings = [program.shardings.get(value) for value in op.operands + op.results]
    count = len(op.operands)
    projection = project(op.rule, shardings[:count], shardings[count:], mesh)
    for mapping, row, sharding in zip(op.rule.tensors, projection.tensors, shardings, strict=True):
        if sharding is not None:
            back = unproject_tensor(mapping, row, op.rule.factor_sizes, "mesh", mesh)
            assert back == sharding
