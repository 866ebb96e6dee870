"""Tori whose axes have links of different bandwidth: Trainium2, within and between instances."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
import shardcore
from shardcore import Mesh, Module, ShardcoreError
from shardcore.calculus import Collective, TimeOptions, Topology, estimate, hardware
from shardcore.calculus.hardware import Hardware, hardware_names
from shardcore.plan.placement import places

CHIP, DEVICE = hardware("trainium2"), hardware("trn2")
V = 2 * 2048 * 4096
"""Bytes of the array that is gathered."""
EXACT = TimeOptions(exact=True)


def lying(mesh: dict[str, int], chip: Hardware, slices: int | None = None) -> dict[str, list]:
    """For each mesh axis the size, the links and the stride of the parts of physical axes."""
    axes = Topology.of(Mesh(mesh), chip, slices=slices).axes
    return {
        name: [(part.size, part.links, part.stride) for part in parts]
        for name, parts in axes.items()
    }


def seconds(op: str, mesh: dict[str, int], axes: str, chip: Hardware, how=EXACT) -> float:
    """Seconds in which links carry ``op`` along ``axes`` where V is that many bytes."""
    found = Mesh(mesh)
    array = {
        "all_gather": f"bf16[I=2048_{{{axes}}}, J=4096]",
        "all_to_all": f"bf16[I=2048_{{{axes}}}, J=4096]",
        "all_reduce": f"bf16[I=2048, J=4096] {{U_{{{axes}}}}}",
        "permute": f"bf16[I=2048_{{{axes}}}, J=4096]",
    }[op]
    to = {"dim": "J"} if op == "all_to_all" else {}
    collective = Collective.of(op, array, axes.split(","), mesh=found, **to)
    return V * estimate(collective, Topology.of(found, chip), how).rates.seconds_per_byte


@pytest.mark.parametrize(
    ("mesh", "expected"),
    [
        # A chip, half a ring of chips, an instance, an UltraServer.
        ({"X": 4}, {"X": [(4, 5.6, 1)]}),
        ({"X": 2, "Y": 4}, {"X": [(2, 1, 1)], "Y": [(4, 5.6, 1)]}),
        ({"X": 16, "Y": 4}, {"X": [(4, 1, 1), (4, 1, 1)], "Y": [(4, 5.6, 1)]}),
        ({"X": 4, "Y": 64}, {"X": [(4, 0.5, 1)], "Y": [(4, 1, 1), (4, 1, 1), (4, 5.6, 1)]}),
        # Two instances, and three.
        ({"X": 2, "Y": 64}, {"X": [(2, 0.5, 1)], "Y": [(4, 1, 1), (4, 1, 1), (4, 5.6, 1)]}),
        ({"X": 3, "Y": 64}, {"X": [(3, 0.5, 1)], "Y": [(4, 1, 1), (4, 1, 1), (4, 5.6, 1)]}),
        # Mesh axes that end within a physical one.
        ({"X": 8, "Y": 8}, {"X": [(4, 1, 1), (2, 1, 2)], "Y": [(2, 1, 1), (4, 5.6, 1)]}),
        # Ids that fill no chips: all links are taken for the slowest.
        ({"X": 6}, {"X": [(3, 0.5, 1), (2, 0.5, 1)]}),
        ({"X": 5}, {"X": [(5, 0.5, 1)]}),
    ],
)
def test_ids_fill_chips_then_instances(mesh: dict[str, int], expected: dict[str, list]) -> None:
    assert lying(mesh, DEVICE) == expected


def test_instances_without_links_are_slices() -> None:
    mesh = {"X": 4, "Y": 64}
    assert Topology.of(Mesh(mesh), DEVICE).slices == 1
    assert lying(mesh, DEVICE, slices=4) == {"X": [], "Y": lying(mesh, DEVICE)["Y"]}
    assert Topology.of(Mesh({"X": 8, "Y": 64}), DEVICE).slices == 2


def test_a_ring_of_slow_links_takes_longer() -> None:
    mesh = {"X": 4, "Y": 4, "Z": 4}
    times = [seconds("all_gather", mesh, axis, CHIP) for axis in mesh]
    assert times == pytest.approx([V * 3 / 4 / (2 * links) for links in (64e9, 128e9, 128e9)])


def test_a_mapping_says_which_links_are_used() -> None:
    mesh = Mesh({"X": 4, "Y": 16})
    found = Topology.of(mesh, CHIP, "4x4x4", {"X": (2,), "Y": (0, 1)})
    links = {name: [part.links for part in parts] for name, parts in found.axes.items()}
    assert links == {"X": [1], "Y": [0.5, 1]}


@pytest.mark.parametrize("op", ["all_gather", "all_reduce", "all_to_all"])
@pytest.mark.parametrize(("of_chips", "of_devices"), [("X", "X,C"), ("Y", "Y,C"), ("X,Y", "X,Y,C")])
def test_devices_of_chips_carry_what_chips_carry(op: str, of_chips: str, of_devices: str) -> None:
    # The four devices of a chip share its links, so that a group of all of them takes as long.
    chips, devices = {"X": 4, "Y": 4, "Z": 4}, {"X": 4, "Y": 4, "Z": 4, "C": 4}
    expected = seconds(op, chips, of_chips, CHIP)
    assert seconds(op, devices, of_devices, DEVICE) == pytest.approx(expected)
    # A quarter of them has a quarter of the links.
    assert seconds(op, devices, of_chips, DEVICE) == pytest.approx(4 * expected)


def test_a_gather_takes_as_long_as_its_slowest_cut() -> None:
    # Along both: a chip receives three quarters of V over its own links, before its devices share.
    mesh = {"Z": 4, "C": 4}
    assert seconds("all_gather", mesh, "Z,C", DEVICE) == pytest.approx(V * 3 / 4 / (4 * 64e9))
    # With links that all devices have enough of, their sum decides.
    alike = replace(DEVICE, name="alike", axis_links=(1.0,) * 4)
    assert seconds("all_gather", mesh, "Z,C", alike) == pytest.approx(V * 15 / 16 / (4 * 32e9))


@pytest.mark.parametrize("op", ["all_gather", "all_reduce", "all_to_all", "permute"])
def test_axes_alike_are_as_without_figures(op: str) -> None:
    plain = replace(CHIP, name="plain", axis_links=())
    alike = replace(CHIP, name="alike", axis_links=(1.0,) * 3)
    for mesh in ({"X": 4, "Y": 4, "Z": 4}, {"X": 16, "Y": 4}, {"X": 64}):
        for how in (EXACT, TimeOptions(), TimeOptions(one_way=True)):
            times = [seconds(op, mesh, "X", chip, how) for chip in (plain, alike)]
            assert times[0] == times[1]


@pytest.mark.parametrize("op", ["all_gather", "all_reduce", "all_to_all", "permute"])
def test_slower_links_are_never_faster(op: str) -> None:
    for place in range(4):
        links = [share / 3 if at == place else share for at, share in enumerate(DEVICE.axis_links)]
        slower = replace(DEVICE, name="slower", axis_links=tuple(links))
        for mesh, axes in (({"X": 256}, "X"), ({"X": 32, "Y": 8}, "X"), ({"X": 32, "Y": 8}, "Y")):
            assert seconds(op, mesh, axes, slower) >= seconds(op, mesh, axes, DEVICE)


def test_one_device_of_a_chip_sends_to_the_next() -> None:
    # The four devices of a chip have its links for themselves where three of them send inside.
    assert seconds("permute", {"Y": 4, "C": 4}, "Y,C", DEVICE) == pytest.approx(V / 128e9)
    assert seconds("permute", {"Y": 4, "C": 4}, "Y", DEVICE) == pytest.approx(V / 32e9)


def test_meshes_on_other_links_are_not_alike() -> None:
    found = {
        places(Topology.of(Mesh(mesh), DEVICE)) for mesh in ({"X": 4, "Y": 16}, {"X": 16, "Y": 4})
    }
    assert len(found) == 2


def test_a_device_is_a_quarter_of_a_chip() -> None:
    for figure in ("hbm_bytes", "hbm_bytes_per_second", "cache_bytes", "dcn_bytes_per_second"):
        assert getattr(DEVICE, figure) == getattr(CHIP, figure) / 4
    assert {key: 4 * value for key, value in DEVICE.flops.items()} == CHIP.flops
    assert DEVICE.achieved.vector_flops == CHIP.achieved.vector_flops / 4
    for place in range(3):
        of_chip = CHIP.link_bytes_per_second * CHIP.links_along(place, 3)
        assert DEVICE.link_bytes_per_second * DEVICE.links_along(place, 4) == of_chip / 4
    assert math.prod(DEVICE.pod) == 4 * math.prod(CHIP.pod)


@pytest.mark.parametrize("name", hardware_names())
def test_figures_beside_a_base_have_sources(name: str) -> None:
    assert "hardware.toml" not in hardware(name).source.values()


def test_a_step_says_that_nobody_measured_such_chips() -> None:
    text = """
