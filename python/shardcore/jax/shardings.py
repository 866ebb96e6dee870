"""Shardings as users pass them to JAX: specs, shardings, pytrees and prefixes of them."""

from __future__ import annotations

from typing import Any

import jax
from jax.sharding import NamedSharding, PartitionSpec, Sharding

from shardcore._core import TensorSharding
from shardcore.calculus.mistakes import choices
from shardcore.calculus.partition_spec import is_unconstrained
from shardcore.jax.mistakes import mistake
from shardcore.jax.result import JaxMesh


class _Unspecified:
    """The default of shardings that are not given."""

    def __repr__(self) -> str:
        return "UNSPECIFIED"


UNSPECIFIED = _Unspecified()


def on_mesh(tree: Any, mesh: JaxMesh | None) -> Any:
    """Return ``tree`` with every ``PartitionSpec`` that JAX takes as a sharding over ``mesh``.

    Raises:
        LoweringError: there is no mesh (``missing-mesh``), it does not have an axis that a spec
            names (``unknown-axis``), or JAX refuses the spec (``lowering``).
    """
    return jax.tree.map(lambda leaf: _leaf_on_mesh(leaf, mesh), tree, is_leaf=is_leaf)


def for_jax(tree: Any) -> Any:
    """Return ``tree`` with ``None``, which leaves a sharding open, for what JAX does not take."""
    return jax.tree.map(lambda leaf: None if _is_ours(leaf) else leaf, tree, is_leaf=is_leaf)


def _is_ours(leaf: Any) -> bool:
    """Whether JAX does not take ``leaf`` as the sharding of an argument or a result: a
    ``TensorSharding``, text, and what leaves dims ``UNCONSTRAINED``.
    """
    spec = getattr(leaf, "spec", leaf)
    has_open_dims = isinstance(spec, PartitionSpec) and any(map(is_unconstrained, spec))
    return has_open_dims or isinstance(leaf, (TensorSharding, str))


def ours(tree: Any, values: Any) -> list[Any]:
    """Return, for each leaf of ``values``, what ``tree``, a prefix, has for it and JAX does not
    take; ``None`` for others.
    """
    if tree is UNSPECIFIED or tree is None:
        return [None] * len(jax.tree.leaves(values))
    spread = jax.tree.map(
        lambda leaf, part: [leaf] * len(jax.tree.leaves(part)), tree, values, is_leaf=is_leaf
    )
    leaves = jax.tree.leaves(spread, is_leaf=is_leaf)
    return [leaf if _is_ours(leaf) else None for leaf in leaves]


def is_leaf(node: Any) -> bool:
    """Whether ``node`` of a tree of shardings is a sharding, or stands for none."""
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
    for entry in (*leaf, *leaf.unreduced):
        for axis in entry if isinstance(entry, tuple) else (entry,):
            if isinstance(axis, str) and axis not in mesh.axis_names:
                raise mistake(
                    "unknown-axis",
                    f'{leaf} names axis "{axis}", which the mesh does not have',
                    choices(axis, mesh.axis_names),
                )
    if _is_ours(leaf):
        return leaf
    try:
        return NamedSharding(mesh, leaf)
    # JAX's exceptions have no common base class.
    except Exception as error:
        raise mistake(
            "lowering", f"JAX refuses {leaf}: {error}", "write it as jax.sharding takes it"
        ) from None
