"""The command line with streams, names and numbers that nobody would think of: no traceback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from shardcore import Module, ShardcoreError

from tests.deep import sampled
from tests.hostile.test_files import PROGRAM, SHARDCORE

DEEP = "a = " + "[" * 100_000
DIGITS = "9" * 5000
COLLECTIVE = (
    "collective all_to_all --array 'bf16[2048_Y, 8192]' --axes Y --mesh X=8,Y=4 --hardware tpu-v5e"
)


@pytest.fixture
def here(tmp_path: Path) -> Path:
    (tmp_path / "m.mlir").write_text(PROGRAM, encoding="utf-8")
    (tmp_path / "deep.toml").write_text(DEEP, encoding="utf-8")
    (tmp_path / "digits.toml").write_text(f"[a]\nx = {DIGITS}\n", encoding="utf-8")
    (tmp_path / "hex.toml").write_text(f"[memory]\npeak = 0x{'f' * 5000}\n", encoding="utf-8")
    (tmp_path / "pod.toml").write_text(
        f"[a]\nbase = 'h100'\npod = [0x{'f' * 5000}]\n", encoding="utf-8"
    )
    (tmp_path / "kind.toml").write_text("[a]\nkind = ['torus']\n", encoding="utf-8")
    (tmp_path / "base.toml").write_text("[a]\nbase = ['h100']\n", encoding="utf-8")
    (tmp_path / "source.toml").write_text("[h100]\nsource = 5\n", encoding="utf-8")
    (tmp_path / "slow.toml").write_text(
        "[a]\nbase = 'h100'\nhbm_bytes_per_second = 1e-310\n", encoding="utf-8"
    )
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "directory").mkdir()
    os.mkdir(os.fsencode(tmp_path) + b"/bytes")
    with open(os.fsencode(tmp_path) + b"/bytes/\xff.mlir", "w", encoding="utf-8") as file:
        file.write(PROGRAM)
    return tmp_path


def shell(line: str, here: Path) -> subprocess.CompletedProcess[bytes]:
    """What comes of `line`, in which `shardcore` is the command."""
    line = f'shardcore() {{ "{SHARDCORE}" "$@"; }}; {line}'
    return subprocess.run(
        ["bash", "-c", line], cwd=here, stdin=subprocess.DEVNULL, capture_output=True, timeout=120
    )


MISTAKES = [
    ("shardcore propagate - <&-", "error[io]: <stdin>: standard input is closed"),
    ("shardcore opt <&-", "error[io]: <stdin>"),
    ("shardcore propagate m.mlir >&-", "error[io]: <stdout>: standard output is closed"),
    ("shardcore propagate m.mlir --json >&-", "error[io]: <stdout>"),
    ("shardcore opt m.mlir >&-", "error[io]: <stdout>"),
    ("shardcore cost m.mlir --hardware h100 >&-", "error[io]: <stdout>"),
    ("shardcore array 'bf16[8_X]' --mesh X=2 >&-", "error[io]: <stdout>"),
    ("shardcore propagate m.mlir >/dev/full", "error[io]: -: No space left"),
    ("PYTHONUNBUFFERED=1 shardcore --version >/dev/full", "error[io]: -: No space left"),
    ("PYTHONUNBUFFERED=1 shardcore cost --help >/dev/full", "error[io]: -: No space left"),
    ("PYTHONUNBUFFERED=1 shardcore opt --help >/dev/full", "error[io]: -: No space left"),
    ("shardcore matmul --help >&-", "error[io]: <stdout>"),
    ("shardcore propagate loop", "error[io]: loop: Too many levels"),
    ("shardcore propagate directory", "error[io]: directory: Is a directory"),
    ("shardcore propagate /dev/zero", "error[io]: /dev/zero: File too large"),
    ("shardcore propagate /proc/self/mem", "error[io]: /proc/self/mem: "),
    ("shardcore propagate - </dev/zero", "error[io]: <stdin>: File too large"),
    ("shardcore propagate $'no\\x1b[2J'", "error[io]: no␛[2J"),
    ("shardcore propagate $'no\\xff'", "error[io]: no�"),
    ("shardcore propagate m.mlir --at $'a\\xff.py:1'", "error[not-utf-8]: a\\udcff.py:1"),
    ("shardcore array $'bf16[8_\\xff]' --mesh X=2", "error["),
    ("shardcore check m.mlir --expect loop --update", "error[io]: loop: Too many levels"),
    ("shardcore check m.mlir --expect /dev/zero", "error[io]: /dev/zero: File too large"),
    ("shardcore check m.mlir --expect directory", "error[io]: directory"),
    ("shardcore check m.mlir --expect deep.toml", "error[expectation-syntax]"),
    ("shardcore check m.mlir --expect digits.toml", "error[expectation-syntax]"),
    ("shardcore check m.mlir --expect hex.toml", "error[invalid-expectation]"),
    ("shardcore cost m.mlir --hardware a --hardware-file deep.toml", "error[hardware-file]"),
    ("shardcore cost m.mlir --hardware a --hardware-file digits.toml", "error[hardware-file]"),
    ("shardcore cost m.mlir --hardware a --hardware-file pod.toml", "error[hardware-file]"),
    ("shardcore cost m.mlir --hardware a --hardware-file kind.toml", "error[hardware-file]"),
    ("shardcore cost m.mlir --hardware a --hardware-file base.toml", "error[hardware-file]"),
    ("shardcore cost m.mlir --hardware h100 --hardware-file source.toml", "error[hardware-file]"),
    ("shardcore cost m.mlir --hardware a --hardware-file slow.toml", "error[hardware-file]"),
    ("shardcore cost m.mlir --hardware a --hardware-file loop", "error[io]: loop"),
    (f"shardcore {COLLECTIVE} --dim ²", "error[unknown-dim]"),
    (f"shardcore {COLLECTIVE} --dim {DIGITS}", "error[unknown-dim]"),
    (f"shardcore {COLLECTIVE} --shift {DIGITS}", "invalid int value"),
    (f"shardcore {COLLECTIVE} --efficiency=1e-320 --json", "error[invalid-option]"),
    (f"shardcore {COLLECTIVE} --efficiency=nan --json", "error[invalid-option]"),
    ("shardcore partition m.mlir --json -o -", "both want standard output"),
]


@pytest.mark.parametrize(("line", "message"), sampled(MISTAKES, 2))
def test_mistakes_are_said_in_a_line(line: str, message: str, here: Path) -> None:
    done = shell(line, here)
    said = done.stderr.decode()
    assert message in said
    assert done.returncode in (1, 2)
    assert "Traceback" not in said
    assert "Exception ignored" not in said
    assert "\x1b" not in said


FINE = [
    "shardcore propagate $'bytes/\\xff.mlir'",
    "shardcore opt $'bytes/\\xff.mlir' -o $'bytes/\\xfe.mlir'",
    "shardcore check $'bytes/\\xff.mlir' --expect $'bytes/\\xfe.toml' --update",
    "shardcore propagate m.mlir --up-to-priority 99999999999999999999",
    f"shardcore propagate m.mlir --up-to-priority {DIGITS}",
    f"shardcore propagate m.mlir --limit {DIGITS}",
    f"shardcore cost m.mlir --hardware h100 --top {DIGITS}",
    "shardcore propagate m.mlir -o out.mlir 2>&-",
    "shardcore opt m.mlir -o out.mlir >&- <&-",
    "shardcore propagate - <m.mlir",
]


@pytest.mark.parametrize("line", sampled(FINE, 2))
def test_odd_names_and_numbers_are_no_mistakes(line: str, here: Path) -> None:
    done = shell(line, here)
    assert (done.returncode, done.stderr) == (0, b"")


def test_nobody_to_read_what_went_wrong(here: Path) -> None:
    assert shell("shardcore propagate nothing 2>&-", here).returncode == 1
    assert shell("shardcore propagate nothing 2>/dev/full", here).returncode == 1


def test_little_memory(here: Path) -> None:
    code = "import shardcore.cli as cli, sys\ndef fail(*_): raise MemoryError\ncli._run = fail\n"
    code += "sys.exit(cli.main([]))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60)
    assert done.returncode == 1
    assert done.stderr.startswith(b"error[out-of-memory]")


NASTY = """
sdy.mesh @mesh = <["x"=8]>
func.func @"ma\x1b[2Jin"(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}
    loc("a\x1b]0;pwned\x07\x9b")) -> tensor<8xf32> {
  %0 = stablehlo.dot_general %arg0, %arg0, contracting_dims = [0] x [0]
      : (tensor<8xf32>, tensor<8xf32>) -> tensor<f32> loc("b\\1B[2J.py":3:4)
  %1 = "my.op\\1B"(%0) {text = "\x1b[2J\u202e"} : (tensor<f32>) -> tensor<8xf32> loc("\x1b.py":1:1)
  return %1 : tensor<8xf32>
}
"""


STEERING = [
    "propagate n.mlir",
    "propagate n.mlir --json",
    "propagate n.mlir --limit 2",
    "propagate n.mlir --at nowhere.py:3",
    "cost n.mlir --hardware h100",
    "cost n.mlir --hardware h100 --json",
    "cost n.mlir m.mlir --hardware h100",
    "check n.mlir --expect new.toml --update",
    "check n.mlir --expect nasty.toml",
    "check n.mlir --expect nasty.toml --json",
    "opt n.mlir",
    "opt n.mlir --sdy-propagation-pipeline",
    "opt broken.mlir",
    "opt m.mlir --pass-pipeline=$'builtin.module(\\x1b[2J)'",
    "opt m.mlir $'--sdy-\\x1b[2J'",
    "propagate m.mlir $'--sdy-\\x1b[2J'",
    "show $'[{\"\\x1b\"}]' --mesh x=2",
    "array $'bf16[8_\\x1b]' --mesh X=2",
    "partition n.mlir",
]


@pytest.mark.parametrize("command", sampled(STEERING, 2))
def test_text_of_programs_does_not_steer_terminals(command: str, here: Path) -> None:
    (here / "n.mlir").write_text(NASTY, encoding="utf-8")
    (here / "broken.mlir").write_text("module { \x1b]0;pwned\x07\x1b[2J junk }", encoding="utf-8")
    (here / "nasty.toml").write_text('[shardings]\n"%arg0" = "\\u001b[2J"\n', encoding="utf-8")
    done = shell(f"shardcore {command}", here)
    shown = (done.stdout + done.stderr).decode()
    assert shown
    assert not {"\x1b", "\x07", "\x9b", "\u202e"} & set(shown)
    assert "Traceback" not in shown
    if "--json" in command and done.returncode != 2:
        json.loads(done.stdout or "{}")


def test_programs_printed_to_a_terminal_mean_the_same(here: Path) -> None:
    (here / "n.mlir").write_text(NASTY, encoding="utf-8")
    printed = shell("shardcore opt n.mlir", here).stdout.decode()
    assert Module.parse(printed).ops()[-2].name == Module.parse(NASTY).ops()[-2].name
    assert "\\1B[2J" in printed


def test_errors_show_control_characters_where_they_stand() -> None:
    with pytest.raises(ShardcoreError) as caught:
        Module.parse("module { \x1b junk }")
    lines = str(caught.value).splitlines()
    assert "module { ␛ junk }" in lines[2]
    assert lines[2][lines[3].index("^")] in "␛j"