sdy.mesh @mesh = <["X"=4, "Y"=16]>
func.func @main(%x: tensor<1024x1024xbf16> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"X"}]>},
                %w: tensor<1024x1024xbf16> {sdy.sharding = #sdy.sharding<@mesh, [{"X"}, {}]>})
    -> (tensor<1024x1024xbf16> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) {
  %0 = stablehlo.dot %x, %w
      : (tensor<1024x1024xbf16>, tensor<1024x1024xbf16>) -> tensor<1024x1024xbf16>
  return %0 : tensor<1024x1024xbf16>
}"""
    result = Module.parse(text).propagate()
    cost = result.cost("trn2")
    assert cost.compiler == "none"
    assert cost.confidence.runs == 0
    assert "assumed: no step on many chips of trn2" in str(cost.confidence)
    assert cost.hardware.hbm_bytes == pytest.approx(24 * 2**30, rel=1e-3)
    # The terms are of four chips in a row: over the links of an instance, or its network.
    assert result.cost("trn2", slices=4).comm_seconds > 2 * cost.comm_seconds
    plan = shardcore.plan(Module.parse(text), "trn2", devices=16, seconds=2)
    assert plan.cost.hardware == DEVICE


@pytest.mark.parametrize("links", ["[1, 1]", "[1, 1, 0]", "1", "[1, 1, true]", "['fast', 1, 1]"])
def test_wrong_links_are_refused(links: str, tmp_path: Path) -> None:
    path = tmp_path / "chips.toml"
    path.write_text(f"[trainium2]\naxis_links = {links}\n")
    with pytest.raises(ShardcoreError, match="for each physical axis") as caught:
        hardware("trainium2", path)
    assert caught.value.code == "hardware-file"
