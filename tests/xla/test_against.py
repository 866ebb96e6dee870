"""Costs beside recorded outcomes of XLA's compilers, and what is wrong with asking them."""

from __future__ import annotations

import importlib.util
import json
import pickle
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import shardcore
from shardcore import isolated
from shardcore.calculus.hardware import hardware
from shardcore.cli import main
from shardcore.xla import Target, against, compile_for, target_of
from shardcore.xla import compile as compiling
from shardcore.xla.buffers import heap_bytes
from shardcore.xla.targets import EXTRAS, TPUS

from tests.xla.recorded import CHIPS, PROGRAM, cost, replay

DOCS = Path(__file__).resolve().parents[2] / "docs"
NEEDED = {"xla-tpu": "libtpu", "xla-gpu": "jax_plugins"}


def error_of(raised: pytest.ExceptionInfo[shardcore.ShardcoreError]) -> tuple[str, str, str]:
    [found] = raised.value.diagnostics
    return found.code, found.message, found.hint or ""


@pytest.mark.parametrize("chip", CHIPS)
def test_figures_stand_beside_those_of_xla(chip: str) -> None:
    ours = cost(chip)
    with replay(chip):
        found = against(ours)
    rows = {row.name: row for row in found.figures}
    for figure in ("argument_bytes", "output_bytes", "alias_bytes", "peak_bytes"):
        assert rows[figure].ours == getattr(ours, figure)
        assert rows[figure].theirs == getattr(found.compiled, figure)
    assert rows["argument_bytes"].ratio == 1
    assert rows["alias_bytes"].theirs == 0
    assert rows["alias_bytes"].ratio == 1
    assert ("reserved_bytes" in rows) == (chip == "tpu-v5e")
    assert rows["flops"].ratio == pytest.approx(1, abs=0.01)
    # An all-reduce of the gradients and one of the loss, which runs with it.
    assert [(row.name, row.ours, row.theirs) for row in found.runs] == [("all_reduce", 2, 2)]
    assert [row.ratio for row in found.sent] == [1]


def test_temporaries_are_what_buffer_assignment_reserves() -> None:
    with replay("tpu-v5e"):
        compiled = against(cost("tpu-v5e")).compiled
    assert compiled.temp_bytes == 0
    assert compiled.heap_bytes == 295424
    assert compiled.reserved_bytes == compiled.port_bytes + 295424


