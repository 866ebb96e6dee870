"""What a session answers, and what it refuses."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from types import SimpleNamespace

import pytest
from shardcore import (
    AxisRef,
    DimSharding,
    LocationError,
    Mesh,
    Module,
    ParseError,
    PassManager,
    Session,
    ShardcoreError,
    TensorSharding,
    VerificationError,
)
from shardcore.session.edits import MOST_UNDOS
from shardcore.shardy import default_shardy

TEXT = """
sdy.mesh @mesh = <["data"=2, "model"=4]>
func.func @main(
    %arg0: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>} loc("x"),
    %arg1: tensor<16x32xf32> loc("params['a']['w']"),
    %arg2: tensor<32x16xf32> loc("params['b']['w']"),
    %arg3: tensor<16xf32> loc("params['b']['b']"))
    -> (tensor<8x16xf32> {jax.result_info = "result['y']"}) {
  %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0]
    : (tensor<8x16xf32>, tensor<16x32xf32>) -> tensor<8x32xf32>
  %1 = stablehlo.tanh %0 : tensor<8x32xf32>
  %2 = sdy.sharding_constraint %1 <@mesh, [{?}, {"model"}]> : tensor<8x32xf32>
  %3 = stablehlo.dot_general %2, %arg2, contracting_dims = [1] x [0]
    : (tensor<8x32xf32>, tensor<32x16xf32>) -> tensor<8x16xf32>
  %4 = stablehlo.broadcast_in_dim %arg3, dims = [1] : (tensor<16xf32>) -> tensor<8x16xf32>
  %5 = stablehlo.add %3, %4 : tensor<8x16xf32>
  return %5 : tensor<8x16xf32>
}
"""
W = "params['a']['w']"


@pytest.fixture
def session() -> Session:
    return Module.parse(TEXT).session()


def test_annotations_that_the_program_came_with(session: Session) -> None:
    assert {name: str(sharding) for name, sharding in session.annotations.items()} == {
        "x": '<@mesh, [{"data"}, {}]>',
        "%2": '<@mesh, [{?}, {"model"}]>',
    }


@pytest.mark.parametrize(
    ("sharding", "expected"),
    [
        ('[{}, {"model"}]', '<@mesh, [{}, {"model"}]>'),
        ('[{"data", ?}p1, {?}], replicated={"model"}', None),
        ('<@mesh, [{"model":(1)2}, {}]>', '<@mesh, [{"model":(1)2}, {}]>'),
        ("P(None, 'model')", '<@mesh, [{}, {"model"}]>'),
        ("P(UNCONSTRAINED, ('data', 'model'))", '<@mesh, [{?}, {"data", "model"}]>'),
        ("PartitionSpec('data')", '<@mesh, [{"data"}, {}]>'),
        (("data", None), '<@mesh, [{"data"}, {}]>'),
        (TensorSharding("mesh", [["data"], []]), '<@mesh, [{"data"}, {}]>'),
        (
            TensorSharding(
                Mesh({"data": 2, "model": 4}),
                [DimSharding([AxisRef("model", 2, 2)], False, 2), None],
                mesh_name="mesh",
            ),
            '<@mesh, [{"model":(2)2, ?}p2, {}]>',
        ),
    ],
)
def test_all_ways_to_write_a_sharding(
    session: Session, sharding: object, expected: str | None
) -> None:
    session.set(W, sharding)
    found = session.module.arguments()[1].sharding
    assert str(found) == (expected or f"<@mesh, {sharding}>")


@pytest.mark.parametrize("mesh", [None, Mesh({"data": 2, "model": 8})])
def test_meshes_are_those_of_the_program(mesh: Mesh | None) -> None:
    session = Module.parse(TEXT).session(mesh=mesh)
    assert session._program.meshes == session.module.meshes
    assert list(session._program.meshes.values()) == [mesh or Mesh({"data": 2, "model": 4})]


def test_a_sharding_without_a_name_of_its_mesh_is_over_the_equal_one(session: Session) -> None:
    session.set("x", TensorSharding(Mesh({"data": 2, "model": 4}), [["model"], []]))
    assert str(session.module.arguments()[0].sharding) == '<@mesh, [{"model"}, {}]>'


def test_a_sharding_of_jax_is_over_the_mesh_with_its_axes() -> None:
    other = 'sdy.mesh @other = <["model"=2, "data"=4]>\nsdy.mesh @mesh'
    session = Module.parse(TEXT.replace("sdy.mesh @mesh", other, 1)).session()

    def given(**axes: int) -> SimpleNamespace:
        return SimpleNamespace(spec=("data", None), mesh=SimpleNamespace(shape=axes))

    for name, sharding in (("mesh", given(data=2, model=4)), ("other", given(model=2, data=4))):
        session.set("x", sharding)
        assert str(session.annotations["x"]) == f'<@{name}, [{{"data"}}, {{}}]>'
    with pytest.raises(VerificationError, match=r"x: .* is over a mesh that"):
        session.set("x", given(data=8))


@pytest.mark.parametrize("name", ["params['b']['w']", "params/b/w", "%arg2"])
def test_names_of_an_argument(session: Session, name: str) -> None:
    session.set(name, "P('model')")
    assert session.annotations["params['b']['w']"].dims[0].axes == (AxisRef("model"),)


@pytest.mark.parametrize("name", ["result['y']", "result/y", "result 0"])
def test_names_of_a_result(session: Session, name: str) -> None:
    session.set(name, "P('data')")
    assert str(session.result.results()[0].sharding) == '<@mesh, [{"data"}, {}]>'


def test_a_pattern_sets_all_that_match(session: Session) -> None:
    session.set("params/**/w", "P(None, 'model')")
    assert list(session.annotations) == ["x", "%2", W, "params['b']['w']"]


def test_a_list_of_names_sets_all_of_them(session: Session) -> None:
    session.set("%arg1, %arg2, result 0", "P(None, 'model')")
    assert session.targets("%arg2, %arg1, %arg2") == ["params['b']['w']", W]
    assert set(session.annotations) == {"x", "%2", W, "params['b']['w']", "result['y']"}
    with pytest.raises(LocationError, match="no value %arg9"):
        session.set("%arg1, %arg9", "P()")


def test_a_value_is_constrained_like_with_sharding_constraint(session: Session) -> None:
    session.set("%0", "P('data', 'model')")
    assert "sdy.sharding_constraint %0 " in str(session.module)
    assert len(session.module.ops()) == len(Module.parse(TEXT).ops()) + 1
    # Names are those of the program given.
    session.set("%2", "P(None, 'data')")
    assert '<@mesh, [{}, {"data"}]>' in str(session.module)
    session.unset("%0")
    session.unset("%2")
    assert "sharding_constraint" not in str(session.module)


def test_unset_reset_and_undo(session: Session) -> None:
    first = session.annotations
    session.unset("x")
    assert "x" not in session.annotations
    session.set({W: "P('data')", "x": "P('model')"})
    second = session.annotations
    session.reset()
    assert session.annotations == first
    session.undo()
    assert session.annotations == second
    session.undo()
    session.undo()
    assert session.annotations == first
    with pytest.raises(ValueError, match="nothing to undo"):
        session.undo()


def test_a_constraint_on_the_result_of_a_manual_computation_can_be_unset() -> None:
    text = """sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @main(%a: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{"x"}, {}]>]
      out_shardings=[<@mesh, [{"x"}, {}]>] manual_axes={"x"} (%b: tensor<4x8xf32>) {
    %2 = stablehlo.negate %b : tensor<4x8xf32>
    sdy.return %2 : tensor<4x8xf32>
  } : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = stablehlo.negate %0 : tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}"""
    session = Module.parse(text).session()
    before = str(session.module)
    session.set("%0", '[{"y"}, {}]')
    assert list(session.annotations) == ["%0"]
    session.unset("%0")
    assert session.annotations == {}
    assert str(session.module) == before
    session.undo()
    assert list(session.annotations) == ["%0"]
    session.reset()
    # What its op says is none of the annotations.
    with pytest.raises(ShardcoreError, match="part of its op"):
        session.unset("%0")


def refused(
    target: object, sharding: object, kind: type[Exception], message: str
) -> tuple[object, object, type[Exception], str]:
    return target, sharding, kind, message


@pytest.mark.parametrize(
    ("target", "sharding", "kind", "message"),
    [
        refused("params/**/v", "P()", LocationError, "did you mean"),
        refused("parms['a']['w']", "P()", LocationError, "did you mean \"params['a']['w']\""),
        refused("%77", "P()", LocationError, "no value %77"),
        refused("@other %0", "P()", LocationError, "no value @other %0"),
        refused(W, "P('date')", VerificationError, 'did you mean "data"'),
        refused(W, "P('data', None, None)", ShardcoreError, "3 entries for an array of 2 dims"),
        refused(W, '[{"data"}]', VerificationError, "doesn't match tensor rank: 1 != 2"),
        refused(W, '[{"data"}, {"data"}]', VerificationError, "duplicate axis ref"),
        refused(W, "[{", ParseError, W),
        refused(W, "P(", VerificationError, "is no PartitionSpec"),
        refused(W, 3, VerificationError, "a int is no sharding"),
        refused(W, "<@other, [{}, {}]>", ShardcoreError, "other"),
        refused(W, TensorSharding("other", [[], []]), VerificationError, "no mesh @other"),
        refused(
            W,
            TensorSharding(Mesh({"data": 3}), [["data"], []], mesh_name="mesh"),
            VerificationError,
            'the program\'s mesh @mesh is <["data"=2, "model"=4]>',
        ),
        refused(W, None, TypeError, "unset"),
        refused(7, "P()", TypeError, "a target is a text"),
    ],
)
def test_a_bad_edit_changes_nothing(
    session: Session, target: object, sharding: object, kind: type[Exception], message: str
) -> None:
    session.set("x", "P('model')")
    before, text = session.annotations, str(session.module)
    with pytest.raises(kind) as caught:
        session.set(target, sharding)  # type: ignore[arg-type]
    assert message in str(caught.value)
    assert (session.annotations, str(session.module)) == (before, text)
    with pytest.raises(kind):
        session.set({"x": "P()", target: sharding} if sharding else None)  # type: ignore[arg-type, dict-item]
    assert session.annotations == before


def test_another_mesh() -> None:
    module = Module.parse(TEXT)
    session = module.session(mesh={"model": 2, "data": 4})
    assert session.result.module.meshes["mesh"] == Mesh({"model": 2, "data": 4})
    assert session.annotations["x"].dims[0].axes == (AxisRef("data"),)
    with pytest.raises(VerificationError):
        module.session(mesh={"x": 8})


def test_the_mesh_of_a_program_in_generic_form_is_replaced() -> None:
    text = TEXT.replace(
        'sdy.mesh @mesh = <["data"=2, "model"=4]>',
        '"sdy.mesh"() <{mesh = #sdy.mesh<["data"=2, "model"=4]>, sym_name = "mesh"}> : () -> ()',
    )
    session = Module.parse(text).session(mesh={"model": 2, "data": 4})
    assert session.module.meshes["mesh"] == Mesh({"model": 2, "data": 4})
    assert session.annotations["x"].dims[0].axes == (AxisRef("data"),)


def test_what_is_done_to_the_module_of_a_session_does_not_touch_it(session: Session) -> None:
    before = str(session.module)
    PassManager.parse("builtin.module(sdy-propagation-pipeline)").run(session.module)
    assert str(session.module) == before


def test_a_program_without_a_mesh() -> None:
    text = TEXT.replace('{sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>}', "")
    text = text.replace('sdy.mesh @mesh = <["data"=2, "model"=4]>', "")
    text = "\n".join(line for line in text.split("\n") if "constraint" not in line)
    text = text.replace("%2,", "%1,")
    bare = Module.parse(text)
    with pytest.raises(VerificationError, match="no mesh"):
        bare.session().set("x", "P('data')")
    session = bare.session(mesh={"data": 2})
    session.set("x", "P('data')")
    assert str(session.result.results()[0].sharding) == '<@mesh, [{"data"}, {}]>'
    other = bare.session()
    other.set("x", TensorSharding(Mesh({"i": 2}), [["i"], []], mesh_name="own"))
    assert list(other.result.module.meshes) == ["own"]
    for sharding in ('<@own, [{"i"}, {}]>', "P('i')"):
        other.set(W, sharding)
        assert str(other.annotations[W]) == '<@own, [{"i"}, {}]>'
        [row] = other.evaluate([{W: sharding}], "tpu-v5e")
        assert row.error is None
    other.reset()
    other.set("x", TensorSharding(Mesh({"i": 4}), [["i"], []], mesh_name="own"))
    other.set(W, "P('i')")
    assert other.annotations[W].mesh == Mesh({"i": 4})
    other.reset()
    with pytest.raises(VerificationError, match="no mesh"):
        other.set(W, "P('i')")


CALLBACK = """
sdy.mesh @maximal_mesh_0 = <[], device_ids=[0]>
sdy.mesh @mesh = <["data"=2, "model"=4]>
func.func public @main(%arg0: tensor<64x64xf32> loc("w"), %arg1: tensor<32x64xf32> loc("x"))
    -> tensor<32x64xf32> {
  %0 = stablehlo.slice %arg1 [0:1, 0:1] : (tensor<32x64xf32>) -> tensor<1x1xf32>
  stablehlo.custom_call @xla_ffi_python_cpu_callback(%0) {has_side_effect = true,
    sdy.sharding = #sdy.sharding_per_value<[<@maximal_mesh_0, []>]>} : (tensor<1x1xf32>) -> ()
  %1 = stablehlo.dot_general %arg1, %arg0, contracting_dims = [1] x [0]
    : (tensor<32x64xf32>, tensor<64x64xf32>) -> tensor<32x64xf32>
  return %1 : tensor<32x64xf32>
}
"""


def test_the_mesh_of_a_callback_is_not_that_of_the_program() -> None:
    module = Module.parse(CALLBACK)
    bare = Module.parse(CALLBACK.replace('sdy.mesh @mesh = <["data"=2, "model"=4]>', ""))
    mesh = {"model": 2, "data": 2}
    for session in (module.session(), module.session(mesh=mesh), bare.session(mesh=mesh)):
        session.set("x", "P('data')")
        assert str(session.result.results()[0].sharding) == '<@mesh, [{"data"}, {}]>'
        assert session.module.meshes["maximal_mesh_0"].is_maximal
    with pytest.raises(VerificationError, match="no mesh that the sharding could be over"):
        bare.session().set("x", "P('data')")


def test_cost_is_that_of_a_new_run(session: Session) -> None:
    session.set("params/**/w", "P('data')")
    new = Module.parse(str(session.module)).propagate().cost("tpu-v5e")
    assert session.cost("tpu-v5e").record() == new.record()


UNREDUCED = """
sdy.mesh @mesh = <["w"=2, "z"=6, "model"=4]>
func.func @main(
    %arg0: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"z"}]>}, %arg1: tensor<2xf32>)
    -> tensor<4xf32> {
  %0 = sdy.sharding_constraint %arg0 <@mesh, [{?}], unreduced={"z":(1)3, "model"}> : tensor<4xf32>
  %1 = stablehlo.constant dense<2> : tensor<i32>
  %2 = stablehlo.dynamic_update_slice %0, %arg1, %1
    : (tensor<4xf32>, tensor<2xf32>, tensor<i32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}
"""
ON_ONE_DEVICE = """
sdy.mesh @mesh = <["w"=2]>
sdy.mesh @one = <[], device_ids=[1]>
func.func @main(%arg0: tensor<8x4xf32>, %arg1: tensor<2xf32>)
    -> (tensor<8x4xf32>, tensor<8x4xf32>) {
  %2:2 = stablehlo.custom_call @f(%arg0) : (tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<8x4xf32>)
  %0 = sdy.sharding_constraint %2#0 <@one, []> : tensor<8x4xf32>
  return %0, %2#1 : tensor<8x4xf32>, tensor<8x4xf32>
}
"""


@pytest.mark.parametrize(
    "text",
    [
        UNREDUCED,
        pytest.param(
            ON_ONE_DEVICE,
            marks=pytest.mark.skipif(
                default_shardy() != "0.10", reason="Shardy since jaxlib 0.12 exports it"
            ),
        ),
    ],
)
def test_a_program_that_export_refuses_has_no_cost_either(text: str) -> None:
    with pytest.raises(VerificationError) as new:
        Module.parse(text).propagate()
    for ask in (lambda it: it.cost("tpu-v5e"), lambda it: it.result.arguments()):
        session = Module.parse(text).session()
        with pytest.raises(VerificationError) as caught:
            ask(session)
        assert str(caught.value) == str(new.value)
    [row] = session.evaluate([{"%arg1": "P('w')"}], "tpu-v5e")
    assert row.error is not None
    session.unset("%0")
    assert session.cost("tpu-v5e").argument_bytes > 0


def test_what_a_session_gave_stays(session: Session) -> None:
    before = session.result
    text = str(before.module)
    session.set("x", "P('model')")
    assert str(before.module) == text != str(session.result.module)
    assert session.result is session.result


def test_an_edit_is_worth_what_it_edits_whatever_was_edited_before(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("all edits were looked at")

    session.set("x", "P('data')")
    with monkeypatch.context() as context:
        context.setattr(Session, "_with", refuse)
        for number in range(2000):
            session.set(f"params/{'ab'[number % 2]}/w", "P('data')" if number % 3 else "P()")
        session.unset("x")
        with pytest.raises(VerificationError):
            session.set("x", "P('data', 'data')")
        session.undo()
    assert sum(len(before) for before, _ in session._edits.steps) == MOST_UNDOS - 1
    new = Module.parse(str(session.module)).propagate()
    assert str(session.result.module) == str(new.module)


def test_an_edit_that_needs_the_mesh_of_another_is_checked_with_it(session: Session) -> None:
    own = TensorSharding(Mesh({"i": 2}), [["i"], []], mesh_name="own")
    session.set("x", own)
    session.set(W, TensorSharding("own", [["i"], []]))
    text = str(session.module)
    with pytest.raises(VerificationError, match="no mesh @own"):
        session.set("x", "P('data')")
    assert str(session.module) == text
    session.undo()
    session.set("x", "P('data')")
    session.undo()
    session.set(W, TensorSharding("own", [["i"], []]))
    assert str(session.module) == text


@pytest.mark.parametrize(
    "twin", [copy.copy, copy.deepcopy, lambda session: pickle.loads(pickle.dumps(session))]
)
def test_copies_are_independent(session: Session, twin: Callable[[Session], Session]) -> None:
    session.set({"%0": "P('data', 'model')", "x": "P()"})
    session.unset("x")
    before, text = session.annotations, str(session.module)
    other = twin(session)
    assert (other.annotations, str(other.module)) == (before, text)
    assert str(other.result.module) == str(session.result.module)
    other.set("x", "P('model')")
    assert session.annotations == before != other.annotations
    for _ in range(3):
        other.undo()
    session.undo()
    session.undo()
    assert session.annotations == other.annotations == Module.parse(TEXT).session().annotations
    with pytest.raises(ValueError, match="nothing to undo"):
        other.undo()


HELPERS = """
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%arg0: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %0 = call @"a b"(%arg0) : (tensor<8x16xf32>) -> tensor<8x16xf32>
  %1 = call @helper(%0) : (tensor<8x16xf32>) -> tensor<8x16xf32>
  %2:2 = stablehlo.optimization_barrier {sdy.sharding = #sdy.sharding_per_value<[
    <@mesh, [{"x"}, {}]>, <@mesh, [{}, {"y"}]>]>} %1, %0 : tensor<8x16xf32>, tensor<8x16xf32>
  %3 = stablehlo.add %2#0, %2#1 : tensor<8x16xf32>
  return %3 : tensor<8x16xf32>
}
func.func private @"a b"(%arg0: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %0 = stablehlo.tanh %arg0 : tensor<8x16xf32>
  return %0 : tensor<8x16xf32>
}
func.func private @helper(
    %arg0: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>})
    -> tensor<8x16xf32> {
  %0 = stablehlo.tanh %arg0 : tensor<8x16xf32>
  %1 = sdy.sharding_constraint %0 <@mesh, [{"y"}, {}]> : tensor<8x16xf32>
  return %1 : tensor<8x16xf32>
}
"""


def test_annotations_of_all_values_are_listed_and_can_be_removed() -> None:
    session = Module.parse(HELPERS).session()
    given = session.annotations
    assert list(given) == ["%2#0", "%2#1", "@helper %arg0", "@helper %1"]
    for name in given:
        session.unset(name)
    assert not session.annotations
    assert "sharding" not in str(session.module)
    session.reset()
    assert session.annotations == given


@pytest.mark.parametrize("name", ["@a b %0", '@"a b" %0', "@a b  %0 "])
def test_values_of_functions_with_any_name(name: str) -> None:
    session = Module.parse(HELPERS).session()
    session.set(name, "P('x')")
    assert list(session.annotations)[-1:] == session.targets(name) == ["@a b %0"]
    assert str(session.result.module) == str(session.module.propagate().module)
    session.set({"@main %3": "P('y')"})
    assert session.targets("@main %3") == ["%3"]
    with pytest.raises(LocationError, match="did you mean %2#0"):
        session.unset("%2")


def test_of_an_argument_and_a_result_of_the_same_path_both_are_annotated() -> None:
    session = Module.parse(TEXT.replace("result['y']", "x")).session()
    session.set("result 0", "P(None, 'data')")
    assert session.targets("x") == ["x"]
    assert session.targets("*") == ["x", "result 0"]
    assert {name: str(session.annotations[name]) for name in ("x", "result 0")} == {
        "x": '<@mesh, [{"data"}, {}]>',
        "result 0": '<@mesh, [{}, {"data"}]>',
    }
