"""Under policy ``xla`` results without annotation cost what they do under XLA."""

from __future__ import annotations

import itertools
import json
from functools import cache
from pathlib import Path

import pytest
import shardcore
from shardcore.cli import main

from tests.shardy.xla.compiled import compiled
from tests.shardy.xla.model_rows import as_all_reduce, sent_by_kind
from tests.shardy.xla.plans import plans
from tests.shardy.xla.sent import sent_bytes


@cache
def decoder() -> str:
    return list(itertools.islice(plans("decoder", 2), 2))[1]


def test_gradients_are_sharded_as_under_xla() -> None:
    """Their axes conflict, and the order in which XLA has the ops decides."""
    result = shardcore.Module.parse(decoder()).propagate(legalize_chlo=True)
    cost = result.cost(compiler="none")
    assert cost.output_bytes == compiled(decoder()).output_bytes
    assert {**sent_by_kind(cost)} == pytest.approx(
        {**as_all_reduce(sent_bytes(decoder()))}, rel=0.05
    )


def test_programs_that_run_keep_the_results_of_the_result() -> None:
    result = shardcore.Module.parse(decoder()).propagate(legalize_chlo=True)
    local, cost = result.partition("xla"), result.cost(compiler="none")
    kept = result.cost(compiler="none", keep_ports=True)
    shapes = [[port.local_shape for port in ports] for ports in (local.results, result.results())]
    assert shapes[0] == shapes[1]
    assert shardcore.cost(local, compiler="none").output_bytes == kept.output_bytes
    assert kept.output_bytes != cost.output_bytes
    assert kept.rows.sent_bytes == local.sent_bytes != cost.rows.sent_bytes


def test_a_session_counts_as_a_run_does() -> None:
    session = shardcore.Module.parse(decoder()).session(legalize_chlo=True)
    edit = {"%arg0": "P(None, 'y')"}
    [row, _] = session.evaluate([edit, {}], "tpu-v5p")
    [kept] = session.evaluate([edit], "tpu-v5p", keep_ports=True)
    session.set(edit)
    run = session.module.propagate(legalize_chlo=True)
    assert row.output_bytes == run.cost().output_bytes == session.cost().output_bytes
    assert row.comm_bytes == run.cost().rows.sent_bytes
    assert kept.output_bytes == run.cost(keep_ports=True).output_bytes
    assert kept.comm_bytes == run.cost(keep_ports=True).rows.sent_bytes


def test_the_command_line_keeps_the_results_of_the_result(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "program.mlir"
    path.write_text(decoder())

    def output_bytes(*flags: str) -> object:
        assert main(["cost", str(path), "--json", *flags]) == 0
        return json.loads(capsys.readouterr().out)["output_bytes"]

    result = shardcore.Module.parse(decoder()).propagate()
    assert output_bytes() == result.cost().output_bytes
    assert output_bytes("--keep-ports") == result.cost(keep_ports=True).output_bytes
    assert result.cost().output_bytes != result.cost(keep_ports=True).output_bytes
