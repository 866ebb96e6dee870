"""Plans are applied: the shardings, rules and code of each give its numbers and its results."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

jax = pytest.importorskip("jax")

import numpy as np  # noqa: E402
import shardcore  # noqa: E402
import shardcore.jax  # noqa: E402
from jax.sharding import PartitionSpec as P  # noqa: E402
from ml_dtypes import bfloat16  # noqa: E402
from shardcore import Module  # noqa: E402
from shardcore.cli import main  # noqa: E402

from tests.deep import sampled  # noqa: E402
from tests.plan import lookup  # noqa: E402
from tests.plan.families import FAMILIES  # noqa: E402
from tests.plan.programs import bare, mlp  # noqa: E402
from tests.plan.test_jax import arguments, train  # noqa: E402
from tests.shardy.programs import registry as registry  # noqa: E402 - makes eight devices
from tests.shardy.xla.models import catalog, mixture  # noqa: E402

CHIP = "tpu-v5e"
SECONDS = 120
SHAPE = {"data": 4, "model": 2}


def is_same(found: Any, plan: shardcore.Plan) -> None:
    assert found.step_seconds == pytest.approx(plan.cost.step_seconds, rel=1e-9)
    assert found.peak_bytes == plan.cost.peak_bytes


def matched(rules: dict[str, Any], path: str) -> Any:
    return next(spec for rule, spec in rules.items() if re.fullmatch(rule, path))


@pytest.mark.parametrize("name", sampled(catalog.names(), 9))
def test_the_shardings_of_a_plan_have_its_cost(name: str) -> None:
    module = bare(Module.parse(catalog.located(name)))
    plan = shardcore.plan(module, CHIP, seconds=SECONDS)
    session = bare(module).session(mesh=plan.mesh)
    given = {each.target: str(each.spec) for each in plan.constraints}
    for ports, specs in (
        (session.module.arguments(), plan.in_shardings),
        (session.module.results(), plan.out_shardings),
    ):
        for port, spec in zip(ports, specs, strict=True):
            if spec is not None:
                given[port.name] = str(spec)
    session.set(given)
    is_same(session.cost(CHIP), plan)


@pytest.mark.parametrize("name", sampled(FAMILIES, 2))
def test_a_function_lowered_with_the_shardings_of_a_plan_has_its_cost(name: str) -> None:
    function, given, donated, _ = FAMILIES[name]()
    step = jax.jit(function, donate_argnums=() if donated is None else donated)
    program = shardcore.jax.lower(step, *given, platform="cpu")
    plan = shardcore.plan(program, CHIP, mesh=SHAPE, seconds=SECONDS)
    assert jax.tree.structure(plan.in_shardings, is_leaf=is_spec) == jax.tree.structure(given)
    leaves = jax.tree.leaves_with_path(plan.in_shardings, is_leaf=is_spec)
    labels = {port.label: port for port in plan.result.arguments()}
    assert len(leaves) >= len(labels)
    applied = shardcore.jax.lower(plan.apply(jax.devices()[:8]), *given, platform="cpu")
    is_same(applied.propagate().cost(CHIP), plan)


def is_spec(node: Any) -> bool:
    return node is None or isinstance(node, P)


@pytest.mark.parametrize("memory", [None, "700KiB"])
def test_an_applied_plan_runs(memory: str | None) -> None:
    given = arguments()
    program = shardcore.jax.lower(train, *given, platform="cpu")
    plan = shardcore.plan(program, CHIP, memory, mesh=SHAPE, seconds=60)
    run = plan.apply()
    found, value = run(*given)
    wanted, wanted_value = train(*given)
    np.testing.assert_allclose(value, wanted_value, rtol=1e-5)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-5), found, wanted)
    params, *_ = plan.in_shardings
    shardings = jax.tree.map(lambda array: array.sharding.spec, found)
    specs, _ = plan.out_shardings
    assert jax.tree.all(jax.tree.map(same_spec, shardings, specs, is_leaf=is_spec))
    is_same(shardcore.jax.lower(run, *given, platform="cpu").propagate().cost(CHIP), plan)
    for number, layer in enumerate(params["layers"]):
        for key, spec in layer.items():
            assert matched(plan.rules, f"params/layers/{number}/{key}") == spec


def test_an_applied_plan_constrains_what_calls_compute_and_gradients(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(mixture, "lower", lambda step, on, given, *_, **__: (step, on, given))
    function, on, given = catalog._BUILDERS["experts-data"]()
    program = shardcore.jax.lower(function, *given, mesh=on, platform="tpu")
    plan = shardcore.plan(program, CHIP, seconds=SECONDS)
    assert {each.op for each in plan.constraints} >= {"func.call"}
    assert any(each.is_gradient for each in plan.constraints)
    run = plan.apply(jax.devices()[:8])
    is_same(shardcore.jax.lower(run, *given, platform="tpu").propagate().cost(CHIP), plan)


def same_spec(one: Any, other: Any) -> bool:
    trimmed = [tuple(spec) for spec in (one, other)]
    longest = max(map(len, trimmed))
    first, second = (spec + (None,) * (longest - len(spec)) for spec in trimmed)
    return first == second


def test_the_code_of_a_plan_runs() -> None:
    given = arguments()
    program = shardcore.jax.lower(train, *given, platform="cpu")
    plan = shardcore.plan(program, CHIP, "700KiB", mesh=SHAPE, seconds=60)
    scope: dict[str, Any] = {}
    exec(plan.to_python(), scope)
    options = {"in_shardings": scope["in_shardings"](*given)}
    if "out_shardings" in scope:
        options["out_shardings"] = scope["out_shardings"](jax.eval_shape(train, *given))
    step = jax.jit(train, **options)
    with jax.set_mesh(scope["make_mesh"]()):
        is_same(shardcore.jax.lower(step, *given, platform="cpu").propagate().cost(CHIP), plan)
        np.testing.assert_allclose(step(*given)[1], train(*given)[1], rtol=1e-5)


def test_a_constraint_is_given_by_the_line_and_the_name_of_the_user() -> None:
    plan = lookup.plan()
    [constraint] = plan.constraints
    place, line = lookup.embedding_line()
    assert str(constraint.spec) == "P('data', None, 'model')"
    assert constraint.place == f"{lookup.__file__}:{line}"
    assert constraint.line == f"x = jax.lax.with_sharding_constraint(x, {constraint.spec})"
    assert place in str(plan)
    assert constraint.target not in str(plan).split()
    run = plan.apply()
    given = lookup.arguments()
    np.testing.assert_allclose(run(*given)[1], lookup.step(*given)[1], rtol=1e-4)
    is_same(shardcore.jax.lower(run, *given, platform="cpu").propagate().cost(lookup.CHIP), plan)


def test_a_module_is_applied_in_the_simulator() -> None:
    module = mlp(16, 16, 32)
    plan = shardcore.plan(module, CHIP, mesh={"data": 4}, seconds=SECONDS)
    shapes = ((16, 16), (16, 32), (32, 16))
    x, up, down = (np.full(shape, 1 / 16, bfloat16) for shape in shapes)
    [found] = plan.apply()(x, up, down)
    wanted = np.full((16, 16), 32 * np.tanh(1 / 16) / 16)
    np.testing.assert_allclose(np.asarray(found, "float32"), wanted, rtol=2e-2)


def test_rules_are_few_and_exact() -> None:
    from shardcore.plan.name_rules import name_rules

    specs = {f"params/layers/{n}/{w}": w for n in range(12) for w in ("up", "down", "norm")}
    specs |= {f"mu/layers/{n}/{w}": w for n in range(12) for w in ("up", "down", "norm")}
    specs |= {"params/layers/3/up": "odd", "x": "batch", "up": "norm"}
    rules = name_rules(specs, "norm")
    for path, spec in specs.items():
        assert matched(rules, path) == spec
    assert len(rules) <= 7
    assert list(rules)[-1] == ".*"
    assert next(iter(rules)) == "params/layers/3/up"
    lengths = [len(rule) for rule in list(rules)[1:-1]]
    assert lengths == sorted(lengths)


STEP = """
import jax
import jax.numpy as jnp
from jax.sharding import PartitionSpec as P


