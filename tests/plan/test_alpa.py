"""Plans against what the tests of alpa expect of its automatic sharding.

Alpa's tests state, for a step over one or two mesh axes, which parallelism has to come out and how
many collectives it takes. Here each expectation is written as annotations: its collectives are
those that alpa counts, and the plan found from no annotations costs at most as much.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

jax = pytest.importorskip("jax")

import jax.numpy as jnp  # noqa: E402
import shardcore  # noqa: E402
import shardcore.jax  # noqa: E402
from shardcore.session.targets import listed  # noqa: E402

from tests.deep import sampled  # noqa: E402
from tests.plan import transformers  # noqa: E402
from tests.plan.expected import CHIP, Expected, runs  # noqa: E402
from tests.shardy.programs.registry import f32  # noqa: E402

LAYERS = 4


def mlp(params: Any, x: jax.Array, y: jax.Array) -> Any:
    """A step of gradient descent of dense layers without anything between them."""

    def loss(params: Any) -> jax.Array:
        h = x
        for number in range(LAYERS):
            h = h @ params[f"Dense_{number}"]["kernel"]
        return jnp.mean((h - y) ** 2)

    return jax.tree.map(lambda p, g: p - 0.1 * g, params, jax.grad(loss)(params))


def mlp_of(batch: int, width: int) -> tuple[Any, ...]:
    layer = {"kernel": f32(width, width)}
    x = f32(batch, width)
    return {f"Dense_{number}": layer for number in range(LAYERS)}, x, x


BATCH = {"x": "P('data')", "y": "P('data')"}
PAIRS = {
    f"params['Dense_{number}']['kernel']": "P('model')" if number % 2 else "P(None, 'model')"
    for number in range(LAYERS)
}

STORED = {f"params['Dense_{number}']['kernel']": "P('data')" for number in range(LAYERS)}

CASES = {
    # One all-reduce of all gradients.
    "data": Expected(mlp, mlp_of(2**16, 1024), {"data": 4}, BATCH, {"all_reduce": 1}),
    # ZeRO-3, as data parallelism takes 3.5 GiB. Gathered weights are kept for the backward pass.
    "zero": Expected(
        mlp,
        mlp_of(2**14, 8192),
        {"data": 4},
        {**BATCH, **STORED},
        {"all_gather": LAYERS, "reduce_scatter": LAYERS},
        memory="3GiB",
    ),
    # Megatron's pairs: after each pair, and before each pair but the first in the backward pass.
    "model": Expected(mlp, mlp_of(256, 8192), {"model": 4}, PAIRS, {"all_reduce": LAYERS - 1}),
    # Both: gradients of 64 MiB are too large to run as one.
    "both": Expected(
        mlp,
        mlp_of(2**13, 8192),
        {"data": 4, "model": 4},
        {**BATCH, **PAIRS},
        {"all_reduce": LAYERS - 1 + LAYERS},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_plan_is_what_alpa_expects_or_costs_less(name: str) -> None:
    CASES[name].check()


BERT = transformers.step(partial(transformers.bert_layer, heads=8))
KERNELS = ("qkv", "out", "up", "down")
PAIRED = {
    f"state['params']/**/{name}/kernel": "P('model')" if number % 2 else "P(None, 'model')"
    for number, name in enumerate(KERNELS)
}
KEPT = {f"state/**/{name}/kernel": "P('data')" for name in KERNELS}
BERT_LAYERS = 2

BERT_CASES = {
    # One all-reduce of all gradients.
    "data": Expected(
        BERT,
        transformers.bert_of(BERT_LAYERS, 64, 512, 512),
        {"data": 4},
        BATCH,
        {"all_reduce": 1},
    ),
    # After attention and after the dense layers, forward and backward, but before the first layer.
    "model": Expected(
        BERT,
        transformers.bert_of(BERT_LAYERS, 8, 32, 4096),
        {"model": 4},
        PAIRED,
        {"all_reduce": 4 * BERT_LAYERS - 1},
    ),
    # Both. Alpa runs all gradients as one; here they are 96 MiB, and run as two.
    "both": Expected(
        BERT,
        transformers.bert_of(BERT_LAYERS, 64, 128, 2048),
        {"data": 2, "model": 2},
        {**BATCH, **PAIRED},
        {"all_reduce": 4 * BERT_LAYERS - 1 + 2},
    ),
    # ZeRO-3: each kernel is gathered once and its gradient scattered; what is small is summed.
    "zero": Expected(
        BERT,
        transformers.bert_of(BERT_LAYERS, 64, 128, 2048),
        {"data": 4},
        {**BATCH, **KEPT},
        {"all_gather": 4 * BERT_LAYERS, "reduce_scatter": 4 * BERT_LAYERS, "all_reduce": 1},
        memory="1.7GiB",
    ),
}


@pytest.mark.parametrize("name", sampled(BERT_CASES, 2))
def test_a_plan_of_bert_is_what_alpa_expects_or_costs_less(name: str) -> None:
    BERT_CASES[name].check()


GROUPS, TOKENS, WIDTH, EXPERTS = 128, 256, 1024, 16
PLACES = 2 * TOKENS // EXPERTS
MOE = transformers.step(partial(transformers.moe_layer, heads=16, tokens=TOKENS))
MOE_OF = transformers.moe_of(64, 512, WIDTH, EXPERTS)


def routed(batch: str, experts: str, groups: str | None = None) -> dict[str, Any]:
    """Annotations of the batch and the weights of experts, and constraints of what is sent to them,
    of its gradient, and of what comes back. ``groups`` is the axis of groups inside experts."""
    return {
        "annotations": {
            **dict.fromkeys(("x", "y"), f"P({batch})"),
            **{f"state/**/layer_0/{name}": f"P({experts})" for name in ("up", "down")},
        },
        "values": {
            (EXPERTS, GROUPS, PLACES, WIDTH): f"P({experts}, {groups})",
            (EXPERTS, WIDTH, GROUPS, PLACES): f"P({experts}, None, {groups})",
            (GROUPS, EXPERTS, PLACES, WIDTH): f"P({batch})",
        },
    }


MOE_CASES = {
    # Tokens are exchanged to and from the experts, forward and backward; one all-reduce of the
    # gradients of all weights but those of experts.
    "experts": Expected(
        MOE,
        MOE_OF,
        {"data": 4},
        collectives={"all_to_all": 4, "all_reduce": 1},
        **routed("'data'", "'data'"),
    ),
    # Experts along one of two axes of the batch: their gradients are summed over the other. Alpa
    # runs both as one; here they are 128 MiB each. All experts apart cost less.
    "both": Expected(
        MOE,
        MOE_OF,
        {"data": 2, "expert": 2},
        collectives={"all_to_all": 4, "all_reduce": 3},
        **routed("('data', 'expert')", "'expert'", "'data'"),
    ),
}


@pytest.mark.parametrize("name", sampled(MOE_CASES, 2))
def test_a_plan_of_experts_is_what_alpa_expects_or_costs_less(name: str) -> None:
    plan = MOE_CASES[name].check()
    assert plan.kind == "expert"
    assert runs(plan.cost)["all_to_all"] == 4


def test_what_goes_to_the_experts_of_each_layer_is_one_annotation() -> None:
    state, *batch = MOE_OF
    layers = {
        key: {f"layer_{number}": tree["layer_0"] for number in range(2)}
        for key, tree in state.items()
    }
    lowered = shardcore.jax.lower(MOE, layers, *batch, platform="cpu")
    plan = shardcore.plan(lowered, CHIP, mesh={"data": 4}, seconds=60)
    assert plan.kind == "expert"
    assert runs(plan.cost)["all_to_all"] == 8
    lists = [target for target in plan.specs if target.startswith("%")]
    assert lists
    assert all(len(listed(target)) == 2 for target in lists)
    assert len(plan.specs) <= 12
