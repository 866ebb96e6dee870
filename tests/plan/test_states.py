"""Optimizer states sharded where parameters are not, and activations divided along their tokens."""

from __future__ import annotations

from typing import Any

import pytest

jax = pytest.importorskip("jax")

import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402
import shardcore  # noqa: E402
import shardcore.jax  # noqa: E402
from shardcore import Mesh, Plan  # noqa: E402
from shardcore.calculus.hardware import hardware  # noqa: E402
from shardcore.plan.limits import Limits  # noqa: E402
from shardcore.plan.objective import Wanted  # noqa: E402
from shardcore.plan.planner import Planner  # noqa: E402
from shardcore.plan.program import read  # noqa: E402
from shardcore.plan.reading import Reading  # noqa: E402
from shardcore.plan.states import states  # noqa: E402
from shardcore.plan.trials import Trial  # noqa: E402

from tests.shardy.programs import registry as registry  # noqa: E402 - makes eight devices

CHIP = "h100"
LAYERS, BATCH, TIME, WIDTH, INNER, VOCAB = 8, 8, 64, 128, 512, 128


def loss(params: Any, tokens: Any) -> Any:
    def layer(x: Any, w: Any) -> Any:
        scale = jax.lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-6)
        hidden = jax.nn.gelu(x * scale @ w["up"])
        return x + hidden @ w["down"], None

    x, _ = jax.lax.scan(layer, params["table"][tokens], params["layers"])
    hot = jax.nn.one_hot(tokens, VOCAB)
    return -jnp.mean(jnp.sum(hot * jax.nn.log_softmax(x @ params["head"]), -1))


def train(params: Any, first: Any, second: Any, tokens: Any) -> Any:
    """A step of Adam."""
    value, gradient = jax.value_and_grad(loss)(params, tokens)
    first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, gradient)
    second = jax.tree.map(lambda v, g: 0.99 * v + 0.01 * g * g, second, gradient)
    params = jax.tree.map(
        lambda p, m, v: p - 1e-2 * m / (jnp.sqrt(v) + 1e-2), params, first, second
    )
    return params, first, second, value


def arguments(time: int = TIME, width: int = WIDTH, inner: int = INNER) -> tuple[Any, ...]:
    random = np.random.default_rng(0)

    def of(*sizes: int) -> Any:
        return jnp.asarray(random.normal(size=sizes) / 8, jnp.float32)

    layers = {"up": of(LAYERS, width, inner), "down": of(LAYERS, inner, width)}
    params = {"table": of(VOCAB, width), "head": of(width, VOCAB), "layers": layers}
    tokens = jnp.asarray(random.integers(0, VOCAB, (BATCH, time)))
    moments = [jax.tree.map(jnp.zeros_like, params) for _ in range(2)]
    return params, *moments, tokens


@pytest.fixture(scope="module")
def program() -> Any:
    return shardcore.jax.lower(train, *arguments(), platform="cuda", donate_argnums=(0, 1, 2))


def check_it_runs(plan: Plan, given: tuple[Any, ...]) -> None:
    expected = jax.jit(train)(*given)
    found = plan.apply()(*given)
    for one, other in zip(jax.tree.leaves(expected), jax.tree.leaves(found), strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-4, atol=2e-5)


def test_moments_are_states_and_nothing_else_is(program: Any) -> None:
    session = program.session()
    module = session.result.result._as_xla(keep_ports=True)[0]
    labels = [port.label for port in program.module.arguments()]
    found = {labels[number] for number in states(module)}
    assert found == {label for label in labels if label.startswith(("first", "second"))}


@pytest.mark.parametrize(
    ("update", "is_state"),
    [
        (lambda m, g: 0.9 * m + g, True),
        (lambda m, g: 0.9 * m.T + g, False),
        (lambda m, g: m @ m + g, False),
        (lambda m, g: m / jnp.sum(m) + g, False),
    ],
)
def test_a_state_is_what_is_computed_element_by_element(update: Any, is_state: bool) -> None:
    def step(p: Any, m: Any, x: Any) -> Any:
        m = update(m, jax.grad(lambda p: jnp.sum(jnp.tanh(x @ p)))(p))
        return p - m, m

    one = jax.ShapeDtypeStruct((8, 8), jnp.float32)
    module = shardcore.jax.lower(step, one, one, one).session().result.result
    assert (1 in states(module._as_xla(keep_ports=True)[0])) == is_state
    assert 0 not in states(module._as_xla(keep_ports=True)[0])


def reading_of(program: Any, mesh: dict[str, int]) -> tuple[Reading, Planner]:
    given, chip = read(program, ()), hardware(CHIP)
    wanted = Wanted((Mesh(mesh),), chip, 1e12, "time", 300.0, None, {}, None, Limits())
    reading = Reading(given, wanted)
    return reading, Planner(reading, wanted)


