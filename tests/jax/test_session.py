"""Sessions of functions of JAX."""

from __future__ import annotations

import pickle

import jax
import jax.numpy as jnp
import pytest
import shardcore.jax
from jax.sharding import AbstractMesh, AxisType, NamedSharding, PartitionSpec
from shardcore import DimSharding, Mesh, TensorSharding, VerificationError
from shardcore.session.sweep import sweep

MESH = {"x": 4, "y": 2}
ARGUMENTS = [jax.ShapeDtypeStruct((8, 16), jnp.float32), jax.ShapeDtypeStruct((16, 8), jnp.float32)]
OPEN = [DimSharding(["x"], False, 1), None]


def product(a: jax.Array, b: jax.Array) -> jax.Array:
    return a @ b


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (TensorSharding(Mesh(MESH), OPEN, replicated=["y"]), "@mesh"),
        (TensorSharding("mesh", OPEN, replicated=["y"]), "@mesh"),
        (TensorSharding(Mesh(MESH), OPEN, replicated=["y"], mesh_name="own"), "@own"),
        (TensorSharding(Mesh({"y": 4, "x": 2}), OPEN, replicated=["y"]), 'mesh<["y"=4, "x"=2]>'),
    ],
)
def test_a_session_of_a_function_with_any_sharding(given: TensorSharding, expected: str) -> None:
    lowered = shardcore.jax.lower(product, *ARGUMENTS, mesh=MESH, in_shardings=(given, None))
    session = lowered.session()
    assert {name: str(sharding) for name, sharding in session.annotations.items()} == {
        "a": f'<{expected}, [{{"x", ?}}p1, {{}}], replicated={{"y"}}>'
    }
    assert session.result.out_specs == PartitionSpec("x")
    if expected == "@mesh":
        session.set("b", PartitionSpec(None, "y"))
        assert session.result.out_specs == PartitionSpec("x", "y")
        assert str(session.result.module) == str(session.module.propagate().module)


def test_results_over_another_mesh_are_over_it_in_jax_too() -> None:
    session = shardcore.jax.lower(product, *ARGUMENTS, mesh=MESH).session(mesh={"z": 8})
    session.set("a", PartitionSpec("z"))
    mesh = AbstractMesh((8,), ("z",), axis_types=(AxisType.Auto,))
    assert session.result.out_shardings == NamedSharding(mesh, PartitionSpec("z"))
    twin = pickle.loads(pickle.dumps(session))
    assert twin.result.out_shardings == session.result.out_shardings
    with pytest.raises(VerificationError, match="is over a mesh that the program does not have"):
        session.set("b", NamedSharding(AbstractMesh((4, 2), ("x", "y")), PartitionSpec("x")))


def test_a_function_of_a_random_key_has_a_session() -> None:
    """JAX writes a mesh without axes for keys."""

    def noisy(key: jax.Array, a: jax.Array) -> tuple[jax.Array, jax.Array]:
        first, second = jax.random.split(key)
        return a + jax.random.normal(first, a.shape), second

    arguments = [jax.eval_shape(lambda: jax.random.key(0)), ARGUMENTS[0]]
    session = shardcore.jax.lower(noisy, *arguments, mesh=MESH).session()
    session.set("a", "P('x', 'y')")
    assert session.result.in_specs == (PartitionSpec(), PartitionSpec("x", "y"))
    bare = shardcore.jax.lower(noisy, *arguments)
    assert bare.session(mesh={"z": 8}).module.meshes["mesh"] == Mesh({"z": 8})
    annotated = shardcore.jax.lower(
        noisy, *arguments, mesh=MESH, in_shardings=(None, PartitionSpec("x"))
    )
    swept = sweep(annotated.module, {"a": ["P('x')", "P()"]}, [Mesh({"x": 8}), Mesh({"x": 4})])
    assert [row.row.error for row in swept] == [None] * 4
