"""Times of collectives by size and path, held against public measurements."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from statistics import median

import pytest
from shardcore import AxisRef, Mesh
from shardcore.calculus import Hardware, TimeOptions, hardware
from shardcore.costs.links import Links, Transfer

from tests.collectives.__main__ import HEAD, PAGE, table
from tests.collectives.runs import Point, points

KINDS_OF_LINKS = {
    "NVLink": "h200-node",
    "NVLink SHARP": "b200-node",
    "NVLink of a rack": "gb200-rack",
    "InfiniBand": "h100-2-nodes",
    "Infinity Fabric": "mi355x-node",
    "PCIe": "pcie-4",
}
"""A run of each kind of link."""

X = (AxisRef("x"),)


def _cost(
    chip: Hardware | str, op: str, devices: int, num_bytes: int, slices: int | None = None
) -> Transfer:
    chip = hardware(chip) if isinstance(chip, str) else chip
    return Links(chip, slices=slices).cost(op, Mesh({"x": devices}), X, num_bytes)


def _of(run: str) -> list[Point]:
    return [point for point in points() if point.run == run]


def test_half_of_the_runs_are_held_out() -> None:
    runs = {point.run: point.held_out for point in points()}
    assert 0 <= 2 * sum(runs.values()) - len(runs) <= 1


@pytest.mark.parametrize(("held_out", "most"), [(False, 0.08), (True, 0.15)])
def test_median_error(held_out: bool, most: float) -> None:
    errors = [abs(point.error) for point in points() if point.held_out == held_out]
    assert len(errors) > 75
    assert median(errors) < most


def test_the_page_has_the_table() -> None:
    assert f"{HEAD}{table(points())}\n" in PAGE.read_text(encoding="utf-8")


def test_no_measured_collective_is_shorter_than_the_bound() -> None:
    assert all(point.transfer().fastest <= point.seconds for point in points())


@pytest.mark.parametrize("run", KINDS_OF_LINKS.values(), ids=KINDS_OF_LINKS.keys())
def test_long_messages_reach_the_published_bandwidth(run: str) -> None:
    longest = _of(run)[-1]
    assert longest.error == pytest.approx(0, abs=0.08)


@pytest.mark.parametrize("op", ["all_reduce", "all_gather", "all_to_all"])
@pytest.mark.parametrize("chip", ["a100", "h100", "gb200", "l4", "tpu-v5e", "tpu-v5p"])
def test_few_bytes_take_the_latency(chip: str, op: str) -> None:
    shares = hardware(chip).achieved
    times = [_cost(chip, op, 16, size).achieved for size in (4**k for k in range(6, 16))]
    assert times == sorted(times)
    assert times[0] > shares.collective_seconds
    assert times[0] < 4 * shares.collective_seconds + 2e-4


def test_bandwidth_grows_with_the_message() -> None:
    sizes = [4**k for k in range(6, 17)]
    rates = [size / _cost("h100", "all_reduce", 8, size).achieved for size in sizes]
    assert rates == sorted(rates)


def test_switches_that_add_up() -> None:
    h100 = hardware("h100")
    without = replace(h100, switch_reduces=False)
    size = 2**30
    for op in ("all_gather", "reduce_scatter", "all_to_all"):
        assert _cost(h100, op, 8, size) == _cost(without, op, 8, size)
    # A device sends all of V once, and its eighth of the sum.
    assert _cost(h100, "all_reduce", 8, size).fastest == pytest.approx(size * 9 / 8 / 4.5e11)
    assert _cost(without, "all_reduce", 8, size).fastest == pytest.approx(size * 14 / 8 / 4.5e11)
    # Two devices have nothing to gain.
    assert _cost(h100, "all_reduce", 2, size) == _cost(without, "all_reduce", 2, size)
    assert not hardware("a100").switch_reduces


def test_nodes_and_what_is_between_them() -> None:
    h100, size = hardware("h100"), 2**32
    # Two nodes: what leaves each is V, less than the switches of the nodes carry.
    two, four = (_cost(h100, "all_reduce", devices, size).fastest for devices in (16, 32))
    assert two == pytest.approx(size * 9 / 8 / 4.5e11)
    assert four == pytest.approx(2 * size * 3 / 4 / 4e11)
    # A slower network is all that counts.
    slow = replace(h100, node_bytes_per_second=1e10)
    assert _cost(slow, "all_gather", 16, size).achieved == pytest.approx(
        size / 2 / 1e10 / slow.achieved.network, rel=0.06
    )
    few = [_cost(h100, "all_reduce", devices, 1024).achieved for devices in (8, 16, 32, 64)]
    steps = [after - before for before, after in pairwise(few)]
    assert all(step == pytest.approx(1.2e-5, rel=0.3) for step in steps)


def test_slices_have_the_latency_of_a_network() -> None:
    one, two = (_cost("tpu-v5e", "all_reduce", 256 * k, 1024, slices=k).achieved for k in (1, 2))
    assert two - one == pytest.approx(
        2 * hardware("tpu-v5e").achieved.network_step_seconds, rel=0.1
    )


def test_axes_that_wrap_around_and_such_that_do_not() -> None:
    size = 2**30
    ring, line = (_cost("tpu-v5e", "all_gather", devices, size).fastest for devices in (16, 8))
    assert ring == pytest.approx(size * 15 / 16 / (2 * 4.5e10))
    assert line == pytest.approx(size * 7 / 8 / 4.5e10)


def test_files_without_these_figures_mean_what_they_meant(tmp_path: Path) -> None:
    path = tmp_path / "chips.toml"
    path.write_text(
        '[plain]\nkind = "switched"\nflops = { bf16 = 1e14 }\nlink_bytes_per_second = 1e11\n'
        "node_size = 8\nnode_bytes_per_second = 1e11\n"
        "[plain.achieved]\nlinks = 0.5\nnetwork = 0.25\nmessage_bytes = 1e6\n"
        "collective_seconds = 1e-5\n"
        '[short]\nbase = "h100"\n[short.achieved]\nmessage_bytes = 1e6\n'
        '[broken]\nbase = "h100"\nswitch_reduces = 1\n'
    )
    plain = hardware("plain", path)
    sent = 2**20 * 7 // 8
    expected = (sent + 1e6) / (0.5 * 1e11) + 1e-5
    assert _cost(plain, "all_gather", 8, 2**20).achieved == pytest.approx(expected)
    short = hardware("short", path).achieved
    assert (short.message_bytes, short.chunk_bytes) == (1e6, 0)
    with pytest.raises(Exception, match="switch_reduces = true or false"):
        hardware("broken", path)


def test_efficiency_scales_switches_that_add_up() -> None:
    links = Links(hardware("h100"), options=TimeOptions(efficiency=0.5))
    half = links.cost("all_reduce", Mesh({"x": 8}), X, 2**30)
    assert half.fastest == pytest.approx(2 * _cost("h100", "all_reduce", 8, 2**30).fastest)
