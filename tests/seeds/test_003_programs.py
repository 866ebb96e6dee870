"""Sharded matrices (003): products as programs, which `partition` makes what devices run; the
collective matmul (003:115) among them.
"""

from __future__ import annotations

import re

import numpy as np
import pytest
from shardcore import CalculusError, Mesh, Module
from shardcore.calculus import (
    pairwise,
    parse_product,
    program,
)
from shardcore.calculus.numbers import run
from shardcore.cli import main

MESH = Mesh({"X": 4, "Y": 2})
SIZES = {"I": 8, "J": 16, "K": 24, "B": 8}
PRODUCTS = [
    "A[I, J] * B[J, K_Y] -> C[I, K_Y]",  # line 52: no collective
    "A[I, J_X] * B[J, K] -> C[I, K]",  # line 66: case 2
    "A[I, J_X] * B[J_X, K] -> C[I, K]",  # line 78: case 3, an AllReduce
    "A[I, J_X] * B[J_X, K] -> C[I, K_X]",  # line 89: a ReduceScatter
    "A[I_X, J] * B[J, K_X] -> C[I, K_X]",  # line 98: case 4
    "A[I_X, J] * B[J, K_X] -> C[I_X, K]",
    "A[I, J_X] * B[J, K_X] -> C[I, K_X]",  # gathered along the dim that is summed over
    "A[I_{XY}, J] * B[J, K] -> C[I, K]",
    "A[I_Y, J_X] * B[J_X, K_Y] -> C[I_Y, K]",
    "A[B_X, I, J] * D[B, J, K] -> C[B, K, I]",  # a batch dim, and dims in another order
]


def numbers(product: str, mesh: Mesh) -> tuple[list[np.ndarray], np.ndarray]:
    """Operands of small integers, whose sums are exact, and the product."""
    operands, output = parse_product(product, mesh, sizes=SIZES, dtype="f32")
    (contraction,) = pairwise(operands, output)
    random = np.random.default_rng(0)
    arrays = [random.integers(-4, 5, each.shape).astype(np.float32) for each in operands]
    letters = {dim: chr(97 + at) for at, dim in enumerate(contraction.dims)}
    left, right, result = (
        "".join(letters[dim] for dim in each.dim_names) for each in (*operands, output)
    )
    return arrays, np.einsum(f"{left},{right}->{result}", *arrays)


@pytest.mark.parametrize("policy", ["least", "shardy", "xla"])
@pytest.mark.parametrize("product", PRODUCTS)
def test_003_045_products_as_programs(product: str, policy: str) -> None:
    module = program(product, mesh=MESH, sizes=SIZES, dtype="f32")
    partitioned = module.propagate().partition(policy)
    arrays, expected = numbers(product, MESH)
    (found,) = partitioned.simulate(*arrays)
    np.testing.assert_array_equal(found, expected)
    assert "stablehlo.while" not in str(partitioned.module)


@pytest.mark.parametrize("mesh", [MESH, Mesh({"X": 2, "Y": 2}, device_ids=[3, 1, 0, 2])], ids=str)
@pytest.mark.parametrize("product", PRODUCTS[1:])
def test_003_115_collective_matmuls_give_the_product(product: str, mesh: Mesh) -> None:
    module = program(product, mesh=mesh, sizes=SIZES, dtype="f32", chunked=True)
    partitioned = module.propagate().partition()
    arrays, expected = numbers(product, mesh)
    (found,) = partitioned.simulate(*arrays)
    np.testing.assert_array_equal(found, expected)
    text = str(partitioned.module)
    assert text.count("stablehlo.while") == 1
    # The product of a hop does not need what arrives in it.
    (body,) = re.findall(r"\} do \{\n(.*?)\n *\"?stablehlo\.return", text, re.DOTALL)
    lines = [line for line in body.split("\n") if "=" in line]
    (sent,) = (line.split()[0] for line in lines if "collective_permute" in line)
    ready: set[str] = set()
    for line in lines:
        name, _, rest = line.strip().partition(" = ")
        if name == sent or {sent, *ready} & set(re.findall(r"%[\w#]+", rest)):
            ready.add(name)
    products = [line.split()[0] for line in lines if "dot_general" in line]
    assert products
    assert ready.isdisjoint(products)


