"""Composites are what they decompose to, as in XLA."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import shardcore.jax
from jax.sharding import PartitionSpec as P
from shardcore import Module

X = jax.ShapeDtypeStruct((64, 128), "float32")


def activated(x: Any) -> Any:
    def gelu(x: Any) -> Any:
        return jnp.tanh(x) * x

    return jax.lax.composite(gelu, "my.gelu")(x) + 1.0


def lowered() -> shardcore.jax.Lowered:
    specs = P("x", "y")
    return shardcore.jax.lower(jax.jit(activated), X, mesh={"x": 2, "y": 4}, in_shardings=specs)


def test_results_are_sharded_as_by_xla() -> None:
    result = lowered().propagate()
    assert result.out_specs == P("x", "y")
    assert not result.cost("tpu-v5p").collectives
    session = lowered().session()
    assert session.result.out_specs == P("x", "y")


def test_the_pipeline_of_shardy_stops_at_them() -> None:
    module = lowered().module
    assert "stablehlo.composite" in str(module)
    [port] = module.propagate().results()
    assert port.sharding is None
    [port] = module.propagate(legalize_chlo=True).results()
    assert str(port.sharding) == '<@mesh, [{"x"}, {"y"}]>'
    assert "stablehlo.composite" in str(module)


def test_composites_in_composites() -> None:
    ty = "tensor<8x8xf32>"
    module = Module.parse(f"""sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: {ty} {{sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}, {{}}]>}}) -> {ty} {{
  %0 = stablehlo.composite "a.b" %a {{decomposition = @outer}} : ({ty}) -> {ty}
  %1 = stablehlo.negate %0 : {ty}
  return %1 : {ty}
}}
func.func private @outer(%a: {ty}) -> {ty} {{
  %0 = stablehlo.composite "c.d" %a {{decomposition = @inner}} : ({ty}) -> {ty}
  return %0 : {ty}
}}
func.func private @inner(%a: {ty}) -> {ty} {{
  %0 = stablehlo.tanh %a : {ty}
  return %0 : {ty}
}}""")
    result = module.propagate(legalize_chlo=True)
    assert [str(port.sharding) for port in result.results()] == ['<@mesh, [{"x"}, {}]>']
    assert "composite" not in str(result.module)
