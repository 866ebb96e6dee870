"""Named-axis notation: ``A[I_X, J_Y]``, ``bf16[B=1024_X, D=4096_Y]``, ``C[I, K] {U_X}``.

``I_X`` says that dim ``I`` is sharded along mesh axis ``X``; ``I_{XY}`` along ``X`` and ``Y``,
major to minor; ``I_{data,model}`` uses axes with longer names; ``{U_X}`` says that the array is
unreduced along ``X``: the devices along it hold terms of a sum. The array is replicated along all
other axes. In addition to the book's notation, ``I_{X:(1)2}`` is a sub-axis as in `sdy`, and ``?``
marks an open dim.

For ``A: bf16[I=1024_X, J=4096_Y]`` on ``X=4, Y=8``: every device holds ``bf16[256, 512]``, 256 KiB.

Source: "How to Scale Your Model", chapter 3, "Partitioning Notation and Collective Operations".
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from shardcore._core import AxisRef, DimSharding, Mesh, TensorSharding
from shardcore.cached_property import cached_property
from shardcore.calculus.axes import Axis, axis_refs, axis_text, group_size
from shardcore.calculus.dtypes import element_bytes
from shardcore.calculus.mistakes import choices, mistake
from shardcore.errors import CalculusError, VerificationError
from shardcore.expected import expect, expect_all


@dataclass(frozen=True)
class NamedDim:
    """One dim: a name, a size, or both, and the axes that shard it, major to minor."""

    name: str | None = None
    size: int | None = None
    """The global size; ``None`` if it is unknown."""
    axes: tuple[AxisRef, ...] = ()
    """The axes that shard the dim, major to minor; texts such as ``X:(1)2`` are accepted."""
    is_open: bool = False
    """Whether propagation may add axes."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "axes", axis_refs(self.axes))

    def __str__(self) -> str:
        label = "=".join(str(part) for part in (self.name, self.size) if part is not None)
        return label + _subscript(self.axes, self.is_open)


