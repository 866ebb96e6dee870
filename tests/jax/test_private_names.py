"""Every private name of JAX's that shardcore uses is there, and in one file.

When JAX has changed one of them, the test for it says so here, before a program fails.
"""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import jax.experimental
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest
import shardcore.jax
from jax.experimental.custom_partitioning import custom_partitioning
from jax.interpreters import mlir
from jax.sharding import AbstractMesh, AxisType, NamedSharding
from jax.sharding import PartitionSpec as P
from shardcore.jax import private
from shardcore.jax.callbacks import _TARGETS

from tests.jax.versions import JAX

PACKAGE = Path(shardcore.__file__).parent
MESH = AbstractMesh((2,), ("x",), axis_types=(AxisType.Auto,))
X = jax.ShapeDtypeStruct((8,), jnp.float32)
HLO = "_hlo" if JAX >= (0, 10) else "_jax"
OWN = {"_core"}
"""Names with an underscore that are shardcore's own."""


def jitted(x: Any, unused: Any) -> Any:
    return x + 1


def test_a_traced_function_is_lowered_from_a_program() -> None:
    traced = jax.jit(jitted).trace(X, X)
    assert hasattr(traced, "_params" if JAX >= (0, 7, 2) else "_lower_callable")
    other = jax.jit(lambda x, unused: x * 2).trace(X, X)
    text = private.with_jaxpr(traced, other.jaxpr).lower(lowering_platforms=("tpu",)).as_text()
    assert "stablehlo.multiply" in text
    assert "stablehlo.add" not in text
    assert "stablehlo.add" in traced.lower(lowering_platforms=("tpu",)).as_text()


def test_a_program_is_its_own_jaxpr_since_jax_0_11() -> None:
    jaxpr = jax.make_jaxpr(jnp.sin)(1.0)
    assert (jaxpr.jaxpr is jaxpr) == (JAX >= (0, 11))
    assert jaxpr.jaxpr.replace(eqns=jaxpr.eqns).eqns == jaxpr.eqns
    assert jaxpr.eqns[0].replace(params={}).params == {}


def test_a_lowered_function_says_what_it_keeps() -> None:
    over = NamedSharding(MESH, P("x"))
    traced = jax.jit(jitted, in_shardings=(over, None)).trace(X, X)
    lowered = traced.lower(lowering_platforms=("tpu",))
    assert "kept_var_idx" in lowered._lowering.compile_args
    assert private.kept_arguments(lowered, 2) == (0,)
    assert over in private.shardings_of(lowered)
    assert private.name_of(lowered) == "jit(jitted)"


def test_a_jitted_function_says_its_options() -> None:
    over = NamedSharding(MESH, P("x"))
    assert private.options_of(jax.jit(jitted)) == {}
    options = {"static_argnums": (1,), "donate_argnums": (0,), "in_shardings": (over,)}
    found = private.options_of(jax.jit(jitted, **options))
    assert found is not None
    assert {name: found[name] for name in options} == options
    assert not {*found} - {*private.OPTIONS, "in_shardings"}
    assert private.options_of(jitted) is None


def test_functions_are_traced_over_a_mesh() -> None:
    with private.over(MESH):
        assert jax.sharding.get_abstract_mesh() == MESH
    devices = jax.sharding.Mesh(np.array(jax.devices()[:2]), ("x",))
    with private.over(devices):
        assert jax.sharding.get_abstract_mesh() == devices.abstract_mesh
    assert jax.sharding.get_abstract_mesh().empty


def test_custom_partitioning_has_parts_of_known_names() -> None:
    def partition(mesh: Any, arguments: Any, result: Any) -> Any:
        return mesh, jnp.sin, result.sharding, (result.sharding,)

    named = custom_partitioning(jnp.sin)
    named.def_partition(partition, sharding_rule="i -> i")
    [equation] = jax.make_jaxpr(lambda x: named(x))(X).eqns
    assert equation.primitive.name == "custom_partitioning"
    assert private.name_of_program(equation.params["call"]) == "sin"
    known = {"call", "partition", "sharding_rule", "static_args", "in_tree", "out_tree"}
    assert known | {"decode_shardings"} <= {*equation.params}
    devices = jax.sharding.Mesh(np.array(jax.devices()[:2]), ("x",))
    over = NamedSharding(devices, P("x"))
    lowered = jax.jit(lambda x: named(x), in_shardings=over).lower(X)
    [key] = re.findall(r'backend_config = "(\d+)"', lowered.as_text())
    info = private.own_partitioner(key)
    assert info.partition is partition
    assert info.mesh.axis_names == ("x",)
    assert tuple(info.module_context.platforms) == ("cpu",)
    assert (info.in_tree.num_leaves, info.out_tree.num_leaves) == (1, 1)
    assert info.static_args == ()
    assert private.own_partitioner("1") is None


def test_shardings_have_specs_over_a_mesh() -> None:
    devices = jax.sharding.Mesh(np.array(jax.devices()[:2]), ("x",))
    over = NamedSharding(devices, P(None, "x"))
    bare = private.without_names(over, 2)
    assert type(bare).__name__ == "GSPMDSharding"
    assert private.spec_of(bare, devices, 2) == P(None, "x")