def test_the_page_shows_what_is_recorded(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = (DOCS / "cost.md").read_text("utf-8")
    [(chip, compiler, shown)] = re.findall(
        r"`shardcore cost examples/mlp.mlir --hardware (\S+) --against (\S+)` prints\n\n"
        r"```text\n(.*?)^```",
        page,
        re.MULTILINE | re.DOTALL,
    )
    monkeypatch.setenv("COLUMNS", "80")
    with replay(chip):
        assert main(["cost", str(PROGRAM), "--hardware", chip, "--against", compiler]) == 0
    assert capsys.readouterr().out == shown


def test_json_is_the_record(capsys: pytest.CaptureFixture[str]) -> None:
    with replay("h100"):
        arguments = ["cost", str(PROGRAM), "--hardware", "h100", "--against", "xla-gpu", "--json"]
        assert main(arguments) == 0
        expected = {"schema": 1, **against(cost("h100")).record()}
    found = json.loads(capsys.readouterr().out)
    assert found == json.loads(json.dumps(expected))
    assert found["against"]["versions"] == {"jax-cuda13-plugin": "0.10.2", "jaxlib": "0.10.2"}


def test_the_model_is_that_of_the_compiler(capsys: pytest.CaptureFixture[str]) -> None:
    with replay("h100"):
        given = ["cost", str(PROGRAM), "--hardware", "h100", "--json", "--against"]
        assert main([*given, "xla-cpu"]) == 0
        assert json.loads(capsys.readouterr().out)["compiler"] == "xla-cpu"
        assert main([*given, "xla-cpu", "--compiler", "none"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["compiler"], found["against"]["compiler"]) == ("none", "xla-cpu")


@pytest.mark.parametrize(
    ("devices", "topology"),
    [
        (1, "v5e:2x2"),
        (4, "v5e:2x2"),
        (6, "v5e:2x4"),
        (8, "v5e:2x4"),
        (16, "v5e:4x4"),
        (256, "v5e:16x16"),
    ],
)
def test_a_slice_is_the_smallest_with_so_many_chips(devices: int, topology: str) -> None:
    assert target_of("xla-tpu", hardware("tpu-v5e"), devices).topology == topology


def test_targets_of_three_axes_of_gpus_and_of_hosts() -> None:
    slices = [target_of("xla-tpu", hardware("tpu-v5p"), count) for count in (4, 8, 16, 32, 64)]
    names = ["v5p:2x2x1", "v5p:2x2x2", "v5p:2x2x4", "v5p:2x4x4", "v5p:4x4x4"]
    assert [each.topology for each in slices] == names
    given = target_of("xla-tpu", hardware("tpu-v5p"), 8, "2x2x4")
    assert (given.topology, given.num_devices) == ("v5p:2x2x4", 8)
    gpus = target_of("xla-gpu", hardware("h100"), 16)
    assert gpus.topology == "1x2x8"
    assert gpus.description is not None
    assert 'name: "NVIDIA H100 80GB HBM3"' in gpus.description
    assert target_of("xla-cpu", hardware("trainium2"), 3) == Target("xla-cpu", "cpu", 3, "")


@pytest.mark.parametrize(
    ("compiler", "chip", "devices", "topology", "code", "hint"),
    [
        ("xla-tpu", "trainium2", 8, None, "no-compiler", ", ".join(TPUS)),
        ("xla-tpu", "h100", 8, None, "no-compiler", "xla-cpu compiles for hosts"),
        ("xla-gpu", "l4", 8, None, "no-compiler", "h100"),
        ("none", "h100", 8, None, "no-compiler", "xla-tpu, xla-gpu, xla-cpu"),
        ("xla-tpu", "tpu-v5e", 512, None, "invalid-topology", "--topology"),
        ("xla-tpu", "tpu-v5e", 8, "2x2", "invalid-topology", "--topology"),
        ("xla-tpu", "tpu-v5e", 8, "2x2x2", "invalid-topology", "--topology"),
        ("xla-tpu", "tpu-v5e", 8, "2by4", "invalid-topology", "4x4x4"),
    ],
)
def test_what_there_is_no_target_for(
    compiler: str, chip: str, devices: int, topology: str | None, code: str, hint: str
) -> None:
    with pytest.raises(shardcore.ShardcoreError) as raised:
        target_of(compiler, hardware(chip), devices, topology)
    found = error_of(raised)
    assert found[0] == code
    assert hint in found[2]


@pytest.mark.parametrize("compiler", NEEDED)
def test_a_compiler_that_is_not_installed(
    compiler: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if importlib.util.find_spec(NEEDED[compiler]) is not None:
        pytest.skip("it is installed")
    chip = "tpu-v5e" if compiler == "xla-tpu" else "h100"
    assert main(["cost", str(PROGRAM), "--hardware", chip, "--against", compiler]) == 1
    error = capsys.readouterr().err
    assert error.startswith(f"error[compiler-missing]: {compiler} needs ")
    assert f'help: pip install "shardcore[{EXTRAS[compiler]}]"' in error


HOSTS = Target("xla-cpu", "cpu", 1, "")


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("import os; os.abort()", "xla-cpu crashes: SIGABRT"),
        (
            "import os, sys; print('F1 Check failed: n > 0', file=sys.stderr, flush=True)\n"
            "os.abort()",
            "xla-cpu crashes: SIGABRT, Check failed: n > 0",
        ),
        ("raise RuntimeError('no such thing')", "xla-cpu crashes: RuntimeError: no such thing"),
        (
            "import pathlib, sys\n"
            "path = pathlib.Path(sys.argv[1], 'report.json')\n"
            """path.write_text('{"error": "bad op\\\\nat 3"}')""",
            "xla-cpu refuses the program: bad op",
        ),
        ("while True: pass", "xla-cpu takes longer than 1 s"),
    ],
)
def test_a_compiler_that_fails(
    program: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "runner.py"
    path.write_text(program)
    monkeypatch.setattr(compiling, "RUNNER", path)
    with pytest.raises(shardcore.CompilerError) as raised:
        compile_for(HOSTS, "", seconds=1 if "while" in program else 60)
    assert error_of(raised)[:2] == ("not-compiled", message)


def test_the_compiler_has_an_environment_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    given: dict[str, Any] = {}

    def run(*arguments: Any, **limits: Any) -> subprocess.CompletedProcess[bytes]:
        given.update(limits)
        return subprocess.CompletedProcess([], 3, b"jax", b"")

    monkeypatch.setattr(isolated, "run", run)
    monkeypatch.setenv("XLA_FLAGS", "--xla_dump_to=here")
    monkeypatch.setenv("LIBTPU_INIT_ARGS", "--flag")
    with pytest.raises(shardcore.CompilerError):
        compile_for(HOSTS, "", seconds=5)
    assert given["environment"].keys().isdisjoint({"XLA_FLAGS", "LIBTPU_INIT_ARGS"})
    assert (given["seconds"], given["memory"] > 1 << 28) == (5, True)


def test_a_pickled_cost_has_no_program() -> None:
    with pytest.raises(shardcore.LocationError) as raised:
        against(pickle.loads(pickle.dumps(cost("h100"))))
    assert error_of(raised)[0] == "unknown-location"


@pytest.mark.parametrize(
    "more",
    [
        ["--against", "xla-cpu", "--kernels"],
        ["--against", "xla-cpu", "--policy", "xla,least"],
        ["--against", "xla-cpu", "--hardware", "all"],
        ["--against", "gcc"],
        ["--seconds", "5"],
    ],
)
def test_options_that_do_not_go_together(
    more: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["cost", str(PROGRAM), *more])
    assert ended.value.code == 2
    assert "--against" in capsys.readouterr().err


def message(*fields: tuple[int, bytes | int]) -> bytes:
    """A protobuf message of fields, each a number and bytes or an integer below 128."""
    parts = bytearray()
    for number, value in fields:
        if isinstance(value, int):
            parts += bytes([number << 3, value])
        else:
            assert len(value) < 128
            parts += bytes([number << 3 | 2, len(value)]) + value
    return bytes(parts)


def test_buffers_of_other_memories_and_ports_are_no_heap() -> None:
    module = message((1, b"jit_f"), (2, b"main"))
    allocations = [
        message((1, 1), (2, 100)),
        message((1, 2), (2, 20), (8, 1)),  # In another memory.
        *(message((1, 3), (2, 20), (what, 1)) for what in (3, 5, 7, 12)),
        message((1, 4), (2, 5)),
    ]
    proto = message((1, module), (3, message(*((3, each) for each in allocations))))
    data = b"before" + message((4, proto)) + b"after"
    assert heap_bytes(data, "jit_f") == 105
    assert heap_bytes(data, "jit_g") is None
    assert heap_bytes(data[:-30], "jit_f") is None
