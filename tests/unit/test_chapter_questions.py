"""The quizzes and questions of "How to Scale Your Model", chapter 3, answered by the program.

Each test states the question, and checks what the program computes. Answers of the book are
rounded, so they stand beside ours with the precision that they have.
"""

from __future__ import annotations

import itertools
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from shardcore import AxisRef, Mesh
from shardcore.calculus import (
    Collective,
    NamedArray,
    Strategy,
    TimeOptions,
    Topology,
    best_strategies,
    bound_changes,
    chain_strategies,
    crossovers,
    estimate,
    hardware,
    matmul_strategies,
    snippet,
)
from shardcore.calculus.chain import layouts
from shardcore.calculus.contraction import pairwise, parse_product

from tests.deep import IS_DEEP

PACKAGE = Path(__file__).resolve().parents[2] / "python" / "shardcore"
MICRO = 1e-6


def time(op: str, text: str, axes: str, mesh: Mesh, chip: str, file: Path | None = None, **options):
    collective = Collective.of(op, NamedArray.parse(text, mesh), list(axes), mesh=mesh)
    return estimate(collective, Topology.of(mesh, hardware(chip, file)), TimeOptions(**options))


def solve(text: str, mesh: Mesh, chip: str, sizes: dict, **options) -> list[Strategy]:
    products = pairwise(*parse_product(text, mesh, sizes=sizes, dtype="bf16"))
    where = Topology.of(mesh, hardware(chip))
    if len(products) == 1:
        return matmul_strategies(products[0], where, **options)
    return chain_strategies(products, where, **options)


def named(strategies: list[Strategy], name: str) -> Strategy:
    return next(each for each in strategies if each.name == name)


def test_quiz_what_a_device_holds() -> None:
    """fp32[1024, 4096] is cut as A[I_XY, J] on X=8, Y=2: what does a device hold, and how long does
    it take an H100 to load it?"""
    mesh = Mesh({"X": 8, "Y": 2})
    array = NamedArray.parse("fp32[1024_{XY}, 4096]", mesh)
    assert array.local_shape(mesh) == (64, 4096)
    assert array.bytes_per_device(mesh) == 2**20
    seconds = array.bytes_per_device(mesh) / hardware("h100").hbm_bytes_per_second
    assert seconds == pytest.approx(0.3 * MICRO, rel=0.05)


def test_quiz_what_all_devices_hold() -> None:
    """int8[128, 2048] is cut as A[I_XY, J] on X=2, Y=8, Z=2: bytes of a device, and of all?"""
    mesh = Mesh({"X": 2, "Y": 8, "Z": 2})
    array = NamedArray.parse("int8[128_XY, 2048]", mesh)
    assert array.bytes_per_device(mesh) == 16 * 2**10
    assert array.total_bytes(mesh) == 512 * 2**10
    assert array.replication_factor(mesh) == 2


def test_quiz_time_of_an_all_gather(tmp_path: Path) -> None:
    """How long does AllGather_Y of bf16[2048_Y, 8192] take on a v5e, X=8, Y=4? Of [256_Y, 256]?"""
    mesh = Mesh({"X": 8, "Y": 4})
    text = "bf16[2048_Y, 8192]"
    wraps = tmp_path / "chips.toml"
    wraps.write_text("[tpu-v5e]\nwraparound_multiple_of = 4\n")
    ring = time("all_gather", text, "Y", mesh, "tpu-v5e", wraps)
    assert ring.seconds == pytest.approx(372.8 * MICRO, rel=1e-3)
    assert ring.seconds == pytest.approx(377 * MICRO, rel=0.02)
    line = time("all_gather", text, "Y", mesh, "tpu-v5e")
    assert line.seconds == pytest.approx(559.2 * MICRO, rel=1e-3)
    assert line.seconds == pytest.approx(560 * MICRO, rel=0.01)
    assert (line.bound, line.rates.wraparound) == ("bandwidth", False)
    # What was measured is longer than any model of the links allows.
    assert 0.8 < line.seconds / (680 * MICRO) < 1
    small = time("all_gather", "bf16[256_Y, 256]", "Y", mesh, "tpu-v5e")
    assert (small.seconds, small.bound) == (pytest.approx(3 * MICRO), "latency")
    assert small.threshold_message_bytes == pytest.approx(45e3)


