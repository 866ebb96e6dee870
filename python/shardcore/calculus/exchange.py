"""Collectives on arrays: what every device holds before and after, and the collective's matrix.

:func:`perform` does one collective on the blocks of all devices; :func:`matrix_of` is a collective
as a matrix on these blocks, one after the other. With ``u = (1, ..., 1)`` of length p and the
Kronecker product, the matrices on vectors of n elements are::

    broadcast = u * I_n            AllGather     = broadcast * I_p
    reduce    = u^T * I_n          ReduceScatter = reduce * I_p

so that AllGather and ReduceScatter are each other's transposes.

Source: "How to Scale Your Model", chapter 3, "More about the ReduceScatter".
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from operator import index
from typing import TYPE_CHECKING, Any

from shardcore._core import AxisRef, Mesh, TensorSharding
from shardcore.calculus.axes import group_size
from shardcore.calculus.collectives import Collective
from shardcore.calculus.mistakes import mistake
from shardcore.errors import CalculusError
from shardcore.expected import expect

if TYPE_CHECKING:
    import numpy as np

_MOST_ELEMENTS = 1 << 26
"""The size limit of a matrix, in elements."""

Blocks = dict[int, Any]
"""The block of each device, by device id."""

MAX_ELEMENTS = 4096
"""The size limit of the blocks of a collective whose matrix is made, in elements."""


def perform(collective: Collective, blocks: Mapping[int, Any], mesh: Mesh) -> Blocks:
    """Return what each device holds after ``collective``; before, it held its entry of ``blocks``.

    Raises:
        CalculusError: sizes are unknown (``missing-size``), or ``blocks`` does not have one block
            for each device (``size-mismatch``).
    """
    expect(collective, Collective)
    expect(mesh, Mesh)
    before, after = collective.array, collective.result
    devices = set(coordinates(mesh))
    if set(blocks) != devices:
        message = f"blocks of {len(blocks)} devices for a mesh of {len(devices)}"
        hint = "give a block for each device id of the mesh"
        raise mistake(CalculusError, "size-mismatch", message, text=str(collective), hint=hint)
    if collective.op == "permute":
        return _shifted(collective, blocks, mesh)
    return moved(
        blocks,
        mesh,
        before.shape,
        [dim.axes for dim in before.dims],
        [dim.axes for dim in after.dims],
        [axis for axis in before.unreduced if axis not in after.unreduced],
        after.unreduced,
    )


def matrix_of(collective: Collective, mesh: Mesh) -> np.ndarray[Any, Any]:
    """Return ``collective`` as a matrix. It maps the blocks of all devices, concatenated in the
    order of device ids, to the blocks after the collective.

    The matrix of :meth:`Collective.transposed` is its transpose.

    Raises:
        CalculusError: sizes are unknown (``missing-size``), or the blocks have more than 4096
            elements in all (``invalid-option``).
    """
    import numpy as np

    expect(collective, Collective)
    devices = sorted(coordinates(mesh))
    shape = collective.array.to_sharding(mesh).device_slices(collective.array.shape)
    shapes = [tuple(each.stop - each.start for each in shape[device]) for device in devices]
    sizes = [int(np.prod(each)) for each in shapes]
    if sum(sizes) > MAX_ELEMENTS:
        raise mistake(
            CalculusError,
            "invalid-option",
            f"the blocks have {sum(sizes)} elements in all",
            text=str(collective),
            hint=f"a matrix is made for up to {MAX_ELEMENTS}",
        )
    columns = []
    for number in range(sum(sizes)):
        unit = np.eye(1, sum(sizes), number)[0]
        parts = np.split(unit, np.cumsum(sizes)[:-1])
        blocks = {d: part.reshape(s) for d, part, s in zip(devices, parts, shapes, strict=True)}
        after = perform(collective, blocks, mesh)
        columns.append(np.concatenate([after[device].ravel() for device in devices]))
    matrix: np.ndarray[Any, Any] = np.stack(columns, axis=1)
    return matrix


def broadcast_matrix(n: int, p: int) -> np.ndarray[Any, Any]:
    """Return the matrix that copies a vector of ``n`` elements to ``p`` devices, of shape (pn, n).

    Raises:
        ValueError: it has more than 2^26 elements.
    """
    import numpy as np

    n, p = index(n), index(p)
    if n * n * p > _MOST_ELEMENTS:
        raise ValueError(f"the matrix has more than {_MOST_ELEMENTS} elements")
    found: np.ndarray[Any, Any] = np.kron(np.ones((p, 1)), np.eye(n))
    return found


def reduce_matrix(n: int, p: int) -> np.ndarray[Any, Any]:
    """Return the matrix that adds vectors of ``n`` elements on ``p`` devices, of shape (n, pn)."""
    matrix: np.ndarray[Any, Any] = broadcast_matrix(n, p).T
    return matrix


def coordinates(mesh: Mesh) -> dict[int, tuple[int, ...]]:
    """The coordinates of each device along the axes of the mesh."""
    places = product(*(range(axis.size) for axis in mesh.axes))
    ids = mesh.device_ids or range(mesh.num_devices)
    return dict(zip(ids, places, strict=True))


def moved(
    blocks: Mapping[int, Any],
    mesh: Mesh,
    shape: tuple[int, ...],
    before: Sequence[Sequence[AxisRef]],
    after: Sequence[Sequence[AxisRef]],
    summed: Sequence[AxisRef],
    kept: Sequence[AxisRef] = (),
) -> Blocks:
    """Return the blocks under the sharding ``after``, made of the blocks under ``before``.

    Args:
        blocks: the block of each device.
        mesh: the mesh.
        shape: the shape of the array.
        before: the axes that shard each dim of ``blocks``.
        after: the axes that shard each dim of the result.
        summed: axes along which ``blocks`` are terms of a sum that is computed.
        kept: axes along which they are terms of a sum that stays unreduced.
    """
    import numpy as np

    old = TensorSharding(mesh, list(before)).device_slices(shape)
    new = TensorSharding(mesh, list(after)).device_slices(shape)
    places = coordinates(mesh)
    changed = {
        axis.name
        for pair in zip(before, after, strict=True)
        for axis in set(pair[0]) ^ set(pair[1])
    }
    reordered = {
        axis.name for a, b in zip(before, after, strict=True) if list(a) != list(b) for axis in a
    }
    terms = {axis.name for axis in summed}
    free = changed | reordered | terms
    free_at = [at for at, name in enumerate(mesh.axis_names) if name in free]
    groups: dict[tuple[int, ...], list[int]] = {}
    for device, place in places.items():
        fixed = tuple(each for at, each in enumerate(place) if at not in free_at)
        fixed += _along(kept, mesh, place)
        groups.setdefault(fixed, []).append(device)
    found: Blocks = {}
    for members in groups.values():
        for device in members:
            target = new[device]
            block = np.zeros([part.stop - part.start for part in target], blocks[device].dtype)
            seen: set[tuple[Any, ...]] = set()
            for source in [device, *members]:
                term = _along(summed, mesh, places[source])
                key = (term, *((part.start, part.stop) for part in old[source]))
                if key in seen:
                    continue
                seen.add(key)
                _add(block, target, blocks[source], old[source])
            found[device] = block
    return found


def _along(axes: Sequence[AxisRef], mesh: Mesh, place: tuple[int, ...]) -> tuple[int, ...]:
    """The coordinates along ``axes``, which may be sub-axes, of the device at ``place``."""
    found = []
    for axis in axes:
        at = mesh.axis_names.index(axis.name)
        size = axis.size_in(mesh)
        minor = mesh.axes[at].size // ((axis.pre_size or 1) * size)
        found.append(place[at] // minor % size)
    return tuple(found)


def _add(block: Any, target: tuple[slice, ...], source: Any, from_: tuple[slice, ...]) -> None:
    """Add the elements ``from_`` of ``source`` to the elements ``target`` of ``block``."""
    starts = [max(a.start, b.start) for a, b in zip(target, from_, strict=True)]
    stops = [min(a.stop, b.stop) for a, b in zip(target, from_, strict=True)]
    if all(start < stop for start, stop in zip(starts, stops, strict=True)):
        spans = list(zip(starts, stops, strict=True))
        into = tuple(
            slice(a - p.start, b - p.start) for (a, b), p in zip(spans, target, strict=True)
        )
        out = tuple(slice(a - p.start, b - p.start) for (a, b), p in zip(spans, from_, strict=True))
        block[into] += source[out]


def _shifted(collective: Collective, blocks: Mapping[int, Any], mesh: Mesh) -> Blocks:
    """Each block moved to the device ``shift`` further along the axes; the last axis is minor."""
    names_ = [axis.name for axis in collective.axes]
    order = [mesh.axis_names.index(name) for name in names_]
    sizes = [mesh.axes[at].size for at in order]
    places = coordinates(mesh)
    devices = {place: device for device, place in places.items()}
    found: Blocks = {}
    for device, place in places.items():
        index = 0
        for at, size in zip(order, sizes, strict=True):
            index = index * size + place[at]
        index = (index + collective.shift) % group_size(mesh, collective.axes)
        there = list(place)
        for at, size in zip(reversed(order), reversed(sizes), strict=True):
            index, there[at] = divmod(index, size)
        found[devices[tuple(there)]] = blocks[device]
    return found
