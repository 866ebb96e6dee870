"""The commands of the calculus: what they print, and what they say to mistakes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from shardcore.calculus.hardware import hardware
from shardcore.calculus.mistakes import CODES, choices, mistake
from shardcore.cli import main
from shardcore.errors import CalculusError

GATHER = [
    "collective", "all_gather", "--array", "bf16[2048_Y,8192]", "--axes", "Y",
    "--mesh", "X=8,Y=4", "--hardware", "tpu-v5e",
]  # fmt: skip
MATMUL = [
    "matmul", "A[I, J_X] * B[J, K] -> C[I, K]", "--sizes", "I=128,J=8192,K=32768",
    "--dtype", "bf16", "--mesh", "X=4,Y=4", "--hardware", "tpu-v5e",
]  # fmt: skip


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]):
    def command(*arguments: str) -> tuple[int, str, str]:
        code = main(arguments)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return command


def test_collective_as_json(run) -> None:
    code, out, _ = run(*GATHER, "--json")
    assert code == 0
    found = json.loads(out)
    assert found["bound"] == "bandwidth"
    assert found["seconds"] == found["bandwidth_seconds"] == pytest.approx(559.24e-6, rel=1e-4)
    assert found["latency_seconds"] == pytest.approx(3e-6)
    assert found["wraparound"] is False
    assert found["bytes"] == 2048 * 8192 * 2
    assert found["wire_bytes"] == 2048 * 8192 * 2 * 3 // 4
    assert found["result"] == "bf16[2048, 8192]"
    assert (found["local_shape"], found["result_local_shape"]) == ([512, 8192], [2048, 8192])
    assert found["transpose"] == "reduce_scatter"
    assert (found["hardware"], found["mesh"]) == ("tpu-v5e", {"X": 8, "Y": 4})


def test_collective_for_people(run) -> None:
    code, out, _ = run(*GATHER)
    assert code == 0
    assert out.splitlines()[0] == "AllGather_Y bf16[2048_Y, 8192] -> bf16[2048, 8192]"
    assert "559.2 us, bound by bandwidth" in out
    assert "max(3 * 1 us, 33554432 B * 3/4 / 4.5e+10 B/s)" in out


def test_options_of_collective(run) -> None:
    cube = ["--mesh", "X=16,Y=4", "--hardware", "tpu-v4p", "--topology", "4x4x4", "--json"]
    array = ["--array", "A[I_X, J] {U_Y}", "--sizes", "I=1024,J=4096", "--dtype", "bf16"]
    _, out, _ = run("collective", "all-reduce", *array, "--axes", "Y", *cube)
    found = json.loads(out)
    assert [part["op"] for part in found["deferred"]] == ["reduce_scatter", "all_gather"]
    _, out, _ = run("collective", "reduce_scatter", *array, "--axes", "Y", *cube)
    assert len(json.loads(out)["choices"]) == 2
    _, out, _ = run(
        "collective", "all_gather", *array, "--axes", "X", *cube, "--map", "X=1,2", "Y=0"
    )
    spread = json.loads(out)
    assert spread["hops"] == 4
    _, out, _ = run("collective", "all_gather", *array, "--axes", "X", *cube, "--efficiency", "0.5")
    assert json.loads(out)["bandwidth_seconds"] == 2 * spread["bandwidth_seconds"]
    _, out, _ = run(
        "collective", "all_to_all", "--array", "bf16[64_{XY}, 64]", "--axes", "X,Y", *cube
    )
    assert json.loads(out)["axes"] == ["X", "Y"]


def test_the_program_of_a_collective(run) -> None:
    _, out, _ = run(*GATHER, "--snippet")
    assert "jax.lax.all_gather" in out
    compile(out, "snippet", "exec")


def test_matmul_as_json(run) -> None:
    code, out, _ = run(*MATMUL, "--json")
    assert code == 0
    found = json.loads(out)
    assert found["case"] == 2
    totals = [each["total_seconds"] for each in found["strategies"]]
    assert totals == sorted(totals)
    for strategy in found["strategies"]:
        assert {
            "steps", "comm_seconds", "compute_seconds", "total_seconds", "bound", "bytes_per_device"
        } <= strategy.keys()  # fmt: skip
        assert strategy["comm_seconds"] == pytest.approx(
            sum(step["seconds"] for step in strategy["steps"])
        )
        for step in strategy["steps"]:
            assert {"op", "tensor", "axes", "seconds"} <= step.keys()
    ops = [
        [(s["op"], s["tensor"], s["axes"]) for s in each["steps"]] for each in found["strategies"]
    ]
    assert [("all_gather", "A", ["X"])] in ops
    assert [("slice", "B", ["X"]), ("all_reduce", "C", ["X"])] in ops
    assert {change["dim"] for change in found["best_changes"]} == {"I", "J", "K"}


def test_matmul_for_people(run) -> None:
    code, out, _ = run(*MATMUL, "--limit", "3", "--memory", "560MB")
    assert code == 0
    assert "case 2" in out
    assert "... 21 more" in out
    chain = "In[B, D] * W[D, F] * V[F, D] -> Out[B, D]"
    code, out, _ = run(
        "matmul", chain, "--sizes", "B=128,D=8192,F=32768", "--dtype", "int4", "--mesh", "X=2,Y=2",
        "--hardware", "tpu-v5e", "--search", "--memory", "1KB",
    )  # fmt: skip
    assert code == 0
    assert "inputs" in out
    assert "needs more memory" in out
    assert "no figure for int4" in out


def test_a_chain_tells_where_its_best_changes_unless_there_are_too_many_ways(
    run, monkeypatch: pytest.MonkeyPatch
) -> None:
    chain = "In[B_X, D] * W[D_X, F] * V[F_X, D] -> Out[B_X, D]"
    sizes = ["--sizes", "B=4096,D=4096,F=16384", "--dtype", "bf16", "--hardware", "tpu-v5p"]
    code, out, _ = run("matmul", chain, *sizes, "--mesh", "X=4", "--json")
    found = json.loads(out)
    assert (code, found["cases"]) == (0, [2, 2])
    assert len(found["strategies"]) == 16
    assert {"dim", "size", "below", "above"} == found["best_changes"][0].keys()
    monkeypatch.setattr("shardcore.calculus.chain.MAX_COMPARED", 15)
    code, out, _ = run("matmul", chain, *sizes, "--mesh", "X=4", "--json")
    found = json.loads(out)
    assert (code, found["best_changes"], len(found["strategies"])) == (0, [], 16)
    assert "no sizes at which the best changes: there are 16 ways" in found["notes"][0]


def test_array(run) -> None:
    code, out, _ = run("array", "fp32[1024_{XY},4096]", "--mesh", "X=8,Y=2", "--json", "--blocks")
    found = json.loads(out)
    assert (code, found["local_shape"], found["bytes_per_device"]) == (0, [64, 4096], 2**20)
    assert found["sdy"] == '<mesh<["X"=8, "Y"=2]>, [{"X", "Y"}, {}]>'
    assert len(found["blocks"]) == 16
    code, out, _ = run("array", "A[I_{X?}]", "--sizes", "I=8", "--dtype", "bf16", "--mesh", "X=2")
    assert "per device   bf16[4], 8 B" in out


@pytest.mark.parametrize(
    ("arguments", "code", "shown"),
    [
        ([*GATHER[:-1], "tpu-v9x"], "unknown-hardware", "^^^^^^^"),
        (["collective", "all_gather", "--array", "bf16[8_Q]", *GATHER[4:]], "unknown-axis", "^"),
        (["collective", "all_gather", "--array", "bf16[8_Y", *GATHER[4:]], "notation", "^"),
        (
            ["collective", "all_gather", "--array", "bf16[I_Y]", *GATHER[4:]],
            "missing-size",
            "^",
        ),
        (["collective", "all_gather", "--array", "[8_Y]", *GATHER[4:]], "missing-size", "--dtype"),
        ([*GATHER[:5], "Q", *GATHER[6:]], "unknown-axis", "^"),
        ([*GATHER, "--efficiency", "2"], "invalid-option", "at most 1"),
        ([*GATHER, "--topology", "3x3"], "invalid-topology", "9 chips"),
        (["collective", "broadcast", *GATHER[2:]], "invalid-collective", "all_gather"),
        ([*MATMUL[:3], "I=128", *MATMUL[4:]], "missing-size", "J"),
        (["matmul", "A[I, J] * B[J, K] -> C[L]", *MATMUL[2:]], "contraction", "^"),
        ([*MATMUL, "--dtype", "bf17"], "unknown-dtype", "bf16"),
    ],
)
def test_mistakes(run, arguments: list[str], code: str, shown: str) -> None:
    exit_code, out, err = run(*arguments)
    assert (exit_code, out) == (1, "")
    assert err.startswith(f"error[{code}]")
    assert "^" in err
    assert "help:" in err
    assert shown in err
    assert "Traceback" not in err


def test_a_hardware_file_that_is_not_there(run, tmp_path: Path) -> None:
    code, _, err = run(*GATHER, "--hardware-file", str(tmp_path / "none.toml"))
    assert (code, err.startswith("error[io]")) == (1, True)


@pytest.mark.parametrize("memory", ["lots", "-1", "0MB", "nanGB"])
def test_bytes_that_are_none(memory: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([*MATMUL, "--memory", memory])
    assert "300MB" in capsys.readouterr().err


def test_codes_are_known() -> None:
    assert list(CODES) == sorted(set(CODES))
    with pytest.raises(AssertionError):
        mistake(CalculusError, "no-such-code", "message", text="text", hint=None)
    assert choices("x", []) == "there is none"


def test_import_leaves_the_calculus_alone() -> None:
    program = "import sys, shardcore; print([m for m in sys.modules if 'calculus' in m])"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("text", "sdy", "jax", "notes"),
    [
        ('[{"X"}p1, {}], replicated={"Y"}', '[{"X"}p1, {}], replicated={"Y"}', "P('X', None)", 1),
        ('<@m, [{"X"}, {?}p2]>', '[{"X"}, {?}p2]', "P('X', UNCONSTRAINED)", 1),
        ('[{"X", ?}, {}]', '[{"X", ?}, {}]', "P('X', None)", 1),
        ('[{"Y":(1)2, ?}, {}]', '[{"Y":(1)2, ?}, {}]', None, 2),
        ('[{"X"}, {}], unreduced={"Y"}', '[{"X"}, {}], unreduced={"Y"}', None, 0),
        ("A[I_X, J]", '[{"X"}, {}]', "P('X', None)", 0),
        ('P("X")', '[{"X"}, {}]', "P('X', None)", 0),
        ("{devices=[2,1,4]<=[8] last_tile_dim_replicate}", '[{"X"}, {}]', "P('X', None)", 0),
    ],
)
def test_no_notation_loses_what_it_can_say(
    text: str, sdy: str, jax: str | None, notes: int, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["array", text, "--mesh", "X=2,Y=4", "--shape", "8x8"]
    assert main([*arguments, "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["sdy"] == f'<mesh<["X"=2, "Y"=4]>, {sdy}>'
    assert main(arguments) == 0
    shown = capsys.readouterr().out
    assert f"sdy          {record['sdy']}\n" in shown
    if jax is not None:
        assert record["spec"] == jax
    if record["spec"] is not None:
        assert f"jax          {record['spec']}\n" in shown
    assert len(record["notes"]) == notes
    assert shown.count("note  ") == notes
    assert main(["show", text, "--mesh", "X=2,Y=4", "--shape", "8x8"]) == 0
    assert "8x8" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "meant"),
    [("v5e", "tpu-v5e"), ("H100", "h100"), ("tpu v5p", "tpu-v5p"), ("tpu-v9", None)],
)
def test_a_chip_that_is_not_known(name: str, meant: str | None) -> None:
    """Only a name that says so is another one's; all are listed."""
    with pytest.raises(CalculusError) as caught:
        hardware(name)
    hint = str(caught.value.hint)
    assert hint.startswith("there is tpu-v3" if meant is None else f"did you mean {meant}? there")
    assert all(f" {known}" in hint for known in ("tpu-v7x", "h200", "mi300x"))
