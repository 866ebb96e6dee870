"""Values on one device: gathered there, and sent to all devices by an all-reduce, as XLA does."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import shardcore
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as P

from tests.shardy.xla.model_rows import sent_by_kind
from tests.shardy.xla.sent import sent_bytes

ROWS = '{sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}'
ON = "{sdy.sharding = #sdy.sharding<@on_1, []>}"
VALUE_ON = "{sdy.sharding = #sdy.sharding_per_value<[<@on_1, []>]>}"
T = "tensor<64x16xf32>"
OTHER = "{sdy.sharding = #sdy.sharding_per_value<[<@on_0, []>]>}"
PROGRAMS = {
    "constraint": f"""(%a: {T} {ROWS}) -> ({T} {ROWS}) {{
      %0 = sdy.sharding_constraint %a <@on_1, []> : {T}
      %1 = stablehlo.negate %0 : {T}
      return %1 : {T} }}""",
    "argument": f"""(%a: {T} {ON}) -> ({T} {ROWS}) {{
      %0 = stablehlo.negate %a : {T}
      return %0 : {T} }}""",
    "result": f"""(%a: {T} {ROWS}) -> ({T} {ON}) {{
      %0 = stablehlo.negate %a : {T}
      return %0 : {T} }}""",
    "op": f"""(%a: {T} {ROWS}) -> ({T} {ROWS}) {{
      %0 = stablehlo.negate %a {VALUE_ON} : {T}
      %1 = stablehlo.dot_general %0, %0, contracting_dims = [0] x [0] {VALUE_ON}
        : ({T}, {T}) -> tensor<16x16xf32>
      %2 = stablehlo.dot_general %a, %1, contracting_dims = [1] x [0]
        : ({T}, tensor<16x16xf32>) -> {T}
      return %2 : {T} }}""",
    "two users": f"""(%a: {T} {ON}, %b: {T} {ROWS}) -> ({T} {ROWS}, {T}) {{
      %0 = stablehlo.add %a, %b : {T}
      %1 = stablehlo.negate %a : {T}
      return %0, %1 : {T}, {T} }}""",
    "stays where it was computed": f"""(%a: {T} {ROWS}) -> {T} {{
      %0 = sdy.sharding_constraint %a <@on_1, []> : {T}
      return %0 : {T} }}""",
    "is returned beside another result": f"""(%a: {T} {ROWS}) -> ({T}, {T} {ROWS}) {{
      %0 = sdy.sharding_constraint %a <@on_1, []> : {T}
      %1 = stablehlo.negate %a : {T}
      return %0, %1 : {T}, {T} }}""",
    "two devices": f"""(%a: {T} {ROWS}) -> ({T} {ROWS}) {{
      %0 = stablehlo.custom_call @Sharding(%a) {VALUE_ON} : ({T}) -> {T}
      %1 = stablehlo.custom_call @Sharding(%0) {OTHER} : ({T}) -> {T}
      %2 = stablehlo.negate %1 : {T}
      return %2 : {T} }}""",
    "booleans": f"""(%a: tensor<64x16xi1> {ON}, %b: {T} {ROWS}) -> ({T} {ROWS}) {{
      %0 = stablehlo.select %a, %b, %b : tensor<64x16xi1>, {T}
      %1 = stablehlo.negate %b : {T}
      %2 = stablehlo.select %a, %1, %b : tensor<64x16xi1>, {T}
      return %2 : {T} }}""",
    "stays": f"(%a: {T} {ON}) -> ({T} {ON}) {{\nreturn %a : {T} }}",
}


def sent_by_xla(text: str) -> dict[str, float]:
    return {kind.replace("-", "_"): sent for kind, sent in sent_bytes(text).items()}


def text_of(name: str) -> str:
    return f"""module attributes {{mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 1 : i32}} {{
  sdy.mesh @on_0 = <[], device_ids=[0]>
  sdy.mesh @on_1 = <[], device_ids=[1]>
  sdy.mesh @mesh = <["x"=4]>
  func.func public @main{PROGRAMS[name]}
}}"""


HERE = shardcore.Module.parse("func.func @main() { return }").shardy

# Later versions of Shardy refuse arguments and results on one device. Of what stays where it was
# computed we send a sum too many there, as their export gives all results shardings.
LATER = [name for name, text in PROGRAMS.items() if ON not in text and not name.startswith("stays")]


@pytest.mark.parametrize("name", PROGRAMS if HERE == "0.10" else LATER)
def test_sent_as_under_xla(name: str) -> None:
    text = text_of(name)
    result = shardcore.Module.parse(text).propagate(legalize_chlo=True)
    assert {**sent_by_kind(result.cost())} == sent_by_xla(text)
    assert shardcore.prove(result.partition("xla")).is_proven


def called(value: jax.Array) -> jax.Array:
    """A function of the host, which runs on one device."""
    shape = jax.ShapeDtypeStruct(value.shape, value.dtype)
    return jax.pure_callback(lambda given: np.asarray(given) * 2, shape, value)


def lowered(function: Callable[[jax.Array], jax.Array], size: int) -> str:
    mesh = Mesh(np.array(jax.devices("cpu")), ("x",))
    rows = NamedSharding(mesh, P("x"))
    shape = jax.ShapeDtypeStruct((size, 64), jnp.float32)
    return str(jax.jit(function, in_shardings=rows, out_shardings=rows).lower(shape).as_text())


def once(a: jax.Array) -> jax.Array:
    return jnp.tanh(called(a)) + a


def in_loop(a: jax.Array) -> jax.Array:
    return jax.lax.fori_loop(0, 3, lambda _, value: jnp.sin(called(value)), a)


@pytest.mark.parametrize("function", [once, in_loop])
def test_callbacks(function: Callable[[jax.Array], jax.Array]) -> None:
    text = lowered(function, 512)
    cost = shardcore.Module.parse(text).propagate(legalize_chlo=True).cost()
    assert {**sent_by_kind(cost)} == sent_by_xla(text)
    assert {*sent_by_kind(cost)} == {"all_gather", "all_reduce"}


def test_it_is_reported() -> None:
    text = text_of("constraint").replace("64x16", "8192x64")
    [found] = shardcore.Module.parse(text).propagate().diagnostics()
    assert found.code == "rematerialization"
    cause = "negate" if HERE == "0.10" else "sdy.reshard"
    assert found.message == (
        f"XLA will send %0, which device 1 alone has, to every device: all 2.0 MiB for {cause}, "
        "by an all-reduce with zeros of the others"
    )
    # A callback is there on purpose, and a rule would not move it.
    text = lowered(once, 8192)
    codes = [each.code for each in shardcore.Module.parse(text).propagate().diagnostics()]
    assert codes == ["rematerialization"]