@pytest.mark.parametrize(
    ("product", "strategy", "kind"),
    [
        ("A[I_X, J] * B[J, K] -> C[I, K]", "AllGather_X(A)", "all_gather"),
        ("A[I_X, J] * B[J, K_X] -> C[I, K_X]", "AllGather_X(A)", "all_gather"),
        ("A[I, J_X] * B[J, K_X] -> C[I, K_X]", "AllGather_X(A)", "all_gather"),
        ("A[I, J_X] * B[J_X, K] -> C[I, K_X]", "ReduceScatter_{X,K}(C)", "reduce_scatter"),
        ("A[I, J_X] * B[J_X, K] -> C[I, K]", "AllReduce_X(C)", "all_reduce"),
    ],
)
def test_003_115_it_sends_what_the_collective_sends(product, strategy, kind) -> None:
    mesh = Mesh({"X": 4})
    results = [
        program(
            product, mesh=mesh, sizes=SIZES, dtype="f32", strategy=strategy, chunked=chunked
        ).propagate()
        for chunked in (False, True)
    ]
    whole, looped = (result.partition() for result in results)
    assert [each.kind for each in whole.collectives] == [kind]
    # An AllReduce is a ReduceScatter and an AllGather.
    expected = ["collective_permute"] + (["all_gather"] if kind == "all_reduce" else [])
    assert [each.kind for each in looped.collectives] == expected
    assert looped.collectives[0].count == 3
    assert looped.sent_bytes == whole.sent_bytes


@pytest.mark.parametrize(
    ("product", "strategy", "is_looped"),
    [
        ("A[I, J_X] * B[J, K] -> C[I, K]", "AllGather_X(A)", False),
        ("A[I, J_X] * B[J, K] -> C[I, K]", "Slice_{X,J}(B); AllReduce_X(C)", True),
        ("A[I, J_X] * B[J, K] -> C[I, K]", "AllToAll_{X,I}(A); AllGather_X(C)", False),
        ("A[I_X, J] * B[J, K] -> C[I, K]", "AllGather_X(A)", True),
        ("A[I_X, J] * B[J, K] -> C[I, K]", "AllGather_X(C)", False),
        ("A[I_{XY}, J] * B[J, K] -> C[I, K]", "AllGather_Y(A); AllGather_X(C)", True),
        ("A[I_{XY}, J] * B[J, K] -> C[I, K]", "AllGather_{XY}(A)", True),
        (
            "A[I, J_X] * B[J_X, K] -> C[I, K_X]",
            "Slice_{Y,I}(A); ReduceScatter_{X,K}(C); AllGather_Y(C)",
            True,
        ),
    ],
)
def test_003_115_strategies_by_name(product: str, strategy: str, is_looped: bool) -> None:
    arrays, expected = numbers(product, MESH)
    given = dict(zip(("A", "B"), arrays, strict=True))
    assert run(product, mesh=MESH, strategy=strategy, **given).name == strategy
    how = {"mesh": MESH, "sizes": SIZES, "dtype": "f32", "strategy": strategy}
    modules = [program(product, **how)]
    if is_looped:
        modules.append(program(product, **how, chunked=True))
    else:
        with pytest.raises(CalculusError, match="no collective that can be a loop"):
            program(product, **how, chunked=True)
    for module in modules:
        (found,) = module.propagate().partition().simulate(*arrays)
        np.testing.assert_array_equal(found, expected)


