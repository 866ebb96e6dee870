"""Mesh axes that share a physical axis, as on a torus with fewer axes than the mesh."""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import replace

import pytest
from shardcore import CalculusError, Mesh
from shardcore.calculus import Collective, NamedArray, TimeOptions, Topology, estimate, hardware

W = hardware("tpu-v5e").link_bytes_per_second
RING = replace(hardware("tpu-v5e"), name="ring", physical_axes=1, pod=(16,))
"""A chip of which 16 make a ring; fewer are a line."""
V = 2 * 2048 * 4096
"""Bytes of the array that is gathered."""


def along(sizes: dict[str, int], axes: str, chip=RING) -> list[tuple[int, bool, int]]:
    """Chips, whether they are a ring, and stride of each part that a group lies on."""
    parts = Topology.of(Mesh(sizes), chip).along(axes.split())
    return [(part.size, part.wraps_around, part.stride) for part in parts]


def gather(sizes: dict[str, int], axes: str, chip=RING, *, exact: bool = False):
    mesh = Mesh(sizes)
    array = NamedArray.parse(f"bf16[I=2048_{{{axes.replace(' ', '')}}}, J=4096]", mesh)
    collective = Collective.of("all_gather", array, axes.split(), mesh=mesh)
    return estimate(collective, Topology.of(mesh, chip), TimeOptions(exact=exact))


def test_two_mesh_axes_on_one_ring() -> None:
    """Rings of four chips: none along Y, whose ends are not linked, and four through each link."""
    mesh = {"X": 4, "Y": 4}
    assert along(mesh, "Y") == [(4, False, 1)]
    assert along(mesh, "X") == [(4, True, 4)]
    assert gather(mesh, "Y").bandwidth_seconds == pytest.approx(V * 3 / 4 / W)
    assert gather(mesh, "X").bandwidth_seconds == pytest.approx(V * 4 / (2 * W))
    # Three hops from one end of the line to the other; half around the ring is eight.
    assert (gather(mesh, "Y").rates.hops, gather(mesh, "X").rates.hops) == (3, 8)


def test_all_mesh_axes_of_a_ring_are_the_ring() -> None:
    whole, both = gather({"X": 16}, "X"), gather({"X": 4, "Y": 4}, "X Y")
    assert both.bandwidth_seconds == whole.bandwidth_seconds == pytest.approx(V / (2 * W))
    assert both.rates.hops == whole.rates.hops == 8


def test_mesh_axes_with_one_between_them() -> None:
    """Along X and Z are chips 0, 1, 8 and 9 of a ring; three other groups share its links."""
    mesh = {"X": 2, "Y": 4, "Z": 2}
    assert along(mesh, "X Z") == [(4, True, 4)]
    assert along(mesh, "Y Z") == [(8, False, 1)]
    assert along(mesh, "X Y") == [(8, True, 2)]


@pytest.mark.parametrize(
    ("mesh", "axes"),
    [
        ({"X": 4, "Y": 4}, "X"),
        ({"X": 8, "Y": 2}, "X"),
        ({"X": 2, "Y": 8}, "X"),
        ({"X": 2, "Y": 4, "Z": 2}, "X Z"),
        ({"X": 4, "Y": 2, "Z": 2}, "X Y"),
    ],
)
def test_the_links_of_a_ring_carry_all_groups(mesh: dict[str, int], axes: str) -> None:
    """Each block goes around its ring, half of it each way; links are counted one by one."""
    sizes, wanted = list(mesh.items()), set(axes.split())
    groups: dict[tuple[int, ...], list[int]] = {}
    for chip in range(16):
        place, left = [], chip
        for name, size in reversed(sizes):
            left, at = divmod(left, size)
            if name not in wanted:
                place.append(at)
        groups.setdefault(tuple(place), []).append(chip)
    loads: Counter[int] = Counter()
    for group in groups.values():
        for at, chip in enumerate(group):
            # A block reaches the N - 1 others, one way around, over all links up to the last.
            end = group[at - 1]
            for link in range(chip, chip + (end - chip) % 16):
                loads[link % 16] += 1
    devices = len(next(iter(groups.values())))
    if len(wanted) == 1:
        assert len({*loads.values()}) == 1
    # The mean link, with half of each block going one way.
    blocks = sum(loads.values()) / 16 / 2
    devices = len(next(iter(groups.values())))
    found = gather(mesh, axes, exact=True).bandwidth_seconds
    assert found == pytest.approx(blocks * V / devices / W, rel=1e-9)


