"""The operands of Shardy's ops have the types that MLIR asks for."""

from __future__ import annotations

import pytest

from tests.shardy.verification.compare import compare

MESH = 'sdy.mesh @mesh = <["a"=2]>\n'
TYPES = [
    "tensor<2xf32>",
    "tensor<?xf32>",
    "tensor<*xf32>",
    "!stablehlo.token",
    "memref<2xf32>",
    "memref<?xf32>",
    "vector<2xf32>",
    "f32",
    "none",
    "tuple<tensor<2xf32>>",
]
OPS = {
    "sharding_group": (
        "sdy.sharding_group %a group_id=0 : T",
        '"sdy.sharding_group"(%a) <{group_id = 0 : i64}> : (T) -> ()',
    ),
    "propagation_barrier": (
        "%0 = sdy.propagation_barrier %a allowed_direction=NONE : T",
        '%0 = "sdy.propagation_barrier"(%a) <{allowed_direction = 0 : i32}> : (T) -> T',
    ),
    "data_flow_edge": (
        "%0 = sdy.data_flow_edge %a : T",
        '%0 = "sdy.data_flow_edge"(%a) : (T) -> T',
    ),
    "func_data_flow_edge": (
        "%0 = sdy.func_data_flow_edge %a : T",
        '%0 = "sdy.func_data_flow_edge"(%a) : (T) -> T',
    ),
}


@pytest.mark.parametrize("op", OPS)
def test_operands(op: str) -> None:
    texts = [
        f"{MESH}func.func @main(%a: {type}) {{\n{form.replace('T', type)}\nreturn\n}}"
        for form in OPS[op]
        for type in TYPES
    ]
    answers = list(compare(texts))
    wrong = [
        answer for answer in answers if answer.verdict not in ("both accept", "both refuse alike")
    ]
    assert not wrong
    assert {answer.verdict for answer in answers} == {"both accept", "both refuse alike"}
