"""``shardcore cost``: tables, JSON, comparisons, mistakes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from shardcore import Module, compare, cost
from shardcore.calculus import hardware_names
from shardcore.cli import main
from shardcore.partition.policies import POLICIES

PROGRAM = """\
sdy.mesh @mesh = <["x"=4]>
func.func @main(
    %a: tensor<64x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>},
    %b: tensor<32x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [WEIGHT, {}]>}
) -> tensor<64x16xf32> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
      : (tensor<64x32xf32>, tensor<32x16xf32>) -> tensor<64x16xf32> loc("a.py":2:1)
  %1 = stablehlo.tanh %0 : tensor<64x16xf32> loc("a.py":3:1)
  return %1 : tensor<64x16xf32>
}
"""
WHOLE, CUT = PROGRAM.replace("WEIGHT", "{}"), PROGRAM.replace("WEIGHT", '{"x"}')


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    before, after = tmp_path / "before.mlir", tmp_path / "after.mlir"
    before.write_text(WHOLE)
    after.write_text(CUT)
    return str(before), str(after)


def test_tables(files: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cost", files[1], "--hardware", "tpu-v5e"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("peak 20.0 KiB: fits tpu-v5e (14.9 GiB)\n")
    assert "\nper device, on tpu-v5e, policy xla\n" in text
    for title in ("collectives by kind", "collectives by mesh axis", "most expensive collectives"):
        assert f"\n{title}\n" in text
    assert main(["cost", files[0], "--hardware", "tpu-v5e", "--top", "0"]) == 0
    assert "most expensive" not in capsys.readouterr().out


def test_json_is_the_record(files: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cost", files[1], "--hardware", "h100", "--json"]) == 0
    expected = {"schema": 1, **cost(Module.parse(CUT, filename=files[1]), "h100").record()}
    record = json.loads(capsys.readouterr().out)
    assert record.pop("diagnostics") == []
    assert record == json.loads(json.dumps(expected))


HUGE = """
func.func @main(%a: tensor<131072x131072xf32>) -> tensor<131072x131072xf32> {
  %0 = stablehlo.abs %a : tensor<131072x131072xf32>
  return %0 : tensor<131072x131072xf32>
}
"""


def test_tokens_of_a_program_without_token_ids(
    files: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["cost", files[1], "--hardware", "tpu-v5e", "--tokens", "64", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["usage"]["tokens_per_second"] == pytest.approx(64 / found["step_seconds"])
    with pytest.raises(SystemExit):
        main(["cost", files[1], "--tokens", "0"])
    assert "a number of tokens above 0" in capsys.readouterr().err


def test_the_first_line_says_whether_it_fits() -> None:
    first = str(cost(Module.parse(HUGE), "tpu-v5e")).splitlines()[0]
    assert first == "peak 128.0 GiB: DOES NOT FIT tpu-v5e (14.9 GiB)"
    assert (
        str(cost(Module.parse(WHOLE), "tpu-v5e"))
        .splitlines()[0]
        .endswith(": fits tpu-v5e (14.9 GiB)")
    )


def test_every_chip(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "huge.mlir"
    path.write_text(HUGE)
    assert main(["cost", str(path), "--hardware", "all"]) == 0
    head, columns, *rows = capsys.readouterr().out.splitlines()
    assert head == "peak 128.0 GiB, policy xla"
    assert columns.split()[:3] == ["hardware", "memory", "fits"]
    assert [row.split()[0] for row in rows] == hardware_names()
    assert max(map(len, [columns, *rows])) <= 80
    assert main(["cost", str(path), "--hardware", "all", "--json"]) == 0
    for row in json.loads(capsys.readouterr().out)["hardware"]:
        alone = cost(Module.parse(HUGE), row["hardware"])
        assert row["fits"] == alone.fits == (alone.hardware.hbm_bytes >= 128 << 30)
        assert row["step_seconds_lower"] == alone.step_seconds_lower


def test_chips_whose_topology_the_mesh_does_not_fit_are_listed_without_a_cost(
    files: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["cost", files[1], "--hardware", "all", "--topology", "2x2"]) == 0
    text = capsys.readouterr().out
    rows = {line.split()[0]: line for line in text.splitlines() if line}
    assert " yes " in rows["tpu-v5e"]
    # What is wrong on every chip is an error.
    assert main(["cost", files[1], "--hardware", "all", "--topology", "3x3"]) == 1
    with pytest.raises(SystemExit):
        main(["cost", *files, "--hardware", "all"])
    assert "one program and one policy" in capsys.readouterr().err


def test_what_changed_by_line(files: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cost", *files, "--hardware", "tpu-v5e"]) == 0
    text = capsys.readouterr().out
    [changed] = [line for line in text.splitlines() if line.startswith("a.py:2:1")]
    assert "0 -> 1" in changed
    assert "a.py:3:1" not in text
    assert main(["cost", *files, "--hardware", "tpu-v5e", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    # A quarter of the weight is left, of whose rows 16 or 8 are in a tile.
    assert record["totals"]["argument_bytes"]["change"] == -4096
    assert [line["place"] for line in record["lines"]] == ["a.py:2:1"]


def test_a_program_does_not_differ_from_itself(
    files: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["cost", files[0], files[0], "--hardware", "tpu-v5e"]) == 0
    assert "no line costs more or less" in capsys.readouterr().out


REDUCED = """
sdy.mesh @mesh = <["x"=4]>
func.func @main(
    %a: tensor<64x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>},
    %b: tensor<64x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>}) -> tensor<32x16xf32> {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [0] x [0]
      : (tensor<64x32xf32>, tensor<64x16xf32>) -> tensor<32x16xf32> loc("a.py":4:1)
  return %0 : tensor<32x16xf32>
}
"""


def test_policies_are_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "reduced.mlir"
    path.write_text(REDUCED)
    sent = {}
    for policy in POLICIES:
        assert main(["cost", str(path), "--policy", policy, "--compiler", "none", "--json"]) == 0
        record = json.loads(capsys.readouterr().out)
        assert record["policy"] == policy
        partitioned = Module.parse(REDUCED).propagate().partition(policy)
        sent[policy] = sum(row["total_wire_bytes"] for row in record["collectives"])
        assert sent[policy] == partitioned.sent_bytes
    assert sent["least"] < sent["xla"]
    assert main(["cost", str(path), "--policy", "xla,least"]) == 0
    assert capsys.readouterr().out.split()[:4] == ["per", "device", "xla", "least"]
    assert main(["cost", str(path), "--policy", "least,xla", "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["policies"] == {"before": "least", "after": "xla"}


@pytest.mark.parametrize("flags", [["--policy", "most"], ["--policy", "xla,least,shardy"]])
def test_other_policies_are_refused(
    files: tuple[str, str], flags: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["cost", files[0], *flags])
    assert caught.value.code == 2
    assert "one or two of least, shardy, xla" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["cost", *files, "--policy", "xla,least"])
    assert "not both" in capsys.readouterr().err


def test_changes_are_signed() -> None:
    before, after = cost(Module.parse(WHOLE)), cost(Module.parse(CUT))
    there, back = compare(before, after), compare(after, before)
    assert [row.change for row in there.totals] == [-row.change for row in back.totals]
    assert [row.seconds for row in there.lines] == [-row.seconds for row in back.lines]
    (line,) = there.lines
    assert {kind: new for kind, (_, new) in line.collectives.items()} == {
        row.kind: 1 for row in after.collectives
    }
    assert str(there).startswith("per device")


@pytest.mark.parametrize(
    ("flags", "code"),
    [
        (["--hardware", "tpu-v9"], "unknown-hardware"),
        (["--hardware", "tpu-v5e", "--topology", "3x3"], "invalid-topology"),
        (["--hardware", "tpu-v5e", "--topology", "4", "--map", "y=0"], "unknown-axis"),
        (["--hardware", "tpu-v5e", "--efficiency", "0"], "invalid-option"),
    ],
)
def test_mistakes(
    files: tuple[str, str], flags: list[str], code: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["cost", files[1], *flags]) == 1
    assert capsys.readouterr().err.startswith(f"error[{code}]")


def test_only_one_program_is_standard_input(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["cost", "-", "-", "--hardware", "tpu-v5e"])
    assert caught.value.code == 2
    assert "standard input" in capsys.readouterr().err


def test_one_of_a_thing_is_no_plural(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "small.mlir"
    path.write_text("""sdy.mesh @mesh = <["x"=2]>
    func.func @main(%a: tensor<2x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>},
        %b: tensor<4x2xf32>) -> tensor<2x2xf32> {
      %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
        : (tensor<2x4xf32>, tensor<4x2xf32>) -> tensor<2x2xf32>
      return %0 : tensor<2x2xf32>
    }""")
    assert main(["cost", str(path), "--hardware", "tpu-v5e"]) == 0
    # 2 * 2 * 2 * 2 of the product, and the sums of the all-reduce.
    assert re.search(r"for \d+ FLOPs and", capsys.readouterr().out)
    assert main(["partition", str(path), "--prove"]) == 0
    out = capsys.readouterr().out
    assert "in 1 collective\nops: 1 collective" in out
    assert "proven: 4 elements of 1 result on 2 devices" in out
    assert repr(Module.from_file(path).session()) == "<shardcore.Session: 1 annotation, 0 edits>"
