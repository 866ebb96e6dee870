"""``shardcore measure`` with a timer that knows the figures finds them again."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import Any

import jax
import jax.numpy as jnp
import pytest
import shardcore.jax
from shardcore.calculus.achieved import Achieved
from shardcore.calculus.hardware import Hardware, hardware, hardware_names
from shardcore.calculus.hardware_text import hardware_text
from shardcore.cli import main
from shardcore.costs.fit import MeasuredOp, fit, searched
from shardcore.errors import CalculusError, LoweringError
from shardcore.jax.measure import Measurements, least_seconds
from shardcore.jax.measured_ops import Op, families

MEASURE: Any = sys.modules["shardcore.jax.measure"]
KNOWN = Hardware(
    name="known",
    kind="switched",
    flops=MappingProxyType({"fp32": 4e11, "bf16": 3e11}),
    hbm_bytes=64e9,
    hbm_bytes_per_second=5e10,
    link_bytes_per_second=1e10,
    node_bytes_per_second=1e10,
    cache_bytes=2**24,
    cache_bytes_per_second=2e11,
    compiler="xla-cpu",
    achieved=Achieved(
        products=MappingProxyType({"fp32": 0.9, "bf16": 0.8}),
        depth_overhead=24,
        convolutions=0.5,
        vector_flops=1e11,
        transcendental_flops=25,
        sort_flops=2e8,
        memory=0.8,
        scattered=0.3,
        mapped_bytes=2**25,
        mapped_bytes_per_second=4e9,
        op_seconds=5e-7,
        step_seconds=4e-6,
        cache_persists=True,
    ),
)
SMALL = ("mk,kn->mn", "add", "scan", "read", "update", "outer", "polynomial", "exp", "rows")
"""Families that the test of the command goes through."""


@pytest.fixture(scope="module")
def found() -> Measurements:
    def timer(op: Op, row: MeasuredOp, seconds: float) -> float:
        assert seconds > 0
        return row.cost(KNOWN).step_seconds

    return shardcore.jax.measure(3600, name="again", timer=timer)


def test_figures_are_found_again(found: Measurements) -> None:
    chip, shares, known = found.chip, found.chip.achieved, KNOWN.achieved
    assert found.fit.error() < 0.02
    for dtype in ("fp32", "bf16"):
        rate = KNOWN.flops[dtype] * known.products_of(dtype)
        assert chip.flops[dtype] * shares.products_of(dtype) == pytest.approx(rate, rel=0.05)
    moved = KNOWN.hbm_bytes_per_second * known.memory
    assert chip.hbm_bytes_per_second * shares.memory == pytest.approx(moved, rel=0.05)
    scattered = KNOWN.hbm_bytes_per_second * known.scattered
    assert chip.hbm_bytes_per_second * shares.scattered == pytest.approx(scattered, rel=0.1)
    assert KNOWN.cache_bytes / 2 < chip.cache_bytes < KNOWN.cache_bytes * 2
    assert chip.cache_bytes_per_second == pytest.approx(KNOWN.cache_bytes_per_second, rel=0.1)
    assert shares.cache_persists
    for figure in ("sort_flops", "vector_flops", "step_seconds", "mapped_bytes_per_second"):
        expected = pytest.approx(getattr(known, figure), rel=0.1)
        assert getattr(shares, figure) == expected, figure


def test_the_file_is_read_again(found: Measurements, tmp_path: Path) -> None:
    path = tmp_path / "again.toml"
    found.save(path)
    read = hardware("again", path)
    # Where nothing is said of a figure it is from the file.
    assert replace(read, source=found.chip.source) == found.chip
    assert read.source.items() >= found.chip.source.items()
    result = shardcore.jax.lower(lambda x: jnp.tanh(x @ x), jax.ShapeDtypeStruct((512, 512), "f4"))
    cost = result.propagate().cost("again", hardware_file=path)
    assert (cost.compiler, cost.hardware) == ("xla-cpu", read)
    expected = result.propagate().cost(KNOWN).step_seconds
    assert cost.step_seconds == pytest.approx(expected, rel=0.05)
    assert "ops, JAX" in found.chip.source["achieved"]


def test_every_chip_is_written_and_read(tmp_path: Path) -> None:
    path = tmp_path / "all.toml"
    for name in hardware_names():
        chip = replace(hardware(name), name=f"my {name}")
        path.write_text(hardware_text(chip), encoding="utf-8")
        read = hardware(chip.name, path)
        assert replace(read, source=chip.source) == chip


def test_the_least_of_runs_counts() -> None:
    now = 0.0
    each = iter([9.0, 0.004, *([0.01, 0.002, 0.02] * 20)])
    counts = []

    def run(count: int) -> None:
        nonlocal now
        counts.append(count)
        now += next(each) * count

    assert least_seconds(run, 0.05, lambda: now) == pytest.approx(0.002)
    # A batch takes some 2 ms; there are at least three after the two that are not counted.
    assert counts[:5] == [1, 1, 1, 1, 1]


def test_a_minimum_is_found_on_a_grid() -> None:
    assert searched(lambda x: abs(x - 3e-6), (1e-9, 1e-3)) == pytest.approx(3e-6, rel=0.05)
    # Where nothing depends on the figure it is in the middle.
    assert searched(lambda _: 1.0, (1.0, 100.0)) == pytest.approx(10.0)


def test_peaks_of_a_known_chip_stay() -> None:
    op = next(family[0] for family in families([None]) if family[0].group == "products of f32")
    row = replace(MEASURE._row(op), step_seconds=1e-3)
    fitted = fit([row], replace(KNOWN, name="h100"), "a test", keeps_peaks=True).chip
    assert fitted.flops["fp32"] == KNOWN.flops["fp32"]
    assert "flops" not in fitted.source
    slower = fit([row], KNOWN, "a test", keeps_peaks=False).chip
    assert slower.flops["fp32"] == pytest.approx(1.1 * 2 * 128**3 / 1e-3, rel=0.01)
    with pytest.raises(ValueError, match="no measured op"):
        fit([], KNOWN, "a test", keeps_peaks=False)


@pytest.mark.parametrize(
    ("kind", "chip"),
    [
        ("NVIDIA H100 80GB HBM3", "h100"),
        ("NVIDIA GB200", "gb200"),
        ("TPU v5 lite", "tpu-v5e"),
        ("TPU v6e", "tpu-v6e"),
        ("AMD Instinct MI300X", "mi300x"),
        ("cpu", None),
    ],
)
def test_devices_are_known_by_what_jax_calls_them(kind: str, chip: str | None) -> None:
    assert MEASURE._known_chip(kind) == chip


def test_a_device_of_an_unknown_kind_needs_a_base() -> None:
    class Device:
        device_kind, platform = "Abacus 3", "beads"

        def memory_stats(self) -> dict[str, int]:
            return {"bytes_limit": 10**9}

    with pytest.raises(LoweringError, match="nothing is known of devices like Abacus 3"):
        shardcore.jax.measure(devices=[Device()])
    with pytest.raises(LoweringError, match="no device"):
        shardcore.jax.measure(devices=[])
    with pytest.raises(CalculusError, match="unknown hardware"):
        shardcore.jax.measure(devices=[Device()], base="abacus")
    chip, is_known = MEASURE._start([Device()], None, "h200")
    assert (chip.name, chip.hbm_bytes, is_known) == ("abacus-3", 1e9, False)
    assert dict(chip.measured) == {}


def test_the_command_measures_this_machine(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def few(devices: list[Any]) -> Iterator[list[Op]]:
        kept = (one for one in families(devices) if one[0].name.startswith(SMALL))
        return (family[:2] for family in islice(kept, 12))

    monkeypatch.setattr(MEASURE, "families", few)
    path = tmp_path / "here.toml"
    arguments = ["measure", "--seconds", "0.5", "--name", "here", "-o", str(path)]
    assert main([*arguments, "--ops"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("here: ")
    assert f"--hardware here --hardware-file {path}" in printed
    assert hardware("here", path).compiler == "xla-cpu"
    assert main([*arguments[:5], "--json"]) == 0
    assert '"median_error"' in capsys.readouterr().out
