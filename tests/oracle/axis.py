"""Axis refs: a full mesh axis, or a sub-axis of one.

An axis of size 12 split as 2·3·2 is three sub-axes, (1)2, (2)3 and (6)2, written as
(pre-size)size, where the pre-size is the product of the sizes major to the sub-axis. So a
sub-axis is the range from its pre-size to pre-size·size, and a full axis the range from 1
to the axis size. The size of a full axis depends on the mesh, so without one its range
ends at infinity, after that of any sub-axis.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from .mesh import Mesh


@dataclass(frozen=True)
class AxisRef:
    """The axis `name`, or its sub-axis (`pre_size`)`sub_size` when these are given."""

    name: str
    pre_size: int | None = None
    sub_size: int | None = None

    @property
    def is_full(self) -> bool:
        return self.sub_size is None

    @property
    def start(self) -> int:
        return 1 if self.pre_size is None else self.pre_size

    @property
    def end(self) -> float:
        """The next pre-size; infinity for a full axis."""
        if self.pre_size is None or self.sub_size is None:
            return math.inf
        return self.pre_size * self.sub_size

    def end_in(self, mesh: Mesh) -> int:
        return mesh.axis_size(self.name) if self.is_full else int(self.end)

    def size_in(self, mesh: Mesh) -> int:
        return mesh.axis_size(self.name) if self.sub_size is None else self.sub_size

    def __str__(self) -> str:
        return f'"{self.name}"' + ("" if self.is_full else f":({self.pre_size}){self.sub_size}")


def axis_range(name: str, start: float, end: float) -> AxisRef:
    """Build the axis ref with the range from `start` to `end`."""
    if end == math.inf:
        assert start == 1, "only a full axis has no known end"
        return AxisRef(name)
    return AxisRef(name, int(start), int(end) // int(start))


def contains(outer: AxisRef, inner: AxisRef) -> bool:
    return outer.name == inner.name and outer.start <= inner.start and inner.end <= outer.end


def is_prefix(first: AxisRef, second: AxisRef) -> bool:
    return contains(second, first) and first.start == second.start


def is_suffix(first: AxisRef, second: AxisRef, mesh: Mesh) -> bool:
    return contains(second, first) and first.end_in(mesh) == second.end_in(mesh)


def overlaps(first: AxisRef, second: AxisRef) -> bool:
    same_axis = first.name == second.name
    return same_axis and max(first.start, second.start) < min(first.end, second.end)


def can_coexist(first: AxisRef, second: AxisRef) -> bool:
    """Tell whether one split of the axis has the bounds of both, so that each divides the next."""
    if first.name != second.name:
        return True
    cuts = sorted(
        {cut for ref in (first, second) if not ref.is_full for cut in (ref.start, ref.end)}
    )
    return all(later % earlier == 0 for earlier, later in itertools.pairwise(cuts))


def overlap(first: AxisRef, second: AxisRef) -> AxisRef | None:
    """Return the overlap of both; None if they do not overlap or cannot coexist."""
    if not overlaps(first, second) or not can_coexist(first, second):
        return None
    return axis_range(first.name, max(first.start, second.start), min(first.end, second.end))


def prefix_without_overlap(ref: AxisRef, other: AxisRef) -> AxisRef | None:
    """Return the longest prefix of `ref` that does not overlap `other`."""
    if not can_coexist(ref, other):
        return None
    if not overlaps(ref, other):
        return ref
    return axis_range(ref.name, ref.start, other.start) if ref.start < other.start else None


def suffix_without_overlap(ref: AxisRef, other: AxisRef, mesh: Mesh) -> AxisRef | None:
    """Return the longest suffix of `ref` that does not overlap `other`."""
    if not can_coexist(ref, other):
        return None
    if not overlaps(ref, other):
        return ref
    start, end = other.end_in(mesh), ref.end_in(mesh)
    return axis_range(ref.name, start, end) if start < end else None


def prefix_without_overlaps(ref: AxisRef, others: Iterable[AxisRef]) -> AxisRef | None:
    """Shorten `ref` by each of `others` in turn.

    The order can matter: if `ref` cannot coexist with one of them the result is None,
    unless an earlier one has shortened it.
    """
    result: AxisRef | None = ref
    for other in others:
        if result is not None:
            result = prefix_without_overlap(result, other)
    return result


def common_prefix(first: AxisRef, second: AxisRef) -> AxisRef | None:
    if not can_coexist(first, second):
        return None
    if is_prefix(first, second):
        return first
    return second if is_prefix(second, first) else None


def can_merge(major: AxisRef, minor: AxisRef) -> bool:
    if major.name != minor.name or major.is_full or minor.is_full:
        return False
    return major.end == minor.start


def merge(major: AxisRef, minor: AxisRef, mesh: Mesh) -> AxisRef:
    assert can_merge(major, minor)
    if major.start == 1 and minor.end == mesh.axis_size(major.name):
        return AxisRef(major.name)
    return axis_range(major.name, major.start, minor.end)


def split(ref: AxisRef, major_size: int, mesh: Mesh) -> tuple[AxisRef, AxisRef]:
    """Cut `ref` after its major part of `major_size`, which must leave a minor part."""
    size = ref.size_in(mesh)
    assert 1 < major_size < size
    assert size % major_size == 0
    cut = ref.start * major_size
    return axis_range(ref.name, ref.start, cut), axis_range(ref.name, cut, ref.end_in(mesh))


# Lists of axis refs, major to minor.


def total_size(refs: Iterable[AxisRef], mesh: Mesh) -> int:
    return math.prod(ref.size_in(mesh) for ref in refs)


def append_or_merge(refs: list[AxisRef], ref: AxisRef, mesh: Mesh) -> None:
    if refs and can_merge(refs[-1], ref):
        refs[-1] = merge(refs[-1], ref, mesh)
    else:
        refs.append(ref)


def is_list_prefix(first: Sequence[AxisRef], second: Sequence[AxisRef]) -> bool:
    """Tell whether `second` starts with `first`, of which the last ref may be a prefix."""
    if not first:
        return True
    if len(first) > len(second):
        return False
    last = len(first) - 1
    return list(first[:last]) == list(second[:last]) and is_prefix(first[last], second[last])


def is_strict_list_prefix(first: Sequence[AxisRef], second: Sequence[AxisRef]) -> bool:
    return is_list_prefix(first, second) and list(first) != list(second)


def list_common_prefix(first: Sequence[AxisRef], second: Sequence[AxisRef]) -> list[AxisRef]:
    result: list[AxisRef] = []
    for left, right in zip(first, second, strict=False):
        prefix = common_prefix(left, right)
        if prefix is not None:
            result.append(prefix)
        if left != right:
            break
    return result


def truncate(
    refs: Iterable[AxisRef], longest_prefix: Callable[[AxisRef], AxisRef | None]
) -> list[AxisRef]:
    """Keep refs up to the first that `longest_prefix` shortens or drops."""
    result: list[AxisRef] = []
    for ref in refs:
        prefix = longest_prefix(ref)
        if prefix is not None:
            result.append(prefix)
        if prefix != ref:
            break
    return result


def difference(refs: Iterable[AxisRef], others: Iterable[AxisRef], mesh: Mesh) -> list[AxisRef]:
    """Return `refs`, in order, without the ranges that `others` cover.

    Assumes that all of them can coexist.
    """
    result: list[AxisRef] = []
    for ref in refs:
        covered = sorted(
            (other.start, other.end_in(mesh)) for other in others if overlaps(ref, other)
        )
        if not covered:
            result.append(ref)
            continue
        at = ref.start
        for start, end in covered:
            if at < start:
                result.append(axis_range(ref.name, at, start))
            at = max(at, end)
        if at < ref.end_in(mesh):
            result.append(axis_range(ref.name, at, ref.end_in(mesh)))
    return result


def mesh_order(mesh: Mesh) -> Callable[[AxisRef], tuple[int, int, float]]:
    """Return the sort key: by axis in the mesh, then by start, then by length."""
    return lambda ref: (mesh.axis_index(ref.name), ref.start, ref.end)


def sort_and_merge(refs: Iterable[AxisRef], mesh: Mesh) -> list[AxisRef]:
    result: list[AxisRef] = []
    for ref in sorted(refs, key=mesh_order(mesh)):
        append_or_merge(result, ref, mesh)
    return result
