"""The layers of training steps: how many, what each takes, what comes before and after."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest
import shardcore.jax
from shardcore import AxisRef, Mesh, Module, PlanError, Result
from shardcore.calculus import hardware
from shardcore.costs.figures import KernelKind
from shardcore.costs.links import links
from shardcore.pipeline import Layers, Part, find_layers
from shardcore.pipeline.cuts import seconds
from shardcore.pipeline.labels import ACTIVATION, Assigned, sums_batch
from shardcore.pipeline.micro_batches import Collective, Share, Times

from tests.pipeline import programs
from tests.pipeline.programs import BATCH, INNER, TIME, VOCAB, WIDTH

ROOT = Path(__file__).parents[2]
TOKENS = BATCH * TIME // 4
"""Those of a device."""
WEIGHTS = 2 * WIDTH * INNER * 2
"""Bytes of the weights of a layer."""
CASES = [
    {"scans": scans, "remat": remat, "clips": clips}
    for scans in (True, False)
    for remat in (True, False)
    for clips in (True, False)
]


@pytest.fixture(params=CASES, ids=lambda case: ", ".join(name for name in case if case[name]))
def case(request: pytest.FixtureRequest) -> tuple[dict[str, bool], Layers]:
    return request.param, find_layers(programs.step(8, **request.param))


def test_there_are_as_many_as_the_model_has(case: tuple[dict[str, bool], Layers]) -> None:
    options, found = case
    assert len(found.layers) == 8
    assert found.is_looped == options["scans"]


def test_times_add_up_to_the_step(case: tuple[dict[str, bool], Layers]) -> None:
    _, found = case
    assert found.seconds == pytest.approx(found.cost.step_seconds)
    assert found.rest.seconds < 0.05 * found.seconds


def test_state_is_that_of_the_arguments(case: tuple[dict[str, bool], Layers]) -> None:
    """All but the tokens, each where it is used: parameters, and a moment of each."""
    _, found = case
    parts = (found.before, *found.layers, found.after, found.rest)
    tokens = TOKENS * 4
    assert sum(part.parameter_bytes for part in parts) == found.cost.argument_bytes - tokens
    for part in found.layers[1:]:
        assert part.parameter_bytes == 2 * WEIGHTS
        assert part.gradient_bytes == WEIGHTS
    assert found.after.parameter_bytes == 2 * WIDTH * VOCAB * 2
    assert found.after.gradient_bytes == WIDTH * VOCAB * 2


@pytest.mark.parametrize("scans", [True, False])
def test_sharded_parameters_are_gathered_and_their_gradients_held_whole(scans: bool) -> None:
    """Each micro-batch gathers the weights of a layer; what it adds to their gradients is reduced
    over devices once a step."""
    found = find_layers(programs.step(8, scans=scans, shards=True))
    assert found.layers[3].parameter_bytes == 2 * WEIGHTS / 4
    assert found.layers[3].gradient_bytes == WEIGHTS
    assert found.gathered_bytes == WEIGHTS
    assert find_layers(programs.step(8, scans=scans)).gathered_bytes == 0


@pytest.mark.parametrize("scans", [True, False])
def test_parameters_that_are_gathered_once_are_kept(scans: bool) -> None:
    """Both passes gather the same weights. What is gathered once takes no time of a micro-batch."""
    found = find_layers(programs.step(8, scans=scans, shards=True))
    assert found.are_prepared
    assert found.layers[3].prepared_bytes == WEIGHTS
    each, once = (found.split(4, once=way).layers[3] for way in (False, True))
    assert each.fixed_forward + each.fixed_backward > 0
    assert once.fixed_forward == once.fixed_backward == 0
    assert once.update > each.update
    assert seconds(once, 4) < seconds(each, 4)
    assert not find_layers(programs.step(8, scans=scans)).are_prepared


@pytest.mark.parametrize("scans", [True, False])
def test_what_gradients_of_parameters_read_later(scans: bool) -> None:
    """The gradients of the outputs of both products; with recomputation also the operand of the
    second one, of which a half is kept otherwise: what tanh has computed."""
    for remat, kept in ((False, INNER + WIDTH), (True, INNER + WIDTH + INNER)):
        found = find_layers(programs.step(8, scans=scans, remat=remat))
        assert found.layers[3].delayed_bytes == TOKENS * kept * 2
    assert found.layers[3].activation_bytes == TOKENS * WIDTH * 2


def test_what_a_barrier_passes_is_what_it_was() -> None:
    """Unrolled layers that are computed anew take their weights from a barrier."""
    found = find_layers(programs.step(8, scans=False, remat=True))
    scanned = find_layers(programs.step(8, remat=True))
    assert found.layers[0].gradient_bytes <= WEIGHTS + VOCAB * WIDTH * 4
    for split, alike in zip(found.split(4).layers, scanned.split(4).layers, strict=True):
        own, other = (each.backward_input + each.backward_weight for each in (split, alike))
        assert own == pytest.approx(other, rel=0.35)


def test_the_next_parameters_may_be_sharded_otherwise() -> None:
    """Parameters are found by the types of the whole arrays, not by those of a device."""
    session = programs.step(8).session()
    for name in ("up", "down"):
        session.set(f"params['layers']['{name}']", "P()")
        for sharded in ("moments", "result[0]", "result[1]"):
            session.set(f"{sharded}['layers']['{name}']", "P(None, 'data')")
    result = session.result
    assert isinstance(result, Result)
    found, alike = find_layers(result), find_layers(programs.step(8))
    assert found.layers[3].parameter_bytes == WEIGHTS + WEIGHTS // 4
    assert found.layers[3].fixed_forward == pytest.approx(alike.layers[3].fixed_forward, rel=0.1)


def test_a_sum_over_features_is_none_over_the_batch() -> None:
    def total(x: jax.Array) -> tuple[jax.Array, jax.Array]:
        return x.sum(-1), x.sum((0, 1))

    lowered = jax.jit(total).lower(jax.ShapeDtypeStruct((4, 8, 16), jnp.float32))
    ops = Module.parse(lowered.as_text()).ops()
    sums = [op for op in ops if op.name == "stablehlo.reduce"]
    kinds = {op.operands[0].name: ACTIVATION for op in sums}
    assert [sums_batch(op, kinds) for op in sums] == [False, True]


def test_phases_have_the_products_that_they_should(case: tuple[dict[str, bool], Layers]) -> None:
    """As much work forward, for inputs and for parameters; rematerialization computes the first of
    the two products again.
    """
    options, found = case
    products = 2 * TOKENS * WIDTH * INNER * 2
    for part in found.layers[1:]:
        times = 3.5 if options["remat"] else 3
        assert part.flops == pytest.approx(times * products, rel=0.03)
        assert part.backward_weight > 0
        assert part.backward_input > 0
        assert part.forward > 0
        assert part.update > 0
    inner = found.layers[4]
    assert inner.backward_weight < inner.backward_input + inner.fixed_backward


def test_what_is_sent_and_kept(case: tuple[dict[str, bool], Layers]) -> None:
    options, found = case
    residual = TOKENS * WIDTH * 2
    assert found.boundary_bytes == residual
    assert found.batch == BATCH // 4
    # A scan stacks what ``tanh`` makes twice: for the product, and for its own gradient.
    copies = 0 if options["remat"] else 2 if options["scans"] else 1
    kept = residual + copies * TOKENS * INNER * 2
    assert found.layers[3].activation_bytes == pytest.approx(kept, rel=0.01)


@pytest.mark.parametrize("remat", [False, True])
def test_scans_and_blocks_take_the_same(remat: bool) -> None:
    one, other = (
        find_layers(programs.step(8, scans=scans, remat=remat)) for scans in (True, False)
    )
    assert one.layers[3].flops == pytest.approx(other.layers[3].flops, rel=0.01)
    assert one.after.flops == pytest.approx(other.after.flops, rel=0.01)
    assert one.boundary_bytes == other.boundary_bytes


def test_more_layers_take_more() -> None:
    few, many = (find_layers(programs.step(depth, scans=False)) for depth in (4, 8))
    assert many.layers[2].flops == few.layers[2].flops
    assert many.layers[2].forward == pytest.approx(few.layers[2].forward, rel=0.05)
    assert many.after.flops == few.after.flops


def test_an_example() -> None:
    # What layers keep is what is fused without a compiler of a chip.
    chip = replace(hardware("tpu-v5p"), compiler="none")
    found = find_layers(Module.from_file(ROOT / "examples/gpt_step.mlir"), chip)
    assert len(found.layers) == 12
    assert found.seconds == pytest.approx(found.cost.step_seconds)
    kept = [part.activation_bytes for part in found.layers]
    assert max(kept) == pytest.approx(min(kept))
    everything = found.cost.argument_bytes + sum(kept) + found.after.activation_bytes
    assert everything == pytest.approx(found.cost.peak_bytes, rel=0.1)
    assert repr(found).startswith("<shardcore.pipeline.Layers: 12 layers")
    assert len(found.record()["layers"]) == 12


def test_a_forward_pass_alone() -> None:
    found = find_layers(programs.forward(4))
    assert len(found.layers) == 4
    for part in found.layers:
        assert part.backward_input == part.backward_weight == 0
        assert part.forward > 0


def test_a_program_without_layers() -> None:
    with pytest.raises(PlanError) as raised:
        find_layers(Module.from_file(ROOT / "examples/mlp.mlir"))
    assert raised.value.code == "no-layers"
    assert raised.value.diagnostics[0].hint


def test_small_micro_batches_take_longer() -> None:
    """A kernel takes as long to start, weights are read, and gradients summed, for each."""
    found = find_layers(programs.step(8))
    steps = [found.split(count).layers[3] for count in (1, 2, 4)]
    assert steps[0] == found.layers[3]
    for one, two in pairwise(steps):
        assert two.forward > one.forward
        assert two.backward_input > one.backward_input
        assert two.backward_weight > one.backward_weight
        assert two.forward < 2 * one.forward
        assert two.update == pytest.approx(one.update)
    assert replace(found, in_micro_batches=None).split(4).layers == found.layers


def test_weights_are_read_for_each_micro_batch() -> None:
    """With few rows a product takes what its weights take, however few."""
    share = Share(1, read=64 << 20)
    kind = KernelKind(
        "bf16", "product", (1, 4096, 4096, 8192), 2 * 4096**2 * 8192, 0, 128 << 20, 0, 32 << 20
    )
    part = share.of(kind, 64)
    assert part.sizes == (1, 64, 4096, 8192)
    assert part.read_bytes == (64 << 20) + (1 << 20)
    assert part.written_bytes == (32 << 20) // 64
    assert part.flops == kind.flops // 64
    summed = Share(3, written=32 << 20).of(kind, 64)
    assert summed.sizes == (1, 4096, 4096, 128)
    assert summed.written_bytes == 32 << 20
    assert summed.read_bytes == (2 << 20) + (32 << 20)


def test_gathers_of_parameters_are_no_longer_hidden() -> None:
    """What a product of the whole batch hides is waited for where the product is short."""
    chip = hardware("h100")
    at, gathers = Assigned(0, "F", False), Assigned(0, "F", True)
    mesh = Mesh({"x": 8})
    times = Times(chip, links(chip, {}), mesh)
    product = KernelKind("bf16", "product", (1, 1 << 16, 8192, 8192), 2 << 42, 0, 1, 0, 1)
    times.add_kernel(at, None, product, 1)
    sent = Collective("all_gather", (AxisRef("x"),), 128 << 20, 1.0, 0.0)
    times.add_collective(gathers, sent)
    computed = times.seconds(1)[0]["forward"]
    few, many = (times.seconds(count)[0]["forward"] / computed for count in (2, 64))
    assert few == pytest.approx(1, rel=0.02)
    assert many > 1.5


def of_one_layer(phase: str, is_fixed: bool) -> tuple[Times, float]:
    """A product with a collective of 1 GiB that it hides, and the seconds of the collective."""
    chip, mesh = hardware("h100"), Mesh({"x": 8})
    times = Times(chip, links(chip, {}), mesh)
    product = KernelKind("bf16", "product", (1, 1 << 16, 8192, 8192), 2 << 42, 0, 1, 0, 1)
    times.add_kernel(Assigned(0, "B", False), None, product, 1)
    axes = (AxisRef("x"),)
    sent = Collective("all_gather", axes, 1 << 30, 1.0, 0.0)
    times.add_collective(Assigned(0, phase, is_fixed), sent)
    return times, links(chip, {}).cost("all_gather", mesh, axes, 1 << 30).achieved


def test_what_is_hidden_slows_each_micro_batch() -> None:
    times, gather = of_one_layer("B", is_fixed=True)
    one, two = (times.seconds(count)[0]["backward_input"] for count in (1, 2))
    assert two - one == pytest.approx(hardware("h100").achieved.contention * gather, rel=0.05)


def test_gradients_are_reduced_beside_the_last_micro_batch() -> None:
    times, reduce = of_one_layer("U", is_fixed=False)
    computed = times.seconds(1)[0]["backward_input"]
    assert times.seconds(1)[0]["update"] == 0
    assert reduce < computed
    for count in (8, 64):
        waits = times.seconds(count)[0]["update"]
        assert waits == pytest.approx(max(0, reduce - computed / count), rel=0.1, abs=1e-5)
    assert waits > reduce / 2


@pytest.mark.parametrize("chip", ["h100", "a100", "tpu-v5p"])
def test_a_micro_batch_takes_about_what_a_program_of_that_batch_takes(
    chip: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, size in {"WIDTH": 2048, "INNER": 8192, "VOCAB": 4096, "TIME": 512}.items():
        monkeypatch.setattr(programs, name, size)

    def layer(batch: int) -> Layers:
        monkeypatch.setattr(programs, "BATCH", batch)
        return find_layers(programs.step.__wrapped__(8), chip)

    def forward(part: Part, count: int) -> float:
        return part.forward / count + part.fixed_forward

    whole, part = layer(32), layer(8).layers[3]
    split = forward(whole.split(4).layers[3], 4)
    assert split == pytest.approx(forward(part, 1), rel=0.1)
    divided = forward(whole.layers[3], 4)
    assert abs(split - forward(part, 1)) < abs(divided - forward(part, 1))


def test_collectives_of_several_layers_do_not_share_memory() -> None:
    """Gradients of weights read activations over the largest element that all devices have. A
    compiler combines these small reductions of all layers, and the copies wait for each other."""

    @jax.custom_vjp
    def layer(x: jax.Array, w: jax.Array) -> jax.Array:
        return jnp.tanh(x @ w)

    def backward(kept: tuple[jax.Array, jax.Array], gradient: jax.Array) -> Any:
        x, w = kept
        turned = jax.lax.optimization_barrier(jnp.transpose(x / jnp.max(jnp.abs(x))))
        return gradient @ w.T, turned @ gradient

    layer.defvjp(lambda x, w: (layer(x, w), (x, w)), backward)

    def loss(weights: list[jax.Array], x: jax.Array) -> jax.Array:
        for w in weights:
            x = layer(x, w)
        return jnp.sum(x)

    def step(weights: list[jax.Array], x: jax.Array) -> list[jax.Array]:
        return [w - g for w, g in zip(weights, jax.grad(loss)(weights, x), strict=True)]

    weights = [jax.ShapeDtypeStruct((256, 256), jnp.bfloat16)] * 24
    x = jax.ShapeDtypeStruct((1 << 16, 256), jnp.bfloat16)
    session = shardcore.jax.lower(step, weights, x, mesh={"data": 4}, platform="cuda").session()
    session.set("x", "P('data')")
    result = session.result.result
    found = find_layers(result, replace(hardware("h100"), hides_latency=False))
    each = 2 * x.size // 4
    assert found.cost.peak_bytes > 48 * each
    kept = sum(part.activation_bytes for part in (found.before, *found.layers, found.after))
    assert found.working_bytes + kept < 32 * each