def finalists(program: Any, mesh: dict[str, int]) -> tuple[Planner, list[tuple[Trial, Any]]]:
    """What evaluates shardings over ``mesh``, and the best of each kind that people write, each
    with the kinds that its axes are for."""
    reading, planner = reading_of(program, mesh)
    uses = reading.meanings.kinds_of_axes
    return planner, [
        (each, uses(each.mesh, each.shardings, reading.roles)) for each in planner.finalists()
    ]


def axes_of(session: Any, argument: str) -> set[str]:
    """The axes that an argument is sharded along once it is propagated."""
    [port] = (port for port in session.result.arguments() if port.label == argument)
    return (
        {axis.name for dim in port.sharding.dims for axis in dim.axes} if port.sharding else set()
    )


def test_annotations_are_read_back_by_role(program: Any) -> None:
    """Those of states that are not their parameters', and those of values, too."""
    reading, planner = reading_of(program, {"x": 2, "y": 4})
    found = planner.finalists()
    for each in found:
        assert reading.by_role(planner.session(each).annotations) == each.shardings
    kinds = {
        role.what
        for each in found
        for role, dims in zip(reading.roles, each.shardings, strict=True)
        if dims
    }
    assert {"argument", "states", "next", "begun"} <= kinds


def test_states_alone_are_sharded_along_the_batch(program: Any) -> None:
    planner, found = finalists(program, {"x": 8})
    trial = next(each for each, kinds in found if kinds == {"x": "zero"})
    fsdp = next(each for each, kinds in found if kinds == {"x": "fsdp"})
    assert planner.kind_of(trial) == "zero"
    session = planner.session(trial)
    assert axes_of(session, "tokens") == {"x"}
    for weight in ("['layers']['up']", "['layers']['down']"):
        assert axes_of(session, f"params{weight}") == set()
        assert axes_of(session, f"first{weight}") == axes_of(session, f"second{weight}") == {"x"}
    # Parameters are gathered once, not in each pass of each layer.
    assert trial.row.comm_bytes < fsdp.row.comm_bytes
    assert fsdp.row.argument_bytes < trial.row.argument_bytes
    plan = planner.plan_of(trial)
    assert plan.kind == "zero"
    check_it_runs(plan, arguments())
    names: dict[str, Any] = {}
    exec(plan.to_python(), names)
    params, first, second, _ = names["in_shardings"](*arguments())
    assert not any(params["layers"]["up"])
    assert "x" in tuple(first["layers"]["up"]) == tuple(second["layers"]["up"])


def test_activations_are_divided_along_their_tokens(program: Any) -> None:
    planner, found = finalists(program, {"x": 2, "y": 4})
    cut = [each for each, kinds in found if kinds["y"] == "tensor" and kinds["x"] != "tensor"]
    along = [each for each in cut if "P('x', 'y')" in planner.edit(each).values()]
    plans = [planner.plan_of(each) for each in along]
    plan = next(each for each in plans if each.constraints)
    assert plan.constraints[0].spec.dims == ("x", "y")
    check_it_runs(plan, arguments())


def test_what_products_cut_is_constrained_within_layers(program: Any) -> None:
    """The hidden units of each layer and their gradient have their shards of the weights, and
    tokens are gathered for that; without these constraints weights are gathered."""
    reading, planner = reading_of(program, {"x": 2, "y": 4})
    [hidden] = [
        role for role in reading.roles if role.what == "cut" and role.shape == (BATCH, TIME, INNER)
    ]
    values = {value.qualified_name: value for value in program.module.values()}
    named = [values[name] for name in hidden.targets]
    assert {value.op for value in named} == {"stablehlo.dot_general"}
    assert len(named) == 2
    within = [
        each
        for each in planner.finalists()
        if any(
            dims and role is hidden
            for role, dims in zip(reading.roles, each.shardings, strict=True)
        )
    ]
    assert within
    for each in within:
        edit = planner.edit(each)
        assert edit[hidden.name] in (
            "P('x', None, 'y')",
            "P('y', None, 'x')",
            "P(None, None, ('x', 'y'))",
        )
    plan = planner.plan_of(next(each for each in within if planner.kind_of(each) == "mixed"))
    assert {each.is_gradient for each in plan.constraints} == {False, True}
    assert not plan.unreached
    check_it_runs(plan, arguments())


def test_stages_shard_states_alone() -> None:
    given = arguments(time=8, width=256, inner=1024)
    program = shardcore.jax.lower(train, *given, platform="cuda", donate_argnums=(0, 1, 2))
    limits = {"x": "zero", "y": "zero"}
    options: dict[str, Any] = {"devices": 8, "stages": 2, "limits": limits, "seconds": 60}
    free = shardcore.plan(program, CHIP, **options)
    plan = shardcore.plan(program, CHIP, int(free.peak_bytes * 0.6), **options)
    assert plan.stages == 2
    assert plan.kind == "zero"
    assert "zero" in str(plan)
    check_it_runs(plan, given)
