"""Why collectives are there: in chosen programs, and edits tried on random and real ones."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest
import shardcore
import shardcore.jax
from jax.sharding import PartitionSpec as P
from shardcore import Cost, LocationError, Module, ShardcoreError
from shardcore.cli import main
from shardcore.costs import CollectiveCost

from tests.deep import IS_DEEP
from tests.shardy.generator import programs
from tests.shardy.programs import registry

ROOT = Path(__file__).resolve().parents[2]
NUM_MODULES = 2_000 if IS_DEEP else 40

TEXT = """
sdy.mesh @mesh = <["data"=2, "model"=4]>
func.func @main(
    %arg0: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>} loc("x"),
    %arg1: tensor<16x32xf32> loc("params['up']"),
    %arg2: tensor<32x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"model"}, {}]>}
      loc("params['down']"))
    -> (tensor<8x16xf32> {
      jax.result_info = "result", sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) {
  %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0]
    : (tensor<8x16xf32>, tensor<16x32xf32>) -> tensor<8x32xf32> loc("model.py":12:8)
  %1 = stablehlo.tanh %0 : tensor<8x32xf32> loc("model.py":12:4)
  %2 = stablehlo.dot_general %1, %arg2, contracting_dims = [1] x [0]
    : (tensor<8x32xf32>, tensor<32x16xf32>) -> tensor<8x16xf32> loc("model.py":13:8)
  return %2 : tensor<8x16xf32>
}
"""


@pytest.fixture(scope="module")
def cost() -> Cost:
    return Module.parse(TEXT).propagate().cost("tpu-v5p")


def of_kind(cost: Cost, kind: str) -> CollectiveCost:
    return next(row for row in cost.collectives if row.kind == kind)


def test_partial_sums(cost: Cost) -> None:
    why = of_kind(cost, "all_reduce").why
    assert [source.name for source in why.annotations] == ["%arg2"]
    assert [(side.value, side.origin and side.origin.dim) for side in why.sides] == [
        ("%1", 1),
        ("%arg2", 0),
    ]
    assert why.edit is not None
    assert (why.edit.target, why.edit.sharding) == ("params['down']", "<@mesh, [{}, {}]>")
    # The partial sums need no buffer of 16 KiB, more than the whole weight takes.
    assert why.edit.seconds < 0
    assert why.edit.peak_bytes == -8192


def test_an_argument_that_is_a_partial_sum() -> None:
    text = """sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @main(%a: tensor<64x64xf32>
    {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {}], unreduced={"x"}>})
    -> (tensor<64x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {}]>}) {
  %0 = stablehlo.tanh %a : tensor<64x64xf32>
  return %0 : tensor<64x64xf32>
}"""
    [row] = Module.parse(text).propagate().cost("tpu-v5p").collectives
    assert (row.kind, row.axes, row.cause) == ("all_reduce", ("x",), "stablehlo.tanh")
    [source] = row.why.annotations
    assert (source.name, source.kind) == ("%a", "argument")
    # It could only be kept from being summed by being another tensor.
    assert row.why.edit is None


def test_a_result_that_is_annotated_otherwise(cost: Cost) -> None:
    why = of_kind(cost, "all_gather").why
    assert [(source.name, source.kind) for source in why.annotations] == [
        ("%arg0", "argument"),
        ("result 0", "result"),
    ]
    assert why.edit is not None
    assert (why.edit.target, why.edit.sharding) == ("result", '<@mesh, [{"data"}, {}]>')
    assert str(why).endswith(
        'annotate result with [{"data"}, {}]:\n'
        "   this all_gather goes (step -4.24 us, peak -19.0 KiB)"
    )


def test_records(cost: Cost) -> None:
    record = json.loads(json.dumps(of_kind(cost, "all_gather").why.record()))
    assert {"kind", "axes", "cause", "location", "annotations", "sides", "edit"} <= set(record)
    source = {"name", "kind", "label", "location", "sharding"}
    assert all(set(each) == source for each in record["annotations"])
    assert {"target", "sharding"} <= set(record["edit"])
    assert "why" not in of_kind(cost, "all_gather").record()


def test_two_operands_that_disagree() -> None:
    text = """
    sdy.mesh @mesh = <["a"=2, "b"=2]>
    func.func @main(
        %arg0: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>},
        %arg1: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"a"}]>})
        -> tensor<8x8xf32> {
      %0 = stablehlo.add %arg0, %arg1 : tensor<8x8xf32>
      return %0 : tensor<8x8xf32>
    }
    """
    cost = Module.parse(text).propagate().cost("tpu-v5p", policy="shardy")
    assert {row.kind for row in cost.collectives} == {"all_to_all"}
    why = cost.collectives[0].why
    assert {source.name for source in why.annotations} == {"%arg0", "%arg1"}
    assert why.edit is not None
    assert why.edit.target in ("%arg0", "%arg1")


def test_collectives_of_a_per_device_program_and_of_a_policy() -> None:
    result = Module.parse(TEXT).propagate()
    for policy in ("least", "shardy", "xla"):
        for row in result.partition(policy).collectives:
            assert row.why.annotations
            assert row.why.edit is not None


def test_a_result_that_is_computed_otherwise_than_it_is_sharded() -> None:
    """The policy cuts the work in more parts, and gathers what is returned."""

    def largest(x: jax.Array, w: jax.Array) -> jax.Array:
        y = jnp.fft.fft(x).real
        at = jnp.argmax(y, -1)
        return jnp.take_along_axis(y, at[..., None], -1) * w

    arguments = [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in ((8, 16, 32), (1,))]
    specs = (P("data", None, "model"), P())
    mesh = {"data": 2, "model": 4}
    lowered = shardcore.jax.lower(largest, *arguments, mesh=mesh, in_shardings=specs)
    cost = Module.parse(lowered.as_text()).propagate().cost("tpu-v5p", policy="least")
    rows = cost.collectives
    assert "func.return" in [row.cause for row in rows]
    assert all([source.name for source in row.why.annotations] == ["%arg0"] for row in rows)


def test_a_copy_that_was_pickled_does_not_know_its_program(cost: Cost) -> None:
    for copied in (pickle.loads(pickle.dumps(cost)).collectives[0],):
        assert copied == cost.collectives[0]
        with pytest.raises(LocationError, match="pickled"):
            _ = copied.why


def test_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "model.mlir"
    path.write_text(TEXT)
    assert main(["why", str(path), "--collectives", "5"]) == 0
    text = capsys.readouterr().out
    assert text.startswith('all_reduce along "model" for dot_general model.py:13:8\n├─ %arg2')
    assert main(["why", str(path), "--collectives", "1", "--json"]) == 0
    [record] = json.loads(capsys.readouterr().out)["collectives"]
    assert record["kind"] == "all_reduce"
    for arguments in ([], ["%0", "--collectives", "1"]):
        with pytest.raises(SystemExit):
            main(["why", str(path), *arguments])
    capsys.readouterr()


def _texts() -> Iterator[tuple[str, str]]:
    for seed in range(NUM_MODULES):
        yield str(seed), programs.make(seed)
    for name in registry.names() if IS_DEEP else sorted(registry.names())[::24]:
        yield name, registry.text(name)


def _runs(cost: Cost, of: CollectiveCost, kind: str | None) -> int:
    """The runs of collectives along an axis of ``of`` that ops at its place require."""
    return sum(
        row.count
        for row in cost.collectives
        if (row.cause, row.cause_location) == (of.cause, of.cause_location)
        and kind in (None, row.kind)
        and any(axis.overlaps(own) for axis in row.axis_refs for own in of.axis_refs)
    )


def test_edits_remove_what_they_say() -> None:
    """Edits are made on the text anew, by the names that a user is given."""
    with_edit = asked = known = 0
    for name, text in _texts():
        try:
            cost = Module.parse(text).propagate().cost("tpu-v5p")
        except ShardcoreError:
            continue
        first = {
            (row.kind, row.axes, row.cause, row.cause_location): row for row in cost.collectives
        }
        for row in [*first.values()][:2]:
            why = row.why
            asked += 1
            known += bool(why.annotations)
            if why.edit is None:
                continue
            with_edit += 1
            session = Module.parse(text).session()
            session.set(why.edit.target, why.edit.sharding)
            after = session.cost("tpu-v5p")
            kind = row.kind if why.edit.is_replaced else None
            assert _runs(after, row, kind) <= _runs(cost, row, kind) - row.count, (name, why)
            change = after.step_seconds - cost.step_seconds
            assert change == pytest.approx(why.edit.seconds), (name, why)
            assert after.peak_bytes - cost.peak_bytes == why.edit.peak_bytes, (name, why)
    assert asked > NUM_MODULES // 2
    # Collectives that the program itself has have no annotation, and no edit removes them.
    assert with_edit > 0.8 * asked
    assert known > 0.9 * asked


def test_hosts_have_no_reduce_scatter_to_replace_a_sum_with() -> None:
    """For TPUs a sum may become a reduce-scatter, which hosts run as the same sum."""
    result = Module.from_file(ROOT / "examples/mlp.mlir").propagate()
    replaced = {}
    for compiler in ("xla-tpu", "xla-cpu"):
        cost = result.cost("tpu-v5e", compiler=compiler)
        edits = [row.why.edit for row in cost.collectives if row.kind == "all_reduce"]
        replaced[compiler] = any(edit is not None and edit.is_replaced for edit in edits)
    assert replaced == {"xla-tpu": True, "xla-cpu": False}


def test_an_edit_sends_less_or_shortens_the_step(cost: Cost) -> None:
    for row in cost.collectives:
        edit = row.why.edit
        assert edit is None or edit.seconds < 0 or edit.wire_bytes < 0


def test_what_keeps_an_axis_away_may_be_gone() -> None:
    """The winner is a value that the completed program has no longer."""
    cost = Module.parse(programs.make(9009)).propagate().cost("tpu-v5p", policy="least")
    assert any(row.why.annotations for row in cost.collectives)
    assert all(str(row.why).startswith(row.kind) for row in cost.collectives)


def test_a_rule_of_the_user_is_asked_again() -> None:
    """An edit is tried with the rules of the user."""
    text = TEXT.replace("stablehlo.tanh %0 :", '"my.op"(%0) :').replace(
        ": tensor<8x32xf32> loc", ": (tensor<8x32xf32>) -> tensor<8x32xf32> loc"
    )
    shardcore.rule("my.op")(lambda op: "i j -> i j")
    try:
        cost = Module.parse(text).propagate().cost("tpu-v5p")
        why = of_kind(cost, "all_reduce").why
        assert "%arg2" in [source.name for source in why.annotations]
    finally:
        shardcore.rules.unregister("my.op")


def test_a_notebook_shows_the_tree(cost: Cost) -> None:
    why = of_kind(cost, "all_reduce").why
    shown = why._repr_html_()
    assert shown.startswith("<pre")
    assert "all_reduce along &quot;model&quot; for dot_general model.py:13:8" in shown


def test_the_legalized_program_is_completed_once() -> None:
    text = """sdy.mesh @mesh = <["x"=4]>
    func.func @main(%a: tensor<64x64xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>},
        %b: tensor<64x64xf32>) -> tensor<64x64xf32> {
      %0 = chlo.square %a : tensor<64x64xf32> -> tensor<64x64xf32>
      %1 = stablehlo.dot_general %0, %b, contracting_dims = [1] x [0]
        : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
      return %1 : tensor<64x64xf32>
    }"""
    result = Module.parse(text).propagate()
    legalized = result._legalized()
    assert legalized is not result.module
    assert result.partition().collectives
    trial = result.cost("tpu-v5e").collectives[0].trial
    assert trial is not None
    assert trial.result.module is legalized
    # Where there is nothing to legalize it is the result itself.
    plain = Module.parse(
        text.replace("chlo.square", "stablehlo.tanh").replace(
            " -> tensor<64x64xf32>\n      %1", "\n      %1"
        )
    ).propagate()
    assert plain._legalizing() is plain
    assert result._legalizing()._legalizing() is result._legalizing()