def loss(params, tokens):
    x = params["table"][tokens]
    x, _ = jax.lax.scan(lambda x, w: (x + jnp.tanh(x @ w), None), x, params["layers"])
    return jnp.mean(jax.nn.logsumexp(x @ params["head"], -1))


def step(state, tokens):
    grads = jax.grad(loss)(state["params"], tokens)
    moments = jax.tree.map(lambda m, g: 0.9 * m + g, state["moments"], grads)
    params = jax.tree.map(lambda p, m: p - 0.1 * m, state["params"], moments)
    return {"params": params, "moments": moments}


def whole():
    shape = lambda *sizes: jax.ShapeDtypeStruct(sizes, jnp.float32)
    params = {"table": shape(4096, 512), "head": shape(512, 4096), "layers": shape(4, 512, 512)}
    tokens = jax.ShapeDtypeStruct((64, 256), jnp.int32)
    specs = {"table": P("y", "x"), "head": P("x"), "layers": P(None, "x")}
    given = {"params": specs, "moments": specs}, P("x")
    state = {"params": params, "moments": params}
    return step, (state, tokens), {"mesh": {"x": 8, "y": 4}, "in_shardings": given}


def build():
    return whole()


def bare():
    found, arguments, options = whole()
    return found, arguments, {"mesh": options["mesh"]}
