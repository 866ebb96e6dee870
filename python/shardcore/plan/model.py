"""Estimates the cost of a layout without propagation: to rank layouts, never to report figures.

For each mesh axis, each distinct op is sharded along one factor, the first that the layout names.
An operand with the axis elsewhere is gathered or exchanged, and a sharded reduction factor needs an
all-reduce. Times are computed as in :mod:`shardcore.costs`, for the same chip.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass

from shardcore._core import AxisRef, Mesh
from shardcore.calculus.hardware import Hardware
from shardcore.costs.links import Links
from shardcore.plan.classes import Tensor, Work
from shardcore.plan.layouts import Dims, Layout
from shardcore.plan.roles import Role

_READS_AGAIN = 0.5
"""The part of an elementwise op's bytes that is moved after fusion."""
_SMALL = 1000
"""Ops with less than one part in this number of the work are left out."""


@dataclass(frozen=True)
class Estimate:
    """The estimated cost of a layout on one device."""

    seconds: float
    """Seconds of all ops and all collectives."""
    bytes: float
    """Bytes at the peak."""


class _Within(dict[tuple[int, ...], tuple[int, ...]]):
    """For the classes that an axis shards, those of them that some tensors have: the others have no
    effect on these."""

    def __init__(self, classes: Container[int]) -> None:
        self._classes = classes

    def __missing__(self, wanted: tuple[int, ...]) -> tuple[int, ...]:
        found = self[wanted] = tuple(each for each in wanted if each in self._classes)
        return found

    def of(self, layout: Layout) -> tuple[tuple[int, ...], ...]:
        """Return the classes of each axis of ``layout``."""
        return tuple([self[wanted] for wanted in layout.axes])


class _Group:
    """Ops with the same classes, and their seconds and bytes by mesh and the axes of these."""

    def __init__(self, classes: frozenset[int]) -> None:
        self.within = _Within(classes)
        self.ops: list[tuple[Work, int]] = []
        self.known: dict[tuple[Mesh, tuple[tuple[int, ...], ...]], tuple[float, float]] = {}


class _Held:
    """Arguments with the same dims."""

    def __init__(self, classes: tuple[int, ...], shape: tuple[int, ...]) -> None:
        self._classes, self._shape = classes, shape
        self._within = _Within(classes)
        self._known: dict[tuple[Mesh, tuple[tuple[int, ...], ...]], int] = {}
        self.bytes = 0

    def shards(self, layout: Layout) -> int:
        """Return the number of parts that each is divided into."""
        key = layout.mesh, self._within.of(layout)
        found = self._known.get(key)
        if found is None:
            dims = layout.of(self._classes, self._shape, even=True)
            found = self._known[key] = _shards(dims, layout.mesh.shape)
        return found


