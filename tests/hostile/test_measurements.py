"""Files of measured steps that nobody would think of: a result, or the place of the mistake."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from shardcore import CalculusError, Module, calculus, cost
from shardcore.cli import main
from shardcore.costs.calibrate import calibrate
from shardcore.costs.measurements import Measurement, read_measurements

from tests.hostile.test_files import SHARDCORE

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PROGRAM = """
sdy.mesh @mesh = <["x"=4]>
func.func @main(%x: tensor<512x512xbf16> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>},
                %w: tensor<512x512xbf16> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>})
    -> tensor<512x512xbf16> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
      : (tensor<512x512xbf16>, tensor<512x512xbf16>) -> tensor<512x512xbf16>
  return %0 : tensor<512x512xbf16>
}
"""
NOTHING = "func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> { return %a : tensor<8xf32> }"
CHIPS = """
[plain]
kind = "torus"
flops = { bf16 = 1e14 }
link_bytes_per_second = 1e10
["a b.c"]
base = "h100"
"""


@pytest.fixture
def here(tmp_path: Path) -> Path:
    (tmp_path / "m.mlir").write_text(PROGRAM)
    (tmp_path / "nothing.mlir").write_text(NOTHING)
    (tmp_path / "chips.toml").write_text(CHIPS)
    return tmp_path


def measured(here: Path, *runs: Any, chip: str = "tpu-v5e", **more: Any) -> Path:
    path = here / "measured.json"
    path.write_text(json.dumps({"hardware": chip, "runs": list(runs), **more}, indent=1))
    return path


GOOD = {"file": "m.mlir", "step_seconds": 1e-4}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("step_seconds", 1e-320),
        ("step_seconds", float("nan")),
        ("step_seconds", True),
        ("policy", "most"),
        ("policy", 5),
        ("policy", ["xla"]),
        ("topology", 4),
        ("topology", [4, "a"]),
        ("topology", [-4, -1]),
        ("mapping", [0]),
        ("mapping", {"x": "0"}),
        ("slices", "2"),
        ("slices", 2.5),
        ("slices", True),
        ("dcn", "fast"),
        ("dcn", None),
        ("held_out", "no"),
        ("topologie", "4"),
    ],
)
def test_what_a_run_says_is_checked_where_it_stands(here: Path, key: str, value: Any) -> None:
    path = measured(here, GOOD, {**GOOD, key: value})
    with pytest.raises(CalculusError) as caught:
        read_measurements(path)
    assert caught.value.code == "measurements"
    lines = path.read_text().splitlines()
    assert caught.value.line is not None
    # The last run has the last of all such lines.
    assert caught.value.line - 1 >= max(at for at, line in enumerate(lines) if f'"{key}"' in line)
    assert "help: " in str(caught.value)


def test_places_in_the_file(here: Path) -> None:
    text = '{"hardware": "h100",\n "runs": [{"file": "}\\"]",\n  "step_seconds": 0}]}'
    path = here / "measured.json"
    path.write_text(text)
    with pytest.raises(CalculusError) as caught:
        read_measurements(path)
    assert (caught.value.line, caught.value.column) == (3, 19)
    path.write_text('{"hardware": "h100",\n "runs": [}')
    with pytest.raises(CalculusError) as caught:
        read_measurements(path)
    assert (caught.value.line, caught.value.column) == (2, 11)
    path = measured(here, GOOD, hardwares="h100")
    with pytest.raises(CalculusError, match="unknown key 'hardwares'"):
        read_measurements(path)


def test_steps_from_a_trace(here: Path) -> None:
    row = {"ph": "M", "name": "thread_name", "pid": 1, "tid": 2, "args": {"name": "XLA Modules"}}
    times = [("jit_init(7)", 9e6), ("jit_step(8)", 300.0), ("jit_step(8)", 90.0)]
    events = [
        {"ph": "X", "name": name, "pid": 1, "tid": 2, "ts": 5, "dur": time}
        for name, time in [*times, times[-1]]
    ]
    (here / "trace.json").write_text(json.dumps([row, *events]))
    (here / "step.mlir").write_text(f"module @jit_step {{{PROGRAM}}}")
    [run], _ = read_measurements(measured(here, {"file": "step.mlir", "profile": "trace.json"}))
    # The first run is no step like the others.
    assert run.step_seconds == pytest.approx(90e-6)
    # A program without a name is what runs longest.
    [run], _ = read_measurements(measured(here, {"file": "m.mlir", "profile": "trace.json"}))
    assert run.step_seconds == pytest.approx(9)
    (here / "step.mlir").write_text(f"module @jit_other {{{PROGRAM}}}")
    wrong = measured(here, {"file": "step.mlir", "profile": "trace.json"})
    with pytest.raises(CalculusError, match="has no run of jit_other") as caught:
        read_measurements(wrong)
    assert caught.value.hint == "it has runs of jit_init, jit_step"
    assert caught.value.line == 1 + wrong.read_text().splitlines().index(
        '   "profile": "trace.json"'
    )
    both = measured(here, {**GOOD, "profile": "trace.json"})
    with pytest.raises(CalculusError, match="both step_seconds and a profile"):
        read_measurements(both)
    with pytest.raises(CalculusError, match="no step_seconds, and no profile"):
        read_measurements(measured(here, {"file": "m.mlir"}))


@pytest.mark.parametrize("name", ["\0", "", "..", "no.mlir", "a\0.mlir"])
def test_names_that_no_program_has(
    here: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["calibrate", str(measured(here, {**GOOD, "file": name}))]) == 1
    assert "error[io]" in capsys.readouterr().err


def test_a_chip_of_which_nothing_is_known(here: Path) -> None:
    path = measured(here, *[GOOD] * 6, chip="plain")
    found = calibrate(*read_measurements(path, here / "chips.toml"))
    assert found.chip.achieved.products["bf16"] < 1
    assert found.record()["runs"][0]["after_seconds"] == pytest.approx(1e-4, rel=0.01)


def test_chips_without_figures_of_pods_and_networks(here: Path) -> None:
    options = {"hardware_file": here / "chips.toml"}
    module = Module.parse(PROGRAM)
    alone = cost(module, "plain", **options)
    [sent] = alone.collectives
    # Four chips on one line, not four slices.
    assert sent.seconds == cost(module, "plain", topology="4", **options).collectives[0].seconds > 0
    apart = cost(module, "plain", slices=2, **options)
    assert apart.collectives[0].seconds < sent.seconds
    assert apart.rows.slowest_link_bytes > 0
    assert "plain has no dcn_bytes_per_second" in apart.notes[0]
    assert not alone.notes
    assert "the memory of plain is not known" in str(alone)


def test_a_step_that_takes_no_time(here: Path) -> None:
    path = measured(here, {"file": "nothing.mlir", "step_seconds": 1.0}, chip="plain")
    with pytest.raises(CalculusError, match="takes no time on plain"):
        calibrate(*read_measurements(path, here / "chips.toml"))


def test_a_run_that_is_held_out_may_take_no_time(here: Path) -> None:
    nothing = {"file": "nothing.mlir", "step_seconds": 1.0, "held_out": True}
    path = measured(here, GOOD, nothing, chip="plain")
    found = calibrate(*read_measurements(path, here / "chips.toml"))
    assert found.chip.measured["many"].runs == 1


def test_what_is_left_of_errors_is_read_again(here: Path) -> None:
    path = measured(here, GOOD, {**GOOD, "step_seconds": 2e-4}, chip="h100")
    found = calibrate(*read_measurements(path)).chip
    (here / "fitted.toml").write_text(calibrate(*read_measurements(path)).to_toml())
    read = calculus.hardware("h100", here / "fitted.toml")
    assert read.measured.keys() == {"one", "many"}
    assert (read.measured["one"], read.measured["many"].runs) == (
        found.measured["one"],
        calculus.hardware("h100").measured["many"].runs + 2,
    )
    assert read.measured["many"].spread == pytest.approx(found.measured["many"].spread, rel=1e-3)


def test_names_of_chips_and_programs_are_quoted(here: Path) -> None:
    chip = calculus.hardware("a b.c", here / "chips.toml")
    program = Module.parse(PROGRAM).propagate().partition("xla")
    written = calibrate([Measurement('a"\x7f\n.mlir', program, 1e-4, {})], chip).to_toml()
    assert tomllib.loads(written)["a b.c"]["source"]["achieved"] == 'calibrated on a"\x7f\n.mlir'


def test_a_full_disk_leaves_the_old_file(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = measured(here, GOOD)
    fitted = here / "fitted.toml"
    fitted.write_text("# mine\n")
    line = f'ulimit -f 0; "{SHARDCORE}" calibrate "{path}" -o "{fitted}"'
    done = subprocess.run(["bash", "-c", line], capture_output=True, timeout=120)
    assert done.returncode != 0
    assert fitted.read_text() == "# mine\n"
    assert main(["calibrate", str(path), "-o", str(fitted)]) == 0
    assert "[tpu-v5e.achieved]" in fitted.read_text()
    assert not [name for name in os.listdir(here) if name.startswith(".shardcore")]
    assert main(["calibrate", str(path), "-o", "-"]) == 0
    assert "[tpu-v5e.achieved]" in capsys.readouterr().out