def _everything(x: Any, ordered: bool) -> Any:
    jax.debug.print("{}", x, ordered=ordered)
    jax.debug.callback(print, x, ordered=ordered)
    jax.debug.inspect_array_sharding(x, callback=print)
    x = jax.experimental.io_callback(np.sin, X, x, ordered=ordered)
    return jax.pure_callback(np.sin, X, x)


@pytest.mark.parametrize("ordered", [True, False])
def test_callbacks_have_known_names_and_effects(ordered: bool) -> None:
    equations = jax.make_jaxpr(lambda x: _everything(x, ordered))(X).eqns
    names = [equation.primitive.name for equation in equations]
    unknown = set(names) - set(_TARGETS)
    assert not unknown
    assert {"io_callback", "pure_callback", "inspect_sharding", "debug_callback"} <= set(names)
    effects = [effect for equation in equations for effect in equation.effects]
    assert any(map(private.is_ordered, effects)) == ordered
    assert not any("ordered" in type(e).__name__.lower() for e in effects) or ordered


@pytest.mark.parametrize(
    "name",
    [
        "LoweringRuleContext",
        "ModuleContext",
        "SPMDAxisContext",
        "ShardingContext",
        "dtype_to_ir_type",
        "ir",
        "lower_fun",
        "merge_mlir_modules",
        "register_lowering",
    ],
)
def test_names_of_lowering_that_are_not_documented(name: str) -> None:
    assert hasattr(mlir, name)


@pytest.mark.parametrize(
    "name",
    [
        f"jaxlib.{HLO}.hlo_module_from_text",
        f"jaxlib.{HLO}.XlaComputation",
        "jaxlib._jax.mlir.mlir_module_to_xla_computation",
        "jaxlib._jax.mlir.xla_computation_to_mlir_module",
        "jaxlib.mlir._mlir_libs._jax_mlir_ext.register_dialects",
        "jaxlib.mlir.dialects.mhlo.register_mhlo_dialect",
        "jaxlib.mlir.dialects.stablehlo.deserialize_portable_artifact",
    ],
)
def test_names_of_jaxlib(name: str) -> None:
    """Other processes use them, which read bytecode and HLO."""
    parts = name.split(".")
    found: Any = importlib.import_module(parts[0])
    for place, part in enumerate(parts[1:], 2):
        if not hasattr(found, part):
            importlib.import_module(".".join(parts[:place]))
        found = getattr(found, part)
    assert callable(found)


def _private(file: Path) -> Iterator[str]:
    """Names with an underscore that ``file`` takes from something else than itself."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    defined = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
        if node.value.id in ("self", "cls")
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            names, is_own = (
                [node.attr],
                isinstance(node.value, ast.Name)
                and (node.value.id in ("self", "cls") or node.value.id.startswith("_")),
            )
        elif isinstance(node, ast.ImportFrom):
            if not (node.module or "").startswith(("jax", "flax")):
                continue
            names, is_own = (node.module or "").split("."), False
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("getattr", "hasattr"):
            names = [arg.value for arg in node.args if isinstance(arg, ast.Constant)]
            names, is_own = [name for name in names if isinstance(name, str)], False
        else:
            continue
        for name in names:
            if re.match(r"_[a-z]", name) and not is_own and name not in defined | OWN:
                yield name


SHARED = {"_trees", "_mesh", "_wrap", "_options", "_given", "_hlo"}
"""Attributes that files of shardcore.jax have of each other's classes."""


def test_private_names_are_in_one_file() -> None:
    found = {
        (file.name, name)
        for file in sorted((PACKAGE / "jax").glob("*.py"))
        if file.name != "private.py"
        for name in _private(file)
        if name not in SHARED
    }
    assert not found
    assert {*_private(PACKAGE / "jax" / "private.py")} == {
        "_jit_info",
        "_lower_callable",
        "_lowering",
        "_name",
        "_params",
        "_sharding_callbacks",
        "_src",
        "_to_xla_hlo_sharding",
    }


def test_an_equation_says_where_it_was_made() -> None:
    [equation] = jax.make_jaxpr(lambda x: jnp.sin(x))(1.0).eqns
    place = private.place_of(equation)
    assert place is not None
    assert re.fullmatch(rf"{re.escape(__file__)}:\d+:\d+", place)


def test_an_equation_says_the_calls_that_it_is_in() -> None:
    def inner(x: Any) -> Any:
        return jnp.sin(x)

    [equation] = jax.make_jaxpr(lambda x: inner(x))(1.0).eqns
    first, second, *_ = private.calls_of(equation)
    assert str(first) == private.place_of(equation)
    assert first.file == second.file == __file__
    assert first.end[0] == first.line < second.line
    assert first.end[1] > first.column


def test_gradients_are_told_apart() -> None:
    def loss(x: Any) -> Any:
        return jnp.sum(jnp.sin(x))

    def is_backward(function: Any) -> bool:
        equations = jax.make_jaxpr(function)(jnp.ones(3)).eqns
        return any(map(private.is_of_backward_pass, equations))

    assert not is_backward(loss)
    assert is_backward(jax.grad(loss))