@pytest.mark.parametrize(
    ("chip", "mesh", "expected"),
    [
        # The minor axis has a whole ring, the others share the second.
        (
            "tpu-v5e",
            {"A": 4, "B": 4, "C": 16},
            {"A": [(4, True, 4)], "B": [(4, False, 1)], "C": [(16, True, 1)]},
        ),
        # Eight chips are 4x2, and lines.
        (
            "tpu-v5e",
            {"A": 2, "B": 2, "C": 2},
            {"A": [(2, False, 2)], "B": [(2, False, 1)], "C": [(2, False, 1)]},
        ),
        # Longer than an axis of the pod: a whole one, and the major half of the other.
        (
            "tpu-v5e",
            {"A": 32, "B": 8},
            {"A": [(16, True, 1), (2, True, 8)], "B": [(8, False, 1)]},
        ),
        # 8x4x4, where two axes have rings to themselves.
        (
            "tpu-v5p",
            {"A": 4, "B": 4, "C": 4, "D": 2},
            {"A": [(4, True, 2)], "B": [(4, True, 1)], "C": [(4, True, 1)], "D": [(2, False, 1)]},
        ),
        # Each on an axis that no other is on while there is one.
        (
            "tpu-v5e",
            {"A": 2, "B": 2, "C": 2, "D": 2},
            {
                "A": [(2, False, 2)],
                "B": [(2, False, 2)],
                "C": [(2, False, 1)],
                "D": [(2, False, 1)],
            },
        ),
    ],
)
def test_where_mesh_axes_lie(chip: str, mesh: dict[str, int], expected: dict) -> None:
    assert {name: along(mesh, name, hardware(chip)) for name in mesh} == expected


def test_a_sub_axis_of_a_shared_axis() -> None:
    """Of X, every fourth chip of a ring, the major half is eight chips apart, the minor four."""
    mesh = {"X": 4, "Y": 4}
    assert along(mesh, "X:(1)2") == [(2, True, 8)]
    assert along(mesh, "X:(2)2") == [(2, False, 4)]
    assert along(mesh, "Y:(1)2") == [(2, False, 2)]


def test_what_fits_shares_nothing() -> None:
    for chip, mesh in [
        ("tpu-v5e", {"X": 16, "Y": 16}),
        ("tpu-v5e", {"X": 4, "One": 1, "Y": 4}),
        ("tpu-v5p", {"X": 4, "Y": 4, "Z": 4}),
        ("h100", {"X": 2, "Y": 2, "Z": 2, "U": 2}),
    ]:
        topology = Topology.of(Mesh(mesh), hardware(chip))
        assert not topology.notes
        assert all(part.shared is None for parts in topology.axes.values() for part in parts)


def test_a_note_says_what_is_shared() -> None:
    (note,) = Topology.of(Mesh({"A": 4, "B": 4, "C": 16}), hardware("tpu-v5e")).notes
    assert note == "on 16x16 of tpu-v5e A, B share the links of an axis of 16"
    # Nothing is known of the shape of larger slices than a pod.
    pod = replace(RING, pod=())
    (note,) = Topology.of(Mesh({"A": 4, "B": 8}), pod).notes
    assert note == "on 32 of ring A, B share the links of an axis of 32"


@pytest.mark.parametrize(
    ("mesh", "shape", "shared"),
    [
        ({"X": 8, "Y": 2}, "4x4", "X, Y share"),
        ({"X": 4, "Y": 2}, "2x4", ""),
        ({"X": 16}, "2x8", ""),
    ],
)
def test_meshes_are_laid_out_on_any_slice_of_as_many_chips(
    mesh: dict[str, int], shape: str, shared: str
) -> None:
    where = Topology.of(Mesh(mesh), hardware("tpu-v5e"), shape)
    assert [math.prod(part.size for part in where.axes[name]) for name in mesh] == [*mesh.values()]
    assert any(shared in note for note in where.notes) if shared else not where.notes


@pytest.mark.parametrize("mesh", [{"X": 8, "Y": 2}, {"X": 7}, {"A": 3, "B": 5, "C": 2}])
def test_the_topology_that_a_refusal_names_can_be_given(mesh: dict[str, int]) -> None:
    chip = hardware("tpu-v5e")
    with pytest.raises(CalculusError) as caught:
        Topology.of(Mesh(mesh), chip, "3x3x3")
    [shape] = re.findall(r"a topology of (\S+) has as many", str(caught.value))
    assert Topology.of(Mesh(mesh), chip, shape).axes.keys() == mesh.keys()


def test_slices_that_a_refusal_names_can_be_given() -> None:
    chip, mesh = hardware("tpu-v5e"), Mesh({"X": 4, "Y": 8})
    with pytest.raises(CalculusError, match="so do 2 slices of 4x4"):
        Topology.of(mesh, chip, "4x4")
    assert Topology.of(mesh, chip, "4x4", slices=2).slices == 2
