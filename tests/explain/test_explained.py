"""Compiled programs explained: real ones for hosts, and dumps of compilers for chips."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import shardcore
from shardcore import LocationError, Module, ParseError
from shardcore.cli import main
from shardcore.explain import CHANGES, REASONS
from shardcore.explain.collectives import collectives
from shardcore.explain.hlo_text import read
from shardcore.explain.matching import Site, match
from shardcore.explain.planned import planned

from tests.deep import deep, sampled
from tests.explain import dumps
from tests.explain.test_profile import message
from tests.explain.truth import MODELS, counterfactuals, judged, merged, result, summary
from tests.shardy.xla.models import catalog

QUICK = ["perceptron-grid", "experts-experts-tensor", "decode-scan"]
SUM = """
sdy.mesh @mesh = <["model"=4]>
func.func @main(
    %x: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"model"}]>},
    %w: tensor<16x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"model"}, {}]>},
    %y: tensor<16x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"model"}, {}]>})
    -> (tensor<8x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
    : (tensor<8x16xf32>, tensor<16x32xf32>) -> tensor<8x32xf32> loc("model.py":1:1)
  %1 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0]
    : (tensor<8x16xf32>, tensor<16x32xf32>) -> tensor<8x32xf32> loc("model.py":2:1)
  %2 = stablehlo.add %0, %1 : tensor<8x32xf32> loc("model.py":3:1)
  return %2 : tensor<8x32xf32>
}
"""
# Rows that are all of one dump, counted by hand in the text of it.
SUMMARIES = {
    ("perceptron-grid", "gpu"): (18, 29, 30, 0),
    ("perceptron-grid", "tpu"): (23, 29, 32, 0),
    ("averaged-data", "gpu"): (1, 4, 4, 0),
    ("averaged-data", "tpu"): (1, 4, 4, 0),
    ("decode-scan", "gpu"): (4, 5, 5, 0),
    ("decode-scan", "tpu"): (5, 5, 5, 0),
}


@pytest.mark.parametrize("name", sampled(MODELS, 100) or QUICK)
def test_what_is_said_is_what_xla_says_of_each_by_itself(name: str) -> None:
    verdict = judged(name)
    assert verdict.wrong == []
    assert verdict.planned >= 0.95 * verdict.parts
    assert verdict.confirmed >= 0.8 * verdict.parts


@pytest.mark.parametrize("name", ["encoder-decoder", "two-towers", "recurrent"])
def test_programs_of_other_families(name: str) -> None:
    verdict = judged(name)
    assert verdict.wrong == []
    assert verdict.planned == verdict.parts == verdict.confirmed


def test_one_sum_of_partial_sums_has_the_lines_of_all_of_them() -> None:
    cost = Module.parse(SUM).propagate().cost("h100")
    [row] = planned(cost)
    assert row.kind == "all_reduce"
    assert sorted(row.summands) == ["model.py:1:1", "model.py:2:1"]
    assert set(row.summands) <= set(row.locations)


@pytest.mark.parametrize("name", QUICK)
def test_all_of_a_program_for_hosts_is_explained(name: str) -> None:
    found = shardcore.explain(merged(name), result(name))
    assert (found.platform, found.attributed, found.dropped) == ("cpu", 1.0, ())
    assert all(part.planned is not None and part.reason is None for part in found.parts)


def test_the_edit_that_is_named_removes_the_collective() -> None:
    [row, *_] = counterfactuals("decode-scan", 1)
    assert row.verdict == "gone"
    assert "params['embedding']" in row.edit


@deep
def test_most_edits_that_are_named_remove_the_collective() -> None:
    rows = [row for name in MODELS for row in counterfactuals(name, 3)]
    verdicts = Counter(row.verdict for row in rows)
    assert verdicts["gone"] >= 0.9 * (verdicts["gone"] + verdicts["stays"]), rows


@pytest.mark.parametrize(("name", "compiler"), SUMMARIES)
def test_dumps_of_compilers_for_chips(name: str, compiler: str) -> None:
    found = shardcore.explain(dumps.dump(name, compiler), Module.parse(dumps.program(name)))
    numbers = summary(found)
    keys = ("collectives", "parts", "plan", "dropped")
    assert tuple(numbers[key] for key in keys) == SUMMARIES[name, compiler]
    assert (found.platform, found.num_devices, found.attributed) == (compiler, 8, 1.0)
    assert all(part.planned is not None for part in found.parts)
    # What is planned is either done by something in the dump, or said to be dropped.
    assert all(fate.names or "dropped" in fate.changes for fate in found.plan)


@pytest.mark.parametrize(("name", "compiler"), SUMMARIES)
def test_parts_of_one_argument_are_matched_with_what_sends_that(name: str, compiler: str) -> None:
    cost = Module.parse(dumps.program(name)).propagate(legalize_chlo=True).cost("h100")
    [module] = read(dumps.dump(name, compiler))
    sites = [Site(row, part) for row in collectives(module) for part in row.parts]
    found = match(sites, planned(cost)).sites
    pairs = [(sites[at].part.sources, row.planned.sources) for at, row in found.items()]
    alone = [pair for pair in pairs if all(each.bit_count() == 1 for each in pair)]
    assert all(one == other for one, other in alone)
    assert bool(alone) == (name == "perceptron-grid")


def test_what_a_part_says() -> None:
    found = shardcore.explain(
        dumps.dump("perceptron-grid", "tpu"), Module.parse(dumps.program("perceptron-grid"))
    )
    [row] = [row for row in found.collectives if row.name == "%all-gather.93"]
    [part] = row.parts
    assert (row.kind, row.runs, len(row.groups)) == ("all_gather", 1, 4)
    assert (part.argument, part.op, part.how) == (
        "params[0]['w']",
        "stablehlo.dot_general",
        "metadata",
    )
    assert part.location is not None
    assert part.location.endswith("layers.py:16:11")
    # A compiler for TPUs gathers in bfloat16 what it multiplies in it.
    assert (part.dtype, part.bytes, part.changes) == ("bf16", 784 * 256 * 2, ())
    assert (part.scope, part.direction) == ("", "forward")
    assert {source.label for source in part.annotations} == {"batch[0]", "params[0]['w']"}
    assert part.edit is not None
    assert part.edit.wire_bytes < 0
    [scattered] = [row for row in found.collectives if row.kind == "reduce_scatter"]
    assert [part.changes for part in scattered.parts] == [("merged",)] * 3
    assert len({part.planned.op for part in scattered.parts if part.planned}) == 3


def test_without_the_program_metadata_is_what_there_is() -> None:
    found = shardcore.explain(dumps.dump("perceptron-grid", "gpu"))
    assert found.attributed == 1.0
    assert {part.reason for part in found.parts} == {"no-program"}
    assert found.plan == ()
    lines = {place.rsplit("/", 1)[-1] for place in found.by_line() if place}
    assert {"layers.py:16:11", "layers.py:67:12", "mixture.py:81:16"} <= lines
    assert all(part.edit is None and part.annotations == () for part in found.parts)
    assert found.by_annotation().keys() == {None}


def test_the_dump_of_another_program_is_refused() -> None:
    text = dumps.dump("averaged-data", "gpu")
    other = dumps.program("averaged-data").replace(".py", "_of_another.py")
    with pytest.raises(LocationError, match=r"of 23 ops none is in this program") as caught:
        shardcore.explain(text, Module.parse(other))
    assert caught.value.code == "other-program"
    assert caught.value.hint
    with pytest.raises(LocationError, match="of 23 ops only 3 are in this program"):
        shardcore.explain(text, Module.parse(dumps.program("decode-scan")))
    nameless = Module.parse("func.func @main(%x: tensor<8xf32>) { return }")
    with pytest.raises(LocationError, match="takes 5 arguments, and this program 1"):
        shardcore.explain(text, nameless)


def test_a_program_without_locations_is_matched_by_what_is_sent() -> None:
    text = dumps.dump("averaged-data", "tpu")
    found = shardcore.explain(text, Module.parse(catalog.text("averaged-data")))
    assert [part.planned is not None for part in found.parts] == [True] * 4


def test_a_dump_is_given_in_any_form(tmp_path: Path) -> None:
    class Compiled:
        def as_text(self) -> str:
            return dumps.dump("decode-scan", "gpu")

    wanted = shardcore.explain(Compiled()).record()
    path = tmp_path / "dump.txt"
    path.write_text(dumps.dump("decode-scan", "gpu"))
    packed = dumps.FOLDER / "decode-scan.gpu.txt.gz"
    for given in (path, str(path), path.read_bytes(), packed, dumps.dump("decode-scan", "gpu")):
        assert shardcore.explain(given).record() == wanted
    with pytest.raises(TypeError, match="expected a compiled function, or a dump of one, not int"):
        shardcore.explain(3)
    with pytest.raises(TypeError, match="expected a program, not int"):
        shardcore.explain(path, 3)
    with pytest.raises(OSError, match="damaged"):
        shardcore.explain(packed.read_bytes()[:-200])
    with pytest.raises(ParseError, match="no dump of an optimized module"):
        shardcore.explain(tmp_path)
    path.rename(tmp_path / "module_0003.jit_step.gpu_after_optimizations.txt")
    assert shardcore.explain(tmp_path).record() == wanted
    with pytest.raises(OSError, match="No such file"):
        shardcore.explain(tmp_path / "none.txt")


def test_protos_are_read_by_jaxlib() -> None:
    from jaxlib import _hlo

    text = merged("averaged-data")
    proto = _hlo.hlo_module_from_text(text).as_serialized_hlo_module_proto()
    found = shardcore.explain(proto, result("averaged-data"))
    assert [part.planned is not None for part in found.parts] == [True] * 4
    assert found.num_devices == 8


def test_a_proto_that_was_cut_off() -> None:
    from jaxlib import _hlo

    proto = _hlo.hlo_module_from_text(merged("averaged-data")).as_serialized_hlo_module_proto()
    wrapped = message((1, proto))
    assert len(shardcore.explain(wrapped).parts) == 4
    for data in (proto, wrapped):
        for size in (len(data) // 3, len(data) // 2, len(data) - 1):
            place = rf"was cut off: byte [\d,]+ of {size:,}"
            with pytest.raises(ParseError, match=place) as caught:
                shardcore.explain(data[:size])
            assert caught.value.code == "bytecode"
    # The byte at which an instruction of an entry begins, and not just the module.
    with pytest.raises(ParseError) as caught:
        shardcore.explain(wrapped[:-1])
    [at] = re.findall(r"byte ([\d,]+) of", str(caught.value))
    assert int(at.replace(",", "")) > 100


def test_records_are_plain_data() -> None:
    found = shardcore.explain(
        dumps.dump("decode-scan", "tpu"), Module.parse(dumps.program("decode-scan"))
    )
    record = json.loads(found.to_json())
    assert record["attributed"] == 1.0
    assert len(record["collectives"]) == 5
    part = record["collectives"][0]["parts"][0]
    assert {"op", "op_name", "location", "scope", "changes", "reason", "axes"} <= part.keys()
    assert sum(row["bytes"] for row in record["by_line"]) == sum(
        sums.bytes for sums in found.by_scope().values()
    )
    whys = found.record(edits=3)["why"]
    assert "params['embedding']" in {why["edit"]["target"] for why in whys if why["edit"]}
    assert all(sums.parts for sums in found.by_annotation().values())
    assert found._repr_html_().startswith("<div")
    assert repr(found).startswith("<shardcore.Explained jit_step on tpu: 5 collectives")


def test_the_command_takes_the_folder_of_a_dump(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = "module_0003.jit_step.gpu_after_optimizations.txt"
    (tmp_path / name).write_text(dumps.dump("decode-scan", "gpu"))
    assert "4 collectives of 5 parts" in run([tmp_path], capsys)
    (tmp_path / name).write_text(dumps.dump("decode-scan", "gpu")[:9000])
    assert main(["explain", str(tmp_path)]) == 1
    assert f"{name}:" in capsys.readouterr().err


def run(arguments: list[Any], capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["explain", *map(str, arguments)]) == 0
    return capsys.readouterr().out


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dump = dumps.FOLDER / "decode-scan.gpu.txt.gz"
    program = tmp_path / "step.mlir"
    program.write_text(dumps.program("decode-scan"))
    page = run([dump, "--program", program, "--edits", 3], capsys)
    for part in (
        "jit_step, compiled for gpu, 8 devices: 4 collectives of 5 parts",
        "op or line known of 100.0%",
        "5 of 5 are of the plan, which has 5: 3 as planned, 2 merged, 0 dropped",
        "serving.py:48",
        "  all_reduce for gather at serving.py:48:12, because of params['embedding']\n"
        "    annotate params['embedding'] with ",
        f"merged: {CHANGES['merged']}",
    ):
        assert part in page
    bare = run([dump, "--top", 2], capsys)
    assert REASONS["no-program"] in bare
    record = json.loads(run([dump, "--program", program, "--json", "--edits", 0], capsys))
    assert (record["schema"], record["why"]) == (1, [])
    assert main(["explain", str(program)]) == 1
    assert "error[syntax]: expected HloModule" in capsys.readouterr().err


COMBINED = """\
HloModule jit_f, num_partitions=4

%add (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %sum = f32[] add(%a, %b)
}

ENTRY %main (x: f32[8], y: f32[8]) -> (f32[8], f32[8]) {
  %x = f32[8] parameter(0)
  %y = f32[8] parameter(1)
  %one = f32[8] tanh(%x), metadata={op_name="jit(f)/one" source_file="f.py" source_line=1}
  %two = f32[8] tanh(%y), metadata={op_name="jit(f)/two" source_file="f.py" source_line=2}
  ROOT %all = (f32[8], f32[8]) all-reduce(%one, %two), replica_groups=[1,4]<=[4], to_apply=%add, \
metadata={op_name="jit(f)/one" source_file="f.py" source_line=1}
}
"""


def test_metadata_of_one_part_is_not_that_of_another() -> None:
    [row] = shardcore.explain(COMBINED).collectives
    assert [part.op for part in row.parts] == ["one", "two"]
