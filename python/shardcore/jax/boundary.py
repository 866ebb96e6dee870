"""The arguments and results of a partitioned function, and checks that JAX can say their
shardings."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
from jax.core import ShapedArray
from jax.sharding import NamedSharding

from shardcore._core import Mesh, Port, TensorSharding
from shardcore.errors import Diagnostic
from shardcore.jax.mistakes import mistake, mistakes
from shardcore.jax.specs import implicit_axes, trimmed_spec, unsayable
from shardcore.simulate.dtypes import DTYPES

_DONATED = ("jax.buffer_donor", "tf.aliasing_output")


@dataclass(frozen=True)
class Leaf:
    """A leaf of the arguments or results of a function."""

    name: str
    """The leaf's path in the user's program."""
    shape: tuple[int, ...]
    """Its shape in the user's program, where a PRNG key is one element."""
    dtype: Any
    """Its element type in the user's program."""
    sharding: NamedSharding
    """Its sharding over the mesh that the program runs on."""
    shard: ShapedArray
    """Shape and type of its shard on one device; for PRNG keys, those of the key data."""
    is_donated: bool
    """Whether the program may reuse its memory (the argument is donated)."""

    @property
    def is_key(self) -> bool:
        """Whether it holds PRNG keys, whose data are unsigned integers."""
        return bool(jax.numpy.issubdtype(self.dtype, jax.dtypes.extended))

    def describe(self) -> Any:
        """Return its shape, dtype and sharding as a ``jax.ShapeDtypeStruct``."""
        describe: Any = jax.ShapeDtypeStruct
        return describe(self.shape, self.dtype, sharding=self.sharding)


def boundary_mesh(ports: Iterable[Port]) -> Mesh | None:
    """Return the mesh of the first of ``ports`` that is sharded along axes, if there is one."""
    meshes = (sharding.mesh for sharding in map(_sharding_over_axes, ports) if sharding)
    return next(meshes, None)


def _sharding_over_axes(port: Port) -> TensorSharding | None:
    sharding = port.sharding
    if sharding is None or not (any(d.axes for d in sharding.dims) or sharding.unreduced):
        return None
    return sharding


def leaves(
    ports: Sequence[Port], avals: Sequence[Any] | None, own: Mesh | None, mesh: jax.sharding.Mesh
) -> list[Leaf]:
    """Return ``ports``, sharded over ``own``, as leaves over ``mesh``, the user's mesh.

    ``avals`` are the shapes and types in the user's program; if it is ``None``, those of the
    lowered program are used.

    Raises:
        LoweringError: JAX arrays cannot have some of the shardings (``unsayable-sharding``);
            ``.diagnostics`` lists all of them.
    """
    problems = [problem for port in ports for problem in _problems(port, own, mesh)]
    if problems:
        raise mistakes(*problems)
    known: Iterable[Any] = [None] * len(ports) if avals is None else avals
    return [_leaf(port, aval, mesh) for port, aval in zip(ports, known, strict=True)]


def _problems(port: Port, own: Mesh | None, mesh: jax.sharding.Mesh) -> list[Diagnostic]:
    """The properties of ``port`` that a JAX array over ``mesh`` cannot have. ``own`` is the mesh
    that the other ports are sharded over.
    """
    name, sharding = port.label or port.name, _sharding_over_axes(port)
    if sharding is None:
        return []
    if sharding.mesh != own:
        return [
            _problem(
                f"{name} is over {sharding.mesh} and others are over {own}",
                "shard arguments and results over one mesh; inside the program there may be more",
            )
        ]
    parts = unsayable(sharding, name)
    if parts:
        return parts
    implicit = implicit_axes([axis.name for axis in sharding.unreduced], mesh)
    if implicit:
        axes = ", ".join(f'"{axis}"' for axis in implicit)
        said = f"{name} is left unreduced over {axes}, which is not explicit"
        return [_problem(said, "reduce it in the program, or give the mesh AxisType.Explicit")]
    kind = sharding.reduction_op
    if kind != "sum":
        hint = "reduce it in the program"
        message = f"{name} is left unreduced by {kind}, and jax.shard_map returns sums only"
        return [Diagnostic("unsayable-sharding", message, hint)]
    return [
        _problem(
            f"{name} is uneven: dim {dim}, of size {size}, over {sharding.sharded_size(dim)}",
            "shard it over fewer devices, or pad it; inside the program dims may be uneven",
        )
        for dim, size in enumerate(port.shape or ())
        if size is not None and size % sharding.sharded_size(dim)
    ]


def _problem(message: str, hint: str) -> Diagnostic:
    return Diagnostic("unsayable-sharding", f"JAX arrays cannot say that {message}", hint)


def _leaf(port: Port, aval: Any, mesh: jax.sharding.Mesh) -> Leaf:
    name = port.label or port.name
    if port.shape is None or None in port.shape or port.dtype not in DTYPES:
        raise mistake("lowering", f"JAX has no arrays of type {port.type}, which {name} has")
    shape = tuple(size or 0 for size in port.shape)
    dtype = DTYPES[port.dtype]
    spec = trimmed_spec(port.sharding)
    if aval is not None and len(spec) > len(aval.shape):
        problem = f"the data of each key of {name} are split over devices"
        raise mistakes(_problem(problem, "constrain the keys in the program"))
    return Leaf(
        name,
        shape if aval is None else tuple(aval.shape),
        dtype if aval is None else aval.dtype,
        NamedSharding(mesh, spec),
        ShapedArray(
            shape if port.local_shape is None else port.local_shape,
            dtype,
            weak_type=bool(getattr(aval, "weak_type", False)),
        ),
        any(attribute in port.attributes for attribute in _DONATED),
    )
