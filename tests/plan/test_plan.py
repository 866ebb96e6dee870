"""Plans of small programs: what is found, what is refused, and that figures are those of `cost`."""

from __future__ import annotations

import json
import random
import re
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import shardcore
from shardcore import Module, PlanError
from shardcore.cli import main
from shardcore.plan.trials import OBJECTIVES

from tests.plan.programs import bare, mlp, mlp_step, with_small_argument
from tests.session.test_session import CALLBACK

CHIP = "tpu-v5e"


def test_an_mlp_is_sharded_by_its_batch_where_it_fits() -> None:
    plan = shardcore.plan(mlp(), CHIP, devices=16)
    assert (plan.kind, plan.specs, plan.stopped) == ("data", {"x": "P('x')"}, "done")
    assert plan.cost.comm_seconds == 0
    assert plan.gap == pytest.approx(0, abs=1e-9)


def test_of_plans_that_send_nothing_the_fastest_is_taken() -> None:
    text = """
    func.func @main(%x: tensor<4096x4096xf32>, %w: tensor<4096x512xf32>) -> tensor<4096x512xf32> {
      %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
        : (tensor<4096x4096xf32>, tensor<4096x512xf32>) -> tensor<4096x512xf32>
      return %0 : tensor<4096x512xf32>
    }
    """
    plan = shardcore.plan(Module.parse(text), CHIP, mesh={"a": 8}, minimize="bytes", seconds=60)
    assert plan.value == 0
    assert plan.kind != "replicated"
    replicated = next(each for each in plan.alternatives if each.kind == "replicated")
    assert replicated.reason == "the step is longer"


def test_the_step_with_what_overlaps_is_minimized() -> None:
    options: dict[str, Any] = {"mesh": {"x": 8}, "seconds": 60}
    whole = shardcore.plan(mlp_step(4096, 1024, 4096), CHIP, **options)
    found = shardcore.plan(mlp_step(4096, 1024, 4096), CHIP, minimize="step", **options)
    assert found.objective == "step"
    assert found.value == found.cost.step_seconds <= whole.cost.step_seconds
    assert found.bound <= found.value
    assert "bound        no plan is below" in str(found)


def test_its_result_is_that_of_its_annotations() -> None:
    """Also where XLA shards ops of CHLO, which Shardy has no rules for."""
    text = """
    sdy.mesh @mesh = <["x"=2, "y"=4]>
    func.func @main(%x: tensor<1024x1024xf32>, %w: tensor<1024x1024xf32>)
        -> tensor<1024x1024xf32> {
      %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
        : (tensor<1024x1024xf32>, tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
      %1 = chlo.square %0 : tensor<1024x1024xf32> -> tensor<1024x1024xf32>
      return %1 : tensor<1024x1024xf32>
    }
    """
    plan = shardcore.plan(Module.parse(text), CHIP, seconds=60)
    session = Module.parse(text).session()
    session.set(dict(plan.annotations))
    assert plan.annotations
    assert str(session.result.module) == str(plan.result.module)
    assert session.cost(CHIP).step_seconds == plan.cost.step_seconds


def test_less_memory_gives_another_kind() -> None:
    kinds = [shardcore.plan(mlp(), CHIP, size, devices=16).kind for size in ("1GiB", "300MiB")]
    assert kinds[0] == "mixed"
    assert kinds[1] != "data"


@pytest.mark.parametrize("memory", ["1GiB", "600MiB", "400MiB", "300MiB"])
def test_a_plan_fits(memory: str) -> None:
    plan = shardcore.plan(mlp(), CHIP, memory, devices=16)
    assert plan.cost.peak_bytes <= plan.limit


def test_small_arguments_are_sharded_where_the_limit_needs_it() -> None:
    module = with_small_argument()
    given = module.session().cost("h100")
    plan = shardcore.plan(bare(module), "h100", given.peak_bytes)
    assert plan.cost.peak_bytes <= given.peak_bytes
    assert plan.value <= given.serial_seconds
    assert plan.specs == {"x": "P('data')", "edges": "P('data')"}
    roomy = shardcore.plan(bare(module), "h100")
    assert roomy.specs == {"x": "P('data')"}


def test_the_annotations_that_a_program_came_with_are_a_start() -> None:
    plan = shardcore.plan(with_small_argument(), CHIP, seconds=1e-6)
    assert (plan.stopped, plan.evaluations) == ("seconds", 1)
    assert plan.specs == {"x": "P('data')", "edges": "P('data')"}


def test_figures_are_those_of_the_program_with_the_annotations() -> None:
    plan = shardcore.plan(mlp(), CHIP, "400MiB", mesh={"a": 4, "b": 4})
    session = mlp().session(mesh={"a": 4, "b": 4})
    session.set(dict(plan.annotations))
    cost = session.cost(CHIP)
    assert cost.record() == plan.cost.record()
    assert session.result.module.arguments()[0].sharding == plan.result.arguments()[0].sharding


