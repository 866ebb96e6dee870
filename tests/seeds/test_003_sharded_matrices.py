"""How to Scale Your Model, part 3: sharded matrices and how to multiply them."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from shardcore import CalculusError, Mesh, ShardcoreError
from shardcore.calculus import (
    Collective,
    Topology,
    broadcast_matrix,
    by_size,
    estimate,
    hardware,
    matmul_strategies,
    matrix_of,
    measured,
    outer_products,
    pairwise,
    parse_any,
    parse_product,
    perform,
    reduce_matrix,
    ring,
    run,
)
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


def test_003_082_a_product_on_numbers() -> None:
    left, right = np.arange(8).reshape(2, 4), np.arange(12).reshape(4, 3)
    local = "A[I, J_X] * B[J_X, K] -> C[I, K]"
    kept = run(f"{local} {{U_X}}", mesh=MESH, A=left, B=right)
    # Lines 84 and 86: the device i has the i-th outer product, one term of the sum.
    outer = outer_products(left, right)
    assert [kept.products[device].tolist() for device in range(4)] == outer.tolist()
    assert np.array_equal(outer.sum(axis=0), left @ right)
    assert kept.name == "multiply locally"
    assert np.array_equal(kept.output, left @ right)
    assert [(held.step, held.text) for held in kept.steps] == [
        ("given", "A[I, J_X]"),
        ("given", "B[J_X, K]"),
        ("multiply", "C[I, K] {U_X}"),
    ]
    assert kept.steps[0].blocks[2].tolist() == [[2], [6]]
    # Lines 88 to 90: an AllReduce adds the terms, and every device has the sum.
    summed = run(local, mesh=MESH, strategy="AllReduce_X(C)", A=left, B=right)
    assert all(np.array_equal(block, left @ right) for block in summed.result.values())
    # Line 112: a ReduceScatter instead.
    scattered = run(
        "A[I, J_X] * B[J_X, K] -> C[I_X, K]",
        mesh=Mesh({"X": 2}),
        strategy="ReduceScatter_{X,I}(C)",
        A=left,
        B=right,
    )
    assert [block.tolist() for block in scattered.result.values()] == [
        [row] for row in (left @ right).tolist()
    ]
    assert "device 1" in str(scattered)


PRODUCTS = [
    ("047: blocks", {"X": 2, "Y": 2}, "A[I_X, J_Y] * B[J_X, K_Y] -> C[I_X, K_Y]"),
    ("051: case 1", {"X": 2, "Y": 2}, "A[I_X, J] * B[J, K_Y] -> C[I_X, K_Y]"),
    ("053: case 2", {"X": 4}, "A[I, J_X] * B[J, K] -> C[I, K]"),
    ("079: case 3", {"X": 4}, "A[I, J_X] * B[J_X, K] -> C[I, K]"),
    ("097: case 4", {"X": 4}, "A[I_X, J] * B[J, K_X] -> C[I, K_X]"),
    ("109: scattered", {"X": 4}, "A[I, J_X] * B[J_X, K] -> C[I, K_X]"),
    ("132: question 6", {"X": 4, "Y": 4}, "A[I_X, J_Y] * B[J_Y, K] -> C[I_X, K]"),
    ("134: a block", {"X": 2}, "In[I, J] * W[J, F_X] * V[F_X, K] -> Out[I, K]"),
]


@pytest.mark.parametrize(
    ("mesh", "product"), [row[1:] for row in PRODUCTS], ids=[row[0] for row in PRODUCTS]
)
def test_003_045_every_case_on_numbers(mesh: dict[str, int], product: str) -> None:
    rng = np.random.default_rng(0)
    sizes = {"I": 8, "J": 16, "K": 8, "F": 4}
    operands, output = parse_product(product)
    arrays = {
        array.name: rng.integers(-9, 9, [sizes[dim] for dim in array.dim_names])
        for array in operands
    }
    expected = np.linalg.multi_dot(list(map(np.asarray, arrays.values())))
    found = run(product, mesh=Mesh(mesh), **arrays)
    assert np.array_equal(found.output, expected)
    sharding = output.to_sharding(Mesh(mesh))
    for device, part in sharding.device_slices(expected.shape).items():
        assert np.array_equal(found.result[device], expected[part])


def test_003_053_every_strategy_computes_the_product() -> None:
    product, mesh = "A[I, J_X] * B[J, K_Y] -> C[I, K]", Mesh({"X": 2, "Y": 2})
    left, right = np.arange(16).reshape(4, 4), np.arange(16).reshape(4, 4) - 7
    names = {each.name for each in strategies(product, mesh, I=4, J=4, K=4)}
    assert len(names) > 5
    for name in names:
        found = run(product, mesh=mesh, strategy=name, A=left, B=right)
        assert found.name == name
        assert all(np.array_equal(block, left @ right) for block in found.result.values()), name


@pytest.mark.parametrize(
    ("product", "arrays", "code"),
    [
        ("A[I, J] * B[J, K]", {"A": np.ones((2, 2))}, "size-mismatch"),
        ("A[I, J] * B[J, K]", {"A": np.ones(2), "B": np.ones((2, 2))}, "size-mismatch"),
        ("A[I, J] * B[J, K]", {"A": np.ones((2, 3)), "B": np.ones((2, 2))}, "size-mismatch"),
        ("A[I_Y, J] * B[J, K]", {}, "unknown-axis"),
    ],
)
def test_003_082_mistakes_in_products_on_numbers(product, arrays, code) -> None:
    with pytest.raises(ShardcoreError) as caught:
        run(product, mesh=MESH, **arrays)
    assert caught.value.code == code
    with pytest.raises(CalculusError, match="no strategy") as caught:
        run("A[I, J] * B[J, K]", mesh=MESH, strategy="guess", A=np.ones((4, 4)), B=np.ones((4, 4)))
    assert "multiply locally" in (caught.value.hint or "")


def test_003_109_broadcast_and_reduce_are_transposes() -> None:
    # Line 111: n = 1, p = 2.
    assert (broadcast_matrix(1, 2) @ [7]).tolist() == [7, 7]
    assert (reduce_matrix(1, 2) @ [8, 9]).tolist() == [17]
    n, p = 2, 3
    assert np.array_equal(reduce_matrix(n, p), broadcast_matrix(n, p).T)
    mesh = Mesh({"X": p})
    gather = Collective.of("all_gather", f"A[I={n * p}_X]", "X", mesh=mesh)
    matrix = matrix_of(gather, mesh)
    assert matrix.shape == (p * p * n, p * n)
    assert np.array_equal(matrix, np.kron(broadcast_matrix(n, p), np.eye(p)))
    scatter = matrix_of(gather.transposed(), mesh)
    assert np.array_equal(scatter, np.kron(reduce_matrix(n, p), np.eye(p)))
    assert np.array_equal(scatter, matrix.T)


@pytest.mark.parametrize(
    ("op", "array", "axes", "mesh"),
    [
        ("all_gather", "A[I=4_X, J=2]", "X", {"X": 2}),
        ("all_gather", "A[I=4, J=4_{XY}]", ["X", "Y"], {"X": 2, "Y": 2}),
        ("reduce_scatter", "A[I=4, J=2] {U_X}", "X", {"X": 2, "Y": 2}),
        ("all_reduce", "A[I=2_Y] {U_X}", "X", {"X": 2, "Y": 2}),
        ("all_to_all", "A[I=4_X, J=4]", "X", {"X": 4}),
        ("permute", "A[I=4_X]", "X", {"X": 4}),
    ],
)
def test_003_111_the_transpose_of_a_collective_is_that_of_its_matrix(op, array, axes, mesh) -> None:
    where = Mesh(mesh)
    collective = Collective.of(op, array, axes, mesh=where)
    back = matrix_of(collective.transposed(), where)
    assert np.array_equal(back, matrix_of(collective, where).T)


def test_003_089_a_collective_needs_a_block_of_each_device() -> None:
    collective = Collective.of("all_gather", "A[I=4_X]", "X", mesh=MESH)
    with pytest.raises(CalculusError, match="blocks of 1 device"):
        perform(collective, {0: np.ones(1)}, MESH)
    with pytest.raises(CalculusError, match="elements in all"):
        matrix_of(Collective.of("all_gather", "A[I=65536_X]", "X", mesh=MESH), MESH)


HOPS = [
    # Line 59: N - 1 hops of V / N one way, N // 2 both ways.
    ("059: one way", "all_gather", 4, False, 3, 3),
    ("059: both ways", "all_gather", 4, True, 2, 2),
    ("091: one way", "reduce_scatter", 4, False, 3, 3),
    ("091: both ways", "reduce_scatter", 5, True, 2, 2),
    ("091: an AllReduce is twice that", "all_reduce", 4, False, 6, 6),
    # Line 150: (D - 1) + ... + 1 blocks of V / N^2 cross a link; line 152: D^2 / 8 both ways.
    ("150: one way", "all_to_all", 8, False, 7, 7 * 8 // 2),
    ("152: both ways", "all_to_all", 8, True, 4, 4 + 3 + 2 + 1),
    ("115: a collective matmul", "matmul", 4, True, 3, 2),
]


@pytest.mark.parametrize(
    ("op", "devices", "both", "hops", "carried"),
    [row[1:] for row in HOPS],
    ids=[row[0] for row in HOPS],
)
def test_003_059_rings_hop_by_hop(op, devices, both, hops, carried) -> None:
    found = ring(op, devices, both_ways=both)
    assert (len(found.hops), found.blocks_per_link) == (hops, carried)
    everything = {str(block) for block in range(devices)}
    whole = "+".join(map(str, range(devices)))
    for device, blocks in enumerate(found.held[-1]):
        expected = {
            "all_gather": everything,
            "reduce_scatter": {f"{whole}@{device}"},
            "all_reduce": {f"{whole}@{block}" for block in range(devices)},
            "all_to_all": {f"{source}>{device}" for source in range(devices)},
            "matmul": {f"{block}*B" for block in range(devices)},
        }[op]
        assert set(blocks) == expected
    for hop, (before, after) in zip(found.hops, itertools.pairwise(found.held), strict=True):
        for send in hop:
            assert (send.target - send.source) % devices in (1, devices - 1)
            assert op == "all_reduce" or set(send.blocks) <= set(before[send.source]) | {
                block.removesuffix("*B") for block in before[send.source]
            }
        assert len(after) == devices
    root = ElementTree.fromstring(found.svg())
    kinds = [each.tag.rsplit("}", 1)[-1] for each in root.iter()]
    assert kinds.count("animateTransform") == sum(map(len, found.hops))
    assert "script" not in kinds


def test_003_059_rings_as_text() -> None:
    assert str(ring("AllGather", 3, both_ways=False)) == (
        "       device 0  device 1  device 2\n"
        "start  0         1         2\n"
        "hop 1  0 2       0 1       1 2\n"
        "hop 2  0 1 2     0 1 2     0 1 2"
    )
    for op, devices, code in [
        ("slice", 4, "invalid-collective"),
        ("all_gather", 1, "invalid-option"),
    ]:
        with pytest.raises(CalculusError) as caught:
            ring(op, devices)
        assert caught.value.code == code


def test_003_015_the_time_to_read_an_array(capsys) -> None:
    # The document has 294 ns: it takes 1 MiB as 1e6 bytes.
    command = ["array", "f32[1024_{XY}, 4096]", "--mesh", "X=8,Y=2", "--hardware", "h100"]
    assert main([*command, "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["local_shape"] == [64, 4096]
    assert record["bytes_per_device"] == 2**20
    assert record["read_seconds"] == pytest.approx(308.4e-9, rel=1e-3)
    assert main(command) == 0
    assert "308.4 ns" in capsys.readouterr().out
    assert main(["array", "A[I_X]", "--mesh", "X=8", "--hardware", "h100"]) != 0


def test_003_028_an_array_in_bytes(capsys) -> None:
    command = ["array", "A: int8[I=128_{XY}, J=2048]", "--mesh", "X=2,Y=8,Z=2", "--json"]
    assert main(command) == 0
    record = json.loads(capsys.readouterr().out)
    assert (record["local_shape"], record["bytes_per_device"]) == ([8, 2048], 16384)
    assert record["total_bytes"] == 512 * 1024


@pytest.mark.parametrize("array", ["A[I, J]", "A[I_X, J]", "A[I_X, J_Y]", "A[I_{XY}, J]"])
def test_003_018_shardings_are_drawn(array: str, capsys) -> None:
    assert main(["show", array, "--mesh", "X=2,Y=2"]) == 0
    assert "over the mesh X=2, Y=2" in capsys.readouterr().out


def test_003_slips_of_the_document() -> None:
    text = (Path(__file__).parents[2] / "docs" / "calculus.md").read_text(encoding="utf-8")
    section = text.split("## Errors of the chapter")[1]
    for figure in ("308 ns", "`C[I, K_Y]`", "eighth", "2 MiB"):
        assert figure in section
    # Line 147: In[B=128, D=8192] in bf16.
    assert parse_any("bf16[128, 8192]", MESH)[0].bytes == 2 * 2**20
    # Line 104: an AllToAll on a ring, a quarter of an AllGather, an eighth of an AllReduce.
    topology = Topology.of(Mesh({"X": 16}), hardware("tpu-v5e"))
    times = {
        op: estimate(Collective.of(op, array, "X", mesh=topology.mesh), topology).bandwidth_seconds
        for op, array in [
            ("all_gather", "bf16[4096_X, 4096]"),
            ("all_reduce", "bf16[4096, 4096] {U_X}"),
            ("all_to_all", "bf16[4096_X, 4096]"),
        ]
    }
    assert times["all_gather"] / times["all_to_all"] == pytest.approx(4)
    assert times["all_reduce"] / times["all_to_all"] == pytest.approx(8)


GATHER = ["collective", "all_gather", "--array", "bf16[2048_X, 8192]", "--axes", "X"]


def test_003_073_bandwidth_by_message_size(capsys) -> None:
    # About 95 % of the bandwidth, and that only for arrays of about 10 MB: 16 devices of a v5e.
    command = [*GATHER, "--mesh", "X=16", "--hardware", "tpu-v5e", "--by-size", "--json"]
    assert main(command) == 0
    rows = json.loads(capsys.readouterr().out)["by_size"]
    reached = {row["bytes"]: row["reached"] for row in rows}
    assert list(reached.values()) == sorted(reached.values())
    assert reached[2**10] < 0.05 < 0.85 < reached[2**24] <= reached[2**30] <= 0.95
    assert main([*command[:-1]]) == 0
    assert "1.0 GiB" in capsys.readouterr().out


def test_003_072_bandwidth_from_measurements(tmp_path: Path, capsys) -> None:
    mesh = Mesh({"X": 16})
    chip = hardware("tpu-v5e")
    found = estimate(
        Collective.of("all_gather", "bf16[2048_X, 8192]", "X", mesh=mesh), Topology.of(mesh, chip)
    )
    runs = [(2**20, 40e-6), (2**24, 210e-6), (2**26, 760e-6)]
    own = measured(found, chip, runs)
    topology = Topology.of(mesh, own)
    for size, seconds in runs:
        (row,) = by_size(found, topology, [size])
        assert row.achieved_seconds == pytest.approx(seconds, rel=0.02)
    (between,) = by_size(found, topology, [2**22])
    assert 40e-6 < between.achieved_seconds < 210e-6
    for wrong in ([], [(0, 1.0)], [(2**20, 1.0), (2**20, 2.0)], [(2**20, 0.0)]):
        with pytest.raises(CalculusError) as caught:
            measured(found, chip, wrong)
        assert caught.value.code == "invalid-option"
    path = tmp_path / "chips.toml"
    path.write_text(
        "[mine]\nbase = 'tpu-v5e'\n[mine.achieved]\nmessage_shares = [[1e5, 0.1], [1e7, 0.9]]\n"
    )
    command = [*GATHER, "--mesh", "X=16", "--hardware", "mine", "--hardware-file", str(path)]
    assert main([*command, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["reached"] == pytest.approx(
        0.9 * chip.achieved.links
    )
    path.write_text(
        "[mine]\nbase = 'tpu-v5e'\n[mine.achieved]\nmessage_shares = [[1e7, 0.9], [1e5, 0.1]]\n"
    )
    assert main(command) == 1
    assert "bytes ascending" in capsys.readouterr().err


def test_003_059_rings_on_the_command_line(tmp_path: Path, capsys) -> None:
    command = [*GATHER, "--mesh", "X=4", "--hardware", "tpu-v5e", "--ring"]
    assert main([*command, "--one-way"]) == 0
    assert "hop 3" in capsys.readouterr().out
    assert main([*command[:-1], "--ring", str(tmp_path / "ring.svg")]) == 0
    assert ElementTree.fromstring((tmp_path / "ring.svg").read_text()).tag.endswith("svg")


def test_003_116_the_time_of_a_collective_matmul(capsys) -> None:
    # It starts to reduce or multiply a chunk while the next one is on the way.
    command = ["matmul", "A[I, J_X] * B[J, K] -> C[I, K]", "--sizes", "I=4096,J=8192,K=8192"]
    command += ["--dtype", "bf16", "--mesh", "X=4", "--hardware", "tpu-v5e"]
    assert main([*command, "--json"]) == 0
    for row in json.loads(capsys.readouterr().out)["strategies"]:
        assert row["total_seconds"] <= row["chunked_seconds"] <= row["serial_seconds"] * (1 + 1e-9)
    assert main(command) == 0
    assert "chunked" in capsys.readouterr().out
