"""Hints fit what JAX refuses, and are left out where nothing is known of it."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import shardcore
from jax.experimental import pallas
from jax.sharding import PartitionSpec as P
from shardcore import LoweringError, Module, SimulationError
from shardcore.jax import lower
from shardcore.jax.refusals import ask

X = jax.ShapeDtypeStruct((8, 128), jnp.float32)
SIZES = {"x": 4}


def double(x_ref: Any, o_ref: Any) -> None:
    o_ref[...] = x_ref[...] * 2


def kernel(x: Any, **options: Any) -> Any:
    return pallas.pallas_call(double, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype), **options)(
        x
    )


def refused(fn: Any, *args: Any, **options: Any) -> LoweringError:
    with pytest.raises(LoweringError, match="JAX refuses") as caught:
        lower(fn, *args, mesh=SIZES, **options)
    assert caught.value.code == "lowering"
    return caught.value


def test_kernels_are_lowered_as_the_hint_says() -> None:
    error = refused(lambda x: kernel(x), X, in_shardings=P("x"), platform="tpu")
    assert "Mosaic kernels cannot be automatically partitioned" in error.message
    assert "interpret=True" in str(error.hint)
    interpreted = lower(
        lambda x: kernel(x, interpret=True), X, mesh=SIZES, in_shardings=P("x"), platform="tpu"
    )
    partitioned = interpreted.propagate().partition()
    assert shardcore.prove(partitioned).is_proven


def test_primitives_that_kernels_do_not_have() -> None:
    def sorts(x_ref: Any, o_ref: Any) -> None:
        o_ref[...] = jnp.sort(x_ref[...])

    error = refused(lambda x: pallas.pallas_call(sorts, out_shape=X)(x), X, platform="tpu")
    assert "Pallas" in error.message
    assert "interpret=True" in str(error.hint)
    assert "jax.jit" not in str(error.hint)


def test_refusals_of_kernels_are_not_about_arguments_of_jit() -> None:
    def refuses() -> None:
        raise ValueError("The Pallas lowering of argument 0 needs blocks of 8 by 128")

    with pytest.raises(LoweringError, match="blocks of 8") as caught:
        ask(refuses)
    assert caught.value.hint is None


def test_kernels_that_were_compiled_cannot_be_simulated() -> None:
    with pytest.raises(SimulationError, match="tpu_custom_call") as caught:
        Module.parse("""
func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.custom_call @tpu_custom_call(%a) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}""").simulate(np.zeros(8, np.float32))
    assert "interpret=True" in str(caught.value.hint)


def test_platforms_that_there_are_not() -> None:
    error = refused(lambda x: kernel(x), X, platform="abacus")
    assert error.hint == "platforms are cpu, cuda, rocm, tpu"


def test_an_axis_that_a_spec_names_twice() -> None:
    error = refused(lambda x: x, X, in_shardings=P("x", "x"))
    assert error.hint == "name an axis once in a spec"


def test_shardings_that_do_not_fit_the_arguments() -> None:
    error = refused(lambda x: x, X, in_shardings=(P("x"), P("x")))
    assert error.hint == "give shardings and arguments as jax.jit takes them"


def test_what_nothing_is_known_of_has_no_hint() -> None:
    error = refused(lambda x: "text", X)
    assert "not a valid JAX type" in error.message
    assert error.hint is None
    assert "help:" not in str(error)


@pytest.mark.parametrize(
    ("target", "hint"),
    [
        ("tpu_custom_call", 'lower the function for these devices: platform="cpu"'),
        ("cusolver_getrf_ffi", 'lower the function for these devices: platform="cpu"'),
        ("custom_norm", 'register the target: jax.ffi.register_ffi_target("custom_norm", ...)'),
    ],
)
def test_targets_that_devices_do_not_have(target: str, hint: str) -> None:
    def compiles() -> None:
        words = f"NOT_FOUND: No registered implementation for untyped custom call to {target}"
        raise RuntimeError(f"{words} for Host")

    with pytest.raises(LoweringError) as caught:
        ask(compiles, platform="cpu")
    assert caught.value.hint == hint


def test_a_target_of_the_users_that_is_not_registered() -> None:
    shardcore.partition_rule("of_no_library", "... d -> ... d")
    module = Module.parse("""
sdy.mesh @mesh = <["x"=4]>
func.func @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>})
    -> tensor<8x8xf32> {
  %0 = stablehlo.custom_call @of_no_library(%a) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}""")
    with pytest.raises(LoweringError, match="of_no_library") as caught:
        shardcore.jax.compile(module.propagate())
    assert "register_ffi_target" in str(caught.value.hint)


def test_an_option_that_is_misspelt() -> None:
    def step(x: Any, in_sharding: int = 0) -> Any:
        return x + in_sharding

    shape = jax.ShapeDtypeStruct((8,), jnp.float32)
    with pytest.raises(LoweringError, match="lower has no option in_sharding") as caught:
        lower(lambda x: x, shape, mesh={"x": 2}, in_sharding=(P("x"),))
    assert caught.value.hint == "did you mean in_shardings=?"
    # It may be an argument of the function.
    assert lower(step, shape, mesh={"x": 2}, in_sharding=3).module.num_ops > 0


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({"in_shardings": P("data")}, "error[missing-mesh]: P('data',) is over no mesh"),
        (
            {"mesh": {"data": 2}, "in_shardings": P("dta")},
            "error[unknown-axis]: P('dta',) names axis \"dta\", which the mesh does not have\n"
            '  help: did you mean "data"?',
        ),
        (
            {"mesh": {"data": 2}, "in_shardings": P("data", None, "data")},
            "error[lowering]: JAX refuses P('data', None, 'data')",
        ),
        (
            {"mesh": {"data": 2}, "in_shardings": P(None, None, "data")},
            "  help: a spec has at most one entry for each dim",
        ),
        (
            {"mesh": {"data": 3}, "in_shardings": P("data")},
            "  help: shard a dim that the axes divide, or pad it in the program",
        ),
    ],
)
def test_mistakes_in_annotations(options: dict[str, Any], wanted: str) -> None:
    with pytest.raises(LoweringError) as caught:
        lower(jnp.tanh, jax.ShapeDtypeStruct((8, 4), jnp.float32), **options)
    assert wanted in str(caught.value)
