"""What arguments are annotated alike, and which of their dims tensor parallelism cuts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import pytest
import shardcore
import shardcore.jax
from shardcore import Mesh, Module
from shardcore.calculus.hardware import hardware
from shardcore.plan.objective import Wanted
from shardcore.plan.planner import Planner
from shardcore.plan.program import read
from shardcore.plan.reading import Reading


def blocks() -> Module:
    """Two layers as Flax names them, with a bias of the hidden dim, and the momentum of each."""
    x, up, bias = "tensor<8192x256xf32>", "tensor<256x1024xf32>", "tensor<1024xf32>"
    hidden, down = "tensor<8192x1024xf32>", "tensor<1024x256xf32>"
    head, lines = [f'%x: {x} loc("x")'], []
    current = "%x"
    for layer in range(2):
        for tree in ("params", "m"):
            for name, kind, of in (("up", up, "up"), ("bias", bias, "b"), ("down", down, "down")):
                path = f"state['{tree}']['Block_{layer}']['{name}']"
                head.append(f'%{tree}{of}{layer}: {kind} loc("{path}")')
        lines.append(f"""
  %u{layer} = stablehlo.add %paramsup{layer}, %mup{layer} : {up}
  %b{layer} = stablehlo.add %paramsb{layer}, %mb{layer} : {bias}
  %d{layer} = stablehlo.add %paramsdown{layer}, %mdown{layer} : {down}
  %h{layer} = stablehlo.dot_general {current}, %u{layer}, contracting_dims = [1] x [0]
      : ({x}, {up}) -> {hidden}
  %w{layer} = stablehlo.broadcast_in_dim %b{layer}, dims = [1] : ({bias}) -> {hidden}
  %a{layer} = stablehlo.add %h{layer}, %w{layer} : {hidden}
  %y{layer} = stablehlo.dot_general %a{layer}, %d{layer}, contracting_dims = [1] x [0]
      : ({hidden}, {down}) -> {x}""")
        current = f"%y{layer}"
    last, out = "tensor<256x128xf32>", "tensor<8192x128xf32>"
    arguments = ", ".join([*head, f'%last: {last} loc("head")'])
    body = "".join(lines)
    return Module.parse(f"""
func.func @main({arguments}) -> {out} {{{body}
  %0 = stablehlo.dot_general {current}, %last, contracting_dims = [1] x [0]
      : ({x}, {last}) -> {out}
  return %0 : {out}
}}""")


def scanned() -> shardcore.jax.Lowered:
    """A scan over twelve layers with biases, and attention in a kernel that needs whole heads."""

    def kernel(q: jax.Array, k: jax.Array) -> jax.Array:
        return jax.ffi.ffi_call("heads", jax.ShapeDtypeStruct(q.shape, q.dtype))(q, k)

    def layer(x: jax.Array, w: dict[str, jax.Array]) -> tuple[jax.Array, None]:
        q, k = (jnp.einsum("btw,whd->bthd", x, w[name]) + w["bias"] for name in ("q", "k"))
        x = x + jnp.einsum("bthd,hdw->btw", kernel(q, k), w["out"])
        return x + jnp.tanh(x @ w["up"] + w["up_bias"]) @ w["down"], None

    def run(tokens: jax.Array, table: jax.Array, weights: dict[str, jax.Array]) -> jax.Array:
        places = jnp.arange(tokens.shape[1], dtype=jnp.float32)[:, None] * jnp.ones(512)
        return jax.lax.scan(layer, table[tokens] + places, weights)[0]

    sizes = {"q": (512, 8, 64), "k": (512, 8, 64), "bias": (8, 64), "out": (8, 64, 512)}
    sizes |= {"up": (512, 2048), "up_bias": (2048,), "down": (2048, 512)}
    weights = {name: jax.ShapeDtypeStruct((12, *size), jnp.float32) for name, size in sizes.items()}
    tokens = jax.ShapeDtypeStruct((64, 1024), jnp.int32)
    table = jax.ShapeDtypeStruct((4096, 512), jnp.float32)
    return shardcore.jax.lower(run, tokens, table, weights)


@pytest.fixture
def of_kernel() -> Iterator[Planner]:
    """The planner of that program, where the kernel has a rule."""

    @shardcore.rule("stablehlo.custom_call")
    def rule(_: Any) -> str:
        return "b t h d, b s h d -> b t h d need_replication={t, s, d}"

    shardcore.partition_rule("heads")(rule)
    yield planner(scanned())
    shardcore.rules.unregister("stablehlo.custom_call")
    shardcore.rules.unregister_partition_rule("heads")


def planner(program: Module | shardcore.jax.Lowered | None = None) -> Planner:
    chip = hardware("tpu-v5e")
    wanted = Wanted((Mesh({"a": 4}),), chip, chip.hbm_bytes, "time", 60.0, None, {}, None)
    return Planner(Reading(read(program or blocks(), ()), wanted), wanted)


def test_layers_with_numbers_in_their_names_and_their_momentum_are_one_role() -> None:
    found = {role.name: len(role.members) for role in planner()._roles if not role.is_value}
    assert found.pop("x") == 1
    arguments = {name: count for name, count in found.items() if name.startswith("state")}
    assert len(arguments) == 3
    assert set(arguments.values()) == {4}


def test_a_bias_does_not_make_the_hidden_dim_a_width() -> None:
    found = planner()
    up = next(role for role in found._roles if role.shape == (256, 1024))
    width, hidden = up.classes
    assert hidden in found._meanings.inner()
    assert width not in found._meanings.inner()


def test_what_a_kernel_needs_whole_comes_after_what_it_does_not(of_kernel: Planner) -> None:
    """Heads before what is in a head; layers, which a scan takes one by one, are the last."""
    query = next(role for role in of_kernel._roles if role.shape == (12, 512, 8, 64))
    up = next(role for role in of_kernel._roles if role.shape == (12, 512, 2048))
    layers, width, heads, head = query.classes
    order = of_kernel._meanings.of_most_weights()
    assert order.index(heads) < order.index(head) < order.index(layers)
    assert up.classes[2] in of_kernel._meanings.inner()
    assert heads in of_kernel._meanings.inner()
    assert width not in of_kernel._meanings.inner()


def test_tokens_that_a_kernel_needs_whole_are_not_the_batch(of_kernel: Planner) -> None:
    """Even where positions make more values that have them."""
    [tokens] = (role for role in of_kernel._roles if role.is_integer)
    assert of_kernel._meanings.batch == tokens.classes[0]
