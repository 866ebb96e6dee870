"""The table of measured steps, what is costed of it, and the command that prints it."""

from __future__ import annotations

import dataclasses
import importlib.util
import json

import pytest
from shardcore.bench.leaderboard import (
    CHIPS_FILE,
    LAUNCH_SECONDS,
    SUMMED,
    Line,
    check_jax,
    chip_of,
    costed,
    summaries,
    summary,
)
from shardcore.bench.rows import CHIPS, Row, read_rows
from shardcore.calculus.achieved import Achieved
from shardcore.calculus.hardware import hardware
from shardcore.cli import main
from shardcore.errors import LoweringError
from shardcore.report.bench_table import ranges

from tests.bench.conftest import HAS_JAX
from tests.bench.page import PAGE
from tests.deep import sampled

ROWS = read_rows()

needs_jax = pytest.mark.skipif(not HAS_JAX, reason="jax needs Python 3.11")


def altered(row: Row, **columns: str) -> Row:
    return dataclasses.replace(row, columns={**row.columns, **columns})


def test_the_table() -> None:
    assert [row.number for row in ROWS] == list(range(1, 116))
    for row in ROWS:
        assert row.columns["source"]
        assert row.columns["step_s"] or row.columns["tflops_per_chip"]
        assert hardware(row.chip, CHIPS_FILE).source
    assert {row.columns["hardware"] for row in ROWS} == set(CHIPS)
    assert sum(row.peak_bytes is not None for row in ROWS) == 16


def test_the_page_has_every_row() -> None:
    text = " ".join(PAGE.read_text("utf-8").split())
    for row in ROWS:
        assert f"{row.number} {row.name} " in text


def test_half_of_the_rows_are_held_out() -> None:
    held_out = [row for row in ROWS if row.is_held_out]
    assert len(held_out) == 61
    for chip in CHIPS.values():
        found = {row.is_held_out for row in ROWS if row.chip == chip}
        assert found == {True, False}
    # Measured twice, a configuration is in one half, whatever was measured.
    assert altered(ROWS[0], step_s="1", source="").is_held_out == ROWS[0].is_held_out


@needs_jax
def test_options_of_recipes() -> None:
    from shardcore.bench.rebuilt import training_of

    def chip(number: int, options: str) -> Achieved:
        row = altered(ROWS[number - 1], options=options)
        return chip_of(row, training_of(row)).achieved

    def kept(options: str) -> tuple[str, ...]:
        remat = training_of(altered(ROWS[4], options=options)).remat
        assert remat is not None
        return remat.saved

    # Llama has no experts, whose kernels the host launches.
    assert not chip(97, "").splits_collectives
    assert chip(97, "tp_comm_overlap").splits_collectives
    assert chip(97, "").group_seconds == 0
    assert chip(96, "").op_seconds == chip(96, "").group_seconds == LAUNCH_SECONDS
    assert chip(96, "cuda_graph_impl=full_iteration").group_seconds == 0
    # torchtitan gathers the next layer's weights meanwhile, between nodes, too.
    assert chip(23, "").overlaps_network
    # Programs with sharding constraints run as XLA compiles them.
    assert chip(19, "tp_comm_overlap") == hardware("h100-a3", CHIPS_FILE).achieved
    assert chip(16, SUMMED).gathers_by_sums
    assert not chip(17, "").gathers_by_sums
    assert kept("") == ("out",)
    assert kept("mlpwo=device") == ("out", "down")
    # Blocks of attention have a test against MaxText's configurations.
    known = {option for row in ROWS for option in row.options if "sa_" not in option}
    assert known == {
        SUMMED,
        "training.compile=false",
        "use_custom_sort_vjp=false",
        "use_iota_embed",
        "cuda_graph_scope=attn,moe_router,moe_preprocess",
        "cuda_graph_scope=moe_router,moe_preprocess",
        "mlpwo=device",
        "tp_comm_overlap",
        "moe_a2a_overlap",
        "cuda_graph_impl=full_iteration",
        "fp8_dot_product_attention",
    }


