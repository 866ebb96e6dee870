"""Other annotations of a value that may be better than its present sharding."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import TYPE_CHECKING

from shardcore._core import AxisRef, DimSharding, TensorSharding
from shardcore.cached_property import cached_property

if TYPE_CHECKING:
    from shardcore._core import Mesh, Port, Result, Value
    from shardcore.why.remedy import Edit, Remedy
    from shardcore.why.trial import Trial

_MOST_TWINS = 4
"""How many shardings of other values of the same shape are considered."""

_Shape = tuple[int | None, ...]


class Layouts:
    """The shardings of a program's values, by shape; computed when needed."""

    def __init__(self, result: Result) -> None:
        self._result = result

    @property
    def axes(self) -> tuple[str, ...]:
        """The axes of all meshes."""
        meshes = self._result.module.meshes.values()
        return tuple(dict.fromkeys(name for mesh in meshes for name in mesh.axis_names))

    @cached_property
    def _twins(self) -> dict[_Shape, Counter[TensorSharding]]:
        ops = self._result._legalized().ops()
        values = (value for op in ops for value in op.results if not value.manual_axes)
        tensors: Iterable[Port | Value] = chain(
            self._result.arguments(), self._result.results(), values
        )
        counts = Counter((each.shape, each.sharding) for each in tensors)
        found: dict[_Shape, Counter[TensorSharding]] = defaultdict(Counter)
        for (shape, sharding), count in counts.items():
            if sharding is not None and shape and _is_plain(sharding):
                found[shape][_closed(sharding)] += count
        return found

    def of(self, shape: _Shape, mesh_name: str | None) -> Iterator[TensorSharding]:
        """Yield shardings for a value of ``shape``: the most frequent shardings of that shape, then
        each axis on each dim that it divides, the largest axis and the largest dim first.
        """
        known = [sharding for sharding, _ in self._twins[shape].most_common(_MOST_TWINS)]
        yield from known
        yield from (each for each in self.along_an_axis(shape, mesh_name) if each not in known)

    def along_an_axis(self, shape: _Shape, mesh_name: str | None) -> Iterator[TensorSharding]:
        """Yield each axis on each dim that it divides, the largest axis and dim first."""
        for name, mesh in self._result.module.meshes.items():
            if mesh_name in (None, name):
                yield from _single(shape, name, mesh)

    def best(
        self, name: str, shape: _Shape, mesh_name: str | None, trial: Trial, most: int
    ) -> Remedy | None:
        """Return the best of these annotations for the value ``name``; see :func:`best`."""
        edits = ((name, sharding) for sharding in self.of(shape, mesh_name))
        return best(edits, trial, most)


def best(edits: Iterable[Edit], trial: Trial, most: int) -> Remedy | None:
    """Return, among the first ``most`` of ``edits``, the one with the smallest step time times peak
    memory; ``None`` if all are refused. No argument may get fewer shards than before.
    """
    from shardcore.why.remedy import Remedy, keeping_shards

    before = trial.cost
    targets = ((trial.lines.reach(target), sharding) for target, sharding in edits)
    kept = keeping_shards(trial, ((name, each) for name, each in targets if name is not None))
    tried = ((edit, trial.after(*edit)) for edit in islice(kept, most))
    found = (Remedy.of(edit, trial, after) for edit, after in tried if after is not None)
    return min(found, key=lambda each: each.product(before), default=None)


def _is_plain(sharding: TensorSharding) -> bool:
    """Whether ``sharding`` has axes but no sub-axes, so that a ``PartitionSpec`` can say it."""
    axes = [axis for dim in sharding.dims for axis in dim.axes]
    return bool(axes) and all(axis.is_full for axis in axes)


def _closed(sharding: TensorSharding) -> TensorSharding:
    """``sharding`` as a user would write it: only its dims, all closed."""
    dims = [DimSharding(dim.axes) for dim in sharding.dims]
    assert sharding.mesh is not None
    return TensorSharding(sharding.mesh, dims, mesh_name=sharding.mesh_name)


def _single(shape: _Shape, mesh_name: str, mesh: Mesh) -> Iterator[TensorSharding]:
    axes = sorted(mesh.axis_names, key=lambda axis: -mesh.axis_size(axis))
    dims = sorted(enumerate(shape), key=lambda pair: -(pair[1] or 0))
    for axis in axes:
        parts = mesh.axis_size(axis)
        for place, size in dims:
            if size and parts > 1 and size % parts == 0:
                sharded = [DimSharding(())] * len(shape)
                sharded[place] = DimSharding([AxisRef(axis)])
                yield TensorSharding(mesh, sharded, mesh_name=mesh_name)
