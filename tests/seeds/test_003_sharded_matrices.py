"""How to Scale Your Model, part 3: sharded matrices and how to multiply them."""

from __future__ import annotations

import json

import pytest
from shardcore import CalculusError, Mesh
from shardcore.calculus import Topology, hardware, matmul_strategies, pairwise, parse_product
from shardcore.cli import main

MESH = Mesh({"X": 4})


def strategies(product: str, mesh: Mesh = MESH, chip: str = "tpu-v5p", **sizes: int) -> list:
    operands, output = parse_product(product, mesh, sizes=sizes, dtype="bf16")
    (contraction,) = pairwise(operands, output)
    return matmul_strategies(contraction, Topology.of(mesh, hardware(chip)))


def test_003_082_terms_may_be_left_unsummed(capsys) -> None:
    local = "A[I, J_X] * B[J_X, K] -> C[I, K]"
    best = strategies(f"{local} {{U_X}}", I=64, J=64, K=64)[0]
    assert (best.name, best.comm_seconds) == ("multiply locally", 0)
    assert best.output == "C[I, K] {U_X}"
    assert best.multiplications == (f"{local} {{U_X}}",)
    # Line 89: the AllReduce that was left out.
    assert "AllReduce_X(C)" in [each.name for each in strategies(local, I=64, J=64, K=64)]
    # Line 99: an AllReduce along Y, of terms along X and Y, leaves those along X.
    both = strategies(
        "A[I, J_{XY}] * B[J_{XY}, K] -> C[I, K] {U_X}", Mesh({"X": 4, "Y": 2}), I=64, J=64, K=64
    )
    (step,) = next(each.steps for each in both if each.name == "AllReduce_Y(C)")
    assert step.text == "C[I, K] {U_{XY}} -> C[I, K] {U_X}"
    flags = ["--mesh", "X=4", "--sizes", "I=64,J=64,K=64", "--dtype", "bf16"]
    command = ["matmul", f"{local} {{U_X}}", *flags, "--hardware", "tpu-v5p", "--json"]
    assert main(command) == 0
    assert json.loads(capsys.readouterr().out)["best"] == "multiply locally"
    with pytest.raises(CalculusError, match="no terms along X") as caught:
        parse_product("A[I, J] * B[J, K] -> C[I, K] {U_X}", MESH)
    assert (caught.value.code, caught.value.column) == ("contraction", 22)
