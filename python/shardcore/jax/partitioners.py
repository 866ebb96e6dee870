"""Calls the ``partition`` callbacks of ``custom_partitioning`` functions as JAX does."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
from jax.extend.core import jaxpr_as_fun
from jax.sharding import AbstractMesh, AxisType, NamedSharding, PartitionSpec, Sharding

from shardcore._core import Module
from shardcore.errors import Diagnostic, PartitionError, ShardcoreError
from shardcore.jax.callbacks import without_host
from shardcore.jax.mesh import abstract_mesh, is_same_mesh
from shardcore.jax.private import over, spec_of, without_names
from shardcore.jax.specs import partition_spec
from shardcore.rules.partitioners import Call, DimAxes, LocalProgram, Tensor

_MOST_KEPT = 64
"""How many per-device programs of one call are kept at most."""

_Shape: Any = jax.ShapeDtypeStruct
_Spec: Any = PartitionSpec


# Compared by identity, because its functions are.
@dataclass(eq=False)
class UserPartitioner:
    """The ``partition`` callback of a call, and the arguments that JAX passes to it."""

    name: str
    """The name of the user's function."""
    partition: Any
    static_args: tuple[Any, ...]
    in_tree: Any
    out_tree: Any
    mesh: Any
    platforms: tuple[str, ...]
    decodes: bool
    """Whether the callback gets ``NamedSharding``s, with names of axes (JAX's
    ``decode_shardings``)."""
    program: Any = None
    """The jaxpr of the decorated function; ``None`` if JAX has already lowered it."""
    keepalive: Any = None
    """Objects that must live as long as this one."""
    _local: dict[Call, LocalProgram] = field(default_factory=dict)
    _global: Module | None = None

    def local_program(self, call: Call) -> LocalProgram:
        """Return the program that one device runs for ``call``, made by the user's callback.

        Raises:
            PartitionError: the callback raised an exception, or what it returned does not fit the
                call (``invalid-rule``).
        """
        if call not in self._local:
            try:
                made = self._asked(call)
            # A user's function may raise any exception.
            except Exception as error:
                raise self._error(call, error) from error
            while len(self._local) >= _MOST_KEPT:
                del self._local[next(iter(self._local))]
            self._local[call] = made
        return self._local[call]

    def global_program(self) -> Module | None:
        """Return the decorated function itself; ``None`` if JAX has already lowered it."""
        if self.program is None:
            return None
        if self._global is None:
            function = jax.jit(jaxpr_as_fun(self.program), keep_unused=True)
            with _context(self.program.in_avals):
                traced = function.trace(*map(_shape_of, self.program.in_avals))
                self._global = _module(traced, self.platforms)
        return self._global

    def _error(self, call: Call, error: Exception) -> PartitionError:
        what, hint = f" raised {type(error).__name__}: {error}", None
        if isinstance(error, ShardcoreError):
            what, hint = f": {error.message}", error.hint
        where = f", called at {call.place}," if call.place else ""
        message = f"partition of custom_partitioning function {self.name}{where}{what}"
        if hint is None and isinstance(self._mesh_of(call), AbstractMesh):
            hint = "give a jax.sharding.Mesh with devices, if it needs them"
        return PartitionError(Diagnostic("invalid-rule", message, hint))

    def _asked(self, call: Call) -> LocalProgram:
        mesh = self._mesh_of(call)
        arguments = self.in_tree.unflatten([self._shape(each, mesh) for each in call.operands])
        result = self.out_tree.unflatten([self._shape(each, mesh) for each in call.results])
        answer = self.partition(*self.static_args, mesh, arguments, result)
        own, lower, results, operands = answer
        taken = _dims(self.in_tree.flatten_up_to(operands), call.operands, mesh)
        made = _dims(self.out_tree.flatten_up_to(results), call.results, mesh)
        shards = [
            _Shape(_local(each.shape, dims, mesh), _dtype(each))
            for each, dims in zip(call.operands, taken, strict=True)
        ]
        wanted = [
            (_local(each.shape, dims, mesh), _dtype(each))
            for each, dims in zip(call.results, made, strict=True)
        ]
        traced = _traced(lower, self.in_tree, shards, wanted, own)
        return LocalProgram(_module(traced, self.platforms), taken, made)

    def _mesh_of(self, call: Call) -> Any:
        """The call's mesh as a JAX mesh; with devices if the program was lowered over these."""
        is_own = self.mesh.axis_names and is_same_mesh(call.mesh, self.mesh)
        return self.mesh if is_own else abstract_mesh(call.mesh)

    def _shape(self, tensor: Tensor, mesh: Any) -> Any:
        rank = len(tensor.shape)
        spec = partition_spec(tensor.sharding, "an operand or a result")
        named = NamedSharding(mesh, _Spec(*spec, *[None] * (rank - len(spec))))
        if not self.decodes and not isinstance(mesh, AbstractMesh):
            named = without_names(named, rank)
        return _Shape(tensor.shape, _dtype(tensor), sharding=named)


