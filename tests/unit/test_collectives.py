"""Collectives: what they do to a sharding, how long they take, on what."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest
from shardcore import Mesh, ShardcoreError
from shardcore.calculus import (
    Collective,
    NamedArray,
    TimeOptions,
    Topology,
    deferred,
    estimate,
    hardware,
    hardware_names,
    scatter_choices,
    snippet,
)
from shardcore.calculus.collectives import OPS, op_name
from shardcore.calculus.topology import parse_mapping, parse_shape

from tests.oracle.devices import ring_loads

MESH = Mesh({"X": 4, "Y": 4, "Z": 4})


def apply(op: str, text: str, axes: str, **options) -> Collective:
    return Collective.of(op, NamedArray.parse(text, MESH), list(axes), mesh=MESH, **options)


def time(op, text, axes, mesh=MESH, chip="tpu-v4p", topology=None, mapping=None, how=None, **more):
    array = NamedArray.parse(text, mesh)
    where = Topology.of(mesh, hardware(chip), topology, mapping)
    return estimate(Collective.of(op, array, list(axes), mesh=mesh, **more), where, how)


@pytest.mark.parametrize(
    ("op", "text", "axes", "options", "result"),
    [
        ("all_gather", "A[I_{XY}, J]", "XY", {}, "A[I, J]"),
        ("all_gather", "A[I_{XY}, J]", "Y", {}, "A[I_X, J]"),
        ("all_gather", "A[I_{XY}, J]", "X", {}, "A[I_Y, J]"),
        ("all_gather", "A[I_X, J_Y]", "XY", {}, "A[I, J]"),
        ("AllGather", "A[I_X] {U_Y}", "X", {}, "A[I] {U_Y}"),
        ("reduce-scatter", "A[I_X, J] {U_Y}", "Y", {"dim": "J"}, "A[I_X, J_Y]"),
        ("reduce_scatter", "A[I_X, J] {U_Y}", "Y", {"dim": "I"}, "A[I_{XY}, J]"),
        ("reduce_scatter", "A[I=3, J=8] {U_Y}", "Y", {}, "A[I=3, J=8_Y]"),
        ("reduce_scatter", "A[I, J] {U_{XY}}", "Y", {"dim": 0}, "A[I_Y, J] {U_X}"),
        ("all_reduce", "A[I_X, J] {U_{YZ}}", "Y", {}, "A[I_X, J] {U_Z}"),
        ("all_to_all", "A[I_X, J]", "X", {}, "A[I, J_X]"),
        ("all_to_all", "A[I_X, J, K]", "X", {"dim": "K"}, "A[I, J, K_X]"),
        ("permute", "A[I_X, J]", "X", {"shift": 2}, "A[I_X, J]"),
        ("slice", "A[I, J]", "X", {"dim": "J"}, "A[I, J_X]"),
    ],
)
def test_the_sharding_after(op: str, text: str, axes: str, options: dict, result: str) -> None:
    assert str(apply(op, text, axes, **options).result) == result


@pytest.mark.parametrize(
    ("op", "text", "axes", "options"),
    [
        ("all_gather", "A[I_X]", "Y", {}),
        ("all_gather", "A[I]", "Y", {}),
        ("all_gather", "A[I_X]", "", {}),
        ("all_gather", "A[I_X]", "XX", {}),
        ("gather_all", "A[I_X]", "X", {}),
        ("all_reduce", "A[I_X]", "X", {}),
        ("reduce_scatter", "A[I_X]", "X", {}),
        ("reduce_scatter", "A[]", "X", {}),
        ("all_to_all", "A[I_X]", "X", {}),
        ("all_to_all", "A[I_X, J]", "X", {"dim": "I"}),
        ("slice", "A[I_X, J]", "X", {}),
    ],
)
def test_collectives_that_make_no_sense(op: str, text: str, axes: str, options: dict) -> None:
    with pytest.raises(ShardcoreError) as caught:
        apply(op, text, axes, **options)
    assert caught.value.code == "invalid-collective"
    assert "^" in str(caught.value)
    assert caught.value.hint


def test_an_unknown_axis_or_dim_is_told_apart() -> None:
    for axes, options, code in [("Q", {}, "unknown-axis"), ("X", {"dim": "Q"}, "unknown-dim")]:
        with pytest.raises(ShardcoreError) as caught:
            Collective.of("slice", NamedArray.parse("A[I]"), [axes], mesh=MESH, **options)
        assert caught.value.code == code
    assert [op_name(op) for op in OPS] == list(OPS)
    assert op_name("psum") == "all_reduce"


def test_each_op_and_its_transpose() -> None:
    gather = apply("all_gather", "A[I_X, J]", "X")
    back = gather.transposed()
    assert str(back) == "ReduceScatter_{X, I} A[I, J] {U_X} -> A[I_X, J]"
    assert back.transpose == "all_gather"
    scatter = apply("reduce_scatter", "A[I, J] {U_X}", "X", dim="J")
    assert str(scatter.transposed()) == "AllGather_X A[I, J_X] -> A[I, J]"
    for op, text in [
        ("all_reduce", "A[I] {U_X}"),
        ("all_to_all", "A[I_X, J]"),
        ("permute", "A[I_X]"),
    ]:
        assert apply(op, text, "X").transpose == op
    there = apply("all_to_all", "A[I_X, J]", "X")
    assert (there.transposed().array, there.transposed().result) == (there.result, there.array)
    assert apply("permute", "A[I_X]", "X").transposed().shift == -1
    assert str(apply("slice", "A[I]", "X").transposed().result) == "A[I]"
    assert apply("all_reduce", "A[I] {U_X}", "X").transposed().op == "all_reduce"


def test_a_deferred_gather_costs_what_an_all_reduce_does() -> None:
    whole = time("all_reduce", "bf16[I=1024, J=4096] {U_X}", "X")
    where = Topology.of(MESH, hardware("tpu-v4p"))
    parts = deferred(whole.collective.array, ["X"], dim="J", mesh=MESH)
    assert str(parts[0].result) == "bf16[I=1024, J=4096_X]"
    assert str(parts[1].result) == "bf16[I=1024, J=4096]"
    assert math.isclose(sum(estimate(part, where).seconds for part in parts), whole.seconds)
    assert scatter_choices(NamedArray.parse("A[I=3, J=8]"), ["X"], MESH) == [1, 0]
    assert scatter_choices(NamedArray.parse("A[I=3, J=8]"), ["X"], None) == [0, 1]


def test_a_major_axis_gathers_blocks_out_of_order_and_says_so() -> None:
    assert apply("all_gather", "A[I_{XY}]", "X").notes
    assert not apply("all_gather", "A[I_{XY}]", "Y").notes


V = 1024 * 4096 * 2
ONE_WAY = 4.5e10


@pytest.mark.parametrize(
    ("op", "axes", "mesh", "chip", "seconds"),
    [
        ("all_gather", "X", {"X": 16}, "tpu-v5e", V / (2 * ONE_WAY)),
        ("all_gather", "X", {"X": 8}, "tpu-v5e", 7 / 8 * V / ONE_WAY),
        ("all_gather", "XY", {"X": 16, "Y": 16}, "tpu-v5e", V / (4 * ONE_WAY)),
        ("all_gather", "XY", {"X": 4, "Y": 4}, "tpu-v5e", 15 / 16 * V / (2 * ONE_WAY)),
        ("all_gather", "XY", {"X": 16, "Y": 4}, "tpu-v5e", 63 / 64 * V / (3 * ONE_WAY)),
        ("all_to_all", "X", {"X": 16}, "tpu-v5e", V / (8 * ONE_WAY)),
        ("all_to_all", "X", {"X": 8}, "tpu-v5e", V / (4 * ONE_WAY)),
        ("all_to_all", "XY", {"X": 4, "Y": 8}, "tpu-v4p", V * 8 / (4 * 32 * 2 * ONE_WAY)),
        ("all_gather", "X", {"X": 1, "Y": 4}, "tpu-v5e", 0.0),
        ("all_gather", "X", {"X": 8}, "h100", V * 7 / (8 * 4.5e11)),
        ("all_gather", "X", {"X": 32}, "h100", V / 4e11),
        ("all_gather", "X", {"X": 4, "Y": 8}, "h100", V / 4e11),
        ("all_gather", "Y", {"X": 4, "Y": 8}, "h100", V * 7 / (8 * 4.5e11)),
        ("all_to_all", "X", {"X": 8}, "b200", V * 7 / (64 * 9e11)),
        ("all_to_all", "X", {"X": 4, "Y": 8}, "b200", V * 3 / (16 * 4e11)),
    ],
)
def test_bandwidth_bounds(op: str, axes: str, mesh: dict, chip: str, seconds: float) -> None:
    text = "A: bf16[I=1024_{" + ",".join(axes) + "}, J=4096]"
    found = time(op, text, axes, Mesh(mesh), chip)
    assert math.isclose(found.bandwidth_seconds, seconds, rel_tol=1e-12)
    assert found.bytes == V


def test_all_reduce_is_two_gathers() -> None:
    for chip in ("tpu-v4p", "tpu-v5e", "a100"):
        gather = time("all_gather", "bf16[1024_X, 4096]", "X", chip=chip)
        scatter = time("reduce_scatter", "bf16[1024, 4096] {U_X}", "X", chip=chip)
        reduce = time("all_reduce", "bf16[1024, 4096] {U_X}", "X", chip=chip)
        assert math.isclose(scatter.seconds, gather.seconds)
        assert math.isclose(reduce.seconds, 2 * gather.seconds)
        assert math.isclose(reduce.latency_seconds, 2 * gather.latency_seconds)
        assert reduce.wire_bytes == 2 * gather.wire_bytes == 2 * 3 * V // 4


def test_latency_and_where_it_stops_to_matter() -> None:
    found = time("all_gather", "bf16[64_X]", "X")
    assert (found.bound, found.seconds, found.rates.hops) == ("latency", 2e-6, 2)
    assert found.threshold_message_bytes == pytest.approx(45e3)
    # N messages of the threshold's size are the array at which the bound changes.
    assert found.threshold_bytes == pytest.approx(4 * 45e3)
    line = time("all_gather", "bf16[64_X]", "X", Mesh({"X": 4}), "tpu-v5e")
    assert (line.seconds, line.rates.hops, line.rates.wraparound) == (pytest.approx(3e-6), 3, False)
    assert line.threshold_bytes == pytest.approx(4 * 45e3)
    several = time("all_gather", "bf16[64_{XYZ}]", "XYZ")
    assert several.rates.hops == 6
    assert time("all_gather", "bf16[64_X]", "X", chip="h100").threshold_bytes == 0


def test_options_of_time() -> None:
    text = "bf16[1024_X, 4096]"
    plain = time("all_gather", text, "X")
    assert time("all_gather", text, "X", how=TimeOptions(exact=True)).seconds == pytest.approx(
        plain.seconds * 3 / 4
    )
    assert time("all_gather", text, "X", how=TimeOptions(efficiency=0.95)).seconds == pytest.approx(
        plain.seconds / 0.95
    )
    one_way = time("all_gather", text, "X", how=TimeOptions(one_way=True))
    assert one_way.seconds == pytest.approx(2 * plain.seconds)
    assert one_way.rates.hops == 3
    shared = Mesh({"X": 4, "Y": 8})
    exact = time("all_gather", text, "X", shared, "h100", how=TimeOptions(exact=True))
    assert exact.seconds == pytest.approx(V * 3 / 4 * 8 / 4e11)
    for efficiency in (0, -1, 1.1, math.nan):
        with pytest.raises(ShardcoreError) as caught:
            TimeOptions(efficiency=efficiency)
        assert caught.value.code == "invalid-option"


def test_permutes_and_slices() -> None:
    block = V / 4
    one = time("permute", "bf16[1024_X, 4096]", "X")
    assert one.seconds == pytest.approx(block / ONE_WAY)
    assert time("permute", "bf16[1024_X, 4096]", "X", shift=-2).seconds == pytest.approx(
        2 * block / ONE_WAY
    )
    assert time("permute", "bf16[1024_X, 4096]", "X", shift=4).seconds == 0
    line = time("permute", "bf16[1024_X, 4096]", "X", Mesh({"X": 4}), "tpu-v5e")
    assert line.rates.hops == 3
    assert time("permute", "bf16[1024_X, 4096]", "X", chip="h100").seconds == pytest.approx(
        block / 4e11
    )
    free = time("slice", "bf16[1024, 4096]", "X")
    assert (free.seconds, free.wire_bytes, free.formula) == (0, 0, "0: no communication")
    assert free.record(MESH)["threshold_bytes"] is not None


@pytest.mark.parametrize("devices", [2, 3, 4, 5, 8])
@pytest.mark.parametrize("op", ["all_gather", "all_to_all"])
@pytest.mark.parametrize("both_ways", [False, True])
def test_what_a_link_of_a_ring_carries(
    devices: int, op: str, both_ways: bool, tmp_path: Path
) -> None:
    chip = tmp_path / "chips.toml"
    chip.write_text('[ring]\nbase = "tpu-v5p"\nwraparound_multiple_of = 1\n')
    size = devices * devices
    mesh = Mesh({"X": devices})
    array = NamedArray.parse(f"int8[I={size}_X, J={size}]")
    found = estimate(
        Collective.of(op, array, ["X"]),
        Topology.of(mesh, hardware("ring", chip)),
        TimeOptions(exact=True, one_way=not both_ways),
    )
    blocks = ring_loads(devices, op, both_ways=both_ways)
    assert found.link_bytes == pytest.approx(blocks * size * size / devices**2)


def test_collectives_along_parts_of_an_axis() -> None:
    mesh = Mesh({"X": 8, "Y": 4})

    def gather(text: str, axis: str, chip: str = "tpu-v4p", **options):
        array = NamedArray.parse(text, mesh)
        collective = Collective.of("all_gather", array, [axis], mesh=mesh)
        return estimate(collective, Topology.of(mesh, hardware(chip)), TimeOptions(**options))

    text = "bf16[I=1024_X, J=4096]"
    # The inner half of X: neighbours in lines of two, and V is what such a line has.
    inner = gather(text, "X:(4)2")
    assert str(inner.collective.result) == "bf16[I=1024_{X:(1)4}, J=4096]"
    assert (inner.bytes, inner.rates.hops, inner.rates.wraparound) == (V // 4, 1, False)
    assert inner.bandwidth_seconds == pytest.approx(V / 4 / 2 / ONE_WAY)
    # The outer half: opposite each other on the ring, four groups on the same links.
    outer = gather(text, "X:(1)2")
    assert str(outer.collective.result) == "bf16[I=1024_{X:(2)4}, J=4096]"
    assert outer.collective.notes
    assert (outer.rates.hops, outer.rates.wraparound) == (4, True)
    assert outer.bandwidth_seconds == pytest.approx(V / 4 / (2 * ONE_WAY / 4))
    # One half after the other leaves nothing cut.
    rest = gather("bf16[I=1024_{X:(1)4}, J=4096]", "X:(1)4")
    assert str(rest.collective.result) == "bf16[I=1024, J=4096]"
    assert rest.bytes == V
    # Backwards a gather scatters what it gathered.
    assert str(inner.collective.transposed().result) == "bf16[I=1024_X, J=4096]"
    assert inner.collective.transposed().dim == 0
    # Two halves that come to stand next to each other are the axis again.
    moved = Collective.of(
        "all_to_all", NamedArray.parse("A[I_{X:(1)2}, J_{X:(2)4}]"), ["X:(2)4"], dim=0, mesh=mesh
    )
    assert str(moved.result) == "A[I_X, J]"
    # Eight devices are a node: inner halves of X are four devices apart, outer ones sixteen.
    assert gather(text, "X:(4)2", "h100").bandwidth_seconds == pytest.approx(V / 4 / 2 / 4.5e11)
    assert gather(text, "X:(1)2", "h100").bandwidth_seconds == pytest.approx(V / 4 / 4e11)
    spread = Topology.of(Mesh({"X": 16, "Y": 4}), hardware("tpu-v4p"), "4x4x4")
    assert [part.size for part in spread.along(["X:(1)4"])] == [4]
    assert spread.along(["X:(1)4"])[0].wraps_around
    assert [(part.size, part.stride) for part in spread.along(["X:(2)4"])] == [(2, 1), (2, 2)]
    with pytest.raises(ShardcoreError, match="depends on the mesh"):
        Collective.of("all_gather", NamedArray.parse("A[I_X]"), ["X:(1)2"])


def test_mesh_axes_on_physical_axes() -> None:
    mesh = Mesh({"X": 16, "Y": 4})
    chip = hardware("tpu-v5p")
    twice = Topology.of(mesh, chip, "4x4x4")
    assert [part.size for part in twice.along(["X"])] == [4, 4]
    text = "bf16[1024_X, 4096]"
    spread = time("all_gather", text, "X", mesh, "tpu-v5p", "4x4x4")
    alone = time("all_gather", text, "X", mesh, "tpu-v5p", "16x4")
    # 64 chips of a v5p are a cube, so that is where the mesh lies by default.
    assert time("all_gather", text, "X", mesh, "tpu-v5p").seconds == spread.seconds
    assert spread.bandwidth_seconds == pytest.approx(alone.bandwidth_seconds / 2)
    assert (spread.rates.hops, alone.rates.hops) == (4, 8)
    swapped = Topology.of(mesh, chip, "4x4x4", {"X": (0, 2), "Y": (1,)})
    assert len(swapped.along("X")) == 2
    odd = Topology.of(Mesh({"X": 8, "Y": 2}), chip, "2x8", {"X": (1,), "Y": (0,)})
    assert odd.along("X")[0].wraps_around
    assert not odd.along("Y")[0].wraps_around
    ones = Topology.of(Mesh({"A": 1, "X": 4}), chip, "1x4")
    assert [part.size for part in ones.along(["A", "X"])] == [4]
    assert Topology.of(Mesh({"X": 67}), hardware("tpu-v5e")).notes
    assert Topology.of(MESH, hardware("tpu-v5e")).notes
    assert not Topology.of(MESH, chip).notes


@pytest.mark.parametrize(
    ("shape", "mapping"),
    [
        ("4x4", None),
        ("4by4", None),
        ("4x4x4", {"X": (0, 1)}),
        ("4x4x4", {"X": (0, 1), "Y": (1,)}),
        ("4x4x4", {"X": (0, 3), "Y": (1,)}),
        ("4x4x4", {"X": (0,), "Y": (1,)}),
        (None, {"X": (0, 1)}),
    ],
)
def test_topologies_that_do_not_fit(shape: str | None, mapping: dict | None) -> None:
    with pytest.raises(ShardcoreError) as caught:
        Topology.of(Mesh({"X": 16, "Y": 4}), hardware("tpu-v5p"), shape, mapping)
    assert caught.value.code == "invalid-topology"
    assert "^" in str(caught.value)
    assert caught.value.hint


def test_mappings_as_text() -> None:
    assert parse_mapping(["X=0,1 Y=2"]) == {"X": (0, 1), "Y": (2,)}
    assert parse_mapping(["X=0,1;Y=2"]) == parse_mapping(["X=0,1", "Y=2"])
    assert parse_shape("4x4x4") == (4, 4, 4)
    for text in ["X", "X=", "X=0,", "X=0 X=1"]:
        with pytest.raises(ShardcoreError, match=r"\^"):
            parse_mapping([text])
    with pytest.raises(ShardcoreError, match="no axis"):
        Topology.of(Mesh({"X": 4}), hardware("tpu-v5p"), "4", {"Q": (0,)})


def test_wrap_around() -> None:
    for chip, rings, lines in [
        ("tpu-v5e", [16], [4, 8, 32]),
        ("tpu-v6e", [16], [4, 8]),
        ("tpu-v4p", [4, 8, 12], [2, 6]),
        ("tpu-v5p", [4, 20, 28], [2, 10]),
    ]:
        assert all(hardware(chip).wraps_around(size) for size in rings)
        assert not any(hardware(chip).wraps_around(size) for size in lines)


def test_every_figure_has_a_source() -> None:
    for name in hardware_names():
        chip = hardware(name)
        assert chip.flops["bf16"] > 1e14
        assert chip.source["default"]
        assert chip.source["hop_seconds"]
        assert chip.source["achieved"]


def test_the_page_names_every_chip() -> None:
    page = (Path(__file__).parents[2] / "docs" / "calculus.md").read_text(encoding="utf-8")
    listed = page.split("\n## Hardware\n")[1].split(". ")[0]
    assert sorted(re.findall(r"`([^`]+)`", listed)) == sorted(hardware_names())


def test_hardware_of_ones_own(tmp_path: Path) -> None:
    path = tmp_path / "chips.toml"
    path.write_text(
        '[tpu-v5e]\nlink_bytes_per_second = 5e10\nsource = { link_bytes_per_second = "measured" }\n'
        '[toy]\nkind = "switched"\nflops = { bf16 = 1e12, float32 = 5e11 }\n'
        "link_bytes_per_second = 1e9\nnode_size = 2\nnode_bytes_per_second = 1e8\n"
        '[h100-slow]\nbase = "h100"\nflops = { int8 = 1e15 }\n'
    )
    changed = hardware("tpu-v5e", path)
    assert changed.link_bytes_per_second == 5e10
    assert changed.source["link_bytes_per_second"] == "measured"
    assert changed.hbm_bytes == hardware("tpu-v5e").hbm_bytes
    toy = hardware("toy", path)
    assert toy.flops_per_second("f32") == 5e11
    assert toy.flops_per_second("int8") == 1e12
    assert toy.has_figure_for("bfloat16")
    slow = hardware("h100-slow", path)
    assert slow.flops == {**hardware("h100").flops, "int8": 1e15}
    assert slow.source["flops"] == str(path)
    assert "toy" in hardware_names(path)


@pytest.mark.parametrize(
    "text",
    [
        "x = 1",
        "[toy]\nkind = 'ring'",
        "[toy]\nkind = 'torus'",
        "[toy]\nbase = 'nothing'",
        "[h100]\nflops = 3",
        "[h100]\nflops = { int8 = -1 }",
        "[h100]\nhbm_bites = 3",
        "[h100]\nnode_size = 0",
        "[h100]\nlink_bytes_per_second = 'fast'",
        "[tpu-v5e]\npod = 16",
        "[h100",
    ],
)
def test_hardware_files_with_mistakes(text: str, tmp_path: Path) -> None:
    path = tmp_path / "chips.toml"
    path.write_text(text)

    def read_all() -> None:
        for name in hardware_names(path):
            hardware(name, path)

    with pytest.raises(ShardcoreError) as caught:
        read_all()
    assert caught.value.code == "hardware-file"
    assert str(path) in str(caught.value)
    assert "^" in str(caught.value)
    assert caught.value.hint


def test_unknown_hardware_and_types() -> None:
    with pytest.raises(ShardcoreError, match=r"did you mean tpu-v5e\?") as caught:
        hardware("tpuv5e")
    assert caught.value.code == "unknown-hardware"
    assert "^^^^^^" in str(caught.value)
    with pytest.raises(ShardcoreError) as caught:
        hardware("h100").flops_per_second("bf17")
    assert caught.value.code == "unknown-dtype"


def test_floats_of_eight_bits_are_known_under_all_their_names() -> None:
    chip = hardware("h100")
    for name in ("float8_e4m3fn", "f8E5M2", "float8_e4m3b11fnuz", "f8E8M0FNU", "float8_e3m4"):
        assert chip.flops_per_second(name) == chip.flops["fp8"]
    assert hardware("h100").flops_per_second("float4_e2m1fn") == chip.flops_per_second("fp4")


def test_what_is_shown_at_a_prompt() -> None:
    mesh = Mesh({"data": 4})
    assert str(Collective.of("psum", "A[I] {U_data}", "data", mesh=mesh).result) == "A[I]"
    array = NamedArray.parse("bf16[I=1024_X, J=4096]", MESH)
    assert eval(repr(array)) == array
    gather = Collective.of("all_gather", array, ["X"], mesh=MESH)
    assert repr(gather) == "<Collective AllGather_X bf16[I=1024_X, J=4096] -> bf16[I=1024, J=4096]>"
    where = Topology.of(MESH, hardware("tpu-v4p"))
    assert repr(where).startswith("<Topology X=4 (ring), Y=")
    assert "93.21 us, bandwidth>" in repr(estimate(gather, where))
    assert repr(hardware("h100")).startswith("<Hardware h100: 9.9e+14 bf16 FLOP/s, 80 GB at ")


def test_groups_that_share_a_way_out_of_a_node_are_pointed_out() -> None:
    mesh = Mesh({"X": 4, "Y": 8})
    text = "bf16[1024_X, 4096]"
    assert "8 such groups" in time("all_gather", text, "X", mesh, "h100").notes[0]
    assert not time("all_gather", text, "X", mesh, "h100", how=TimeOptions(exact=True)).notes
    assert not time("all_gather", "bf16[1024_Y, 4096]", "Y", mesh, "h100").notes


def test_programs_that_jax_cannot_run_are_refused() -> None:
    mesh = Mesh({"X": 4, "Y": 2})
    for op, text, axes, words in [
        ("all_gather", "bf16[I=8_X]", ["X:(2)2"], "no parts of axes"),
        ("all_gather", "bf16[I=8_{XY}]", ["X"], "out of order"),
        ("all_gather", "bf16[I=7_X]", ["X"], "does not pad"),
        ("all_to_all", "bf16[I=8_X, J=8_Y, K=8]", ["X", "Y"], "one dim only"),
        ("all_gather", "[I=8_X]", ["X"], "element type"),
    ]:
        array = NamedArray.parse(text, mesh)
        with pytest.raises(ShardcoreError, match=words) as caught:
            snippet(Collective.of(op, array, axes, mesh=mesh), mesh)
        assert caught.value.hint


def test_a_part_that_cuts_through_rows_of_chips_is_a_line() -> None:
    where = Topology.of(Mesh({"X": 12}), hardware("tpu-v4p"), "3x4")
    assert [(p.size, p.stride) for p in where.along(["X:(1)6"])] == [(3, 1), (2, 2)]
    (line,) = where.along(["X:(2)6"])
    assert (line.size, line.stride, line.wraps_around) == (6, 1, False)