def test_question_1_replication() -> None:
    """A[I_X, J, K] on X=4, Y=8, Z=2: how many times its size does it take on all chips?"""
    mesh = Mesh({"X": 4, "Y": 8, "Z": 2})
    array = NamedArray.parse("bf16[I=64_X, J=32, K=8]", mesh)
    assert array.total_bytes(mesh) / array.bytes == array.replication_factor(mesh) == 16


def test_question_2_collectives_on_a_cube() -> None:
    """B=1024, D=4096 in bf16 on a v4p of 4x4x4: AllGather_X([B_X, D_Y]), AllGather_XY([B_X, D_Y]),
    AllReduce_Z([B_X, D_Y] {U_Z})?"""
    mesh = Mesh({"X": 4, "Y": 4, "Z": 4})
    text = "bf16[B=1024_X, D=4096_Y]"
    for op, array, axes, ours, book in [
        ("all_gather", text, "X", 23.30, 23),
        ("all_gather", text, "XY", 46.60, 46),
        ("all_reduce", text + " {U_Z}", "Z", 11.65, 11.6),
    ]:
        found = time(op, array, axes, mesh, "tpu-v4p")
        assert found.seconds == pytest.approx(ours * MICRO, rel=1e-3)
        assert found.seconds == pytest.approx(book * MICRO, rel=0.02)
        assert found.bound == "bandwidth"


