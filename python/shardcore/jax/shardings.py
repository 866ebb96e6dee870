"""Shardings as users pass them to JAX: specs, shardings, pytrees and prefixes of pytrees."""

from __future__ import annotations

from typing import Any

import jax
from jax.sharding import NamedSharding, PartitionSpec, Sharding

from shardcore._core import TensorSharding
from shardcore.calculus.mistakes import choices
from shardcore.calculus.partition_spec import entries_of, is_unconstrained
from shardcore.jax.mistakes import mistake
from shardcore.jax.refusals import ask
from shardcore.jax.result import JaxMesh
from shardcore.jax.specs import implicit_axes


class _Unspecified:
    """The default value of ``in_shardings`` and ``out_shardings``: not given."""

    def __repr__(self) -> str:
        return "UNSPECIFIED"


UNSPECIFIED = _Unspecified()


def on_mesh(tree: Any, mesh: JaxMesh | None) -> Any:
    """Return ``tree`` with each ``PartitionSpec`` that JAX accepts as a sharding over ``mesh``.

    Raises:
        LoweringError: there is no mesh (``missing-mesh``), it lacks an axis that a spec names
            (``unknown-axis``), or JAX refuses the spec (``lowering``).
    """
    return jax.tree.map(lambda leaf: _leaf_on_mesh(leaf, mesh), tree, is_leaf=is_leaf)


def for_jax(tree: Any, mesh: JaxMesh | None) -> Any:
    """Return ``tree`` with ``None``, an open sharding, in place of what JAX does not accept."""
    return jax.tree.map(lambda leaf: None if _is_ours(leaf, mesh) else leaf, tree, is_leaf=is_leaf)


def _is_ours(leaf: Any, mesh: JaxMesh | None) -> bool:
    """Whether JAX does not accept ``leaf`` as the sharding of an argument or a result: a
    ``TensorSharding``, text, a spec with ``UNCONSTRAINED`` dims, or a spec that is unreduced along
    axes of ``mesh`` that are not explicit.
    """
    if isinstance(leaf, (TensorSharding, str)):
        return True
    spec = getattr(leaf, "spec", leaf)
    if not isinstance(spec, PartitionSpec):
        return False
    if leaf is spec and mesh is not None and implicit_axes(spec.unreduced, mesh):
        return True
    return any(map(is_unconstrained, entries_of(spec)))


def ours(tree: Any, values: Any, mesh: JaxMesh | None) -> list[Any]:
    """Return, for each leaf of ``values``, the sharding that the prefix ``tree`` has for it if JAX
    over ``mesh`` does not accept that; ``None`` for the other leaves.
    """
    if tree is UNSPECIFIED or tree is None:
        return [None] * len(jax.tree.leaves(values))
    spread = jax.tree.map(
        lambda leaf, part: [leaf] * len(jax.tree.leaves(part)), tree, values, is_leaf=is_leaf
    )
    leaves = jax.tree.leaves(spread, is_leaf=is_leaf)
    return [leaf if _is_ours(leaf, mesh) else None for leaf in leaves]


def is_leaf(node: Any) -> bool:
    """Whether ``node`` of a tree of shardings is a sharding or a placeholder for none."""
    return node is None or isinstance(node, (PartitionSpec, Sharding, TensorSharding))


def _leaf_on_mesh(leaf: Any, mesh: JaxMesh | None) -> Any:
    if not isinstance(leaf, PartitionSpec):
        return leaf
    if mesh is None:
        raise mistake(
            "missing-mesh",
            f"{leaf} is over no mesh",
            'give one, mesh={"data": 8}, or write NamedSharding(mesh, spec)',
        )
    for entry in (*entries_of(leaf), *leaf.unreduced, *leaf.reduced):
        for axis in entry if isinstance(entry, tuple) else (entry,):
            if isinstance(axis, str) and axis not in mesh.axis_names:
                raise mistake(
                    "unknown-axis",
                    f'{leaf} names axis "{axis}", which the mesh does not have',
                    choices(axis, mesh.axis_names),
                )
    if _is_ours(leaf, mesh):
        return leaf
    return ask(NamedSharding, mesh, leaf, what=str(leaf))