@needs_jax
@pytest.mark.parametrize("number", sampled([13, 8, 17, 19, 36, 23, 53, 29, 92, 111], 2))
def test_rows_are_costed(number: int) -> None:
    [line] = costed([ROWS[number - 1]])
    assert line.reason is None
    assert not line.uncounted
    assert line.measured is not None
    assert line.lower is not None
    assert line.point is not None
    assert line.upper is not None
    assert 0 < line.lower <= line.point <= line.upper
    assert 1 / 3 < line.point / line.measured < 3


@needs_jax
def test_rows_without_program_say_why() -> None:
    row = ROWS[0]
    rows = [
        ROWS[2],
        altered(row, model="gpt-9"),
        altered(row, layers=""),
        altered(row, layers="60"),
        altered(row, dtype="int3"),
        altered(row, global_batch="2047"),
    ]
    found = list(costed(rows))
    assert [line.reason for line in found] == [
        "the layers of gemma4-4b are not modelled",
        "the layers of gpt-9 are not modelled",
        "its sizes are not given",
        "deepseek-v3 has 61 layers of width 7168",
        "products of int3 are not modelled",
        "a batch of 2047 is not divided over 128 devices",
    ]
    assert all(line.point is None and line.error is None for line in found)
    [total, *_] = summaries(found)["half"]
    assert (total.rows, total.costed, total.median, total.p90) == (6, 0, None, None)


def line(row: Row, measured: float, point: float) -> Line:
    return Line(row, measured, 0.8 * point, point, 1.2 * point, 0.8 * point)


def test_errors_are_summed_up() -> None:
    found = [line(row, 1.0, 1 + place / 100) for place, row in enumerate(ROWS[:10], -5)]
    total = summary("all", "all", found)
    assert (total.rows, total.costed) == (10, 10)
    assert total.median == pytest.approx(0.025)
    assert total.p90 == pytest.approx(0.04)
    assert total.bias == pytest.approx(-0.005)
    assert (total.within, total.below) == (10, 0)
    short = summary("all", "all", [line(ROWS[0], 1.0, 2.0)])
    assert (short.within, short.below) == (0, 1)
    by_half = summaries(found)["half"]
    assert by_half[0].rows == by_half[1].rows + by_half[2].rows == 10


@needs_jax
def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "steps", "--rows", "3,22", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [row["row"] for row in found["rows"]] == [3, 22]
    refused, eager = found["rows"]
    assert refused["point_seconds"] is None
    assert refused["not_built"] == "the layers of gemma4-4b are not modelled"
    assert eager["error"] == pytest.approx(eager["point_seconds"] / 2.843 - 1)
    assert eager["memory_error"] == pytest.approx(eager["peak_bytes"] / 2**30 / 82.4 - 1)
    assert eager["not_modelled"] == ["H100 96GB HBM2e 500 W"]
    assert {one["name"] for one in found["summaries"]["chip"]} == {"tpu-v7x", "h100-500w"}

    assert main(["bench", "steps", "--rows", "1-22", "--chip", "h100-500w"]) == 0
    out = capsys.readouterr().out
    assert "llama3.1-8b 8xH100-500W fsdp8 bf16" in out
    assert "peak memory, GiB" in out
    assert "tpu" not in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--rows", "0"], "expected numbers from 1 to 115, got '0'"),
        (["--rows", "3-x"], "expected numbers from 1 to 115, got '3-x'"),
        (["--chip", "tpu"], "no row is of 'tpu'; there is tpu-v7x, tpu-v6e"),
    ],
)
def test_mistakes(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        main(["bench", "steps", *arguments])
    assert left.value.code == 2
    assert message in capsys.readouterr().err


def test_without_jax(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(LoweringError, match="which is not installed"):
        check_jax()
    assert main(["bench", "steps", "--rows", "1"]) == 1
    assert "help: pip install 'shardcore[jax]'" in capsys.readouterr().err


def test_numbers_in_short() -> None:
    assert ranges([1, 2, 3, 5, 7, 8]) == "1-3, 5, 7-8"
    assert ranges([]) == ""
