"""Shardings as written in expectations, and whether a value has them.

They are written as in ``sdy``, without the mesh, ``[{"data"}, {}]``, or as in JAX, ``P("data",
None)``. An open dim allows further axes: ``{?}`` any axes, ``{"data", ?}`` any after ``data``. In a
spec that is shorter than the value's rank, the remaining dims have no axes. GSPMD's notation is
accepted too, ``{devices=[2,1,4]<=[8] last_tile_dim_replicate}``, alone or as JAX prints it,
``GSPMDSharding({replicated})``; and also the text of a whole sharding, ``<@mesh, [{"data"}]>``,
whose mesh is not compared. In Python, ``PartitionSpec``s and shardings are accepted as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from shardcore._core import AxisRef, DimSharding, Mesh, TensorSharding
from shardcore.bounded import shown
from shardcore.calculus.partition_spec import from_spec, is_spec, kind_of
from shardcore.calculus.pasted import unwrap
from shardcore.calculus.spellings import parse_spec
from shardcore.errors import ShardcoreError
from shardcore.gspmd import HloSharding

_HINT = 'write [{"data"}, {}] or P("data", None)'


@dataclass(frozen=True)
class ExpectedSharding:
    """A sharding over the mesh of the value that it is compared with."""

    text: str
    dims: tuple[DimSharding, ...]
    unreduced: tuple[AxisRef, ...]
    is_spec: bool
    """Whether it is written as a ``PartitionSpec``."""
    hlo: HloSharding | None = None
    """The sharding, if it is in GSPMD's notation; ``dims`` is then empty."""
    reduction_op: Literal["sum", "max", "min"] = "sum"
    """The reduction of values over ``unreduced``."""

    def holds(
        self, sharding: TensorSharding | None, shape: tuple[int | None, ...], mesh: Mesh | None
    ) -> bool | str:
        """Whether a value of ``shape`` has this sharding; a text says why no such value can have
        it.

        A value without a sharding counts as replicated on all devices of ``mesh``.
        """
        device = device_alone(sharding)
        if device is not None:
            return f"it is on device {device} alone"
        rank = len(shape)
        if self.hlo is not None:
            return self._holds_hlo(self.hlo, sharding, shape, mesh)
        if len(self.dims) > rank or (len(self.dims) < rank and not self.is_spec):
            return f"it has {rank} dims, not {len(self.dims)}"
        dims = (*self.dims, *[DimSharding()] * (rank - len(self.dims)))
        if sharding is None or sharding.mesh is None:
            if not self.unreduced and not any(dim.axes for dim in dims):
                return True
            if mesh is None:
                return "the program has no mesh"
            sharding = TensorSharding.fully_replicated(mesh, rank)
        assert sharding.mesh is not None
        try:
            wanted = TensorSharding(
                sharding.mesh,
                dims,
                unreduced=self._unreduced(sharding.mesh),
                reduction_op=self.reduction_op,
            )
        except ShardcoreError as error:
            return error.message
        if wanted.is_fully_closed:
            sizes = [size for size in shape if size is not None]
            return wanted.is_equivalent(sharding, sizes if len(sizes) == rank else None)
        unreduced = (sharding.unreduced, sharding.reduction_op)
        return unreduced == (wanted.unreduced, wanted.reduction_op) and all(
            actual.axes[: len(dim.axes)] == dim.axes
            and (dim.is_open or len(actual.axes) == len(dim.axes))
            for dim, actual in zip(wanted.dims, sharding.dims, strict=True)
        )

    def _holds_hlo(
        self,
        hlo: HloSharding,
        sharding: TensorSharding | None,
        shape: tuple[int | None, ...],
        mesh: Mesh | None,
    ) -> bool | str:
        known = None if sharding is None else sharding.mesh
        mesh = known or mesh
        if mesh is None:
            return "the program has no mesh"
        actual = sharding or TensorSharding.fully_replicated(mesh, len(shape))
        try:
            wanted = hlo.to_sharding(mesh, rank=len(shape))
        except ShardcoreError as error:
            return error.message
        if wanted.rank != len(shape):
            return f"it has {len(shape)} dims, not {wanted.rank}"
        sizes = [size for size in shape if size is not None]
        return wanted.is_equivalent(actual, sizes if len(sizes) == len(shape) else None)

    def _unreduced(self, mesh: Mesh) -> list[AxisRef]:
        """The unreduced axes in mesh order, as in shardings; unknown ones come last."""
        places = {name: place for place, name in enumerate(mesh.axis_names)}
        return sorted(self.unreduced, key=lambda axis: places.get(axis.name, len(places)))

    def rewritten(self, sharding: TensorSharding | None, rank: int) -> str:
        """``sharding`` in the notation of this one, or as in ``sdy`` if that notation cannot say
        it."""
        if self.hlo is not None and sharding is not None:
            return str(sharding.to_hlo())
        if self.is_spec:
            spec = spec_text(sharding)
            if spec is not None:
                return spec
        return dims_text(sharding, rank)


