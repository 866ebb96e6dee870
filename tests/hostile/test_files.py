"""Files that are written: all of them or nothing, and devices, FIFOs and links as they are."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from shardcore import Module, files

SHARDCORE = Path(sys.executable).parent / "shardcore"
PROGRAM = """
sdy.mesh @mesh = <["x"=8]>
func.func @main(%arg0: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>})
    -> tensor<8xf32> {
  %0 = stablehlo.abs %arg0 : tensor<8xf32>
  return %0 : tensor<8xf32>
}
"""
WRITERS = {
    "opt": ["opt", "IN", "--sdy-propagation-pipeline", "-o", "OUT"],
    "propagate": ["propagate", "IN", "-o", "OUT"],
    "partition": ["partition", "IN", "-o", "OUT"],
    "check": ["check", "IN", "--expect", "OUT", "--update"],
}


def run(writer: str, source: Path, target: object, prefix: str = "") -> int:
    """The exit code of a command that writes to `target`, in a shell that runs `prefix` first."""
    names = {"IN": str(source), "OUT": str(target)}
    arguments = [names.get(word, word) for word in WRITERS[writer]]
    command = ["bash", "-c", f'{prefix} "$0" "$@"', str(SHARDCORE), *arguments]
    return subprocess.run(command, capture_output=True, timeout=60).returncode


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "program.mlir"
    path.write_text(PROGRAM, encoding="utf-8")
    return path


@pytest.mark.parametrize("writer", WRITERS)
def test_a_full_disk_leaves_the_old_file(writer: str, program: Path, tmp_path: Path) -> None:
    target = tmp_path / "target"
    old = "# old\n" if writer == "check" else "old"
    target.write_text(old, encoding="utf-8")
    before = set(os.listdir(tmp_path))
    # The shell counts in blocks of 1024 bytes: no file can be written at all.
    assert run(writer, program, target, "ulimit -f 0;") == 1
    assert target.read_text(encoding="utf-8") == old
    assert set(os.listdir(tmp_path)) == before


@pytest.mark.parametrize("writer", ["opt", "propagate", "partition"])
def test_a_program_can_be_written_over_itself(writer: str, program: Path) -> None:
    program.chmod(0o640)
    assert run(writer, program, program, "ulimit -f 0;") == 1
    assert program.read_text(encoding="utf-8") == PROGRAM
    assert run(writer, program, program) == 0
    assert "abs" in program.read_text(encoding="utf-8")
    assert stat.S_IMODE(program.stat().st_mode) == 0o640


def device_without_end(here: Path) -> Path:
    """What takes all that is written: a device of our own, where we may make one and so could
    replace the one that everybody has.
    """
    try:
        os.mknod(here / "null", 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    except PermissionError:
        return Path("/dev/null")
    return here / "null"


@pytest.mark.parametrize("writer", WRITERS)
def test_fifos_and_devices_stay(writer: str, program: Path, tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(fifo.read_bytes()))
    reader.start()
    assert run(writer, program, fifo) == 0
    reader.join(10)
    assert read
    assert b"x" in read[0]
    assert stat.S_ISFIFO(fifo.stat().st_mode)
    device = device_without_end(tmp_path)
    assert run(writer, program, device) == 0
    assert stat.S_ISCHR(device.stat().st_mode)
    assert run(writer, program, "/dev/full") == 1


@pytest.mark.parametrize("writer", WRITERS)
def test_links_are_followed(writer: str, program: Path, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    link, target = tmp_path / "link", tmp_path / "there" / "target"
    link.symlink_to("there/target")
    assert run(writer, program, link) == 0
    assert link.is_symlink()
    assert target.is_file()
    assert not target.is_symlink()
    assert os.listdir(target.parent) == ["target"]
    loop = tmp_path / "loop"
    loop.symlink_to("loop")
    assert run(writer, program, loop) == 1
    assert loop.is_symlink()


def test_new_files_have_the_mode_that_the_user_wants(tmp_path: Path) -> None:
    target = tmp_path / "target"
    old = os.umask(0o027)
    try:
        files.write(target, "text")
    finally:
        os.umask(old)
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    assert os.listdir(tmp_path) == ["target"]


def test_an_interrupted_write_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "target"
    target.write_text("old", encoding="utf-8")

    def interrupt(_: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        files.write(target, "new")
    assert target.read_text(encoding="utf-8") == "old"
    assert os.listdir(tmp_path) == ["target"]


@pytest.mark.parametrize(
    "name", ["", "a\0b", "no/such/file", "directory", "directory/", "new/", "half\ud800", "x" * 300]
)
def test_names_that_no_file_can_have(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "directory").mkdir()
    for attempt in (lambda: files.write(name, "text"), lambda: files.read(name)):
        with pytest.raises(OSError, match=r"\[Errno") as caught:
            attempt()
        assert caught.value.filename == name
    assert os.listdir(tmp_path) == ["directory"]


def test_names_as_long_as_names_can_be(tmp_path: Path) -> None:
    path = tmp_path / ("x" * 255)
    files.write(path, "text")
    assert files.read(path) == b"text"


def test_files_without_end_are_not_read() -> None:
    with pytest.raises(OSError, match="too large") as caught:
        files.read("/dev/zero", files.MAX_TABLE_BYTES)
    assert caught.value.errno == errno.EFBIG


def test_what_is_written_to_expectations_holds(tmp_path: Path) -> None:
    text = """
    sdy.mesh @mesh = <["x"=8]>
    sdy.mesh @one = <[], device_ids=[0]>
    func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>},
                    %b: tensor<i32> {sdy.sharding = #sdy.sharding<@one, []>},
                    %c: tensor<8xf32> {sdy.sharding = #sdy.sharding<@one, []>})
        -> (tensor<8xf32>, tensor<i32>) {
      return %a, %b : tensor<8xf32>, tensor<i32>
    }"""
    result = Module.parse(text).propagate()
    path = tmp_path / "expected.toml"
    assert result.check(path, update=True)
    assert result.check(path)
    path.write_text("[shardings]\n'%arg1' = '[]'\n", encoding="utf-8")
    found = result.check(path, update=True)
    assert not found
    assert found.updated == ()
