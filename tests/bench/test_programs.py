"""Programs of measured steps: collectives, work, narrow types, experts, idle ticks."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import shardcore.jax
from shardcore.bench.by_hand import stage_layers, ticks
from shardcore.bench.cross_entropy import in_one_kernel, op_by_op
from shardcore.bench.experts import mixture
from shardcore.bench.kernels import ATTENTION, Blocks, in_blocks, seen, with_attention, work
from shardcore.bench.launches import launched_share
from shardcore.bench.models import MODELS, Experts, Layers, Model
from shardcore.bench.parameters import shapes
from shardcore.bench.products import grouped, products, scaled
from shardcore.bench.step import adam, lower
from shardcore.bench.training import Remat, Training
from shardcore.calculus.hardware import hardware
from shardcore.partition.counted import local_program

LLAMA = MODELS["llama3.1-8b"]
QWEN = dataclasses.replace(MODELS["qwen3-235b-a22b"].kinds[0], depth=4)


def by_hand(model: Model, batch: int, **sizes: int) -> Training:
    """A run without recomputation, of microbatches of one sequence."""
    shards = sizes["data"] * sizes.get("expert", 1)
    return Training(
        model,
        sizes,
        batch,
        4096,
        None,
        "cuda",
        by_hand=True,
        microbatches=batch // shards,
    )


def test_collectives_by_hand() -> None:
    run = by_hand(LLAMA, 64, stage=2, data=16, context=2, tensor=4)
    cost = lower(run).propagate().cost("h100")
    assert cost.uncounted == ()
    found = {(row.kind, row.axes) for row in cost.collectives}
    assert {
        ("all_gather", ("tensor",)),
        ("reduce_scatter", ("tensor",)),
        ("all_gather", ("context",)),
        ("collective_permute", ("stage",)),
        ("all_gather", ("data", "context")),
        ("reduce_scatter", ("data", "context")),
    } <= found
    [sent] = {row.bytes for row in cost.collectives if row.kind == "collective_permute"}
    assert sent == 4096 // 2 // 4 * 4096 * 2


def test_work_by_hand_is_that_of_the_model() -> None:
    run = by_hand(LLAMA, 64, data=16, tensor=4)
    cost = lower(run).propagate().cost("h100")
    expected = LLAMA.step_flops(64 * 4096 // 64, 4096, causal=True)
    # The table of embeddings is looked up, not multiplied, and attention has a product more.
    assert cost.usage.model_flops == pytest.approx(expected, rel=0.06)


def test_experts_are_exchanged() -> None:
    run = by_hand(MODELS["qwen3-235b-a22b"], 64, data=2, expert=8, tensor=2)
    cost = lower(run).propagate().cost("h100")
    exchanged = [row for row in cost.collectives if row.kind == "all_to_all"]
    assert {row.axes for row in exchanged} == {("expert", "tensor")}
    # Two forwards, and two for their gradients, of eight copies of the tokens of a device.
    assert sum(row.count for row in exchanged) == 4 * 94 * run.microbatches
    assert {row.bytes // 16 for row in exchanged} == {4096 // 2 * 8 * 4096 * 2}


def test_idle_ticks() -> None:
    run = by_hand(LLAMA, 64, stage=8, data=4)
    assert ticks(run) == 16 + 7
    assert ticks(dataclasses.replace(run, interleave=4)) == 16 + 2
    assert stage_layers(run) == ({0: 4}, True)
    # 126 layers, embeddings and logits are 8 times 16.
    large = dataclasses.replace(run, model=MODELS["llama3.1-405b"])
    assert stage_layers(large) == ({0: 16}, False)


def test_a_tick_sends_forward_and_backward() -> None:
    run = by_hand(LLAMA, 64, stage=4, data=4)
    assert run.alternates
    assert not dataclasses.replace(run, microbatches=4).alternates
    cost = lower(run).propagate().cost("h100")
    sent = [row for row in cost.collectives if row.kind == "collective_permute"]
    assert sum(row.count for row in sent) == 2 * ticks(run)
    # With several chunks per stage, what is sent arrives after the next tick: nothing waits for it.
    later = dataclasses.replace(run, interleave=2, scan=False)
    chip = hardware("h100")
    shares = dataclasses.replace(chip.achieved, overlaps_network=True)
    found = lower(later).propagate().cost(dataclasses.replace(chip, achieved=shares)).collectives
    sent = [row for row in found if row.kind == "collective_permute"]
    assert sum(row.count for row in sent) == 2 * 2 * ticks(later)
    assert sum(row.exposed_seconds for row in sent) == 0


def test_exchanges_overlap_with_the_other_microbatch() -> None:
    model = dataclasses.replace(MODELS["qwen3-235b-a22b"], kinds=(QWEN,))
    run = dataclasses.replace(by_hand(model, 64, data=1, expert=8), scan=False)
    exposed = [
        lower(dataclasses.replace(run, at_once=count)).propagate().cost("h100").exposed_seconds
        for count in (1, 2)
    ]
    assert exposed[1] < 0.8 * exposed[0]


def test_kernels_in_graphs_are_not_launched() -> None:
    model = dataclasses.replace(MODELS["qwen3-235b-a22b"], kinds=(QWEN,))
    run = dataclasses.replace(by_hand(model, 8, data=1, expert=8), scan=False)
    program = local_program(lower(run).propagate().result, "xla")
    chip = hardware("h100")
    scopes = ("attn", "moe_router", "moe_preprocess")
    alone = [1 - launched_share(program, chip, [scope]) for scope in scopes]
    assert launched_share(program, chip, ()) == 1
    assert min(alone) > 0
    # Experts, their exchanges and the optimizer are in none.
    assert launched_share(program, chip, scopes) == pytest.approx(1 - sum(alone))
    assert 0.2 < launched_share(program, chip, scopes) < 0.7


def test_a_tensor_is_read_once_more_for_its_scale() -> None:
    def reads(dtype: str) -> int:
        x = jax.ShapeDtypeStruct((1, 4096, 4096), jnp.bfloat16)
        mesh = Training(LLAMA, {"data": 1}, 1, 1).mesh
        lowered = shardcore.jax.lower(
            lambda x: scaled(x, dtype).astype(jnp.bfloat16), x, mesh=mesh, platform="cuda"
        )
        kernels = lowered.propagate().cost("b200").kernels
        return sum(kernel.read_bytes >= 2 * 4096 * 4096 for kernel in kernels)

    assert reads("nvfp4") == reads("mxfp8") + 1


def test_rows_of_tokens_are_in_memory_on_tpus() -> None:
    model = dataclasses.replace(MODELS["qwen3-235b-a22b"], kinds=(QWEN,))
    run = Training(model, {"data": 1, "fsdp": 8, "tensor": 1}, 8, 4096, None)
    ops = lower(run).propagate().cost("tpu-v5p").ops
    [gathers] = [op for op in ops if op.name == "stablehlo.gather"]
    rows = 2 * 4096 * 8 * model.width
    # Each layer sorts tokens, and rows of experts back, in both directions.
    assert gathers.bytes >= 4 * 2 * QWEN.depth * rows


def test_attention_in_a_narrow_type_takes_less() -> None:
    run = by_hand(LLAMA, 16, data=16)
    seconds = [
        sum(
            each.seconds * each.count
            for each in lower(given).propagate().cost("h100").kernels
            if each.name == "stablehlo.custom_call"
        )
        for given in (run, dataclasses.replace(run, narrow_attention=True))
    ]
    assert seconds[1] == pytest.approx(seconds[0] / 2, rel=0.02)


def test_narrow_products_take_less() -> None:
    def flops_per_second(dtype: str) -> float:
        run = dataclasses.replace(by_hand(LLAMA, 16, data=16), dtype=dtype)
        kernels = lower(run).propagate().cost("h100").kernels
        found = [row for row in kernels if row.name == "stablehlo.dot_general"]
        # Logits are made in bfloat16, and have the most FLOPs.
        sizes = sorted({row.flops for row in found})
        return max(row.flops / row.seconds for row in found if row.flops == sizes[-2])

    assert flops_per_second("fp8") > 1.5 * flops_per_second("bf16")


def test_gradients_have_a_scale_for_each_channel() -> None:
    x = jnp.ones((1, 4, 8), jnp.bfloat16)
    w = jnp.ones((8, 6), jnp.bfloat16)
    # Beyond the range of the type, in which only a scale keeps them finite.
    gradient = jnp.full((1, 4, 6), 1e6, jnp.bfloat16)
    for dtype, is_finite in (("fp8_full", True), ("fp8", False)):
        _, back = jax.vjp(
            lambda w, dtype=dtype: products(("btw,wf->btf",), x, (w,), (None,), dtype)[0], w
        )
        assert bool(jnp.isfinite(back(gradient)[0]).all()) == is_finite


@pytest.mark.parametrize("dtype", ["fp8", "mxfp8"])
def test_narrow_products_are_nearly_the_same(dtype: str) -> None:
    keys = jax.random.split(jax.random.key(0), 3)
    x = jax.random.normal(keys[0], (2, 8, 64), jnp.bfloat16)
    w = jax.random.normal(keys[1], (64, 32), jnp.bfloat16)
    g = jax.random.normal(keys[2], (2, 8, 32), jnp.bfloat16)

    def run(dtype: str) -> list[np.ndarray]:
        made, back = jax.vjp(
            lambda x, w: products(("btw,wf->btf",), x, (w,), (None,), dtype)[0], x, w
        )
        return [np.asarray(each, np.float32) for each in (made, *back(g))]

    for ours, wide in zip(run(dtype), run("bf16"), strict=True):
        if dtype == "fp8":
            assert np.linalg.norm(ours - wide) < 0.06 * np.linalg.norm(wide)
        assert ours.shape == wide.shape


@pytest.mark.parametrize(("spec", "count"), [("btw,wf->btf", 2), ("btf,fw->btw", 1)])
def test_activations_between_layers_are_placed_when_they_are_scaled(spec: str, count: int) -> None:
    """As operands, once in each pass, or as gradients of results; hidden units are not."""
    found: list[Any] = []

    def place(x: jax.Array) -> jax.Array:
        found.append((x.shape, x.dtype))
        return x

    x, w = (jnp.ones(sizes, jnp.bfloat16) for sizes in ((2, 8, 16), (16, 16)))
    _, back = jax.vjp(lambda x, w: products((spec,), x, (w,), (None,), "fp8", place=place)[0], x, w)
    back(x)
    assert found == [(x.shape, jnp.float8_e4m3fn)] * count


def test_mixture_of_experts() -> None:
    kind = Layers(1, 1, 1, 8, experts=Experts(4, 8, 2))
    model = Model("tiny", "mixtral", 4, 16, (kind,))
    run = Training(model, {"data": 1}, 1, 4)
    # Token i prefers expert i, then i + 1: every expert gets two.
    router = np.roll(np.eye(4), 1, 1) * 3 + np.eye(4) * 4
    keys = jax.random.split(jax.random.key(1), 3)
    p = {
        "router": jnp.asarray(router, jnp.float32),
        "expert_gate": jax.random.normal(keys[0], (4, 4, 8)),
        "expert_up": jax.random.normal(keys[1], (4, 4, 8)),
        "expert_down": jax.random.normal(keys[2], (4, 8, 4)),
    }
    y = jnp.eye(4)[None]

    def activated(a: jax.Array, b: jax.Array) -> jax.Array:
        return jax.nn.silu(a) * b

    def dense(y: jax.Array, p: dict[str, jax.Array]) -> jax.Array:
        weights, chosen = jax.lax.top_k(jax.nn.softmax(y[0] @ p["router"]), 2)
        hidden = activated(
            jnp.einsum("nw,ewf->nef", y[0], p["expert_gate"]),
            jnp.einsum("nw,ewf->nef", y[0], p["expert_up"]),
        )
        each = jnp.einsum("nef,efw->new", hidden, p["expert_down"])
        picked = jnp.take_along_axis(each, chosen[..., None], axis=1)
        return jnp.einsum("nkw,nk->nw", picked, weights)[None]

    def ours(y: jax.Array, p: dict[str, jax.Array]) -> jax.Array:
        return mixture(y, p, kind.experts, run, activated)

    made, back = jax.vjp(ours, y, p)
    wanted, wanted_back = jax.vjp(dense, y, p)
    np.testing.assert_allclose(made, wanted, rtol=1e-4, atol=1e-5)
    for mine, other in zip(
        jax.tree.leaves(back(made)), jax.tree.leaves(wanted_back(made)), strict=True
    ):
        np.testing.assert_allclose(mine, other, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("spec", ["ecw,ewf->ecf", "ecf,ewf->ecw", "ecw,ecf->ewf"])
def test_grouped_products_are_those_of_each_group(spec: str) -> None:
    sizes = {"e": 4, "c": 6, "w": 8, "f": 5}
    keys = jax.random.split(jax.random.key(0))
    operands = spec.split("->")[0].split(",")
    a, b = (
        jax.random.normal(key, [sizes[dim] for dim in dims])
        for key, dims in zip(keys, operands, strict=True)
    )
    np.testing.assert_allclose(grouped(spec, a, b), jnp.einsum(spec, a, b), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16])
def test_the_loss_op_by_op_is_that_in_one_kernel(dtype: Any) -> None:
    logits = jax.random.normal(jax.random.key(0), (2, 8, 32), dtype)
    tokens = jax.random.randint(jax.random.key(1), (2, 8), 0, 32)
    one, two = (
        jax.value_and_grad(lambda x, loss=loss: jnp.sum(loss(x, tokens)))(logits)
        for loss in (in_one_kernel, op_by_op)
    )
    np.testing.assert_allclose(one[0], two[0], rtol=1e-5)
    assert one[1].dtype == two[1].dtype == dtype
    near = {"rtol": 1e-2, "atol": 1e-2} if dtype == jnp.bfloat16 else {"rtol": 1e-4, "atol": 1e-6}
    np.testing.assert_allclose(np.float32(one[1]), np.float32(two[1]), **near)


def test_gradients_are_clipped_to_a_norm_of_one() -> None:
    params = {"a": jnp.zeros(3), "b": jnp.zeros((2, 2))}
    state = (params, params, params, jnp.int32(0))
    for size, norm in ((100.0, 1.0), (0.01, 0.01 * 7**0.5)):
        _, first, _, _ = adam(state, jax.tree.map(lambda p, size=size: p + size, params))
        found = sum(jnp.sum(jnp.square(10 * m)) for m in jax.tree.leaves(first))
        np.testing.assert_allclose(jnp.sqrt(found), norm, rtol=1e-5)


def test_attention_by_a_kernel() -> None:
    assert seen(8192, (None, 8192)) is None
    assert seen(4096, (1024,)) == 1024 - 128
    shape = (2, 4096, 8, 128)
    whole, local = (work(shape, shape, shape, keys, True) for keys in (None, 896.0))
    assert whole.flops == 2 * 2 * 8 * 128 * 2 * 4096 * 4096 // 2
    assert local.flops / whole.flops == pytest.approx(896 / 2048)


@pytest.mark.parametrize(
    ("time", "window", "block"),
    [
        (8192, None, (2048, 2048)),
        (2048, None, (1024, 512)),
        (4096, 1024, (1024, 512)),
        (96, 7, (8, 4)),
    ],
)
def test_blocks_are_those_of_which_the_mask_leaves_anything(
    time: int, window: int | None, block: tuple[int, int]
) -> None:
    rows, keys = np.arange(time)[:, None], np.arange(time)
    mask = (keys <= rows) & (keys > rows - (window or time))
    blocks = mask.reshape(time // block[0], block[0], time // block[1], block[1]).any(axis=(1, 3))
    assert in_blocks(time, (window,), block) == pytest.approx(blocks.mean() * time)


def test_attention_on_a_tpu_computes_whole_blocks_and_tiles() -> None:
    chip = hardware("tpu-v6e")
    run = Training(LLAMA, {"data": 1}, 1, 4096, None)

    def share(blocks: Blocks, **how: Any) -> float:
        known = with_attention(chip, dataclasses.replace(run, blocks=blocks, **how))
        return known.achieved.kernels / ATTENTION

    whole = ((4096, 4096), (4096, 4096))
    assert share(Blocks((1, 1), (1, 1), None)) == pytest.approx(1, rel=1e-3)
    assert share(Blocks(*whole, None)) == 1 / 2
    assert share(Blocks(*whole, None, tile=256)) == 1 / 4
    # Scores, and the gradient of weights, are computed once more for the gradient of queries.
    assert share(Blocks(*whole, (4096, 4096))) == pytest.approx(7 / 9 / 2)
    assert share(Blocks((1024, 1024), (2048, 2048), None)) == pytest.approx(
        7 / (2 * 1.25 + 5 * 1.5)
    )
    # The forward pass runs twice.
    assert share(Blocks((1024, 1024), (2048, 2048), None), remat=Remat()) == pytest.approx(
        9 / (4 * 1.25 + 5 * 1.5)
    )


def test_what_is_kept_takes_memory_without_a_compiler() -> None:
    run = by_hand(LLAMA, 16, data=16)
    run = dataclasses.replace(run, remat=Remat(("query", "down")), scan=False)
    peaks = [
        lower(dataclasses.replace(run, op_by_op=kept)).propagate().cost("h100").peak_bytes
        for kept in (False, True)
    ]
    # No gradient needs the last product of a layer, of one sequence.
    rows = 2 * run.time * LLAMA.width
    assert peaks[1] - peaks[0] == pytest.approx(LLAMA.depth * rows, rel=0.1)


def test_what_is_kept_is_not_recomputed() -> None:
    sizes = {"data": 1, "fsdp": 8, "tensor": 1}
    run = Training(LLAMA, sizes, 8, 2048, Remat())
    flops = {
        kept: lower(dataclasses.replace(run, remat=Remat(kept))).propagate().cost("tpu-v5p").flops
        for kept in ((), ("query", "key", "value", "out"), ("gate", "up", "down"))
    }
    everything, attention, network = flops.values()
    tokens = 2048
    assert everything - attention == pytest.approx(2 * tokens * 32 * 41.9e6, rel=0.05)
    assert everything - network == pytest.approx(2 * tokens * 32 * 117.4e6, rel=0.05)


@pytest.mark.parametrize("sequence_parallel", [True, False])
def test_by_hand_and_by_constraints_compute_the_same(sequence_parallel: bool) -> None:
    model = Model("tiny", "llama", 16, 32, (Layers(2, 4, 2, 8, 32),))
    run = Training(
        model,
        {"data": 1, "fsdp": 1, "tensor": 1},
        4,
        8,
        Remat(),
        flash=False,
        iota=False,
    )
    same = dataclasses.replace(
        run,
        sizes={"data": 2, "tensor": 2},
        by_hand=True,
        microbatches=2,
        sequence_parallel=sequence_parallel,
    )
    rng = np.random.default_rng(0)
    params = {
        name: rng.normal(scale=0.3, size=each.shape).astype(np.float32)
        for name, each in shapes(model).items()
    }
    zeros = jax.tree.map(np.zeros_like, params)
    tokens = rng.integers(0, model.vocab, (4, 8)).astype(np.int32)

    def losses_and_gradients(run: Training, tokens: np.ndarray) -> tuple[float, list[np.ndarray]]:
        arguments = jax.tree.leaves((params, zeros, zeros, np.int32(0)))
        found = lower(run).propagate().partition().simulate(*arguments, tokens)
        # The first moments are the gradients but for a factor.
        return float(found[-1]), found[len(params) : 2 * len(params)]

    loss, gradients = losses_and_gradients(run, tokens)
    ours, own = losses_and_gradients(same, tokens.reshape(2, 2, 8))
    assert ours == pytest.approx(loss, rel=2e-3)
    for mine, other in zip(own, gradients, strict=True):
        assert np.linalg.norm(mine - other) < 0.05 * np.linalg.norm(other)
