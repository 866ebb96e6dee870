"""Layouts: for each mesh axis the classes of dims that it shards, by precedence.

The axis shards a tensor in its first dim of the first of these classes that the tensor has. So
``data: (batch, width)`` shards activations by their batch, and parameters, which have no batch, by
their width: this is FSDP. ``model: (hidden, heads)`` is tensor parallelism.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from shardcore._core import Mesh

Dims = tuple[tuple[str, ...], ...]
"""The axes of each dim of a tensor, from major to minor."""


@dataclass(frozen=True)
class Layout:
    """For each axis of a mesh, the classes that it shards."""

    mesh: Mesh
    axes: tuple[tuple[int, ...], ...]
    """For each mesh axis its classes, by precedence."""

    def of(self, classes: Sequence[int], sizes: Sequence[int], *, even: bool = False) -> Dims:
        """Return the axes of each dim of a tensor.

        Args:
            classes: the class of each dim.
            sizes: the size of each dim.
            even: whether to skip axes that do not divide their dim, as for arguments.
        """
        found: list[list[str]] = [[] for _ in sizes]
        shards = [1] * len(sizes)
        for axis, wanted in zip(self.mesh.axes, self.axes, strict=True):
            for number in wanted:
                dim = next(
                    (
                        dim
                        for dim, known in enumerate(classes)
                        if known == number and _fits(sizes[dim], shards[dim] * axis.size, even)
                    ),
                    None,
                )
                if dim is not None:
                    found[dim].append(axis.name)
                    shards[dim] *= axis.size
                    break
        return tuple(map(tuple, found))


def _fits(size: int, shards: int, even: bool) -> bool:
    return size % shards == 0 if even else size >= shards


def spec(dims: Dims) -> str:
    """Return ``dims`` as the text of a ``PartitionSpec``, without trailing ``None``."""
    entries = [_entry(axes) for axes in dims]
    while entries and entries[-1] == "None":
        entries.pop()
    return f"P({', '.join(entries)})"


def _entry(axes: tuple[str, ...]) -> str:
    if not axes:
        return "None"
    quoted = [repr(axis) for axis in axes]
    return quoted[0] if len(quoted) == 1 else f"({', '.join(quoted)})"


def or_none(dims: Dims) -> Dims | None:
    """Return ``dims``, or ``None`` if they have no axes."""
    return dims if any(dims) else None


def without_axis(dims: Dims, axis: str) -> Dims | None:
    """Return ``dims`` without ``axis``; ``None`` if no axis is left."""
    return or_none(tuple(tuple(a for a in axes if a != axis) for axes in dims))


def with_axis(dims: Dims, shape: Sequence[int], mesh: Mesh, axis: str, dim: int) -> Dims | None:
    """Return ``dims`` with ``axis`` added to ``dim``; ``None`` if it does not divide the dim."""
    if axis in dims[dim]:
        return dims
    sizes = mesh.shape
    rest = tuple(tuple(a for a in axes if a != axis) for axes in dims)
    axes = tuple(sorted((*rest[dim], axis), key=list(sizes).index))
    if shape[dim] % math.prod(sizes[name] for name in axes):
        return None
    return (*rest[:dim], axes, *rest[dim + 1 :])