def test_question_3_latency() -> None:
    """AllGather_X([B_X]) with B=128 in bf16 on a v4p of 4x4x4?"""
    found = time("all_gather", "bf16[128_X]", "X", Mesh({"X": 4, "Y": 4, "Z": 4}), "tpu-v4p")
    assert (found.seconds, found.bound) == (pytest.approx(2 * MICRO), "latency")
    assert (found.bytes, found.bytes // found.rates.devices) == (256, 64)


def test_question_4_two_strategies() -> None:
    """X[B, D] · Y[D_X, F] -> Z[B, F]: gather Y, or take a block of X and AllReduce Z? (v5p)"""
    mesh, chip = Mesh({"X": 4}), hardware("tpu-v5p")
    width, flops = 2 * chip.link_bytes_per_second, chip.flops["bf16"]

    def both(b: int, d: int, f: int) -> tuple[Strategy, Strategy]:
        found = solve("X[B, D] * Y[D_X, F] -> Z[B, F]", mesh, chip.name, {"B": b, "D": d, "F": f})
        return named(found, "AllGather_X(Y)"), named(found, "Slice_{X,D}(X); AllReduce_X(Z)")

    b, d, f = 1024, 8192, 32768
    gather, reduce = both(b, d, f)
    assert gather.flops_per_device == 2 * b * d * f
    assert reduce.flops_per_device == 2 * b * d * f / 4
    assert gather.comm_seconds == pytest.approx(2 * d * f / width)
    assert reduce.comm_seconds == pytest.approx(4 * b * f / width)
    assert gather.total_seconds == pytest.approx(max(2 * b * d * f / flops, 2 * d * f / width))
    assert reduce.total_seconds == pytest.approx(max(2 * b * d * f / 4 / flops, 4 * b * f / width))
    where = Topology.of(mesh, chip)
    # The first is bound by communication below this batch.
    (change,) = [each for each in bound_changes(gather, where) if each.dim == "B"]
    assert change.size == pytest.approx(2550)
    assert (change.below, change.above) == ("communication", "compute")
    # Both are bound by communication: the second is better if D > 2 B.
    plans = [gather.stages[0], reduce.stages[0]]
    (contraction,) = {stage.contraction for stage in plans}
    (change,) = [each for each in crossovers(contraction, where, plans=plans) if each.dim == "D"]
    assert change.size == pytest.approx(2 * b)
    assert (change.below, change.above) == (gather.name, reduce.name)
    # The batch is large: if D > 2 * 2550.
    gather, reduce = both(8192, d, f)
    plans = [gather.stages[0], reduce.stages[0]]
    (change,) = [
        each for each in crossovers(plans[0].contraction, where, plans=plans) if each.dim == "D"
    ]
    assert change.size == pytest.approx(2 * 2550)


def test_question_5_the_fastest_sharding() -> None:
    """A[I, J] · B[J, K] -> C[I, K] on a v5p of 4x4x4, C replicated: how to cut A and B?"""
    mesh = Mesh({"X": 4, "Y": 4, "Z": 4})
    sizes = {"I": 4096, "J": 4096, "K": 4096}
    found = solve("A[I, J] * B[J, K] -> C[I, K]", mesh, "tpu-v5p", sizes, search=True)
    best = best_strategies(found)
    rows = next(each for each in found if each.inputs == ("A[I_{XYZ}, J]", "B[J, K]"))
    columns = next(each for each in found if each.inputs == ("A[I, J]", "B[J, K_{XYZ}]"))
    summed = next(
        each
        for each in found
        if each.inputs == ("A[I, J_{XYZ}]", "B[J_{XYZ}, K]") and "AllReduce" in each.name
    )
    whole = named(found, "multiply locally")
    assert rows in best
    assert columns in best
    assert rows.total_seconds == pytest.approx(columns.total_seconds)
    assert summed.comm_seconds == pytest.approx(2 * rows.comm_seconds)
    assert summed.flops_per_device == rows.flops_per_device == whole.flops_per_device / 64
    assert whole.comm_seconds == 0
    assert whole.total_seconds > rows.total_seconds
    # Cutting several dims by different axes costs the same, and nothing costs less.
    assert all(each.total_seconds >= rows.total_seconds * (1 - 1e-9) for each in found)


def test_question_5_by_brute_force() -> None:
    """No sharding of the inputs of question 5 is faster than what the search finds."""
    axes = ["X", "Y", "Z"] if IS_DEEP else ["X", "Y"]
    mesh = Mesh(dict.fromkeys(axes, 4))
    sizes = {"I": 1024, "J": 1024, "K": 1024}
    found = solve("A[I, J] * B[J, K] -> C[I, K]", mesh, "tpu-v5p", sizes, search=True)[0]
    (contraction,) = pairwise(
        *parse_product("A[I,J] * B[J,K] -> C[I,K]", sizes=sizes, dtype="bf16")
    )
    left, right = contraction.operands
    for one, other in itertools.product(layouts(left, mesh), layouts(right, mesh)):
        text = f"{left.with_axes(one)} * {right.with_axes(other)} -> C[I, K]"
        tried = solve(text, mesh, "tpu-v5p", sizes)[0]
        assert tried.total_seconds >= found.total_seconds * (1 - 1e-9), text


def test_question_6_communication_against_computation() -> None:
    """A[I_X, J_Y] · B[J_Y, K] -> C[I_X, K] on a v5e of 4x4: what has to be sent, how long does it
    take, and how long the multiplication?"""
    mesh, chip = Mesh({"X": 4, "Y": 4}), hardware("tpu-v5e")
    i, j, k = 4096, 8192, 2048
    text = "A[I_X, J_Y] * B[J_Y, K] -> C[I_X, K]"
    found = solve(text, mesh, "tpu-v5e", {"I": i, "J": j, "K": k})
    best = found[0]
    assert best.name == "AllReduce_Y(C)"
    # Four chips of a v5e are no ring: three hops of a quarter, there and back.
    assert best.comm_seconds == pytest.approx(
        2 * 3 * (2 * i / 4 * k / 4) / chip.link_bytes_per_second
    )
    assert best.compute_seconds == pytest.approx(2 * (i / 4) * (j / 4) * k / chip.flops["bf16"])
    (change,) = [each for each in bound_changes(best, Topology.of(mesh, chip)) if each.dim == "J"]
    assert change.below == "communication"
    balanced = 6 * chip.flops["bf16"] / chip.link_bytes_per_second
    assert change.size == pytest.approx(balanced)


BLOCK = {"B": 128, "D": 8192, "F": 32768}
FREE = 300e6


def test_question_7_a_transformer_block() -> None:
    """In[B, D] · W_in[D, F] · W_out[F, D], B=128, D=8192, F=32768, v5e 2x2, 300 MB free: how to cut
    everything, the output like the input?"""
    mesh, chip = Mesh({"X": 2, "Y": 2}), "tpu-v5e"
    fsdp_text = "In[B_X, D] * W_in[D_XY, F] * W_out[F, D_XY] -> Out[B_X, D]"
    tensor_text = "In[B, D_XY] * W_in[D, F_XY] * W_out[F_XY, D] -> Out[B, D_XY]"
    fsdp = solve(fsdp_text, mesh, chip, BLOCK, memory_limit=FREE)
    tensor = solve(tensor_text, mesh, chip, BLOCK, memory_limit=FREE)
    best = tensor[0]
    assert best.name == "AllGather_{XY}(In); ReduceScatter_{XY,D}(Out)"
    assert best.fits
    assert best.total_seconds < fsdp[0].total_seconds
    assert best.serial_seconds < fsdp[0].serial_seconds
    # Gathering the weights, as FSDP does, takes far longer, and more than there is.
    gathered = named(fsdp, "AllGather_{XY}(W_in); AllGather_{XY}(W_out)")
    assert not gathered.fits
    assert gathered.total_seconds > 10 * best.total_seconds
    weights = 2 * BLOCK["D"] * BLOCK["F"]
    width = hardware(chip).link_bytes_per_second
    # A chip of a 2x2 has two links, and gets three quarters over them.
    assert gathered.comm_seconds == pytest.approx(2 * weights * 3 / 4 / (2 * width))
    activations = 2 * BLOCK["B"] * BLOCK["D"]
    assert best.comm_seconds == pytest.approx(2 * activations * 3 / 4 / (2 * width))
    flops = 2 * 2 * BLOCK["B"] * BLOCK["D"] * BLOCK["F"] / 4
    assert best.flops_per_device == flops
    assert best.compute_seconds == pytest.approx(flops / hardware(chip).flops["bf16"])
    assert best.bound == "compute"


def test_question_7_by_search() -> None:
    """The search finds nothing faster that fits, and cuts the weights along F."""
    mesh = Mesh({"X": 2, "Y": 2})
    text = "In[B, D] * W_in[D, F] * W_out[F, D] -> Out[B, D]"
    found = solve(text, mesh, "tpu-v5e", BLOCK, memory_limit=FREE, search=True)
    given = solve(
        "In[B, D_XY] * W_in[D, F_XY] * W_out[F_XY, D] -> Out[B, D_XY]",
        mesh,
        "tpu-v5e",
        BLOCK,
        memory_limit=FREE,
    )
    assert found[0].total_seconds == pytest.approx(given[0].total_seconds)
    assert found[0].serial_seconds == pytest.approx(given[0].serial_seconds)
    assert found[0].inputs[1:] == ("W_in[D, F_{XY}]", "W_out[F_{XY}, D]")
    assert given[0].inputs in [each.inputs for each in best_strategies(found)]


def test_question_7_by_brute_force() -> None:
    """No sharding of input and weights that fits is faster than what the search finds."""
    mesh = Mesh({"X": 2, "Y": 2})
    text = "In[B, D] * W_in[D, F] * W_out[F, D] -> Out[B, D]"
    options = {"memory_limit": FREE, "limit": 1}
    (found,) = solve(text, mesh, "tpu-v5e", BLOCK, search=True, **options)
    operands, output = parse_product(text, sizes=BLOCK, dtype="bf16")
    x, y = AxisRef("X"), AxisRef("Y")
    swap = {x: y, y: x}
    tried_already = set()
    for layout in itertools.product(*(layouts(array, mesh) for array in operands)):
        # The two axes are alike: what is tried with one of them is not tried with the other.
        other = tuple(tuple(tuple(swap[a] for a in axes) for axes in cut) for cut in layout)
        if other in tried_already and not IS_DEEP:
            continue
        tried_already.add(layout)
        cut = [array.with_axes(axes) for array, axes in zip(operands, layout, strict=True)]
        # What does not fit before anything is gathered cannot win.
        if sum(array.bytes_per_device(mesh) for array in cut) > FREE and not IS_DEEP:
            continue
        tried = " * ".join(map(str, cut)) + f" -> {output.with_axes(layout[0])}"
        (best,) = solve(tried, mesh, "tpu-v5e", BLOCK, **options)
        assert best.rank[:3] >= found.rank[:3], tried


QUESTION_8 = {
    "all_gather": ("bf16[I=16_X, J=32_Y]", ["X"]),
    "all_gather of two axes": ("bf16[I=16_X, J=32_Y]", ["X", "Y"]),
    "all_gather of the inner axis": ("fp32[I=16_{XY}, J=32]", ["Y"]),
    "all_reduce": ("fp32[I=16_X, J=32] {U_Y}", ["Y"]),
    "reduce_scatter of two axes": ("bf16[I=16, J=32] {U_{XY}}", ["X", "Y"]),
    "all_to_all of two axes": ("int8[I=16_{XY}, J=8, K=4]", ["X", "Y"]),
    "reduce_scatter": ("fp32[I=16_X, J=32] {U_Y}", ["Y"]),
    "all_to_all": ("int8[I=16_X, J=8]", ["X"]),
    "permute": ("fp32[I=16_{XY}, J=32]", ["X"]),
    "slice": ("fp32[I=16, J=32_X]", ["Y"]),
}


def test_question_8_programs_that_run() -> None:
    """Write a program that runs and times each of AllGather, AllReduce, ReduceScatter, AllToAll."""
    pytest.importorskip("jax")
    mesh = Mesh({"X": 4, "Y": 2})
    programs = []
    for name, (text, axes) in QUESTION_8.items():
        array = NamedArray.parse(text, mesh)
        programs.append(snippet(Collective.of(name.split()[0], array, axes, mesh=mesh), mesh))
    environment = {
        **os.environ,
        "XLA_FLAGS": "--xla_force_host_platform_device_count=8",
        "JAX_PLATFORMS": "cpu",
    }
    done = subprocess.run(
        [sys.executable, "-c", "\n\n".join(programs)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    lines = done.stdout.splitlines()
    assert [line.split()[0] for line in lines] == [name.split()[0] for name in QUESTION_8]
    assert all(line.endswith(" s") for line in lines)


def test_question_9_multiply_first() -> None:
    """A[N, M_X] · B[M, K] -> C[N, K]: gather A, or multiply blocks and sum? How do the times of
    communication compare?"""
    mesh = Mesh({"X": 4})
    for n, m, k in [(1024, 8192, 2048), (1024, 2048, 8192), (512, 4096, 4096)]:
        sizes = {"N": n, "M": m, "K": k}
        whole = solve("A[N, M_X] * B[M, K] -> C[N, K]", mesh, "tpu-v5p", sizes)
        gather = named(whole, "AllGather_X(A)")
        reduce = named(whole, "Slice_{X,M}(B); AllReduce_X(C)")
        cut = solve("A[N, M_X] * B[M, K] -> C[N, K_X]", mesh, "tpu-v5p", sizes)
        scatter = named(cut, "Slice_{X,M}(B); ReduceScatter_{X,K}(C)")
        assert scatter.comm_seconds / gather.comm_seconds == pytest.approx(k / m)
        assert gather.comm_seconds / scatter.comm_seconds == pytest.approx(m / k)
        assert reduce.comm_seconds / gather.comm_seconds == pytest.approx(2 * k / m)
        assert (scatter.comm_seconds < gather.comm_seconds) == (k < m)


def test_question_10_where_the_quarter_of_an_all_to_all_is_from() -> None:
    """An N x N array over a ring of D: how many scalars cross a link in an AllGather and in an
    AllToAll, one way and both ways?"""
    n, d = 4096, 16
    mesh = Mesh({"X": d})
    text = f"int8[I={n}_X, J={n}]"
    one_way = {"exact": True, "one_way": True}
    gather = time("all_gather", text, "X", mesh, "tpu-v5e", **one_way)
    move = time("all_to_all", text, "X", mesh, "tpu-v5e", **one_way)
    assert gather.link_bytes == pytest.approx(n**2 * (1 - 1 / d))
    assert move.link_bytes == pytest.approx(n**2 / 2 * (1 - 1 / d))
    assert move.seconds / gather.seconds == pytest.approx(1 / 2)
    both = time("all_gather", text, "X", mesh, "tpu-v5e", exact=True)
    assert both.link_bytes == pytest.approx(gather.link_bytes / 2)
    moved = time("all_to_all", text, "X", mesh, "tpu-v5e", exact=True)
    # D^2 / 8 blocks instead of D^2 / 2, up to what a device keeps.
    assert move.link_bytes / moved.link_bytes == pytest.approx(4 * (1 - 1 / d))
    rounded = {
        op: time(op, array, "X", mesh, "tpu-v5e").seconds
        for op, array in [
            ("all_gather", text),
            ("all_to_all", text),
            ("all_reduce", f"int8[I={n}, J={n}] {{U_X}}"),
        ]
    }
    assert rounded["all_to_all"] / rounded["all_gather"] == pytest.approx(1 / 4)
    assert rounded["all_to_all"] / rounded["all_reduce"] == pytest.approx(1 / 8)


def test_no_figure_of_an_answer_stands_in_the_source() -> None:
    answers = ["372.8", "377", "559.2", "560", "680", "23.3", "46.6", "11.65", "2550", "5100"]
    pattern = re.compile("|".join(rf"(?<![\w.]){re.escape(each)}\d*(?![\d.])" for each in answers))
    for path in [*PACKAGE.rglob("*.py"), *PACKAGE.rglob("*.toml")]:
        assert not pattern.findall(path.read_text(encoding="utf-8")), path
