"""How to Scale Your Model, part 3: rules and questions of the chapter that figures do not cover."""

from __future__ import annotations

import numpy as np
import pytest
from shardcore import Mesh
from shardcore.calculus import (
    Collective,
    Topology,
    broadcast_matrix,
    estimate,
    hardware,
    matrix_of,
    outer_products,
    pairwise,
    parse_product,
    reduce_matrix,
    ring,
    run,
    snippet,
)

from tests.seeds.test_003_figures import strategies, timed

SIZES = {"I": 4096, "J": 4096, "K": 4096}


def test_003_044_gathered_before_or_after_whichever_is_cheaper() -> None:
    # "A and B, or C have to be copied to all devices. The two have different costs."
    product, mesh = "A[I_X, J] * B[J, K_Y] -> C[I, K]", {"X": 4, "Y": 4}
    for sizes in ({"I": 256, "J": 65536, "K": 256}, {"I": 65536, "J": 256, "K": 65536}):
        found = {each.name: each.comm_seconds for each in strategies(product, mesh, **sizes)}
        before = found["AllGather_X(A); AllGather_Y(B)"]
        after = min(seconds for name, seconds in found.items() if "(C)" in name)
        assert (after < before) == (sizes["J"] > sizes["I"])
        assert min(found.values()) == min(before, after)


def test_003_058_a_free_dim_is_gathered_before_or_after_a_summed_one_before() -> None:
    free = {each.name for each in strategies("A[I_X, J] * B[J, K] -> C[I, K]", {"X": 4}, **SIZES)}
    assert {"AllGather_X(A)", "AllGather_X(C)"} <= free
    summed = {each.name for each in strategies("A[I, J_X] * B[J, K] -> C[I, K]", {"X": 4}, **SIZES)}
    assert "AllGather_X(A)" in summed
    assert "AllGather_X(C)" not in summed


def test_003_056_the_major_axis_of_a_dim_gathered_alone() -> None:
    # The document gathers X of I_{XY}: the blocks that are left are not next to each other.
    mesh = Mesh({"X": 2, "Y": 2})
    found = Collective.of("all_gather", "A[I=8_{XY}, J=8]", ["X"], mesh=mesh)
    assert str(found.result) == "A[I=8_Y, J=8]"
    names = {
        each.name
        for each in strategies("A[I_{XY}, J] * B[J, K] -> C[I_Y, K]", dict(mesh.shape), **SIZES)
    }
    assert not any(name in ("AllGather_X(A)", "AllGather_X(C)") for name in names)


