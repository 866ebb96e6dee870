"""Stages planned with the shardings of a stage: as good as all of them, and they run."""

from __future__ import annotations

import itertools
import json
import math
from pathlib import Path
from typing import Any

import pytest

jax = pytest.importorskip("jax")

import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
import shardcore  # noqa: E402
import shardcore.jax  # noqa: E402
from shardcore import Mesh, Module, Plan, PlanError  # noqa: E402
from shardcore.cli import main  # noqa: E402
from shardcore.pipeline import find  # noqa: E402

from tests.deep import sampled  # noqa: E402
from tests.pipeline import programs  # noqa: E402
from tests.plan.programs import bare  # noqa: E402
from tests.shardy.programs import registry as registry  # noqa: E402 - makes eight devices

CHIP, DEVICES, LIMIT = "h100", 16, "3GiB"
LAYERS, BATCH, WIDTH = 8, 32, 64
BIG = {"WIDTH": 2048, "INNER": 8192, "VOCAB": 4096, "BATCH": 32, "TIME": 512}


@pytest.fixture(scope="module")
def module() -> Module:
    with pytest.MonkeyPatch.context() as patch:
        for name, size in BIG.items():
            patch.setattr(programs, name, size)
        return bare(programs.step.__wrapped__(8, data=1))


@pytest.fixture(scope="module")
def found(module: Module) -> Plan:
    return shardcore.plan(module, CHIP, LIMIT, devices=DEVICES, stages="any", seconds=400)


