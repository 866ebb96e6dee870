"""The device groups of a collective, in each notation of HLO."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

MOST_DEVICES = 1 << 20
"""The largest number of devices; groups of more are treated as unknown."""

__all__ = [
    "MOST_DEVICES",
    "Groups",
    "groups_of",
    "joined",
    "joined_groups",
    "normalized",
    "pairs_of",
]

Groups = tuple[tuple[int, ...], ...]
"""Groups of devices: ascending within a group, groups ordered by their first device."""

_PAIRS = re.compile(r"[ ,]source_target_pairs=\{((?:\{\d+,\d+\},?)*)\}")
_PAIR = re.compile(r"\{(\d+),(\d+)\}")
_LISTED = re.compile(r"\{([\d,]*)\}")
_IOTA = re.compile(r"\[([\d,]+)\]<=\[([\d,]+)\](?:T\(([\d,]+)\))?")
_MESH = re.compile(r"@?\w*mesh\[(?P<axes>[^\]]*)\].*?\{(?P<used>[^{}]*)\}$")
_DEVICE_IDS = re.compile(r"device_ids=\((?P<ids>.*?)\) ?\{")
_AXIS = re.compile(r"'([^']+)'=(\d+)")
_USED = re.compile(r"'([^']+)'(?::\((\d+)\)(\d+))?")


def normalized(groups: Iterable[Sequence[int]]) -> Groups:
    """Return ``groups`` in canonical order, without groups of one device, which exchange
    nothing."""
    return tuple(sorted(tuple(sorted(group)) for group in groups if len(group) > 1))


@lru_cache(maxsize=4096)
def groups_of(attributes: str, num_devices: int) -> Groups:
    """Return the groups in ``attributes``, the text of an instruction's attributes.

    Without groups, all of ``num_devices`` form one group.
    """
    start = attributes.find("replica_groups=")
    everybody = [range(num_devices if num_devices <= MOST_DEVICES else 0)]
    if start < 0:
        return normalized(everybody)
    text = attributes[start + len("replica_groups=") :]
    if text.startswith("["):
        found = _IOTA.match(text)
        if found:
            return normalized(_iota(*found.groups()))
    elif text.startswith("{"):
        rows = [_ids(row) for row in _LISTED.findall(text[: text.find("}}") + 1])]
        return normalized(rows if any(rows) else everybody)
    else:
        # The braces with the used axes come last; nothing before them contains braces.
        mesh = _MESH.match(text[: text.find("}") + 1])
        if mesh:
            return normalized(_over_mesh(text[: text.find("}") + 1], mesh))
    return ()


def pairs_of(attributes: str) -> tuple[tuple[int, int], ...]:
    """Return the source-target pairs of a permute, without those from a device to itself."""
    found = _PAIRS.search(attributes)
    pairs = _PAIR.findall(found[1]) if found else []
    return tuple((int(one), int(other)) for one, other in pairs if one != other)


def joined(pairs: Iterable[tuple[int, int]]) -> Groups:
    """Return the connected groups of devices under ``pairs``."""
    leader: dict[int, int] = {}

    def find(device: int) -> int:
        while leader.setdefault(device, device) != device:
            leader[device] = device = leader[leader[device]]
        return device

    for one, other in pairs:
        leader[find(one)] = find(other)
    groups: dict[int, list[int]] = {}
    for device in leader:
        groups.setdefault(find(device), []).append(device)
    return normalized(groups.values())


def joined_groups(several: Iterable[Groups]) -> Groups:
    """Return the connected groups of devices under all of ``several``."""
    return joined(
        (group[0], device) for groups in several for group in groups for device in group[1:]
    )


def _ids(text: str) -> list[int]:
    return [int(number) for number in text.split(",") if number]


def _iota(shape: str, reshaped: str, order: str | None) -> Iterator[list[int]]:
    ids = _transposed(_ids(reshaped), _ids(order) if order else None)
    sizes = _ids(shape)
    width = math.prod(sizes[1:])
    return (ids[start : start + width] for start in range(0, len(ids), width or 1))


def _transposed(sizes: list[int], order: list[int] | None) -> list[int]:
    """The indices of an array of ``sizes`` in row-major order, after its dims are transposed to
    ``order``."""
    strides = [math.prod(sizes[at + 1 :]) for at in range(len(sizes))]
    ids = [0] if math.prod(sizes) <= MOST_DEVICES else []
    for dim in range(len(sizes)) if order is None else order:
        ids = [base + step * strides[dim] for base in ids for step in range(sizes[dim])]
    return ids


def _over_mesh(text: str, mesh: re.Match[str]) -> Iterator[list[int]]:
    sizes = {name: int(size) for name, size in _AXIS.findall(mesh["axes"])}
    if math.prod(sizes.values()) > MOST_DEVICES:
        return
    ids = list(range(math.prod(sizes.values())))
    listed = _DEVICE_IDS.search(text)
    if listed:
        iota = re.match(r"\[([\d,]+)\](?:T\(([\d,]+)\))?", listed["ids"])
        if iota:
            ids = _transposed(_ids(iota[1]), _ids(iota[2]) if iota[2] else None)
        else:
            ids = _ids(re.sub(r"[^\d,]", "", listed["ids"]))
    # Each axis is split into digits, a stride and a size each, at its used sub-axes.
    used: list[tuple[int, int]] = []
    rest: list[tuple[int, int]] = []
    parts = {name: _sub_axes(mesh["used"], name) for name in sizes}
    stride = math.prod(sizes.values())
    for name, size in sizes.items():
        stride //= size
        left = size
        for before, part in parts[name]:
            # From the major end: the part before a sub-axis, then the sub-axis.
            part = part or size
            skipped = left // (size // before) if before else 1
            if skipped > 1:
                left //= skipped
                rest.append((stride * left, skipped))
            left //= part
            used.append((stride * left, part))
        if left > 1:
            rest.append((stride, left))
    if len(ids) < math.prod(sizes.values()):
        return
    for base in _sums(rest):
        yield [ids[base + offset] for offset in _sums(used)]


def _sub_axes(used: str, name: str) -> list[tuple[int, int]]:
    """The used parts of the axis, from the major end: the pre-size and size of each; ``(1, 0)`` for
    the whole axis."""
    found = [(before, size) for axis, before, size in _USED.findall(used) if axis == name]
    return sorted((int(before or 1), int(size or 0)) for before, size in found)


def _sums(digits: list[tuple[int, int]]) -> list[int]:
    sums = [0]
    for stride, size in digits:
        sums = [base + stride * step for base in sums for step in range(size)]
    return sums