def _explicit_mesh(aval: Any) -> Any:
    """The mesh in the type of an array, if some of its axes are explicit."""
    mesh = getattr(getattr(aval, "sharding", None), "mesh", None)
    return mesh if AxisType.Explicit in (getattr(mesh, "axis_types", None) or ()) else None


def _context(avals: Sequence[Any]) -> Any:
    """The context in which a program of arrays of these types has to be traced."""
    meshes = [mesh for mesh in map(_explicit_mesh, avals) if mesh is not None]
    return over(meshes[0]) if meshes else contextlib.nullcontext()


def _shape_of(aval: Any) -> Any:
    if _explicit_mesh(aval) is None:
        return _Shape(aval.shape, aval.dtype)
    return _Shape(aval.shape, aval.dtype, sharding=aval.sharding)


def _dtype(tensor: Tensor) -> Any:
    from shardcore.simulate.dtypes import DTYPES

    return DTYPES[tensor.dtype]


def _dims(shardings: Sequence[Any], tensors: Sequence[Tensor], mesh: Any) -> list[DimAxes]:
    """The axes of each dim of each tensor, from the sharding that the user's callback gave for
    it."""
    found = []
    for sharding, tensor in zip(shardings, tensors, strict=True):
        if not isinstance(sharding, Sharding):
            raise ValueError(f"Custom Partitioning rules must return Sharding, not {sharding!r}")
        rank = len(tensor.shape)
        if isinstance(sharding, NamedSharding) and _are_alike(sharding.mesh, mesh):
            spec = sharding.spec
        else:
            spec = spec_of(sharding, mesh, rank)
        dims = [_axes(entry) for entry in spec]
        found.append([*dims, *[[] for _ in range(rank - len(dims))]])
    return found


def _are_alike(one: Any, other: Any) -> bool:
    return list(one.shape.items()) == list(other.shape.items())


def _axes(entry: Any) -> list[str]:
    if entry is None:
        return []
    return [entry] if isinstance(entry, str) else list(entry)


def _local(shape: Sequence[int], dims: DimAxes, mesh: Any) -> tuple[int, ...]:
    """The shape of a tensor's shards; a dim that does not divide evenly is padded."""
    return tuple(
        -(-size // math.prod(mesh.shape[axis] for axis in axes))
        for size, axes in zip(shape, dims, strict=True)
    )


def _traced(
    lower: Any, in_tree: Any, shards: Sequence[Any], wanted: list[tuple[Any, Any]], mesh: Any
) -> Any:
    """``lower``, the function of shards, traced on the devices of ``mesh``."""
    automatic = (AxisType.Auto,) * len(mesh.axis_names)
    sizes = tuple(mesh.shape.values())
    bare = AbstractMesh(sizes, tuple(mesh.axis_names), axis_types=automatic)

    def body(*leaves: Any) -> tuple[Any, ...]:
        found = tuple(jax.tree.leaves(lower(*in_tree.unflatten(leaves))))
        shapes = [(each.shape, each.dtype) for each in map(jax.typeof, found)]
        if shapes != wanted:
            raise ValueError(f"Mismatch in result shapes. {_shown(shapes)} vs {_shown(wanted)}")
        return found

    # Traced as if replicated: arguments and results then have the shapes of shards.
    mapped = jax.shard_map(body, mesh=bare, in_specs=_Spec(), out_specs=_Spec(), check_vma=False)
    with over(bare):
        return jax.jit(mapped, keep_unused=True).trace(*shards)


def _shown(shapes: Sequence[Any]) -> str:
    return ", ".join(f"{dtype}{list(shape)}" for shape, dtype in shapes)


def _module(traced: Any, platforms: tuple[str, ...]) -> Module:
    """The module of ``traced``, through MLIR's generic form, which uses no external resources."""
    lowered = without_host(traced).lower(lowering_platforms=platforms)
    operation = lowered.compiler_ir("stablehlo").operation
    text = operation.get_asm(
        enable_debug_info=True, print_generic_op_form=True, use_local_scope=True
    )
    return Module.parse(text, filename="<custom_partitioning>")