def test_each_alternative_is_what_its_annotations_cost() -> None:
    plan = shardcore.plan(mlp(), CHIP, devices=16)
    assert {each.kind for each in plan.alternatives} >= {"fsdp", "tensor", "replicated"}
    for each in plan.alternatives:
        session = mlp().session(mesh=each.mesh)
        if each.annotations:
            session.set(dict(each.annotations))
        cost = session.cost(CHIP)
        assert each.figures.serial_seconds == cost.serial_seconds
        assert each.figures.peak_bytes == cost.peak_bytes
        assert each.reason


def test_no_random_plan_is_better_or_below_the_bound() -> None:
    plan = shardcore.plan(mlp(1024, 2048, 4096), CHIP, "12MiB", mesh={"a": 4, "b": 4})
    session = mlp(1024, 2048, 4096).session(mesh={"a": 4, "b": 4})
    rng = random.Random(0)
    specs = ["P()", "P('a')", "P('b')", "P(None,'a')", "P(None,'b')", "P('a','b')", "P('b','a')"]
    specs += ["P(('a','b'))", "P(None,('a','b'))", None]
    edits = [
        {name: rng.choice(specs) for name in ("x", "params['up']", "params['down']", "result 0")}
        for _ in range(200)
    ]
    for row in session.evaluate(edits, CHIP):
        assert row.serial_seconds is not None
        assert row.peak_bytes is not None
        assert row.serial_seconds >= plan.bound
        if row.peak_bytes <= plan.limit:
            assert row.serial_seconds >= plan.value * 0.999, row.edit


def test_a_limit_below_the_arguments_is_refused_at_once() -> None:
    with pytest.raises(PlanError) as caught:
        shardcore.plan(mlp(), CHIP, "60MiB", devices=16)
    assert caught.value.code == "does-not-fit"
    assert "72.0 MiB" in caught.value.message
    assert "params['up']" in str(caught.value.hint)


def test_a_limit_that_nothing_reaches_is_refused_with_the_least() -> None:
    with pytest.raises(PlanError) as caught:
        shardcore.plan(mlp(), CHIP, "100MiB", devices=16)
    assert caught.value.code == "does-not-fit"
    assert "takes less than" in caught.value.message


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ({}, "no-mesh"),
        ({"devices": 0}, "no-mesh"),
        ({"mesh": {"a": 4}, "devices": 8}, "no-mesh"),
        ({"mesh": {}}, "no-mesh"),
        ({"mesh": {"a": 4}, "keep": "nothing"}, "unknown-location"),
        ({"mesh": {"a": 4}, "topology": "3x3"}, "invalid-topology"),
        ({"devices": 4, "hardware": "abacus"}, "unknown-hardware"),
    ],
)
def test_mistakes_have_a_code_and_a_hint(given: dict[str, Any], code: str) -> None:
    with pytest.raises(shardcore.ShardcoreError) as caught:
        shardcore.plan(mlp(64, 64, 64), **given)
    assert caught.value.code == code
    assert caught.value.hint


def test_values_that_pass_a_barrier_are_sharded_alike() -> None:
    """As those that are kept for the backward pass when layers are computed again."""
    x, w = "tensor<512x256xf32>", "tensor<256x128xf32>"
    module = Module.parse(f"""
func.func @main(%x: {x} loc("x"), %w: {w} loc("w")) -> tensor<512x128xf32> {{
  %0:2 = stablehlo.optimization_barrier %x, %w : {x}, {w}
  %1 = stablehlo.dot_general %0#0, %0#1, contracting_dims = [1] x [0]
      : ({x}, {w}) -> tensor<512x128xf32>
  return %1 : tensor<512x128xf32>
}}""")
    plan = shardcore.plan(module, CHIP, mesh={"a": 4})
    assert (plan.kind, plan.specs) == ("data", {"x": "P('a')"})


def test_a_loop_that_carries_one_tensor_is_planned() -> None:
    module = Module.parse("""
sdy.mesh @mesh = <["x"=4]>
func.func @main(%arg0: tensor<4096x512xf32> loc("x"), %arg1: tensor<512x512xf32> loc("w"))
    -> tensor<4096x512xf32> {
  %0 = stablehlo.while(%iterArg = %arg0) : tensor<4096x512xf32> cond {
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %1 = stablehlo.reduce(%iterArg init: %zero) applies stablehlo.add across dimensions = [0, 1]
      : (tensor<4096x512xf32>, tensor<f32>) -> tensor<f32>
    %2 = stablehlo.compare LT, %1, %zero : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %2 : tensor<i1>
  } do {
    %1 = stablehlo.dot_general %iterArg, %arg1, contracting_dims = [1] x [0]
      : (tensor<4096x512xf32>, tensor<512x512xf32>) -> tensor<4096x512xf32>
    stablehlo.return %1 : tensor<4096x512xf32>
  }
  return %0 : tensor<4096x512xf32>
}
""")
    plan = shardcore.plan(module, hardware="tpu-v5p", seconds=2)
    assert plan.result.arguments()[0].sharding.dims[0].axes


