"""Programs of JAX with memory kinds: what their costs have on the host, and what is copied."""

from __future__ import annotations

import inspect
from typing import Any

import jax
import jax.numpy as jnp
import pytest
import shardcore.jax
from jax import lax
from jax.ad_checkpoint import checkpoint_name
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P
from shardcore import Cost

from tests.jax.versions import since

MESH = AbstractMesh((8,), ("x",), axis_types=(AxisType.Auto,))
SHARD = 1024 * 1024 * 4 // 8


def sharding(kind: str | None, *spec: str | None) -> NamedSharding:
    return NamedSharding(MESH, P(*spec), memory_kind=kind)


HOST, DEVICE = sharding("pinned_host", "x"), sharding("device", "x")
X = jax.ShapeDtypeStruct((1024, 1024), jnp.float32)


def cost_of(fn: Any, *args: Any, **options: Any) -> Cost:
    return shardcore.jax.lower(fn, *args, mesh=MESH, **options).propagate().cost("h100")


def transfers(cost: Cost) -> list[tuple[str, int, int]]:
    return [(row.direction, row.bytes, row.count) for row in cost.host.transfers]


def update(state: Any, grad: Any) -> Any:
    state = jax.device_put(state, DEVICE) * 0.9 + grad
    return jax.device_put(state, HOST), grad + 1


@pytest.mark.parametrize("donated", [(), (0, 1)])
def test_state_of_an_optimizer(donated: tuple[int, ...]) -> None:
    shardings = (HOST, DEVICE)
    cost = cost_of(
        update, X, X, in_shardings=shardings, out_shardings=shardings, donate_argnums=donated
    )
    assert (cost.host.argument_bytes, cost.host.output_bytes) == (SHARD, SHARD)
    # Two results are returned in a table of two pointers.
    assert (cost.argument_bytes, cost.output_bytes) == (SHARD, SHARD + 16)
    given = SHARD if donated else 0
    assert (cost.alias_bytes, cost.host.alias_bytes) == (given, given)
    assert cost.host_memory_peak_bytes == 2 * SHARD - given
    assert transfers(cost) == [("to_device", SHARD, 1), ("to_host", SHARD, 1)]


def test_results_keep_their_memory_kinds() -> None:
    lowered = shardcore.jax.lower(
        update, X, X, mesh=MESH, in_shardings=(HOST, DEVICE), out_shardings=(HOST, DEVICE)
    )
    result = lowered.propagate()
    kinds = [each.memory_kind for each in result.out_shardings]
    assert kinds[0] == "pinned_host" != kinds[1]
    assert result.in_shardings[0].memory_kind == "pinned_host"


@since("0.8", "jax.memory is newer")
def test_spaces() -> None:
    def there_and_back(x: Any) -> Any:
        there = jax.device_put(x * 2, jax.memory.Space.Host)
        return jax.device_put(there, jax.memory.Space.Device) + 1

    cost = cost_of(there_and_back, X, in_shardings=DEVICE, out_shardings=DEVICE)
    assert transfers(cost) == [("to_host", SHARD, 1), ("to_device", SHARD, 1)]
    assert cost.host_memory_peak_bytes == SHARD
    assert (cost.host.argument_bytes, cost.host.output_bytes) == (0, 0)


def offloaded(kind: str) -> Cost:
    policy = jax.checkpoint_policies.save_and_offload_only_these_names(
        names_which_can_be_saved=[],
        names_which_can_be_offloaded=["act"],
        offload_src="device",
        offload_dst=kind,
    )

    def layer(x: Any, w: Any) -> Any:
        return jnp.sin(checkpoint_name(jnp.sin(x @ w), "act")), None

    def loss(ws: Any, x: Any) -> Any:
        return lax.scan(jax.checkpoint(layer, policy=policy), x, ws)[0].sum()

    ws = jax.ShapeDtypeStruct((4, 256, 256), jnp.float32)
    x = jax.ShapeDtypeStruct((1024, 256), jnp.float32)
    whole = sharding("device")
    return cost_of(jax.grad(loss), ws, x, in_shardings=(whole, DEVICE), out_shardings=whole)


def test_offloaded_activations() -> None:
    # XLA for TPUs says 524288 bytes of host_temp_size_in_bytes, those of four layers.
    cost, layer = offloaded("pinned_host"), 1024 * 256 * 4 // 8
    assert cost.host_memory_peak_bytes == 4 * layer
    assert transfers(cost) == [("to_host", layer, 4), ("to_device", layer, 4)]
    assert cost.host.argument_bytes == cost.host.output_bytes == 0
    kept = offloaded("device")
    assert not kept.host
    assert kept.peak_bytes - cost.peak_bytes >= 3 * layer


def test_weights_that_a_scan_takes_from_the_host() -> None:
    def run(ws: Any, x: Any) -> Any:
        def layer(x: Any, w: Any) -> Any:
            return jnp.sin(x @ jax.device_put(w, sharding("device"))), None

        return lax.scan(layer, x, ws)[0]

    ws = jax.ShapeDtypeStruct((4, 256, 256), jnp.float32)
    x = jax.ShapeDtypeStruct((1024, 256), jnp.float32)
    cost = cost_of(run, ws, x, in_shardings=(sharding("pinned_host"), DEVICE), out_shardings=DEVICE)
    weights, rows = 4 * 256 * 256 * 4, 1024 * 256 * 4 // 8
    assert (cost.argument_bytes, cost.output_bytes) == (rows, rows)
    assert (cost.host.argument_bytes, cost.host_memory_peak_bytes) == (weights, weights)
    assert transfers(cost) == [("to_device", weights // 4, 4)]
    # One layer of weights, and the rows before and after it, with those of the argument; XLA for
    # GPUs computes so small a product in eight parts.
    assert cost.peak_bytes <= weights // 4 + 4 * rows + 8 * rows


def test_what_the_host_computes() -> None:
    from jax.experimental import compute_on

    def scaled(x: Any) -> Any:
        return x * 0.9 + 1

    def run(x: Any) -> Any:
        by = compute_on.compute_on
        if "out_memory_spaces" in inspect.signature(by).parameters:
            space = jax.memory.Space.Device
            return by(scaled, compute_type="device_host", out_memory_spaces=space)(x * 2) * 3
        return by("device_host")(jax.jit(scaled))(x * 2) * 3

    cost = cost_of(run, X, in_shardings=DEVICE, out_shardings=DEVICE)
    elements = 128 * 1024
    assert (cost.flops, cost.host.flops) == (2 * elements, 2 * elements)
    assert transfers(cost) == [("to_host", SHARD, 1), ("to_device", SHARD, 1)]
    assert {row.name for row in cost.uncounted} == {"stablehlo.multiply", "stablehlo.add"}


@since("0.8", "jax.memory is newer")
def test_arrays_on_the_host() -> None:
    mesh = jax.sharding.Mesh(jax.devices()[:1], ("x",))
    ones = jnp.ones((1024, 1024), jnp.float32)
    there = jax.device_put(ones, NamedSharding(mesh, P(), memory_kind="pinned_host"))
    here = jax.device_put(ones, NamedSharding(mesh, P()))

    def run(a: Any, b: Any) -> Any:
        return jax.device_put(a, jax.memory.Space.Device) + b

    lowered = shardcore.jax.lower(run, there, here, mesh=mesh, platform="tpu")
    cost = lowered.propagate().cost("h100")
    assert (cost.host.argument_bytes, cost.argument_bytes) == (8 * SHARD, 8 * SHARD)
    assert transfers(cost) == [("to_device", 8 * SHARD, 1)]