"""


def test_a_patched_file_has_the_cost_of_the_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One diff for a file that has both constraints and the step, taken by ``patch``."""
    monkeypatch.setenv("PYTHONPATH", str(Path(shardcore.__file__).resolve().parents[1]))
    monkeypatch.chdir(tmp_path)
    Path("user_step.py").write_text(STEP)
    plan = ["plan", "user_step.py:build", "--hardware", "tpu-v5p", "--seconds", "60"]
    # What is sharded otherwise than its states needs no constraint.
    plan += ["--limits", "x=data,fsdp", "y=data,fsdp"]
    assert main([*plan, "--json"]) == 0
    wanted = json.loads(capsys.readouterr().out)
    assert wanted["constraints"]
    assert main([*plan, "--apply"]) == 0
    diff = capsys.readouterr().out
    assert diff.count("--- user_step.py") == 1
    subprocess.run(["patch", "-s", "-p0"], input=diff, text=True, check=True)
    cost = ["cost", "user_step.py:build_planned", "--hardware", "tpu-v5p", "--json"]
    assert main(cost) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["step_seconds"] == pytest.approx(wanted["step_seconds"], rel=1e-9)
    assert found["peak_bytes"] == wanted["peak_bytes"]


def test_a_file_without_annotations_is_planned_over_its_mesh(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "user_step.py"
    path.write_text(STEP)
    assert main(["plan", f"{path}:bare", "--hardware", "tpu-v5p", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["mesh"] == {"x": 8, "y": 4}


def test_the_change_of_a_file_applies_the_plan(tmp_path: Path) -> None:
    plan = lookup.plan()
    _, line = lookup.embedding_line()
    text = plan.patch(lookup.__file__)
    added = [each[1:] for each in text.splitlines() if re.match(r"\+(?!\+\+ )", each)]
    assert f"    {plan.constraints[0].line}" in added
    assert any(each.startswith("IN_SHARDINGS = (") for each in added)
    assert not [each for each in text.splitlines() if re.match(r"-(?!-- )", each)]
    # The file with the change is one that Python takes, with the constraint after its line.
    own = Path(lookup.__file__).read_text()
    copy = tmp_path / "lookup.py"
    copy.write_text(own)
    subprocess.run(["patch", "-s", str(copy)], input=text, text=True, check=True)
    changed = copy.read_text().splitlines()
    at = changed.index(f"    {plan.constraints[0].line}")
    assert changed[at - 1] == own.splitlines()[line - 1]
    compile(copy.read_text(), "lookup.py", "exec")