def test_the_entry_function_is_planned_wherever_it_stands() -> None:
    first = Module.parse(HELPER_FIRST)
    assert first.entry == "main"
    helper, main_function = HELPER_FIRST.split("// main")
    mesh, helper = helper.split("// helper")
    last = Module.parse(mesh + main_function + helper)
    plans = [shardcore.plan(module, hardware="tpu-v5p", seconds=1) for module in (first, last)]
    assert plans[0].annotations == plans[1].annotations
    assert plans[0].cost.step_seconds == plans[1].cost.step_seconds


HELPER_FIRST = """
sdy.mesh @mesh = <["x"=4]>
// helper
func.func @helper(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.sine %arg0 : tensor<8xf32>
  return %0 : tensor<8xf32>
}
// main
func.func public @main(
    %arg0: tensor<4096x512xf32> loc("x"), %arg1: tensor<512x512xf32> loc("w"),
    %arg2: tensor<8xf32> loc("b")) -> (tensor<4096x512xf32>, tensor<8xf32>) {
  %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0]
    : (tensor<4096x512xf32>, tensor<512x512xf32>) -> tensor<4096x512xf32>
  %1 = call @helper(%arg2) : (tensor<8xf32>) -> tensor<8xf32>
  return %0, %1 : tensor<4096x512xf32>, tensor<8xf32>
}
"""


@pytest.mark.parametrize("mesh", [None, {"data": 2, "model": 4}])
def test_a_program_with_a_callback_is_planned(mesh: dict[str, int] | None) -> None:
    text = CALLBACK
    if mesh is not None:
        text = text.replace('sdy.mesh @mesh = <["data"=2, "model"=4]>', "")
    plan = shardcore.plan(Module.parse(text), hardware="tpu-v5p", mesh=mesh, seconds=1)
    assert plan.result.module.meshes["mesh"] == shardcore.Mesh({"data": 2, "model": 4})


def test_manual_computations_are_planned_over_their_own_mesh() -> None:
    """Operands and results inside have the classes of those outside, and pair up with no others."""
    x, local = "tensor<4096x512xbf16>", "tensor<1024x512xbf16>"
    w, out = "tensor<512x256xbf16>", "tensor<4096x256xbf16>"
    module = Module.parse(f"""
sdy.mesh @mesh = <["a"=4, "b"=2]>
func.func @main(%x: {x} loc("x"), %w: {w} loc("w")) -> {out} {{
  %0:2 = sdy.manual_computation(%x)
      in_shardings=[<@mesh, [{{"a"}}, {{}}]>]
      out_shardings=[<@mesh, [{{"a"}}, {{}}]>, <@mesh, [{{"a"}}]>] manual_axes={{"a"}}
      (%l: {local}) {{
    %1 = stablehlo.tanh %l : {local}
    %2 = stablehlo.constant dense<0.0> : tensor<1024xf32>
    sdy.return %1, %2 : {local}, tensor<1024xf32>
  }} : ({x}) -> ({x}, tensor<4096xf32>)
  %3 = stablehlo.dot_general %0#0, %w, contracting_dims = [1] x [0] : ({x}, {w}) -> {out}
  return %3 : {out}
}}""")
    for given in ({}, {"devices": 8}, {"mesh": [{"a": 2, "b": 4}, {"a": 4, "b": 2}]}):
        plan = shardcore.plan(module, CHIP, **given)
        assert plan.mesh.shape == {"a": 4, "b": 2}
        assert plan.specs == {"w": "P(None, 'b')"}
        assert not plan.cost.collectives
    for given in ({"devices": 16}, {"mesh": {"c": 8}}):
        with pytest.raises(PlanError) as caught:
            shardcore.plan(module, CHIP, **given)
        assert caught.value.code == "no-mesh"
        assert '"a"=4' in caught.value.message


def test_a_program_without_dims_has_nothing_to_plan() -> None:
    module = Module.parse(
        "func.func @main(%a: tensor<f32>) -> tensor<f32> { return %a : tensor<f32> }"
    )
    with pytest.raises(PlanError) as caught:
        shardcore.plan(module, CHIP, devices=2)
    assert caught.value.code == "nothing-to-plan"


@pytest.mark.parametrize(
    "given", [{"minimize": "beauty"}, {"memory": "much"}, {"seconds": 0}, {"seconds": float("nan")}]
)
def test_wrong_values_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(given))):
        shardcore.plan(mlp(64, 64, 64), CHIP, devices=2, **given)


