"""A lowered JAX function, ready to propagate."""

from __future__ import annotations

from typing import Any

import jax

from shardcore._core import Module, import_hlo_shardings
from shardcore.jax.mesh import mesh_with_devices, our_mesh
from shardcore.jax.mistakes import mistake
from shardcore.jax.result import JaxMesh, JaxResult
from shardcore.jax.trees import Trees


class Lowered:
    """What :func:`shardcore.jax.lower` returns: a module, and the pytrees of the function."""

    def __init__(self, module: Module, trees: Trees | None, mesh: JaxMesh | None) -> None:
        if mesh is not None and not module.meshes:
            # Lowered without Shardy the program names no axes; the mesh that was given does.
            module = import_hlo_shardings(module, our_mesh(mesh))
        self.module = module
        """The program before propagation, with the shardings that were given."""
        self._trees = Trees.flat(module) if trees is None else trees.check(module)
        self._mesh = mesh

    def propagate(self, **options: Any) -> JaxResult:
        """Complete the shardings; options and errors are those of :meth:`Module.propagate`.

        ``legalize_chlo`` is true by default here: ops of CHLO get the rules of the ops that XLA
        legalizes them to when the function is compiled.
        """
        result = self.module.propagate(**{"legalize_chlo": True, **options})
        return JaxResult(result, self._trees, self._mesh)

    def __repr__(self) -> str:
        return f"<shardcore.jax.Lowered of {self.module!r}>"


def from_jax_lowered(
    lowered: Any, mesh: JaxMesh | None, devices: jax.sharding.Mesh | None = None
) -> Lowered:
    """Return a ``jax.stages.Lowered`` as a :class:`Lowered`; ``devices`` is the arguments' mesh.

    Raises:
        LoweringError: it is not known which arguments JAX dropped (``lowering``).
    """
    module = Module.parse(lowered.as_text(debug_info=True), filename=f"<{_name(lowered)}>")
    inputs: Any = jax.tree.structure(lowered.args_info)
    trees = Trees(
        inputs,
        lowered.out_tree,
        _kept(lowered, inputs.num_leaves),
        tuple(jax.tree.leaves(lowered.in_avals)),
        tuple(jax.tree.leaves(lowered.out_info)),
        devices or _mesh(lowered),
    )
    return Lowered(module, trees, mesh)


def _name(lowered: Any) -> str:
    name = getattr(getattr(lowered, "_lowering", None), "_name", None) or "lowered"
    return str(name).strip("<>")


def _mesh(lowered: Any) -> jax.sharding.Mesh | None:
    """The mesh, with devices, of the function's own shardings; JAX has no public API for it."""
    arguments = getattr(getattr(lowered, "_lowering", None), "compile_args", {})
    own = [arguments.get(name) or () for name in ("in_shardings", "out_shardings")]
    return mesh_with_devices(sharding for shardings in own for sharding in shardings)


def _kept(lowered: Any, num_leaves: int) -> tuple[int, ...]:
    """The leaves that JAX kept; it has no public API for them."""
    try:
        return tuple(sorted(lowered._lowering.compile_args["kept_var_idx"]))
    except (AttributeError, KeyError):
        if getattr(lowered, "_lowering", None) is None:
            raise mistake("not-a-function", f"{lowered!r} is not lowered by jax.jit") from None
        return tuple(range(num_leaves))
