"""What the tests need to run on every JAX from 0.7 on."""

from __future__ import annotations

from itertools import permutations, product
from typing import Any

import jax
import pytest
from jax.sharding import AbstractMesh, Mesh, NamedSharding
from jax.sharding import PartitionSpec as P
from shardcore.jax.versions import parsed

JAX = parsed(jax.__version__)


def since(version: str, why: str) -> pytest.MarkDecorator:
    """Skip on a JAX before ``version``."""
    return pytest.mark.skipif(parsed(version) > JAX, reason=f"{why}; JAX {version} and later can")


def set_mesh(mesh: Mesh) -> Any:
    """``jax.set_mesh``, which JAX 0.7.0 calls ``jax.sharding.use_mesh``."""
    return jax.set_mesh(mesh) if hasattr(jax, "set_mesh") else jax.sharding.use_mesh(mesh)


def use_abstract_mesh(mesh: AbstractMesh) -> Any:
    """``jax.sharding.use_abstract_mesh``, which is private before JAX 0.7.2."""
    if hasattr(jax.sharding, "use_abstract_mesh"):
        return jax.sharding.use_abstract_mesh(mesh)
    from jax._src.mesh import use_abstract_mesh

    return use_abstract_mesh(mesh)


def spec_of(sharding: Any, mesh: Mesh, rank: int) -> Any:
    """The spec of a sharding, which JAX before 0.10 may have by tiles and devices alone.

    Text if no spec says it: Shardy in JAX 0.7 has sub-axes on results.
    """
    if isinstance(sharding, NamedSharding):
        return sharding.spec
    for dims in product(range(-1, rank), repeat=len(mesh.axis_names)):
        for axes in permutations(zip(mesh.axis_names, dims, strict=True)):
            entries = [tuple(axis for axis, at in axes if at == dim) for dim in range(rank)]
            spec = P(*[entry[0] if len(entry) == 1 else entry or None for entry in entries])
            if sharding.is_equivalent_to(NamedSharding(mesh, spec), rank):
                return spec
    return str(sharding)