def parse_sharding(text: object) -> ExpectedSharding | tuple[str, str]:
    """Parse ``text``; a sharding, a ``PartitionSpec``, or an object with a ``spec`` is accepted
    too.

    Returns a message and a hint if it is none of these.
    """
    try:
        if not isinstance(text, str):
            return _of_object(text)
        stripped = unwrap(text.strip()).text
        if stripped.startswith(("P(", "PartitionSpec(")):
            return _of_spec(parse_spec(stripped), stripped)
        if stripped.startswith("{"):
            hlo = HloSharding.parse(stripped)
            return ExpectedSharding(stripped, (), (), is_spec=False, hlo=hlo)
        if stripped.startswith("["):
            return _of_sharding(TensorSharding.parse(f"<@mesh, {stripped}>"), stripped)
        if stripped.startswith(("<", "#sdy.sharding<")):
            return _of_sharding(TensorSharding.parse(stripped), stripped)
    except ShardcoreError as error:
        return f"{shown(text)} is no sharding: {error.message}", error.hint or _HINT
    return f"{shown(text)} is no sharding", _HINT


def _of_object(given: object) -> ExpectedSharding | tuple[str, str]:
    if isinstance(given, TensorSharding):
        return _of_sharding(given, str(given))
    spec: Any = getattr(given, "spec", given)
    if is_spec(spec):
        return _of_spec(spec, str(spec))
    return f"{shown(given)} is no sharding", _HINT


def _of_spec(spec: Any, text: str) -> ExpectedSharding | tuple[str, str]:
    if getattr(spec, "reduced", None):
        return f"no value is {text}: reduced axes are about its gradient", "leave reduced= out"
    array = from_spec(spec, any_kind=True)
    dims = tuple(DimSharding(dim.axes, is_closed=not dim.is_open) for dim in array.dims)
    reduction_op = kind_of(spec) if array.unreduced else "sum"
    return ExpectedSharding(text, dims, array.unreduced, is_spec=True, reduction_op=reduction_op)


def _of_sharding(sharding: TensorSharding, text: str) -> ExpectedSharding:
    return ExpectedSharding(
        text,
        sharding.dims,
        sharding.unreduced,
        is_spec=False,
        reduction_op=sharding.reduction_op,
    )


def device_alone(sharding: TensorSharding | None) -> int | None:
    """The device of a maximal sharding; ``None`` for all other shardings, which alone expectations
    can state.
    """
    if sharding is None or sharding.mesh is None or not sharding.mesh.is_maximal:
        return None
    return (sharding.mesh.device_ids or (0,))[0]


def dims_text(sharding: TensorSharding | None, rank: int) -> str:
    """``sharding`` as in ``sdy``, without its mesh; if there is none, all dims without axes."""
    if sharding is None:
        return f"[{', '.join(['{}'] * rank)}]"
    closed = TensorSharding(
        "@mesh",
        sharding.closed().dims,
        unreduced=sharding.unreduced,
        reduction_op=sharding.reduction_op,
    )
    text = str(closed)
    return text.removeprefix("<@mesh, ").removesuffix(">")


def spec_text(sharding: TensorSharding | None) -> str | None:
    """``sharding`` as a ``PartitionSpec``; ``None`` if no spec can say it."""
    if sharding is None:
        return "P()"
    axes = [axis for dim in sharding.dims for axis in dim.axes]
    if not all(axis.is_full for axis in (*axes, *sharding.unreduced)):
        return None
    entries = [tuple(axis.name for axis in dim.axes) for dim in sharding.dims]
    while entries and not entries[-1]:
        entries.pop()
    parts = [repr(entry[0] if len(entry) == 1 else entry or None) for entry in entries]
    if sharding.unreduced:
        names = ", ".join(repr(axis.name) for axis in sharding.unreduced)
        parts.append(f"unreduced={{{names}}}")
        if sharding.reduction_op != "sum":
            parts.append(f"unreduced_kind={sharding.reduction_op}")
    return f"P({', '.join(parts)})"