def test_003_115_chains() -> None:
    text = "A[I, J_X] * B[J_X, K] * D[K_X, J] -> C[I, J_X]"
    module = program(text, mesh=MESH, sizes=SIZES, dtype="f32", chunked=True)
    partitioned = module.propagate().partition()
    assert str(partitioned.module).count("stablehlo.while") == 2
    random = np.random.default_rng(0)
    arrays = [
        random.integers(-4, 5, shape).astype(np.float32) for shape in ((8, 16), (16, 24), (24, 16))
    ]
    (found,) = partitioned.simulate(*arrays)
    np.testing.assert_array_equal(found, arrays[0] @ arrays[1] @ arrays[2])


@pytest.mark.parametrize("dtype", ["bf16", "f64", "int8", "uint8", "complex64"])
def test_003_115_element_types(dtype: str) -> None:
    module = program(PRODUCTS[2], mesh=MESH, sizes=SIZES, dtype=dtype, chunked=True)
    partitioned = module.propagate().partition()
    arrays, expected = numbers(PRODUCTS[2], MESH)
    (port, _) = partitioned.arguments
    import ml_dtypes

    names = {"bf16": ml_dtypes.bfloat16, "f64": "float64"}
    given = [np.abs(array % 2).astype(names.get(dtype, dtype)) for array in arrays]
    assert port.dtype == module.arguments()[0].dtype
    (found,) = partitioned.simulate(*given)
    expected = (np.abs(arrays[0] % 2) @ np.abs(arrays[1] % 2)).astype(found.dtype)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(
    ("product", "options", "message"),
    [
        (PRODUCTS[0], {"chunked": True}, "no collective that can be a loop"),
        (PRODUCTS[1], {"chunked": True, "strategy": "AllGather_X(A)"}, "AllGather_X"),
        (PRODUCTS[1], {"strategy": "AllGather_Z(A)"}, "no strategy"),
        ("A[I, J_X] * B[J_X, K] -> C[I, K] {U_X}", {}, "unsummed"),
        ("A[I, J] * B[J, K] * D[K, B] -> C[I, B]", {"strategy": "AllReduce_X(C)"}, "chain"),
        (
            "A[L=1, J=2] * B[J=2, K=3_X] -> C[L, K]",
            {"chunked": True},
            "no collective that can be a loop",
        ),
    ],
)
def test_003_115_what_is_refused(product: str, options: dict, message: str) -> None:
    sizes = {name: size for name, size in SIZES.items() if f"{name}=" not in product}
    with pytest.raises(CalculusError, match=message) as caught:
        program(product, mesh=MESH, sizes=sizes, dtype="f32", **options)
    assert caught.value.code == "invalid-option"


def test_003_115_sizes_and_types_are_needed() -> None:
    for options in ({"sizes": SIZES}, {"dtype": "f32"}):
        with pytest.raises(CalculusError) as caught:
            program(PRODUCTS[1], mesh=MESH, **options)
        assert caught.value.code == "missing-size"


def test_003_115_on_the_command_line(capsys) -> None:
    command = ["matmul", "A[I_X, J] * B[J, K] -> C[I, K]", "--mesh", "X=4", "--dtype", "f32"]
    command += ["--sizes", "I=8,J=16,K=8"]
    assert main([*command, "--program", "local", "--strategy", "AllGather_X(A)"]) == 0
    text = capsys.readouterr().out
    assert "all_gather" in text
    assert "sdy." not in text
    assert Module.parse(text).num_ops
    assert main([*command, "--program", "local", "--chunked"]) == 0
    text = capsys.readouterr().out
    assert "collective_permute" in text
    assert "stablehlo.while" in text
    assert main([*command, "--program", "global", "--chunked"]) == 0
    text = capsys.readouterr().out
    assert "sdy.manual_computation" in text
    (found,) = Module.parse(text).propagate().partition().simulate(np.eye(8, 16), np.ones((16, 8)))
    np.testing.assert_array_equal(found, np.eye(8, 16) @ np.ones((16, 8)))
    for wrong in (["--chunked"], ["--program", "local", "--json"], []):
        with pytest.raises(SystemExit):
            main([*command, *wrong])
    capsys.readouterr()