class Model:
    """The ops of a program, with their costs on a chip."""

    def __init__(
        self,
        work: Mapping[Work, int],
        roles: Sequence[Role],
        chip: Hardware,
        links: Links,
        peak_bytes: int,
    ) -> None:
        """Prepare estimates for a program whose peak on one device is ``peak_bytes``."""
        self._rate = chip.flops_per_second("bf16")
        self._memory_rate = chip.hbm_bytes_per_second
        self._links = links
        self._seconds: dict[tuple[object, ...], float] = {}
        groups: dict[frozenset[int], _Group] = {}
        for op, count in _heavy(work).items():
            classes = frozenset(_classes(op))
            groups.setdefault(classes, _Group(classes)).ops.append((op, count))
        self._groups = [*groups.values()]
        held: dict[tuple[object, ...], _Held] = {}
        for role in roles:
            one = held.setdefault((role.classes, role.shape), _Held(role.classes, role.shape))
            one.bytes += role.bytes
        self._held = [*held.values()]
        self._known: dict[Layout, Estimate] = {}
        self._known_dims: dict[tuple[object, ...], Dims] = {}
        inside = sum(sum(t.bytes for t in op.results) * count for op, count in work.items())
        self._arguments = sum(role.bytes for role in roles)
        self._live = max(peak_bytes - self._arguments, 0) / max(inside, 1.0)
        """The part of the bytes of all results that is live at the peak."""

    def estimate(self, layout: Layout) -> Estimate:
        """Return the estimated cost of ``layout``."""
        found = self._known.get(layout)
        if found is None:
            found = self._known[layout] = self._estimate(layout)
        return found

    def _estimate(self, layout: Layout) -> Estimate:
        seconds = live = 0.0
        sizes = layout.mesh.shape
        for group in self._groups:
            key = layout.mesh, group.within.of(layout)
            found = group.known.get(key)
            if found is None:
                found = group.known[key] = self._group(group.ops, Layout(*key), sizes)
            seconds += found[0]
            live += found[1]
        held = sum(each.bytes / each.shards(layout) for each in self._held)
        return Estimate(seconds, held + live * self._live)

    def _dims(self, tensor: Tensor, layout: Layout) -> Dims:
        """The axes of each dim of an operand or result."""
        key = (tensor.classes, tensor.sizes, layout)
        found = self._known_dims.get(key)
        if found is None:
            found = self._known_dims[key] = layout.of(tensor.classes, tensor.sizes)
        return found

    def _group(
        self, ops: Sequence[tuple[Work, int]], layout: Layout, sizes: Mapping[str, int]
    ) -> tuple[float, float]:
        """The seconds of ``ops`` and their collectives, and the bytes of their results."""
        seconds = live = 0.0
        for op, count in ops:
            took, kept = self._op(op, layout, sizes)
            seconds += took * count
            live += kept * count
        return seconds, live

    def _op(self, work: Work, layout: Layout, sizes: Mapping[str, int]) -> tuple[float, float]:
        """The seconds of an op and its collectives, and the bytes of its results."""
        chosen = self._factors(work, layout)
        shards = [1] * len(work.sizes)
        for axis, factor in chosen.items():
            shards[factor] *= sizes[axis]
        parts = math.prod(shards)
        moved = 0.0
        seconds = 0.0
        for tensor in work.operands:
            local = tensor.bytes / _cut(tensor, shards)
            moved += local
            seconds += self._fetched(tensor, local, chosen, layout, sizes)
        kept = 0.0
        for tensor in work.results:
            local = tensor.bytes / _cut(tensor, shards)
            kept += local
            seconds += self._summed(work, tensor, local, chosen, layout)
        moved = moved + kept if work.is_product else (moved + kept) * _READS_AGAIN
        return seconds + max(work.flops / parts / self._rate, moved / self._memory_rate), kept

    def _factors(self, work: Work, layout: Layout) -> dict[str, int]:
        """For each axis the factor along which it shards the op."""
        chosen: dict[str, int] = {}
        shards = [1] * len(work.sizes)
        for axis, wanted in zip(layout.mesh.axes, layout.axes, strict=True):
            for number in wanted:
                factor = next(
                    (
                        factor
                        for factor, known in enumerate(work.classes)
                        if known == number
                        and factor not in work.replicated
                        and work.sizes[factor] >= shards[factor] * axis.size
                    ),
                    None,
                )
                if factor is not None:
                    chosen[axis.name] = factor
                    shards[factor] *= axis.size
                    break
        return chosen

    def _fetched(
        self,
        tensor: Tensor,
        local: float,
        chosen: Mapping[str, int],
        layout: Layout,
        sizes: Mapping[str, int],
    ) -> float:
        """The seconds to reshard an operand to what the op needs."""
        seconds = 0.0
        for dim, axes in enumerate(self._dims(tensor, layout)):
            for axis in axes:
                factor = chosen.get(axis, -1)
                if factor >= 0 and factor == tensor.factors[dim]:
                    continue
                if factor >= 0 and factor in tensor.factors:
                    whole = local * sizes[axis]
                    seconds += self._time("all_to_all", layout.mesh, axis, whole)
                else:
                    seconds += self._time("all_gather", layout.mesh, axis, local)
        return seconds

    def _summed(
        self,
        work: Work,
        tensor: Tensor,
        local: float,
        chosen: Mapping[str, int],
        layout: Layout,
    ) -> float:
        """The seconds to all-reduce a result over the axes of sharded reduction factors."""
        seconds = 0.0
        dims = self._dims(tensor, layout)
        for axis, factor in chosen.items():
            if factor not in work.reduction:
                continue
            scattered = any(axis in axes for axes in dims)
            kind = "reduce_scatter" if scattered else "all_reduce"
            seconds += self._time(kind, layout.mesh, axis, local)
        return seconds

    def _time(self, kind: str, mesh: Mesh, axis: str, num_bytes: float) -> float:
        key = (kind, mesh, axis, num_bytes)
        found = self._seconds.get(key)
        if found is None:
            found = self._links.cost(kind, mesh, (AxisRef(axis),), math.ceil(num_bytes)).seconds
            self._seconds[key] = found
        return found


def _heavy(work: Mapping[Work, int]) -> dict[Work, int]:
    """The ops with more than a small part of all FLOPs or bytes."""
    flops = sum(op.flops * count for op, count in work.items())
    moved = sum(_moved(op) * count for op, count in work.items())
    return {
        op: count
        for op, count in work.items()
        if op.flops * count * _SMALL >= flops or _moved(op) * count * _SMALL >= moved
    }


def _moved(op: Work) -> float:
    return sum(tensor.bytes for tensor in (*op.operands, *op.results))


def _classes(work: Work) -> Iterator[int]:
    yield from work.classes
    for tensor in (*work.operands, *work.results):
        yield from tensor.classes


def _cut(tensor: Tensor, shards: Sequence[int]) -> int:
    """The number of shards of a tensor if its factors have ``shards`` parts."""
    return math.prod(shards[factor] for factor in tensor.factors if factor >= 0)


def _shards(dims: Dims, sizes: Mapping[str, int]) -> int:
    return math.prod(sizes[axis] for axes in dims for axis in axes)
