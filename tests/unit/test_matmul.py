"""Strategies for sharded products: all of them are right, and the best one is the best."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shardcore import Mesh, ParseError, ShardcoreError
from shardcore.calculus import (
    Contraction,
    Strategy,
    TimeOptions,
    Topology,
    best_strategies,
    bound_changes,
    chain_crossovers,
    chain_strategies,
    crossovers,
    hardware,
    matmul_strategies,
)
from shardcore.calculus.axes import axis_ref, axis_text
from shardcore.calculus.chain import layouts
from shardcore.calculus.contraction import pairwise, parse_product
from shardcore.calculus.reshard import ways

from tests.deep import IS_DEEP
from tests.oracle.devices import run_strategy

SIZES = {"I": 128, "J": 8192, "K": 32768, "B": 64}


def product(text: str, mesh: dict[str, int], sizes=None, dtype="bf16") -> list[Contraction]:
    return pairwise(*parse_product(text, Mesh(mesh), sizes=sizes or SIZES, dtype=dtype))


def solve(text: str, mesh: dict[str, int], chip="tpu-v5p", sizes=None, **options) -> list[Strategy]:
    products = product(text, mesh, sizes)
    where = Topology.of(Mesh(mesh), hardware(chip))
    if len(products) == 1:
        return matmul_strategies(products[0], where, **options)
    return chain_strategies(products, where, **options)


@pytest.mark.parametrize(
    ("text", "case"),
    [
        ("A[I, J] * B[J, K] -> C[I, K]", 1),
        ("A[I_X, J] * B[J, K] -> C[I_X, K]", 1),
        ("A[I, J] * B[J, K_Y] -> C[I, K_Y]", 1),
        ("A[I_X, J] * B[J, K_Y] -> C[I_X, K_Y]", 1),
        ("A[B_X, I] * B[B_X, I] -> C[B_X]", 1),
        ("A[I, J_X] * B[J, K] -> C[I, K]", 2),
        ("A[I, J] * B[J_X, K] -> C[I, K]", 2),
        ("A[I, J_X] * B[J_Y, K] -> C[I, K]", 2),
        ("A[I, J_X] * B[J_{XY}, K] -> C[I, K]", 2),
        ("A[I, J_X] * B[J_X, K] -> C[I, K]", 3),
        ("A[I_Y, J_X] * B[J_X, K] -> C[I_Y, K]", 3),
        ("A[I_X, J] * B[J, K_X] -> C[I_X, K]", 4),
        ("A[I_{XY}, J] * B[J, K_Y] -> C[I, K]", 4),
    ],
)
def test_the_four_cases(text: str, case: int) -> None:
    assert product(text, {"X": 4, "Y": 4})[0].case == case


def test_the_collectives_of_each_case() -> None:
    def names(text: str) -> list[str]:
        return [strategy.name for strategy in solve(text, {"X": 4})]

    assert names("A[I_X, J] * B[J, K] -> C[I_X, K]")[0] == "multiply locally"
    found = names("A[I, J_X] * B[J, K] -> C[I, K]")
    assert "AllGather_X(A)" in found
    assert "Slice_{X,J}(B); AllReduce_X(C)" in found
    assert "AllToAll_{X,I}(A); AllGather_X(C)" in found
    assert "Slice_{X,J}(B); ReduceScatter_{X,K}(C)" in names("A[I, J_X] * B[J, K] -> C[I, K_X]")
    assert "AllReduce_X(C)" in names("A[I, J_X] * B[J_X, K] -> C[I, K]")
    assert "ReduceScatter_{X,I}(C)" in names("A[I, J_X] * B[J_X, K] -> C[I_X, K]")
    assert "AllGather_X(A)" in names("A[I_X, J] * B[J, K_X] -> C[I, K_X]")
    assert "AllGather_X(B)" in names("A[I_X, J] * B[J, K_X] -> C[I_X, K]")
    after = names("A[I_X, J] * B[J, K] -> C[I, K]")
    assert {"AllGather_X(A)", "AllGather_X(C)"} <= set(after)


def test_all_figures_of_a_strategy() -> None:
    found = solve("A[I, J_X] * B[J, K] -> C[I, K]", {"X": 4})
    gather = next(each for each in found if each.name == "AllGather_X(A)")
    i, j, k = SIZES["I"], SIZES["J"], SIZES["K"]
    assert gather.flops_per_device == 2 * i * j * k
    assert gather.compute_seconds == pytest.approx(2 * i * j * k / 4.59e14)
    assert gather.comm_seconds == pytest.approx(2 * i * j / 1.8e11)
    assert gather.total_seconds == max(gather.comm_seconds, gather.compute_seconds)
    assert gather.serial_seconds == pytest.approx(gather.comm_seconds + gather.compute_seconds)
    assert gather.total_seconds < gather.chunked_seconds < gather.serial_seconds
    assert gather.chunked_seconds == pytest.approx(gather.compute_seconds + gather.comm_seconds / 4)
    assert gather.bound == "compute"
    stored = 2 * (i * j // 4 + j * k + i * k)
    assert gather.stored_bytes_per_device == stored
    assert gather.bytes_per_device == stored + 2 * i * j
    assert gather.hbm_seconds == pytest.approx(2 * (i * j + j * k + i * k) / 2.8e12)
    assert gather.inputs == ("A[I, J_X]", "B[J, K]")
    assert gather.output == "C[I, K]"
    assert gather.multiplications == ("A[I, J] * B[J, K] -> C[I, K]",)
    (step,) = gather.steps
    assert (step.text, step.when, step.bytes) == ("A[I, J_X] -> A[I, J]", "before", 2 * i * j)
    assert [each.rank for each in found] == sorted(each.rank for each in found)
    summed = next(each for each in found if "AllReduce" in each.name)
    assert summed.multiplications == ("A[I, J_X] * B[J_X, K] -> C[I, K] {U_X}",)
    assert summed.flops_per_device == gather.flops_per_device / 4
    assert summed.record()["steps"][0]["bound"] == "free"


def test_memory_rules_strategies_out() -> None:
    text = "A[I, J] * B[J_X, K] -> C[I, K]"
    free = solve(text, {"X": 4})
    tight = solve(text, {"X": 4}, memory_limit=2e8)
    assert all(each.fits for each in free)
    assert {each.fits for each in tight} == {True, False}
    assert [each.fits for each in tight] == sorted((each.fits for each in tight), reverse=True)
    assert all((each.bytes_per_device <= 2e8) == each.fits for each in tight)


def cuts(draw: st.DrawFn, dims: str, mesh: dict[str, int]) -> str:
    chosen: dict[str, list[str]] = {dim: [] for dim in dims}
    for axis in draw(st.permutations(list(mesh))):
        dim = draw(st.sampled_from([None, *dims]))
        if dim:
            chosen[dim].append(axis)
    return ", ".join(
        dim + (f"_{{{','.join(axis_text(axis_ref(a)) for a in axes)}}}" if axes else "")
        for dim, axes in chosen.items()
    )


@st.composite
def products(draw: st.DrawFn) -> tuple[str, dict[str, int], dict[str, int]]:
    mesh = draw(st.sampled_from([{"X": 4}, {"X": 2, "Y": 3}, {"X": 2, "Y": 2, "Z": 2}]))
    form = draw(
        st.sampled_from(
            [("IJ", "JK", "IK"), ("IJ", "JK", "KI"), ("BIJ", "BJK", "BIK"), ("IJ", "J", "I")]
        )
    )
    size = math.prod(mesh.values())
    left, right, output = (cuts(draw, dims, mesh) for dims in form)
    sizes = dict.fromkeys("BIJK", size)
    return f"A[{left}] * B[{right}] -> C[{output}]", mesh, sizes


@given(products(), st.randoms(use_true_random=False))
@settings(max_examples=400 if IS_DEEP else 40)
def test_every_strategy_gives_the_product(case, random) -> None:
    text, mesh, sizes = case
    found = solve(text, mesh, sizes=sizes)
    for strategy in [found[0], *random.sample(found, min(len(found), 12))]:
        run_strategy(strategy, mesh, sizes)


@pytest.mark.parametrize(
    "text",
    [
        "D[B_X, I] * V[I_{XY}, J] * W[J, I_{XY}] -> O[B_X, I]",
        "D[B, I_{XY}] * V[I, J_{XY}] * W[J_{XY}, I] -> O[B, I_{XY}]",
        "D[B_X, I_Y] * V[I_Y, J_X] * W[J_X, K_Y] -> O[B_Y, K_X]",
    ],
)
def test_every_strategy_for_a_chain_gives_the_product(text: str) -> None:
    mesh = {"X": 2, "Y": 2}
    sizes = dict.fromkeys("BIJK", 4)
    for strategy in solve(text, mesh, sizes=sizes, limit=200):
        run_strategy(strategy, mesh, sizes)


def written(dims: str, layout) -> str:
    return ", ".join(
        dim + (f"_{{{','.join(axis_text(axis_ref(a)) for a in axes)}}}" if axes else "")
        for dim, axes in zip(dims, layout, strict=True)
    )


def all_layouts(dims: str, mesh: dict[str, int]) -> Iterator[str]:
    array = product(
        f"A[{dims[0]}, {dims[1]}] * B[{dims[1]}, Z] -> C[Z]",
        mesh,
        sizes={dims[0]: 1, dims[1]: 1, "Z": 1},
    )[0].operands[0]
    for layout in layouts(array, Mesh(mesh)):
        yield written(dims, layout)


@pytest.mark.parametrize("output", ["C[I, K]", "C[I_X, K]", "C[I, K_X]"])
@pytest.mark.parametrize("chip", ["tpu-v5p", "tpu-v5e", "h100"])
def test_search_agrees_with_trying_all_shardings(output: str, chip: str) -> None:
    mesh = {"X": 4, "Y": 2} if IS_DEEP else {"X": 4}
    sizes = {"I": 512, "J": 1024, "K": 256}
    found = solve(f"A[I, J] * B[J, K] -> {output}", mesh, chip, sizes, search=True)[0]
    tried = [
        solve(f"A[{left}] * B[{right}] -> {output}", mesh, chip, sizes)[0]
        for left, right in itertools.product(all_layouts("IJ", mesh), all_layouts("JK", mesh))
    ]
    assert found.total_seconds == pytest.approx(min(each.total_seconds for each in tried))
    assert found.rank[:3] == min(each.rank[:3] for each in tried)


def test_search_keeps_what_is_given() -> None:
    found = solve("A[I_X, J] * B[J, K] -> C[I, K]", {"X": 4}, search=True)
    assert {each.inputs[0] for each in found} == {"A[I_X, J]"}
    assert len({each.inputs[1] for each in found}) > 1


@pytest.mark.parametrize("limit", [None, 60_000])
def test_search_of_a_chain_agrees_with_trying_all_shardings(limit: float | None) -> None:
    mesh = {"X": 2, "Y": 2} if IS_DEEP else {"X": 2}
    sizes = {"B": 16, "D": 64, "F": 256}
    found = solve(
        "I[B, D] * V[D, F] * W[F, D] -> O[B, D]", mesh, sizes=sizes, search=True, memory_limit=limit
    )[0]
    tried = []
    for ends, first, second in itertools.product(
        all_layouts("BD", mesh), all_layouts("DF", mesh), all_layouts("FD", mesh)
    ):
        text = f"I[{ends}] * V[{first}] * W[{second}] -> O[{ends}]"
        tried.append(solve(text, mesh, sizes=sizes, memory_limit=limit, limit=1)[0])
    assert found.rank[:3] == min(each.rank[:3] for each in tried)


def test_the_sizes_at_which_the_best_changes() -> None:
    text, mesh = "A[I, J_X] * B[J, K] -> C[I, K]", {"X": 4}
    (contraction,) = product(text, mesh)
    where = Topology.of(Mesh(mesh), hardware("tpu-v5p"))
    changes = crossovers(contraction, where)
    assert changes
    for change in changes:
        for factor, name in [(0.99, change.below), (1.01, change.above)]:
            size = round(change.size * factor)
            if size < 64 or round(change.size * 0.99) == round(change.size * 1.01):
                continue
            # Whole blocks only, so that nothing is rounded.
            size -= size % 4
            best = solve(text, mesh, sizes={**SIZES, change.dim: size})
            assert name in {each.name for each in best_strategies(best)}, change
    gather = next(each for each in solve(text, mesh) if each.name == "AllGather_X(A)")
    (change,) = [change for change in bound_changes(gather, where) if change.dim == "K"]
    assert (change.below, change.above) == ("communication", "compute")
    assert change.size == pytest.approx(4.59e14 / 1.8e11)


@pytest.mark.parametrize("search", [False, True])
def test_the_sizes_at_which_the_best_of_a_chain_changes(search: bool) -> None:
    mesh, sizes = {"X": 4}, {"B": 4096, "D": 4096, "F": 16384}
    cut = "In[B, D] * V[D, F] * W[F, D] -> Out[B, D]"
    text = cut if search else "In[B_X, D] * V[D_X, F] * W[F_X, D] -> Out[B_X, D]"
    products = product(text, mesh, sizes)
    where = Topology.of(Mesh(mesh), hardware("tpu-v5p"))
    limit = 5e8
    changes = chain_crossovers(products, where, memory_limit=limit, search=search)
    assert changes
    for change in changes:
        for factor, name in [(0.97, change.below), (1.03, change.above)]:
            size = round(change.size * factor)
            size -= size % 4
            if size < 64:
                continue
            found = solve(
                text, mesh, sizes={**sizes, change.dim: size}, search=search, memory_limit=limit
            )
            assert name in {each.name for each in best_strategies(found)}, change


def test_all_strategies_of_a_chain_are_listed() -> None:
    text = "In[B_X, D] * V[D_X, F] * W[F_X, D] -> Out[B_X, D]"
    sizes = {"B": 64, "D": 64, "F": 128}
    found = solve(text, {"X": 4}, sizes=sizes)
    # Each product may be cut in three dims by X, or not at all.
    assert len(found) == 4 * 4
    assert "AllGather_X(V); AllGather_X(W)" in {each.name for each in found}
    assert solve(text, {"X": 4}, sizes=sizes, limit=3) == found[:3]


def test_ways_take_the_cheaper_road() -> None:
    plain, *others = ways("C", (("Y",), ()), ((), ()), ["X"])
    assert [step.op for step in plain] == ["all_reduce", "all_gather"]
    assert [step.op for step in others[0]] == ["reduce_scatter", "all_gather"]
    assert set(others[0][1].axes) == {"X", "Y"}
    assert ways("A", (("X",),), (("X",),)) == [[]]
    # A major axis has to come inside of the others before it can leave.
    assert [step.op for step in ways("A", (("X", "Y"),), (("Y",),))[0]] == ["permute", "all_gather"]
    assert [step.op for step in ways("A", (("X", "Y"),), (("Y", "X"),))[0]] == ["permute"]


def test_products_are_read_in_all_spellings() -> None:
    plain = parse_product("A[I, J_X] * B[J, K] -> C[I, K]")
    for text in [
        "A[I, J_X] ·_J B[J, K] → C[I, K]",
        "A[I,J_X]@B[J,K]->C[I,K]",
        "A[I, J_X] *_{J} B[J,K] -> [I,K]",
    ]:
        assert parse_product(text) == plain
    _, output = parse_product("A[I_X, J] * B[J, K_X]")
    assert str(output) == "C[I_X, K]"
    assert [array.name for array in parse_product("[I, J] * [J, K]")[0]] == ["A", "B"]
    chain = pairwise(*parse_product("In[B, D] * V[D, F] * W[F, D] -> Out[B, D]"))
    assert [str(each.output) for each in chain] == ["In·V[B, F]", "Out[B, D]"]
    attention = pairwise(*parse_product("Q[B, T, D] * K[B, S, D] * V[B, S, H] -> O[B, T, H]"))
    assert str(attention[0].output) == "Q·K[B, T, S]"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("A[I, J]", "notation"),
        ("A[I, J] +", "notation"),
        ("A[I, J] * B[J, K] -> C[I, K] x", "notation"),
        ("A[I, 3] * B[J, K]", "contraction"),
        ("A[I, I] * B[I, K]", "contraction"),
        ("A[I, J] {U_X} * B[J, K]", "contraction"),
        ("A[I, J] * B[J, K] -> C[I, L]", "contraction"),
        ("A[I, J] * B[J, K] -> C[I, K] {U_X}", "contraction"),
        ("A[I_{X:(1)2}, J] * B[J, K]", "contraction"),
        ("A[I=3, J] * B[J, K] -> C[I=4, K]", "size-mismatch"),
        ("A[I, J] * B[J, K_Q]", "unknown-axis"),
        ("A[I_X, J_X] * B[J, K]", "axis-overlap"),
    ],
)
def test_products_that_are_none(text: str, code: str) -> None:
    with pytest.raises(ShardcoreError) as caught:
        parse_product(text, Mesh({"X": 4}))
    assert caught.value.code == code
    assert isinstance(caught.value, ParseError) == (code == "notation")
    assert "^" in str(caught.value)
    assert caught.value.hint


def test_what_has_to_be_known() -> None:
    where = Topology.of(Mesh({"X": 4}), hardware("tpu-v5p"))
    for sizes, dtype in [({"I": 4, "J": 4}, "bf16"), (dict.fromkeys("IJK", 4), None)]:
        (contraction,) = pairwise(
            *parse_product("A[I, J] * B[J, K] -> C[I, K]", sizes=sizes, dtype=dtype)
        )
        with pytest.raises(ShardcoreError) as caught:
            matmul_strategies(contraction, where)
        assert caught.value.code == "missing-size"
    many = dict.fromkeys("ABCDEFGHPQRSTUVW", 2)
    text = "A[I_{" + ",".join(many) + "}, J] * B[J, K] -> C[I, K]"
    with pytest.raises(ShardcoreError, match="too many ways"):
        solve(text, many, sizes={"I": 2**16, "J": 4, "K": 4})
    few = dict.fromkeys("PQRST", 2)
    with pytest.raises(ShardcoreError, match="ways to cut"):
        solve("A[I, J] * B[J, K] * D[K, L]", few, sizes=dict.fromkeys("IJKL", 64))


def test_times_count_as_options_say() -> None:
    text = "A[I, J_X] * B[J_X, K] -> C[I, K]"
    plain = solve(text, {"X": 4})[0]
    slow = solve(text, {"X": 4}, options=TimeOptions(efficiency=0.5))[0]
    assert slow.comm_seconds == pytest.approx(2 * plain.comm_seconds)
    assert slow.compute_seconds == plain.compute_seconds