@dataclass(frozen=True, repr=False)
class NamedArray:
    """An array with named dims and its sharding.

    Raises:
        VerificationError: an axis is used twice (``axis-overlap``).
    """

    dims: tuple[NamedDim, ...]
    name: str | None = None
    dtype: str | None = None
    unreduced: tuple[AxisRef, ...] = ()
    """Axes along which the array is an unreduced sum; texts are accepted."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "dims", expect_all(self.dims, NamedDim, "dims"))
        object.__setattr__(self, "unreduced", axis_refs(self.unreduced))
        for repeated in _overlaps(
            [*(axis for dim in self.dims for axis in dim.axes), *self.unreduced]
        ):
            raise mistake(
                VerificationError,
                "axis-overlap",
                f'axis "{axis_text(repeated)}" is used twice in {self}',
                hint=overlap_hint(self, repeated),
                text=str(self),
            )

    @staticmethod
    def parse(text: str, mesh: Mesh | None = None, *, filename: str = "<notation>") -> NamedArray:
        """Parse the notation; with ``mesh``, every axis has to be one of its axes.

        Without ``mesh``, ``_XY`` means the axes ``X`` and ``Y``, and a word like ``_data`` one
        axis.

        Raises:
            ParseError: the text is not in this notation (``notation``).
            VerificationError: an axis is used twice (``axis-overlap``), or the mesh lacks it
                (``unknown-axis``).
        """
        from shardcore.calculus.notation_parser import parse_array

        return parse_array(text, mesh, filename=filename)

    def __str__(self) -> str:
        dims = ", ".join(map(str, self.dims))
        label = {
            (True, True): f"{self.name}: {self.dtype}",
            (True, False): self.name or "",
            (False, True): self.dtype or "",
            (False, False): "",
        }[self.name is not None, self.dtype is not None]
        unreduced = f" {{U{_subscript(self.unreduced, False)}}}" if self.unreduced else ""
        return f"{label}[{dims}]{unreduced}"

    def __repr__(self) -> str:
        return f"NamedArray.parse({str(self)!r})"

    @property
    def axes(self) -> tuple[AxisRef, ...]:
        """The axes that shard dims, in the order of the dims."""
        return tuple(axis for dim in self.dims for axis in dim.axes)

    @cached_property
    def dim_names(self) -> tuple[str, ...]:
        """The names of the dims, ``""`` for dims without one."""
        return tuple(dim.name or "" for dim in self.dims)

    @property
    def shape(self) -> tuple[int, ...]:
        """The global size of each dim.

        Raises:
            CalculusError: a size is unknown (``missing-size``).
        """
        missing = [dim.name or "?" for dim in self.dims if dim.size is None]
        if missing:
            raise mistake(
                CalculusError,
                "missing-size",
                f"the size of {' and '.join(missing)} in {self} is not known",
                hint="give " + ", ".join(f"{name}=..." for name in missing),
                text=str(self),
                span=self._span(next(dim for dim in self.dims if dim.size is None)),
            )
        return tuple(dim.size for dim in self.dims if dim.size is not None)

    def dim_index(self, dim: str | int) -> int:
        """Return the index of ``dim``, a name or an index.

        Raises:
            CalculusError: there is no such dim (``unknown-dim``).
        """
        names = [each.name or str(each.size) for each in self.dims]
        if isinstance(dim, int) or (dim not in names and re.fullmatch("[0-9]{1,9}", dim)):
            if 0 <= int(dim) < len(names):
                return int(dim)
        elif names.count(dim) == 1:
            return names.index(dim)
        raise mistake(
            CalculusError,
            "unknown-dim",
            f'{self} has no dim "{dim}"',
            hint=choices(str(dim), names),
            text=str(dim),
            filename="<dim>",
        )

    def with_sizes(self, sizes: Mapping[str, int], dtype: str | None = None) -> NamedArray:
        """Return the array with sizes for the named dims, and an element type if it has none.

        Raises:
            CalculusError: a dim already has another size (``size-mismatch``).
        """
        dims = [
            self._with_size(dim, sizes.get(dim.name, dim.size) if dim.name else dim.size)
            for dim in self.dims
        ]
        return replace(self, dims=tuple(dims), dtype=self.dtype or dtype)

    def with_shape(self, shape: Sequence[int]) -> NamedArray:
        """Return the array with these sizes, one for each dim.

        Raises:
            CalculusError: a dim already has another size (``size-mismatch``).
        """
        dims = [self._with_size(dim, size) for dim, size in zip(self.dims, shape, strict=True)]
        return replace(self, dims=tuple(dims))

    def _with_size(self, dim: NamedDim, size: int | None) -> NamedDim:
        if dim.size is not None and size != dim.size:
            raise mistake(
                CalculusError,
                "size-mismatch",
                f"{dim.name or 'a dim'} is {dim.size} in {self}, and {size} in the sizes given",
                hint="leave one of the two out",
                text=str(self),
                span=self._span(dim),
            )
        return replace(dim, size=size)

    def with_axes(
        self, axes: Sequence[Iterable[Axis]], unreduced: Iterable[Axis] = ()
    ) -> NamedArray:
        """Return the array with each dim sharded along its entry of ``axes``, major to minor."""
        dims = tuple(
            replace(dim, axes=axis_refs(cut)) for dim, cut in zip(self.dims, axes, strict=True)
        )
        return replace(self, dims=dims, unreduced=axis_refs(unreduced))

    def local_shape(self, mesh: Mesh) -> tuple[int, ...]:
        """Return the shape on a device: ``ceil(size / devices)`` along each dim.

        Raises:
            CalculusError: a size is unknown (``missing-size``).
            VerificationError: the mesh lacks an axis (``unknown-axis``).
        """
        return self.to_sharding(mesh).local_shape(self.shape)

    @property
    def bytes(self) -> int:
        """The bytes of one copy of the array.

        Raises:
            CalculusError: a size or the element type is unknown (``missing-size``).
        """
        return self._bytes(self.shape)

    def bytes_per_device(self, mesh: Mesh) -> int:
        """Return the bytes on one device, including padding.

        Raises:
            CalculusError, VerificationError: as for :meth:`local_shape` and :attr:`bytes`.
        """
        return self._bytes(self.local_shape(mesh))

    def total_bytes(self, mesh: Mesh) -> int:
        """Return the bytes that all devices of ``mesh`` hold together, including copies."""
        return self.bytes_per_device(mesh) * mesh.num_devices

    def closed(self) -> NamedArray:
        """Return the array with those dims closed that have axes."""
        dims = (replace(dim, is_open=dim.is_open and not dim.axes) for dim in self.dims)
        return replace(self, dims=tuple(dims))

    def replication_factor(self, mesh: Mesh) -> int:
        """Return how many devices hold the same block; terms of a sum count as copies."""
        return mesh.num_devices // group_size(mesh, self.axes)

    def to_sharding(self, mesh: Mesh, mesh_name: str | None = None) -> TensorSharding:
        """Return its sharding as a :class:`~shardcore.TensorSharding`.

        Raises:
            VerificationError: the mesh lacks an axis (``unknown-axis``).
        """
        expect(mesh, Mesh)
        dims = [DimSharding(dim.axes, is_closed=not dim.is_open) for dim in self.dims]
        order = mesh.axis_names
        unreduced = sorted(
            self.unreduced,
            key=lambda ref: (
                order.index(ref.name) if ref.name in order else len(order),
                ref.pre_size or 0,
            ),
        )
        return TensorSharding(mesh, dims, unreduced=unreduced, mesh_name=mesh_name)

    @staticmethod
    def from_sharding(
        sharding: TensorSharding,
        names: Iterable[str] | None = None,
        *,
        shape: Sequence[int] | None = None,
        name: str | None = None,
        dtype: str | None = None,
    ) -> NamedArray:
        """Return an array with a sharding; its dims are called ``names``, by default ``I, J, ...``.

        Priorities and explicitly replicated axes are left out: they matter to propagation, but not
        to what a device holds.

        Raises:
            VerificationError: unreduced axes are reduced by something other than a sum
                (``notation``).
        """
        expect(sharding, TensorSharding)
        if sharding.reduction_op != "sum":
            raise mistake(
                VerificationError,
                "notation",
                f"the notation has no {sharding.reduction_op} over unreduced axes",
                hint="it has sums",
                text=str(sharding),
            )
        labels = list(names) if names is not None else default_names(sharding.rank)
        sizes: Sequence[int | None] = shape if shape is not None else [None] * sharding.rank
        dims = tuple(
            NamedDim(label, size, dim.axes, dim.is_open)
            for label, size, dim in zip(labels, sizes, sharding.dims, strict=True)
        )
        return NamedArray(dims, name, dtype, sharding.unreduced)

    @staticmethod
    def from_sdy(text: str, mesh: Mesh, **options: str | None) -> NamedArray:
        """Return an array with the sharding in `sdy` text, ``<@mesh, [{"X"}, {?}]>``.

        Raises:
            ParseError, VerificationError: as for :meth:`TensorSharding.parse`.
        """
        return NamedArray.from_sharding(
            TensorSharding.parse(text, mesh=mesh),
            name=options.get("name"),
            dtype=options.get("dtype"),
        )

    def _span(self, dim: NamedDim) -> tuple[int, int]:
        """The span of ``dim`` in the text of the array."""
        before = ", ".join(map(str, self.dims[: self.dims.index(dim)]))
        start = str(self).index("[") + 1 + (len(before) + 2 if before else 0)
        return start, start + max(len(str(dim)), 1)

    def _bytes(self, shape: Sequence[int]) -> int:
        if self.dtype is None:
            raise mistake(
                CalculusError,
                "missing-size",
                f"the element type of {self} is not known",
                hint="write it in front, bf16[...], or give --dtype",
                text=str(self),
                span=(0, max(str(self).index("["), 1)),
            )
        return math.ceil(math.prod(shape) * element_bytes(self.dtype))


def default_names(rank: int) -> list[str]:
    """Names for ``rank`` dims: ``I``, ``J``, ... ``P``, then ``I8``, ``J8``, ..."""
    letters = "IJKLMNOP"
    return [
        letters[index % len(letters)] + (str(index) if index >= len(letters) else "")
        for index in range(rank)
    ]


def overlap_hint(array: NamedArray, axis: AxisRef) -> str:
    """The hint for an axis that is used twice: the arrays with only one of the uses."""
    places = [index for index, dim in enumerate(array.dims) if axis in dim.axes]
    shared = {axis}
    if len(places) == 2:
        shared |= set(array.dims[places[0]].axes) & set(array.dims[places[1]].axes)

    def keeping(kept: int) -> str:
        label = array.name or array.dtype or ""
        cut = (
            replace(dim, axes=tuple(a for a in dim.axes if a not in shared or index == kept))
            for index, dim in enumerate(array.dims)
        )
        return f"{label}[{', '.join(map(str, cut))}]"

    if len(places) == 2:
        return (
            f"an axis that cuts one dim is used up: gather one of the two, "
            f"{keeping(places[0])} or {keeping(places[1])}"
        )
    return "an axis cuts one dim only, or is summed over: use it once"


def _overlaps(axes: Iterable[AxisRef]) -> Iterable[AxisRef]:
    """The axes that overlap an earlier one."""
    seen: list[AxisRef] = []
    for axis in axes:
        if any(axis.overlaps(other) for other in seen):
            yield axis
        seen.append(axis)


def _subscript(axes: Sequence[AxisRef], is_open: bool) -> str:
    """``_X``, ``_{XY}``, ``_data``, ``_{data,model}``: the shortest text that parses again."""
    parts = [*map(_quoted, axes), *(["?"] if is_open else [])]
    if not parts:
        return ""
    texts = list(map(axis_text, axes))
    if texts and all(len(text) == 1 and text.isalpha() and text.isupper() for text in texts):
        text = "".join(parts)
        return f"_{text}" if len(parts) == 1 else f"_{{{text}}}"
    if len(parts) == 1:
        axis = parts[0]
        splits = axis.isalnum() and axis.isupper()
        if axis.isalnum() and not splits:
            return f"_{axis}"
        return f"_{{{axis},}}" if splits else f"_{{{axis}}}"
    return f"_{{{','.join(parts)}}}"


def _quoted(axis: AxisRef) -> str:
    name = axis.name
    plain = name.isascii() and name.replace("_", "a").isalnum() and not name[:1].isdigit()
    return axis_text(axis) if plain else f'"{name}"' + axis_text(axis)[len(name) :]
