"""Compares a result with expectations."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from shardcore._core import Mesh, Result, Value
from shardcore.cached_property import cached_property
from shardcore.calculus.mistakes import choices
from shardcore.expect.report import Failure, shortened
from shardcore.expect.schema import Expectations, Forbidden
from shardcore.expect.sharding_text import dims_text
from shardcore.expect.subjects import Subject, Subjects, names_of, title
from shardcore.expect.toml_places import Path
from shardcore.units import format_bytes

if TYPE_CHECKING:
    from shardcore.costs import CollectiveCost, Cost


class Comparison:
    """A result and the expectations that it is compared with."""

    def __init__(self, result: Result, expected: Expectations) -> None:
        self.result = result
        self.expected = expected
        self.subjects = Subjects(result)
        meshes = [mesh for mesh in result.module.meshes.values() if mesh.axes]
        self.mesh: Mesh | None = meshes[0] if meshes else None
        self._axes = [name for mesh in meshes for name in mesh.axis_names]

    @cached_property
    def cost(self) -> Cost:
        """The cost of the result, on the chip whose memory is compared."""
        return self.result.cost(self.expected.hardware, self.expected.policy)

    def failures(self) -> list[Failure]:
        """Every failed expectation, in the order of the sections."""
        limits = (self.memory, self.replicated, self.divisible, self.diagnostics)
        named = (self.meshes, self.shardings, self.shapes, self.constraints)
        parts = (*named, self.collectives, *limits)
        return [failure for part in parts for failure in part()]

    @property
    def num_expectations(self) -> int:
        """Number of expectations."""
        expected = self.expected
        limits = (expected.peak, expected.arguments, expected.replicated)
        return (
            bool(expected.mesh)
            + len(expected.shardings)
            + len(expected.shapes)
            + sum(map(len, expected.constraints.values()))
            + len(expected.forbid)
            + len(expected.max_bytes)
            + len(expected.max_count)
            + sum(limit is not None for limit in limits)
            + int(expected.divisible)
            + len(expected.diagnostics)
        )

    def shardings(self) -> Iterator[Failure]:
        """Values with other shardings than expected, and names without a value."""
        for name, expected in self.expected.shardings.items():
            found = self.subjects.find(name)
            actual: list[str] = []
            places: list[str | None] = []
            if isinstance(found, str):
                actual.append(f"nothing is called that: {found}")
            else:
                for subject in found:
                    shape = subject.shape or ()
                    answer = expected.holds(subject.sharding, shape, self.mesh)
                    if answer is not True:
                        why = f", {answer}" if isinstance(answer, str) else ""
                        whose = f" of {title(subject)}" if len(found) > 1 else ""
                        sharding = dims_text(subject.sharding, len(shape))
                        actual.append(f"{sharding}{whose}{why}")
                        places.append(getattr(subject, "location", None))
            if actual:
                yield _failure(("shardings", name), expected.text, actual, places)

    def meshes(self) -> Iterator[Failure]:
        """A mesh with other axes than expected, or in another order."""
        expected = {axis: size for axis, size in self.expected.mesh.items() if size != 1}
        shape = {} if self.mesh is None else self.mesh.shape
        actual = {axis: size for axis, size in shape.items() if size != 1}
        if self.expected.mesh and [*expected.items()] != [*actual.items()]:
            yield Failure(("mesh",), _axes(expected), (_axes(actual),))

    def shapes(self) -> Iterator[Failure]:
        """Values with other shapes than expected, and names without a value."""
        for name, shape in self.expected.shapes.items():
            found = self.subjects.find(name)
            if isinstance(found, str):
                wrong = [f"nothing is called that: {found}"]
            else:
                wrong = [
                    f"{_shape(subject.shape)} of {title(subject)}"
                    for subject in found
                    if subject.shape != shape
                ]
            if wrong:
                yield Failure(("shapes", name), _shape(shape), shortened(wrong))

    def constraints(self) -> Iterator[Failure]:
        """Expected constraints of a type that no value of that type has."""
        for name, listed in self.expected.constraints.items():
            found = self.subjects.constrained(name)
            for expected in listed:
                if isinstance(found, str):
                    actual = [found]
                elif any(
                    expected.holds(value.sharding, value.shape or (), self.mesh) is True
                    for value in found
                ):
                    continue
                else:
                    actual = [
                        f"{dims_text(value.sharding, len(value.shape or ()))} of {title(value)}"
                        for value in found
                    ]
                places = [] if isinstance(found, str) else [value.location for value in found]
                yield _failure(("constraints", name), expected.text, actual, places)

    def collectives(self) -> Iterator[Failure]:
        """Forbidden collectives, and axes with more collectives or bytes than allowed."""
        for number, forbidden in enumerate(self.expected.forbid):
            path = ("collectives", "forbid", number)
            unknown = self._unknown_axis(forbidden.axis)
            if unknown:
                yield Failure(path, f"no {forbidden}", (unknown,))
                continue
            rows = [row for row in self.cost.collectives if _matches(row, forbidden)]
            if rows:
                lines = list(map(_collective, rows))
                yield _failure(path, f"no {forbidden}", lines, map(_cause, rows))
        for axis, limit in self.expected.max_bytes.items():
            found = self._on_axis(axis)
            sent = sum(row.total_wire_bytes for row in found)
            unknown = self._unknown_axis(axis)
            if unknown or sent > limit:
                yield self._above(
                    "max_bytes", axis, format_bytes(limit), format_bytes(sent), unknown, found
                )
        for axis, limit in self.expected.max_count.items():
            found = self._on_axis(axis)
            count = sum(row.count for row in found)
            unknown = self._unknown_axis(axis)
            if unknown or count > limit:
                yield self._above("max_count", axis, str(limit), str(count), unknown, found)

    def memory(self) -> Iterator[Failure]:
        """Limits of memory that are exceeded."""
        limit = self.expected.peak
        if limit is not None and self.cost.peak_bytes > limit:
            largest = sorted(self.cost.live_at_peak, key=lambda row: -row.bytes)
            peak = self.cost.peak_op
            at = f" at {peak.value or peak.name}" if peak else ""
            where = f", {peak.location}" if peak and peak.location else ""
            lines = [f"{format_bytes(self.cost.peak_bytes)}{at}{where}; the largest live there:"]
            lines += [
                f"{format_bytes(row.bytes)} {row.name} {row.location or ''}" for row in largest
            ]
            places = [peak.location if peak else None]
            yield _failure(("memory", "peak"), f"at most {format_bytes(limit)}", lines, places)
        limit = self.expected.arguments
        if limit is not None and self.cost.argument_bytes > limit:
            actual = (format_bytes(self.cost.argument_bytes),)
            yield Failure(("memory", "arguments"), f"at most {format_bytes(limit)}", actual)

    def replicated(self) -> Iterator[Failure]:
        """Values above the limit that are replicated on all devices."""
        limit = self.expected.replicated
        if limit is None:
            return
        rows = self.replicated_values(limit)
        if rows:
            lines = [f"{format_bytes(row.bytes or 0)} {_value(row)}" for row in rows]
            expected = f"no value above {format_bytes(limit)} on every device whole"
            places = [row.location for row in rows]
            yield _failure(("replicated", "max_bytes"), expected, lines, places)

    def replicated_values(self, limit: int) -> list[Value]:
        """The values of more than ``limit`` bytes that are fully replicated, the largest first."""
        found = [
            value
            for value in self.result.values()
            if (value.bytes or 0) > limit
            and self._is_replicated(value)
            and not self._is_allowed(value, self.expected.replicated_allow)
        ]
        return sorted(found, key=lambda value: -(value.bytes or 0))

    def divisible(self) -> Iterator[Failure]:
        """Dims that the devices do not divide evenly, so that they are padded."""
        if not self.expected.divisible:
            return
        lines: list[str] = []
        places: list[str | None] = []
        for subject in self._all():
            shape = subject.shape or ()
            # A tensor on a single device has a sharding without dims.
            if subject.sharding is None or subject.sharding.rank != len(shape):
                continue
            for dim, size in enumerate(shape):
                shards = subject.sharding.sharded_size(dim)
                allowed = self._is_allowed(subject, self.expected.divisible_allow)
                if size is not None and size % shards and not allowed:
                    lines.append(f"dim {dim} of {_value(subject)}: {size} over {shards} devices")
                    places.append(getattr(subject, "location", None))
        if lines:
            yield _failure(("divisible", "all"), "every dim divides", lines, places)

    def diagnostics(self) -> Iterator[Failure]:
        """Forbidden diagnostics."""
        expected = self.expected
        if not expected.diagnostics:
            return
        found = self.result.diagnostics(expected.diagnostics_hardware or expected.hardware)
        every = [one for each in found for one in (each, *each.follows)]
        left = [each for each in every if each.code not in expected.diagnostics_allow]
        for number, code in enumerate(expected.diagnostics):
            rows = [each for each in left if code in ("all", each.code)]
            if rows:
                what = "diagnostic" if code == "all" else code
                lines = [f"{each.code}: {each.message}" for each in rows]
                places = [each.location for each in rows]
                yield _failure(("diagnostics", "forbid", number), f"no {what}", lines, places)

    def _all(self) -> list[Subject]:
        return [*self.result.results(), *self.result.values()]

    def _is_replicated(self, value: Value) -> bool:
        """Whether ``value`` is replicated along all axes that are not manual where it is
        defined."""
        sharding = value.sharding
        mesh = self.mesh if sharding is None else sharding.mesh
        if mesh is None:
            return False
        manual = math.prod(mesh.axis_size(axis) for axis in value.manual_axes if axis in mesh)
        if mesh.num_devices <= manual:
            return False
        return sharding is None or all(
            sharding.sharded_size(dim) == 1 for dim in range(sharding.rank)
        )

    def _is_allowed(self, subject: Subject, allow: list[str]) -> bool:
        names = names_of(subject)
        if any(name in names for name in allow):
            return True
        # A value that is an argument may also be listed by its name in the user's program.
        places = (name for name in allow if name not in names and ":" in name)
        return any(subject in self._found(place) for place in places)

    def _found(self, name: str) -> list[Subject]:
        found = self.subjects.find(name)
        return [] if isinstance(found, str) else found

    def _on_axis(self, axis: str) -> list[CollectiveCost]:
        return [row for row in self.cost.collectives if _is_on(row, axis)]

    def _unknown_axis(self, axis: str | None) -> str:
        """The message that no mesh has ``axis``; empty if a mesh has it."""
        if axis is None or axis in self._axes:
            return ""
        return f'no mesh has an axis "{axis}": {choices(axis, dict.fromkeys(self._axes))}'

    @staticmethod
    def _above(
        key: str, axis: str, limit: str, total: str, unknown: str, rows: list[CollectiveCost]
    ) -> Failure:
        """The failure that ``axis``, which may be ``unknown``, has more collectives than
        allowed."""
        largest = sorted(rows, key=lambda row: -row.total_wire_bytes)
        lines = [unknown] if unknown else [f"{total}; the largest:", *map(_collective, largest)]
        return _failure(("collectives", key, axis), f"at most {limit}", lines, map(_cause, largest))


def _failure(
    path: Path, expected: str, actual: Sequence[str], places: Iterable[str | None]
) -> Failure:
    """A failure at the first known location in ``places``."""
    location = next((place for place in places if place), None)
    return Failure(path, expected, shortened(actual), location=location)


def _cause(row: CollectiveCost) -> str | None:
    """The location of the op that needs a collective."""
    return row.cause_location or row.location


def _matches(row: CollectiveCost, forbidden: Forbidden) -> bool:
    return row.kind == forbidden.kind and (forbidden.axis is None or _is_on(row, forbidden.axis))


def _is_on(row: CollectiveCost, axis: str) -> bool:
    """Whether the collective communicates along ``axis``, or a part of it."""
    return any(ref.name == axis for ref in row.axis_refs)


def _collective(row: CollectiveCost) -> str:
    times, runs = (f"{row.count} x ", " by all runs") if row.count != 1 else ("", "")
    place = _cause(row) or row.op
    where = f" at {place}" if place else ""
    axes = f" on {', '.join(row.axes)}" if row.axes else ""
    return f"{times}{row.kind}{axes}, {format_bytes(row.total_wire_bytes)} sent{runs}{where}"


def _value(subject: Subject) -> str:
    return f"{title(subject)} {_shape(subject.shape)}"


def _shape(shape: Sequence[int | None] | None) -> str:
    return f"[{'x'.join(map(str, shape or ()))}]"


def _axes(sizes: Mapping[str, int]) -> str:
    return ", ".join(f"{axis}={size}" for axis, size in sizes.items()) or "no axes"
