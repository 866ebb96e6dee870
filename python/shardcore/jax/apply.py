"""Functions with the shardings of a plan: jitted over devices, their values constrained.

The function is traced once, and the jitted function takes arguments of these shapes only. Its own
constraints are removed, because the plan was found without them, and the plan's constraints are put
on the values it names.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jax.extend.core import Primitive
from jax.interpreters import mlir
from jax.sharding import NamedSharding, PartitionSpec

from shardcore._core import Mesh
from shardcore.jax.equations import replaced
from shardcore.jax.mesh import chosen_devices, is_same_mesh
from shardcore.jax.private import place_of
from shardcore.jax.result import JaxMesh

_NAMES = {"pjit": "jit"}
"""Primitives by the names that they had before."""
_changed_p = Primitive("changed")
_changed_p.multiple_results = True


@dataclass
class Wanted:
    """A value that gets a sharding constraint."""

    location: str
    """``file:line:column`` of the expression that computes the value."""
    primitive: str
    shape: tuple[int | None, ...]
    spec: PartitionSpec
    is_found: bool = False

    def is_of(self, equation: Any) -> bool:
        """Whether ``equation`` computes this value."""
        name = equation.primitive.name
        if self.is_found or _NAMES.get(name, name) != self.primitive:
            return False
        [first, *_] = equation.outvars
        is_alike = getattr(first.aval, "shape", None) == self.shape
        return is_alike and place_of(equation) == self.location


def applied(
    traced: Any,
    shardings: tuple[Any, Any],
    constraints: Sequence[Wanted],
    mesh: jax.sharding.Mesh,
    *,
    keeps_constraints: bool,
) -> Any:
    """Return a traced function (``jax.stages.Traced``) as a jitted function over ``mesh``.

    Args:
        traced: the traced function.
        shardings: two trees of ``PartitionSpec``, one of the positional arguments and one of the
            results; ``None`` leaves a sharding open.
        constraints: the values to constrain.
        mesh: the mesh.
        keeps_constraints: whether the function's own constraints stay.
    """
    changed = replaced(traced, _changes(constraints, mesh, keeps_constraints))
    infos, options = traced.args_info, {}
    ins, outs = (_over(tree, mesh) for tree in shardings)
    if not infos[1]:
        # JAX takes shardings of positional arguments only.
        options["in_shardings"] = ins
    donated = [number for number, info in enumerate(infos[0]) if _is_donated(info)]
    return jax.jit(
        lambda *args, **kwargs: changed(*args, **kwargs),
        out_shardings=outs,
        donate_argnums=donated,
        **options,
    )


def mesh_on_devices(
    mesh: Mesh, given: JaxMesh | None, devices: Sequence[Any] | None
) -> jax.sharding.Mesh:
    """Return ``mesh`` with devices: ``given`` if it has the same axes and devices, else a mesh of
    ``devices``, or of the first of ``jax.devices()``.

    Raises:
        LoweringError: there are too few devices (``devices``).
    """
    if devices is None and isinstance(given, jax.sharding.Mesh) and is_same_mesh(mesh, given):
        return given
    array = np.empty(mesh.num_devices, dtype=object)
    array[:] = chosen_devices(devices, mesh.num_devices)
    return jax.sharding.Mesh(array.reshape(tuple(mesh.shape.values())), mesh.axis_names)


def _over(tree: Any, mesh: jax.sharding.Mesh) -> Any:
    """``tree`` with each ``PartitionSpec`` as a sharding over ``mesh``."""
    return jax.tree.map(
        lambda spec: None if spec is None else NamedSharding(mesh, spec),
        tree,
        is_leaf=lambda node: node is None or isinstance(node, PartitionSpec),
    )


def _is_donated(info: Any) -> bool:
    leaves = jax.tree.leaves(info)
    return bool(leaves) and all(leaf.donated for leaf in leaves)


def _changes(
    constraints: Sequence[Wanted], mesh: jax.sharding.Mesh, keeps_constraints: bool
) -> Callable[[Any], Any]:
    def change(equation: Any) -> Any:
        """The equation that replaces a constraint, or an equation whose result is constrained."""
        if equation.primitive.name == "sharding_constraint" and not keeps_constraints:
            return _changed(equation, lambda x: [x])
        wanted = next((each for each in constraints if each.is_of(equation)), None)
        if wanted is None:
            return None
        wanted.is_found = True
        sharding = NamedSharding(mesh, wanted.spec)

        def run(*operands: Any) -> Any:
            first, *rest = _results(equation, operands)
            constrain: Any = jax.lax.with_sharding_constraint
            return [constrain(first, sharding), *rest]

        return _changed(equation, run)

    return change


def _changed(equation: Any, run: Callable[..., Any]) -> Any:
    types = tuple(variable.aval for variable in equation.outvars)
    return equation.replace(primitive=_changed_p, params={"run": run, "types": types})


def _results(equation: Any, operands: Sequence[Any]) -> list[Any]:
    """The results of ``equation`` for ``operands``."""
    bound = equation.primitive.get_bind_params(equation.params)
    # JAX before 0.10 has functions next to the parameters.
    functions, params = bound if isinstance(bound, tuple) else ((), bound)
    found = equation.primitive.bind(*functions, *operands, **params)
    return list(found) if equation.primitive.multiple_results else [found]


def _types(*_: Any, run: Callable[..., Any], types: tuple[Any, ...]) -> tuple[Any, ...]:
    return types


_define: Any = _changed_p.def_abstract_eval
_define(_types)


def _lowered(context: Any, *operands: Any, run: Callable[..., Any], types: Any) -> Any:
    return mlir.lower_fun(run, multiple_results=True)(context, *operands)


mlir.register_lowering(_changed_p, _lowered)
