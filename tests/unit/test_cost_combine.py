"""Collectives that run as one: up to a threshold, if none depends on another."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from shardcore import Cost, Module
from shardcore.calculus.hardware import hardware
from shardcore.cli import main
from shardcore.costs.combine import KINDS, limits_of, parse_limits

HEAD = 'sdy.mesh @mesh = <["x"=4]>\n'


def sums(count: int, size: int = 64) -> str:
    """Sums over a sharded dim, which do not depend on each other."""
    wide, row = f"tensor<8x{size}xf32>", f"tensor<{size}xf32>"
    names = [f"%a{at}" for at in range(count)]
    sharding = '{sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}'
    arguments = ", ".join(f"{name}: {wide} {sharding}" for name in names)
    body = "\n".join(
        f"  %s{at} = stablehlo.reduce({name} init: %zero) applies stablehlo.add across "
        f"dimensions = [0] : ({wide}, tensor<f32>) -> {row}"
        for at, name in enumerate(names)
    )
    results = ", ".join(f"%s{at}" for at in range(count))
    types = ", ".join([row] * count)
    return (
        f"{HEAD}func.func @main({arguments}) -> ({types}) {{\n"
        f"  %zero = stablehlo.constant dense<0.0> : tensor<f32>\n{body}\n"
        f"  return {results} : {types}\n}}"
    )


CHAIN = f"""{HEAD}func.func @main(
    %a: tensor<8x8xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{}}, {{"x"}}]>}},
    %w: tensor<8x8xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}, {{}}]>}},
    %v: tensor<8x8xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{}}, {{"x"}}]>}}
) -> tensor<8x8xf32> {{
  %0 = stablehlo.dot_general %a, %w, contracting_dims = [1] x [0]
      : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = stablehlo.dot_general %0, %v, contracting_dims = [1] x [0]
      : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %2 = stablehlo.dot_general %1, %w, contracting_dims = [1] x [0]
      : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %2 : tensor<8x8xf32>
}}"""


def cost_of(text: str, chip: str = "tpu-v5p", **options: Any) -> Cost:
    return Module.parse(text).propagate().cost(chip, **options)


@pytest.mark.parametrize("chip", ["tpu-v5p", "h100"])
def test_many_small_ones_take_the_time_of_one(chip: str) -> None:
    many, alone = cost_of(sums(41), chip), cost_of(sums(41), chip, combine=0)
    long = cost_of(sums(1, 41 * 64), chip)
    assert many.by_kind()["all_reduce"].count == 41
    assert many.comm_seconds == pytest.approx(long.comm_seconds)
    assert alone.comm_seconds == pytest.approx(41 * cost_of(sums(1), chip).comm_seconds)
    # At the peak of a switch bytes alone take time.
    assert chip == "h100" or many.comm_seconds < alone.comm_seconds / 20
    assert many.step_seconds < alone.step_seconds / 3
    assert {row.combined for row in many.collectives} == {41}
    assert {row.combined for row in alone.collectives} == {1}
    # Each takes its share, and sends what it sent.
    assert sum(row.total_seconds for row in many.collectives) == pytest.approx(many.comm_seconds)
    assert sum(step.seconds for step in many.rows.steps) == pytest.approx(many.step_seconds)
    assert [row.wire_bytes for row in many.collectives] == [
        row.wire_bytes for row in alone.collectives
    ]
    assert many.step_seconds_lower <= many.step_seconds <= many.step_seconds_upper


def test_up_to_a_threshold() -> None:
    # Each has 256 bytes. On TPUs they are combined from the last to the first.
    assert [row.combined for row in cost_of(sums(5), combine=512).collectives] == [1, 2, 2, 2, 2]
    assert [row.combined for row in cost_of(sums(3), combine=255).collectives] == [1, 1, 1]
    assert [row.combined for row in cost_of(sums(3), combine={"all_gather": 0}).collectives] == [
        3,
        3,
        3,
    ]


def test_what_depends_on_another_runs_alone() -> None:
    cost = cost_of(CHAIN)
    kinds = [row.kind for row in cost.collectives]
    assert kinds.count("all_reduce") == 2
    assert {row.combined for row in cost.collectives} == {1}


def test_chips_have_thresholds() -> None:
    tpus = {
        "all_gather": 0,
        "all_reduce": 120 << 20,
        "reduce_scatter": (9 << 20) - 1,
        "collective_permute": 0,
    }
    assert limits_of(None, hardware("tpu-v5p"), "xla-tpu") == tpus
    gpus = dict.fromkeys(KINDS, 30 << 20)
    assert limits_of(None, hardware("h100"), "xla-gpu") == gpus
    given = {"all_gather": "1KiB"}
    assert limits_of(given, hardware("h100"), "xla-gpu") == gpus | {"all_gather": 1024}
    assert parse_limits("all-reduce=1KiB,all_gather=0") == {"all_reduce": "1KiB", "all_gather": "0"}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"all_to_all": 1}, "expected one of all_gather, all_reduce, reduce_scatter"),
        ("many", "expected bytes, such as '30MiB', got 'many'"),
        (-1, "expected bytes"),
    ],
)
def test_mistakes(given: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        cost_of(sums(1), combine=given)


def test_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "sums.mlir"
    path.write_text(sums(4))
    found = []
    for flags in ([], ["--combine", "all_reduce=0"], ["--combine", "0"]):
        assert main(["cost", str(path), "--json", *flags]) == 0
        found.append(json.loads(capsys.readouterr().out)["comm_seconds"])
    assert found[1] == found[2] == pytest.approx(4 * found[0], rel=0.01)
    with pytest.raises(SystemExit, match="2"):
        main(["cost", str(path), "--combine", "all_to_all=1"])
    assert "expected one of all_gather" in capsys.readouterr().err
