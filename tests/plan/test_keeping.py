"""What layers keep, chosen with shardings and stages: plans that fit, run and say it."""

from __future__ import annotations

from typing import Any

import pytest
import shardcore
from shardcore import Mesh, Module, Plan, PlanError

jax = pytest.importorskip("jax")
jnp = pytest.importorskip("jax.numpy")
np = pytest.importorskip("numpy")

from tests.shardy.programs import registry as registry  # noqa: E402 - makes eight devices

LAYERS, BATCH, WIDTH, INNER = 8, 2048, 64, 256
CHIP = "h100"
MESH = {"data": 4}


def train(params: Any, moments: Any, x: Any, y: Any) -> Any:
    def layer(x: Any, w: Any) -> Any:
        hidden = jax.nn.gelu(jnp.tanh(x) @ w["up"])
        return x + hidden @ w["down"], None

    def loss(params: Any) -> Any:
        out, _ = jax.lax.scan(layer, x @ params["in"], params["layers"])
        return jnp.mean((out @ params["head"] - y) ** 2)

    value, gradient = jax.value_and_grad(loss)(params)
    moments = jax.tree.map(lambda m, g: 0.9 * m + g, moments, gradient)
    return jax.tree.map(lambda p, m: p - 0.1 * m, params, moments), moments, value


def unrolled(params: Any, x: Any) -> Any:
    def layer(x: Any, w: Any) -> Any:
        return x + jax.nn.gelu(jnp.tanh(x) @ w) @ w.T

    def loss(params: Any) -> Any:
        h = x
        for w in params:
            h = layer(h, w)
        return jnp.sum(h * h)

    return jax.tree.map(lambda p, g: p - 1e-3 * g, params, jax.grad(loss)(params))


def of(*sizes: int) -> Any:
    random = np.random.default_rng(sum(sizes))
    return jnp.asarray(random.normal(size=sizes) / 16, jnp.float32)


@pytest.fixture(scope="module")
def given() -> tuple[Any, ...]:
    layers = {"up": of(LAYERS, WIDTH, INNER), "down": of(LAYERS, INNER, WIDTH)}
    params = {"in": of(WIDTH, WIDTH), "head": of(WIDTH, 8), "layers": layers}
    return params, jax.tree.map(jnp.zeros_like, params), of(BATCH, WIDTH), of(BATCH, 8)


@pytest.fixture(scope="module")
def program(given: tuple[Any, ...]) -> Any:
    return shardcore.jax.lower(train, *given, platform="cuda", donate_argnums=(0, 1))


@pytest.fixture(scope="module")
def free(program: Any) -> Plan:
    return shardcore.plan(program, CHIP, mesh=MESH, seconds=300)


@pytest.fixture(scope="module")
def tight(program: Any, free: Plan) -> Plan:
    limit = int(free.peak_bytes * 0.5)
    return shardcore.plan(program, CHIP, mesh=MESH, seconds=300, limits={"memory": limit})


def check_it_runs(plan: Plan, function: Any, given: tuple[Any, ...]) -> None:
    expected = jax.jit(function)(*given)
    # Its arguments may be donated.
    found = plan.apply()(*jax.tree.map(jnp.copy, given))
    for one, other in zip(jax.tree.leaves(expected), jax.tree.leaves(found), strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-4, atol=1e-5)


def test_what_fits_is_planned_as_written(free: Plan) -> None:
    assert free.policies == {}
    assert free.record()["policies"] == {}
    assert "checkpoint" not in free.to_python()


def test_what_does_not_fit_keeps_less(free: Plan, tight: Plan, given: tuple[Any, ...]) -> None:
    assert tight.peak_bytes <= tight.limit < free.peak_bytes
    [(place, policy)] = tight.policies.items()
    assert f"the scan over {LAYERS} layers" in place
    assert policy in str(tight)
    names: dict[str, Any] = {}
    code = tight.to_python()
    exec(code, names)
    assert callable(names["policy"])
    assert "jax.checkpoint(layer, policy=policy" in code
    check_it_runs(tight, train, given)


def test_the_program_as_written_does_not_fit(free: Plan, tight: Plan, program: Any) -> None:
    """Without the function nothing can be computed anew."""
    with pytest.raises(PlanError, match="does-not-fit"):
        shardcore.plan(program.module, CHIP, int(tight.limit), mesh=MESH, seconds=300)
    session = tight.session
    assert session.cost(CHIP).peak_bytes == tight.peak_bytes
    assert isinstance(program.module, Module)


def test_what_layers_keep_is_as_good_as_the_policies_of_jax(tight: Plan) -> None:
    assert tight.kept is not None
    step = tight.kept.step
    from shardcore.remat.choices import KEEPING, Choice, uniform

    steps = []
    for policy in KEEPING:
        lowered = step.lowered(uniform(Choice(policy), [LAYERS]))
        session = lowered.session(mesh=Mesh(MESH))
        session.set({name: spec for name, spec in tight.specs.items() if name[0] != "%"})
        cost = session.cost(CHIP)
        if cost.peak_bytes <= tight.limit:
            steps.append(cost.step_seconds)
    assert steps
    assert tight.step_seconds <= min(steps) * 1.01


@pytest.mark.parametrize("stages", [2])
def test_stages_keep_less(stages: int, program: Any, given: tuple[Any, ...]) -> None:
    options: dict[str, Any] = {"devices": 8, "stages": stages, "seconds": 300}
    written = shardcore.plan(program.module, CHIP, **options)
    limit = int(written.peak_bytes * 0.35)
    plan = shardcore.plan(program, CHIP, limit, **options)
    assert plan.peak_bytes <= limit
    assert plan.policies
    assert plan.stages == stages
    assert plan.pipeline is not None
    if len(set(plan.pipeline.best.cut)) == 1:
        check_it_runs(plan, train, given)
    code = plan.to_python()
    assert "jax.checkpoint_policies" in code
    assert plan.record()["policies"] == plan.policies


def test_unrolled_layers_keep_less() -> None:
    given = [of(WIDTH, INNER) for _ in range(4)], of(BATCH, WIDTH)
    program = shardcore.jax.lower(unrolled, *given, platform="cuda")
    options: dict[str, Any] = {"mesh": MESH, "seconds": 300}
    # From Hopper on XLA computes unrolled layers anew long before their gradients.
    free = shardcore.plan(program, "a100", **options)
    tight = shardcore.plan(program, "a100", int(free.peak_bytes * 0.6), **options)
    assert tight.policies
    assert tight.peak_bytes <= tight.limit
    check_it_runs(tight, unrolled, given)