def test_003_060_hops_and_what_each_of_them_sends() -> None:
    one_way, both_ways = ring("all_gather", 8, both_ways=False), ring("all_gather", 8)
    assert (len(one_way.hops), len(both_ways.hops)) == (8 - 1, 8 // 2)
    # A hop one way sends V / N on each link, both ways V / N on each direction of it.
    assert {len(send.blocks) for hop in (*one_way.hops, *both_ways.hops) for send in hop} == {1}


def test_003_062_the_time_of_a_hop() -> None:
    # T_hop = 2 V / (X W), and X / 2 of them: V / W.
    found = timed("all_gather", "bf16[65536_X, 8192]", "X", {"X": 16}, "tpu-v5p")
    size, width = 65536 * 8192 * 2, 2 * hardware("tpu-v5p").link_bytes_per_second
    assert found.rates.hops == 16 // 2
    assert found.bandwidth_seconds == pytest.approx(found.rates.hops * 2 * size / (16 * width))


@pytest.mark.parametrize("rows", [16, 1024, 65536, 1 << 20])
def test_003_070_the_longer_of_latency_and_bandwidth(rows: int) -> None:
    found = timed("all_gather", f"bf16[{rows}_X, 128]", "X", {"X": 16}, "tpu-v5e")
    chip = hardware("tpu-v5e")
    latency, width = chip.hop_seconds * 16 / 2, 2 * chip.link_bytes_per_second
    assert found.seconds == pytest.approx(max(latency, rows * 128 * 2 / width))


def test_003_076_latency_along_several_axes() -> None:
    found = timed("all_gather", "bf16[256_{XY}, 4]", "XY", {"X": 16, "Y": 16}, "tpu-v5e")
    assert found.bound == "latency"
    assert found.seconds == pytest.approx(hardware("tpu-v5e").hop_seconds * (16 + 16) / 2)


def test_003_081_a_mesh_axis_over_two_axes_of_hardware() -> None:
    # {"X": 16, "Y": 4} may be a 4x4x4 cube, two axes of which are X.
    mesh = Mesh({"X": 16, "Y": 4})
    cube = Topology.of(mesh, hardware("tpu-v5p"), shape="4x4x4")
    times = [
        estimate(Collective.of("all_gather", f"bf16[4096_{axis}, 4096]", [axis], mesh=mesh), cube)
        for axis in ("X", "Y")
    ]
    assert times[1].bandwidth_seconds / times[0].bandwidth_seconds == pytest.approx(2)


def test_003_086_a_product_is_a_sum_of_outer_products() -> None:
    left, right = np.arange(12).reshape(3, 4), np.arange(8).reshape(4, 2)
    terms = outer_products(left, right)
    assert terms.shape == (4, 3, 2)
    np.testing.assert_array_equal(terms.sum(axis=0), left @ right)
    # TPU i has column i of A and row i of B, and holds the i-th term.
    found = run("A[I, J_X] * B[J_X, K] -> C[I, K] {U_X}", mesh=Mesh({"X": 4}), A=left, B=right)
    for device, held in found.products.items():
        np.testing.assert_array_equal(held, terms[device])


def test_003_093_the_times_of_gather_scatter_and_reduce() -> None:
    times = [
        timed(op, array, "X", {"X": 8}, "tpu-v5p").seconds
        for op, array in [
            ("all_gather", "bf16[8192_X, 8192]"),
            ("reduce_scatter", "bf16[8192, 8192] {U_X}"),
            ("all_reduce", "bf16[8192, 8192] {U_X}"),
        ]
    ]
    assert times == pytest.approx([times[0], times[0], 2 * times[0]])


def test_003_110_broadcast_and_reduce_of_the_example() -> None:
    # n = 1, p = 2: broadcast (7) = (7, 7), reduce (8, 9) = (17).
    np.testing.assert_array_equal(broadcast_matrix(1, 2) @ [7], [7, 7])
    np.testing.assert_array_equal(reduce_matrix(1, 2) @ [8, 9], [17])


def test_003_111_gather_and_scatter_as_products_of_kronecker() -> None:
    # n = 2, p = 3: the blocks of three devices, one after the other.
    mesh = Mesh({"X": 3})
    gather = Collective.of("all_gather", "A[I=6_X]", ["X"], mesh=mesh)
    scatter = Collective.of("reduce_scatter", "A[I=6] {U_X}", ["X"], dim="I", mesh=mesh)
    # A copy of all for each device: u (x) I_pn is broadcast (x) I_p up to the order of the blocks.
    np.testing.assert_array_equal(matrix_of(gather, mesh), broadcast_matrix(6, 3))
    np.testing.assert_array_equal(matrix_of(scatter, mesh), matrix_of(gather, mesh).T)
    kron = np.kron(broadcast_matrix(2, 3), np.eye(3))
    assert sorted(map(tuple, kron)) == sorted(map(tuple, matrix_of(gather, mesh)))


def test_003_136_the_times_of_both_strategies() -> None:
    # max(2BDF / C, 2DF / W) and max(2BDF / (X C), 4BF / W).
    chip = hardware("tpu-v5p")
    flops, width = chip.flops_per_second("bf16"), 2 * chip.link_bytes_per_second
    for b, d, f in [(1024, 8192, 32768), (4096, 2048, 8192), (8192, 8192, 8192)]:
        found = {
            each.name: each.total_seconds
            for each in strategies("X[B, D] * Y[D_X, F] -> Z[B, F]", {"X": 4}, B=b, D=d, F=f)
        }
        first = max(2 * b * d * f / flops, 2 * d * f / width)
        second = max(2 * b * d * f / (4 * flops), 4 * b * f / width)
        assert found["AllGather_X(Y)"] == pytest.approx(first)
        assert found["Slice_{X,D}(X); AllReduce_X(Z)"] == pytest.approx(second)


def test_003_142_question_5() -> None:
    # The inputs may be sharded in any way, the result is replicated: a sum over all devices, or a
    # gather of the result, are equally good; a gather of the inputs is not.
    from shardcore.calculus import matmul_strategies

    mesh = Mesh({"X": 4, "Y": 4, "Z": 4})
    operands, output = parse_product(
        "A[I, J] * B[J, K] -> C[I, K]", mesh, sizes=SIZES, dtype="bf16"
    )
    (contraction,) = pairwise(operands, output)
    topology = Topology.of(mesh, hardware("tpu-v5p"))
    best, *_ = matmul_strategies(contraction, topology, search=True)
    plain = matmul_strategies(contraction, topology)
    assert best.total_seconds <= plain[0].total_seconds
    assert "C" in best.name
    assert "(A)" not in best.name


@pytest.mark.parametrize(
    ("op", "array", "call"),
    [
        ("all_gather", "A: f32[I=8_X, J=8]", "jax.lax.all_gather"),
        ("all_reduce", "A: f32[I=8, J=8] {U_X}", "jax.lax.psum("),
        ("reduce_scatter", "A: f32[I=8, J=8] {U_X}", "jax.lax.psum_scatter"),
        ("all_to_all", "A: f32[I=8_X, J=8]", "jax.lax.all_to_all"),
    ],
)
def test_003_149_question_8(op: str, array: str, call: str) -> None:
    mesh = Mesh({"X": 4})
    dim = {"reduce_scatter": "I", "all_to_all": "J"}.get(op)
    text = snippet(Collective.of(op, array, ["X"], dim=dim, mesh=mesh), mesh)
    assert call in text
    assert "shard_map" in text
    compile(text, "snippet", "exec")


def test_003_150_question_9() -> None:
    # A[I, J_X] * B[J, K]: B is sliced, which is free, and the terms are summed.
    found = {
        each.name: each for each in strategies("A[I, J_X] * B[J, K] -> C[I, K]", {"X": 4}, **SIZES)
    }
    gather, reduce = found["AllGather_X(A)"], found["Slice_{X,J}(B); AllReduce_X(C)"]
    assert reduce.flops_per_device * 4 == gather.flops_per_device
    # M / K of the communication, but for the two of an AllReduce.
    assert reduce.comm_seconds / gather.comm_seconds == pytest.approx(2 * 4096 / 4096)


@pytest.mark.parametrize("devices", [4, 8, 16])
def test_003_153_what_a_link_carries(devices: int) -> None:
    # In blocks of N^2 / D^2: an AllGather (D - 1) strips of D blocks, an AllToAll D (D - 1) / 2.
    exchange = ring("all_to_all", devices, both_ways=False).blocks_per_link
    gather = ring("all_gather", devices, both_ways=False).blocks_per_link * devices
    assert exchange == devices * (devices - 1) // 2
    assert gather / exchange == 2
    # Both ways: D/2 + (D/2 - 1) + ... = D/2 (D/2 + 1) / 2.
    assert ring("all_to_all", devices).blocks_per_link == devices // 2 * (devices // 2 + 1) // 2