def every(module: Module, stages: int, limit: str) -> float:
    """The step of the best pipeline of all shardings in which each axis is for data, parameters
    gathered where they are used, or products cut."""
    devices, best = DEVICES // stages, math.inf
    up, down = "*['layers']['up']", "*['layers']['down']"
    kinds = {
        "data": {"tokens": 0},
        "fsdp": {"tokens": 0, up: 1, down: 2},
        "tensor": {up: 2, down: 1},
    }
    splits = [{"x": devices}, *({"x": n, "y": devices // n} for n in (2, 4) if n < devices)]
    for sizes in splits:
        for chosen in itertools.product(kinds.values(), repeat=len(sizes)):
            specs: dict[str, list[list[str]]] = {}
            for axis, dims in zip(sizes, chosen, strict=True):
                for target, dim in dims.items():
                    specs.setdefault(target, [[], [], []])[dim].append(axis)
            session = module.session(mesh=Mesh(sizes))
            for target, axes in specs.items():
                rank = 2 if target == "tokens" else 3
                session.set(target, f"P({', '.join(repr(tuple(each)) for each in axes[:rank])})")
            try:
                pipeline = find(session.result, CHIP, stages=stages, memory=limit)
            except PlanError:
                continue
            best = min(best, pipeline.best.step_seconds)
    return best


def test_no_pipeline_that_people_write_is_faster(module: Module, found: Plan) -> None:
    given = [(each.stages, each.figures.step_seconds) for each in found.alternatives]
    steps = dict.fromkeys((found.stages,), found.step_seconds)
    for stages, seconds in given:
        if stages is not None and seconds is not None:
            steps[stages] = min(steps.get(stages, math.inf), seconds)
    for stages in (2, 4, 8):
        oracle = every(module, stages, LIMIT)
        assert found.step_seconds <= oracle * 1.005
        if stages in steps:
            # What cannot be the plan is not searched to the end: with four stages 1.05 % is missed.
            assert steps[stages] <= oracle * 1.02, stages


def test_the_plan_says_what_it_is(found: Plan) -> None:
    assert found.stages > 1
    assert found.pipeline is not None
    assert found.devices == DEVICES == found.whole_mesh.num_devices
    assert found.peak_bytes <= found.limit == 3 * 2**30
    assert found.value == found.step_seconds == found.pipeline.best.step_seconds
    assert found.bound <= found.step_seconds
    low, high = found.interval
    assert low < found.step_seconds < high
    record = found.record()
    assert record["stages"] == found.stages
    assert record["schedule"] == found.schedule in str(found)
    assert record["policies"] == {}
    assert found.why is not None
    assert found.why in str(found)
    steps = [each.figures.step_seconds for each in found.alternatives if each.stages is not None]
    assert steps == sorted(steps)
    assert found.placement.mesh == found.whole_mesh


def test_without_stages_it_is_the_plan_of_today(module: Module) -> None:
    options: dict[str, Any] = {"devices": 8, "seconds": 20}
    today = shardcore.plan(module, CHIP, **options)
    found = shardcore.plan(module, CHIP, stages=1, **options)
    assert (found.mesh, found.specs, found.value) == (today.mesh, today.specs, today.value)


def test_stages_and_slices() -> None:
    """Stages lie in slices, or on whole ones: 3 slices have no 2 stages."""
    module = bare(programs.step(8))
    plan = shardcore.plan(module, "tpu-v5e", devices=24, slices=3, stages=(2, 3, 6), seconds=20)
    assert plan.stages in (3, 6)
    assert plan.placement.axes["stage"].parts == 3


def test_what_has_no_stages_is_refused() -> None:
    with pytest.raises(PlanError, match=r"no-layers|neither a loop"):
        shardcore.plan(bare_product(), CHIP, devices=8, stages=2)
    with pytest.raises(ValueError, match="stages are"):
        shardcore.plan(bare_product(), CHIP, devices=8, stages=0)


def bare_product() -> Module:
    return Module.parse("""
func.func @main(%x: tensor<64x64xf32>, %w: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0]
      : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  return %0 : tensor<64x64xf32>
}""")


def test_the_command_plans_stages(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "step.mlir"
    path.write_text(str(bare(programs.step(8))))
    command = ["plan", str(path), "--hardware", CHIP, "--devices", "8", "--seconds", "10", "--json"]
    assert main([*command, "--stages", "2,4"]) == 0
    assert json.loads(capsys.readouterr().out)["stages"] in (2, 4)
    assert main([*command, "--pipeline"]) == 0
    assert json.loads(capsys.readouterr().out)["alternatives"][0]["stages"] is not None


def train(params: Any, moments: Any, x: Any, y: Any) -> Any:
    """A step whose layers all take one gain, which is learned, too."""

    def layer(x: Any, w: Any) -> Any:
        scale = jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6)
        return x + jnp.tanh(x * scale @ w["up"]) @ w["down"]

    def loss(params: Any) -> Any:
        gain = params["gain"] * 1.0
        start = x @ params["in"]
        out, _ = jax.lax.scan(
            lambda h, w: (jax.checkpoint(layer)(h, w) * gain, None), start, params["layers"]
        )
        return jnp.mean((out @ params["head"] - y) ** 2)

    value, gradient = jax.value_and_grad(loss)(params)
    moments = jax.tree.map(lambda m, g: 0.9 * m + g, moments, gradient)
    return jax.tree.map(lambda p, m: p - 0.1 * m, params, moments), moments, value


def arguments() -> tuple[Any, ...]:
    random = np.random.default_rng(0)

    def of(*sizes: int) -> Any:
        return jnp.asarray(random.normal(size=sizes) / 8, jnp.float32)

    layers = {"up": of(LAYERS, WIDTH, 2 * WIDTH), "down": of(LAYERS, 2 * WIDTH, WIDTH)}
    params = {"in": of(WIDTH, WIDTH), "head": of(WIDTH, 8), "gain": of(WIDTH) + 1, "layers": layers}
    return params, jax.tree.map(jnp.zeros_like, params), of(BATCH, WIDTH), of(BATCH, 8)


@pytest.mark.parametrize("stages", sampled([2, 4], 2))
def test_a_plan_with_stages_runs(stages: int) -> None:
    given = arguments()
    program = shardcore.jax.lower(train, *given, platform="cpu")
    plan = shardcore.plan(program, CHIP, devices=8, stages=stages, seconds=10)
    assert plan.stages == stages
    expected = jax.jit(train)(*given)
    found = plan.apply()(*given)
    for one, other in zip(jax.tree.leaves(expected), jax.tree.leaves(found), strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-5, atol=2e-6)
    [params, *_] = found
    assert params["layers"]["up"].sharding.spec[0] == "stage"
    names: dict[str, Any] = {}
    exec(plan.to_python(), names)
    assert dict(names["make_mesh"]().shape) == plan.whole_mesh.shape
    specs, *_ = names["in_shardings"](*given)
    assert specs["layers"]["up"][0] == "stage"


def test_stages_of_a_function_without_a_scan_do_not_run() -> None:
    def unrolled(params: Any, x: Any) -> Any:
        def loss(params: Any) -> Any:
            h = x
            for w in params:
                h = h + jnp.tanh(h @ w)
            return jnp.sum(h * h)

        return jax.tree.map(lambda p, g: p - g, params, jax.grad(loss)(params))

    given = [jnp.ones((WIDTH, WIDTH)) for _ in range(4)], jnp.ones((BATCH, WIDTH))
    program = shardcore.jax.lower(unrolled, *given, platform="cpu")
    plan = shardcore.plan(program, CHIP, devices=8, stages=2, seconds=10)
    with pytest.raises(shardcore.LoweringError, match="no scan over"):
        plan.apply()
