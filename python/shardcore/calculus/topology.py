"""Maps mesh axes to the physical axes of a torus, which are rings or lines.

Without a topology, every mesh axis is one physical axis if the torus has enough; otherwise some
share one (:mod:`~shardcore.calculus.physical_axes`). With ``4x4x4`` and ``X=0,1``, the mesh axis
``X`` of 16 devices runs over two physical axes of four chips: twice the bandwidth, fewer hops.

Source: "How to Scale Your Model", chapter 3, the note below the second quiz on AllGather.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from operator import index

from shardcore._core import AxisRef, Mesh
from shardcore.bounded import items
from shardcore.calculus.axes import Axis, axis_refs
from shardcore.calculus.hardware import Hardware
from shardcore.calculus.mistakes import choices, mistake
from shardcore.calculus.physical_axes import (
    PhysicalAxis,
    Placement,
    excess,
    in_order_of_ids,
    joined,
    part_of,
    shared_axes,
    shared_on,
    sharing,
    show,
)
from shardcore.calculus.slices import filled, placed, shape_of, sizes_inside, slices_of
from shardcore.errors import CalculusError, VerificationError
from shardcore.expected import expect


@dataclass(frozen=True, repr=False)
class Topology:
    """The physical axes of each mesh axis."""

    mesh: Mesh
    hardware: Hardware
    axes: Mapping[str, tuple[PhysicalAxis, ...]]
    notes: tuple[str, ...] = ()
    """Remarks, such as that the mesh is larger than a pod."""
    slices: int = 1
    """The number of tori, connected by a network; :attr:`axes` are those within one torus."""

    @staticmethod
    def of(
        mesh: Mesh,
        hardware: Hardware,
        shape: Sequence[int] | str | None = None,
        mapping: Mapping[str, Sequence[int]] | None = None,
        slices: int | None = None,
    ) -> Topology:
        """Map ``mesh`` to tori of ``shape``, mesh axes to physical axes by ``mapping``.

        Without ``mapping``, mesh axes take physical axes in order, or parts of them if whole ones
        do not fit their sizes. Without ``shape``, each mesh axis is a physical axis, or spans
        several if no physical axis is that long; if there are more mesh axes than physical ones,
        some share the links of one. ``slices`` is the number of tori; by default as many as pods
        are needed.

        Raises:
            CalculusError: sizes do not match, a physical axis is used twice or does not exist
                (``invalid-topology``).
            TypeError: ``mesh`` or ``hardware`` is of another type, or ``mapping`` does not map
                names to numbers.
            VerificationError: ``mapping`` names an axis that the mesh lacks (``unknown-axis``).
        """
        expect(mesh, Mesh)
        expect(hardware, Hardware)
        mapping = _places(mapping) if mapping else {}
        count = slices_of(mesh, hardware, slices)
        inside = sizes_inside(mesh, count)
        if shape is None and hardware.axis_links and not mapping:
            shape = filled(mesh.num_devices // count, hardware)
        if shape is None:
            if mapping:
                shown = " ".join(map(_show_place, mapping.items()))
                raise _mistake("a mapping needs a topology", shown, "give --topology, e.g. 4x4x4")
            whole = placed(inside, hardware)
            shared = None if whole else shared_axes(inside, hardware)
            if shared:
                notes = sharing(hardware, *shared)
                return Topology(mesh, hardware, shared[0], notes, count)
            sizes = whole or {name: (size,) for name, size in inside.items()}
            links = min(hardware.axis_links, default=1.0)
            axes = {
                name: tuple(PhysicalAxis(each, hardware.wraps_around(each), links) for each in own)
                for name, own in sizes.items()
            }
            return Topology(mesh, hardware, axes, excess(hardware, axes), count)
        parts = parse_shape(shape)
        if math.prod(parts) != mesh.num_devices // count:
            raise _mistake(
                f"a topology of {show(parts)} has {math.prod(parts)} chips, the mesh "
                f"{mesh.num_devices} devices" + (f" in {count} slices" if count > 1 else ""),
                show(parts),
                _fitting(mesh, hardware, parts, inside),
            )
        return Topology(mesh, hardware, *_on(parts, mesh, hardware, inside, mapping), count)

    def __repr__(self) -> str:
        axes = ", ".join(
            f"{name}={' x '.join(map(str, parts)) or 1}" for name, parts in self.axes.items()
        )
        return f"<Topology {axes} of {self.hardware.name}>"

    def along(self, axes: Axis | Iterable[Axis]) -> list[PhysicalAxis]:
        """Return the physical axes of ``axes``, mesh axes or sub-axes, with more than one chip."""
        refs = axis_refs(axes)
        return joined(part for axis in refs for part in self._below(axis) if part.size > 1)

    def along_group(self, axes: Axis | Iterable[Axis], devices: int) -> list[PhysicalAxis]:
        """Return the physical axes of a group of ``devices`` along ``axes`` within one slice.

        If the order of device ids puts other devices into a slice than the axes do, that is a line.
        """
        parts = self.along(axes)
        if math.prod(part.size for part in parts) == devices:
            return parts
        return [PhysicalAxis(devices, False, min(self.hardware.axis_links, default=1.0))]

    def _below(self, axis: AxisRef) -> Iterable[PhysicalAxis]:
        parts = self.axes[axis.name]
        if axis.is_full:
            return parts
        start = axis.stride_in(self.mesh) // AxisRef(axis.name).stride_in(self.mesh)
        end = start * axis.size_in(self.mesh)
        found: list[PhysicalAxis] = []
        below = 1
        for part in reversed(parts):
            above = below * part.size
            low, high = max(start, below), min(end, above)
            if low < high:
                if low % below or high % low or part.size % (high // below):
                    # The group spans a part of physical axes: modelled as a line.
                    stride = max(part.stride for part in parts)
                    links = min(part.links for part in parts)
                    return (PhysicalAxis(axis.size_in(self.mesh), False, links, stride),)
                closes = part.wraps_around and high == above
                stride = part.stride * (low // below)
                found.append(PhysicalAxis(high // low, closes, part.links, stride, part.shared))
            below = above
        return reversed(found)

    def slices_of(self, axes: Iterable[Axis]) -> tuple[int, int]:
        """Return the number of slices of a group along ``axes``, and its devices in each."""
        refs = axis_refs(axes)
        return self.mesh.group_nodes(refs, self.mesh.num_devices // self.slices)

    def nodes_of(self, axes: Iterable[Axis]) -> tuple[int, int]:
        """Return the number of nodes of a group along ``axes``, and its most devices in one node.

        Devices are assigned to nodes in the order of their ids.
        """
        return self.mesh.group_nodes(axis_refs(axes), self.hardware.node_size)


def parse_shape(shape: str | Sequence[int]) -> tuple[int, ...]:
    """Parse ``4x4x4``, or check a sequence of sizes.

    Raises:
        CalculusError: it has another form (``invalid-topology``).
    """
    if isinstance(shape, str):
        text = shape
    else:
        sizes = map(index, items(shape, "dims"))
        text = "x".join(str(size) if abs(size) < 10**9 else "..." for size in sizes)
    if not re.fullmatch(r"[1-9][0-9]{0,8}(x[1-9][0-9]{0,8})*", text):
        raise mistake(
            CalculusError,
            "invalid-topology",
            f'"{text}" is no topology',
            hint="write the sizes of the physical axes, 4x4x4",
            text=text,
            span=(0, max(len(text), 1)),
            filename="<topology>",
        )
    return tuple(map(int, text.split("x")))


def parse_mapping(texts: Iterable[str]) -> dict[str, tuple[int, ...]]:
    """Parse ``X=0,1``, or several as ``X=0,1 Y=2`` or ``X=0,1;Y=2``.

    Raises:
        CalculusError: it has another form (``invalid-topology``).
    """
    mapping: dict[str, tuple[int, ...]] = {}
    for text in texts:
        for item in re.split(r"[;\s]+", text.strip()):
            found = re.fullmatch(r"(\w+)=(\d{1,3}(?:,\d{1,3})*)", item)
            if not found or found[1] in mapping:
                start = text.find(item)
                raise mistake(
                    CalculusError,
                    "invalid-topology",
                    f'"{item}" says twice where an axis lies'
                    if found
                    else f'"{item}" does not say where an axis lies',
                    hint="write X=0,1 for a mesh axis over the first two physical axes",
                    text=text,
                    span=(start, start + max(len(item), 1)),
                    filename="<mapping>",
                )
            mapping[found[1]] = tuple(map(int, found[2].split(",")))
    return mapping


def _places(mapping: Mapping[str, Sequence[int]]) -> dict[str, tuple[int, ...]]:
    """The physical axes of each mesh axis, as integers."""
    expect(mapping, Mapping)
    found: dict[str, tuple[int, ...]] = {}
    for name, places in mapping.items():
        expect(name, str)
        found[name] = tuple(map(index, items(places, "physical axes")))
    return found


def _mapped(
    mesh: Mesh,
    inside: Mapping[str, int],
    parts: tuple[int, ...],
    mapping: Mapping[str, tuple[int, ...]],
) -> dict[str, tuple[int, ...]]:
    used: dict[int, str] = {}
    for name, places in mapping.items():
        if name not in mesh:
            raise mistake(
                VerificationError,
                "unknown-axis",
                f'the mesh has no axis "{name}"',
                hint=choices(name, mesh.axis_names),
                text=_show_place((name, places)),
                span=(0, len(name)),
                filename="<mapping>",
            )
        for place in places:
            if not 0 <= place < len(parts):
                raise _mistake(
                    f"{name} lies on physical axis {place}, but {show(parts)} has 0 to "
                    f"{len(parts) - 1}",
                    _show_place((name, places)),
                    "physical axes count from 0",
                )
            if place in used:
                raise _mistake(
                    f"physical axis {place} carries both {used[place]} and {name}",
                    _show_place((name, places)),
                    "give each mesh axis physical axes of its own",
                )
            used[place] = name
        chips = math.prod(parts[place] for place in places)
        if chips != inside[name]:
            raise _mistake(
                f"{name} has {inside[name]} devices, its physical axes {chips} chips",
                _show_place((name, places)),
                "both have to be the same; without a mapping mesh axes take parts of physical ones",
            )
    found = dict(mapping)
    for axis in mesh.axes:
        if axis.name not in found and inside[axis.name] > 1:
            raise _mistake(
                f"the mapping does not say where {axis.name} lies",
                " ".join(map(_show_place, mapping.items())),
                f"add {axis.name}=...",
            )
        found.setdefault(axis.name, ())
    return found


def _fitting(
    mesh: Mesh, hardware: Hardware, parts: tuple[int, ...], inside: Mapping[str, int]
) -> str:
    """The hint with what would fit the mesh: another topology, or several slices of this one."""
    sizes = [size for size in inside.values() if size > 1] or [1]
    whole = filled(math.prod(sizes), hardware) if hardware.axis_links else None
    shape = whole or shape_of(sizes, hardware) or tuple(sizes)
    hint = f"a topology of {show(shape)} has as many"
    slices, rest = divmod(mesh.num_devices, math.prod(parts))
    if rest == 0 and slices > 1 and hardware.is_torus:
        try:
            slices_of(mesh, hardware, slices)
        except CalculusError:
            return hint
        return f"{hint}; so do {slices} slices of {show(parts)}"
    return hint


def _in_order(
    inside: Mapping[str, int], parts: tuple[int, ...]
) -> dict[str, tuple[int, ...]] | None:
    """Give each mesh axis the next physical axes that make up its size, or else others that do;
    ``None`` if none do."""
    found: dict[str, tuple[int, ...]] = {}
    place = 0
    for name, size in inside.items():
        taken: list[int] = []
        chips = 1
        while (
            place < len(parts)
            and chips * parts[place] <= size
            and (chips < size or parts[place] == 1)
        ):
            chips *= parts[place]
            taken.append(place)
            place += 1
        if chips != size:
            return _in_any_order(list(inside.items()), parts, tuple(range(len(parts))))
        found[name] = tuple(taken)
    return found


def _in_any_order(
    axes: Sequence[tuple[str, int]], parts: tuple[int, ...], free: tuple[int, ...]
) -> dict[str, tuple[int, ...]] | None:
    """Give each of ``axes`` some of the ``free`` physical axes that make up its size."""
    if not axes:
        return {}
    (name, size), *others = axes
    for count in range(len(free) + 1):
        for own in combinations(free, count):
            if math.prod(parts[place] for place in own) != size:
                continue
            rest = tuple(place for place in free if place not in own)
            found = _in_any_order(others, parts, rest)
            if found is not None:
                return {name: own, **found}
    return None


def _on(
    parts: tuple[int, ...],
    mesh: Mesh,
    hardware: Hardware,
    inside: Mapping[str, int],
    mapping: Mapping[str, tuple[int, ...]],
) -> tuple[Placement, tuple[str, ...]]:
    """Place the mesh on a slice of the shape ``parts``, with notes."""
    if hardware.axis_links and not mapping:
        by_id = in_order_of_ids(inside, parts, hardware)
        if by_id is not None:
            return by_id, sharing(hardware, by_id, parts)
    places = _mapped(mesh, inside, parts, mapping) if mapping else _in_order(inside, parts)
    if places is None:
        shared = shared_on(inside, parts, hardware)
        return shared, sharing(hardware, shared, parts)
    axes = {
        name: tuple(part_of(parts[place], place, 1, parts, hardware) for place in used)
        for name, used in places.items()
    }
    return axes, excess(hardware, axes)


def _show_place(item: tuple[str, Iterable[int]]) -> str:
    name, places = item
    return f"{name}={','.join(map(str, places))}"


def _mistake(message: str, shown: object, hint: str) -> CalculusError:
    """The error that a topology or mapping does not fit; ``shown`` is the wrong part."""
    return mistake(
        CalculusError,
        "invalid-topology",
        message,
        hint=hint,
        text=str(shown),
        filename="<topology>",
    )