def test_kept_annotations_stay_and_others_are_removed() -> None:
    session = mlp(256, 256, 1024).session(mesh={"a": 4, "b": 2})
    session.set({"x": "P('b')", "params['up']": "P('a', 'b')", "%1": "P(None, 'a')"})
    plan = shardcore.plan(session.module, CHIP, keep=["x"])
    assert str(plan.session.annotations["x"]) == '<@mesh, [{"b"}, {}]>'
    assert "x" not in plan.specs
    assert "%1" not in plan.session.annotations
    free = shardcore.plan(mlp(256, 256, 1024), CHIP, mesh={"a": 4, "b": 2}, keep="params/*")
    assert not any(name.startswith("params") for name in free.specs)


def test_the_plan_that_a_program_came_with_is_compared() -> None:
    session = mlp(256, 256, 1024).session(mesh={"a": 4})
    session.set("x", "P(None, 'a')")
    plan = shardcore.plan(session.module, CHIP)
    given = plan.alternatives[0]
    assert given.kind == "given"
    assert given.figures.serial_seconds == session.cost(CHIP).serial_seconds
    assert "longer" in given.reason


def test_the_same_plan_each_time_and_by_an_executor() -> None:
    def record(**given: Any) -> Any:
        plan = shardcore.plan(mlp(), CHIP, "400MiB", devices=8, **given)
        return plan.specs, plan.mesh, plan.evaluations

    first = record()
    assert record() == first
    with ThreadPoolExecutor(2) as executor:
        assert record(executor=executor) == first


def test_the_best_so_far_is_returned_when_the_time_is_up_or_interrupted() -> None:
    plan = shardcore.plan(mlp(), CHIP, devices=16, seconds=1e-6)
    assert (plan.stopped, plan.evaluations) == ("seconds", 1)
    seen: list[str] = []

    def interrupt(what: str, fraction: float) -> None:
        seen.append(what)
        if len(seen) == 3:
            raise KeyboardInterrupt

    plan = shardcore.plan(mlp(), CHIP, devices=16, progress=interrupt)
    assert (plan.stopped, plan.cost.peak_bytes <= plan.limit) == ("interrupted", True)
    assert "no less than 2.79 ms" in seen[0]


@pytest.mark.parametrize("minimize", ["time", "step", "memory", "bytes"])
def test_what_is_minimized_is_the_least_of_all_tried(minimize: str) -> None:
    plan = shardcore.plan(mlp(), CHIP, devices=4, minimize=minimize)
    figure = OBJECTIVES[minimize]
    others = [
        getattr(each.figures, figure) for each in plan.alternatives if "fit" not in each.reason
    ]
    assert plan.value <= min(others) * 1.001
    assert plan.bound <= plan.value


def test_the_command_prints_a_table_and_json(
    tmp_path: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "mlp.mlir"
    path.write_text(str(mlp()))
    command = ["plan", str(path), "--hardware", CHIP, "--devices", "16", "--memory", "1GiB"]
    assert main(command) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("mixed over x=2,y=8, on tpu-v5e, policy xla")
    assert "does not fit" in printed
    assert main([*command, "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["schema"] == 1
    assert len(record["annotations"]) == 2
    assert all(row["spec"].startswith("P(") for row in record["annotations"])
    assert record["value"] >= record["bound"] > 0
    assert main([*command[:4], "--mesh", "a=4", "--memory", "1MiB"]) == 1
    assert "does-not-fit" in capsys.readouterr().err


def test_it_displays_in_a_notebook() -> None:
    plan = shardcore.plan(mlp(64, 64, 64), CHIP, devices=2)
    assert plan._repr_html_().startswith("<div")
    assert repr(plan).startswith("<shardcore.Plan")
    assert "<shardcore.Alternative" in repr(plan.alternatives[0])


def test_what_does_not_fit_names_the_largest_values() -> None:
    with pytest.raises(PlanError) as caught:
        shardcore.plan(mlp_step(512, 256, 8192), CHIP, "1MiB", mesh={"a": 4})
    listed = re.findall(r"([\d.]+) (KiB|MiB)", str(caught.value.hint))
    sizes = [float(number) * (1024 if unit == "MiB" else 1) for number, unit in listed]
    assert len(sizes) == 3
    assert sizes == sorted(sizes, reverse=True)


def test_a_plan_that_came_over_more_devices_is_told_apart() -> None:
    session = mlp(2048, 256, 1024).session(mesh={"a": 8})
    session.set("x", "P('a')")
    plan = shardcore.plan(session.module, CHIP, devices=2)
    given = plan.alternatives[0]
    assert (given.kind, given.reason) == ("given", "better, over 8 devices")
