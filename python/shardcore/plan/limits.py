"""What plans are not to go beyond: memory, batches, and what axes of the mesh are for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from shardcore._core import Mesh
from shardcore.bounded import items, shown
from shardcore.expected import expect
from shardcore.pipeline.schedules import SCHEDULES
from shardcore.plan.kinds import KINDS, Meanings
from shardcore.plan.layouts import Dims
from shardcore.plan.roles import Role
from shardcore.units import parse_bytes

_KINDS = tuple(kind for kind in KINDS if kind not in ("replicated", "mixed"))
_KEYS = ("memory", "host_memory", "micro_batch", "schedules")

Allows = Callable[[Mesh, Sequence[Dims | None]], bool]
"""Whether annotations of roles over a mesh are within the limits."""


@dataclass(frozen=True)
class Limits:
    """What a plan is not to go beyond."""

    memory: float | None = None
    """Bytes that a device has."""
    host_memory: float | None = None
    """Bytes that the host of a device has."""
    micro_batch: int = 1
    """The fewest sequences that a device has of the batch, or of a micro-batch."""
    schedules: tuple[str, ...] = SCHEDULES
    axes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The kinds of parallelism that an axis of the mesh may be for; any without it."""

    @staticmethod
    def of(given: Mapping[str, Any] | None) -> Limits:
        """Return the limits that ``given`` says: ``memory``, ``host_memory``, ``micro_batch`` and
        ``schedules``; other keys are axes of the mesh.

        Raises:
            ValueError: one of them is something else.
        """
        if given is None:
            return Limits()
        expect(given, Mapping)
        count = given.get("micro_batch", 1)
        if type(count) is not int or count < 1:
            raise ValueError(f"micro_batch is a number of sequences, not {shown(count)}")
        axes = {
            name: _names(name, kinds, _KINDS) for name, kinds in given.items() if name not in _KEYS
        }
        return Limits(
            _bytes(given, "memory"),
            _bytes(given, "host_memory"),
            count,
            _names("schedules", given.get("schedules", SCHEDULES), SCHEDULES),
            axes,
        )

    def allows(self, roles: Sequence[Role], meanings: Meanings) -> Allows | None:
        """Return what says whether annotations of ``roles`` are within the limits; ``None`` where
        all are."""
        if not self.axes and self.micro_batch == 1:
            return None

        def allowed(mesh: Mesh, shardings: Sequence[Dims | None]) -> bool:
            sizes = mesh.shape
            for role, dims in zip(roles, shardings, strict=True):
                for at, axes in enumerate(dims or ()):
                    is_batch = at < len(role.classes) and role.classes[at] == meanings.batch
                    parts = 1
                    for axis in axes:
                        parts *= sizes[axis]
                    if is_batch and role.shape[at] < parts * self.micro_batch:
                        return False
            used = meanings.kinds_of_axes(mesh, shardings, roles)
            return all(kind in self.axes.get(axis, (kind,)) for axis, kind in used.items() if kind)

        return allowed


def parse_limits(texts: Iterable[str]) -> dict[str, Any]:
    """Return the limits that ``memory=16GiB``, ``micro-batch=2`` or ``model=tensor,expert`` say, as
    :meth:`Limits.of` takes them.

    Raises:
        ValueError: a text says nothing.
    """
    found: dict[str, Any] = {}
    for text in texts:
        name, sign, value = text.partition("=")
        name = name.strip().replace("-", "_")
        if not sign or not value or name in found:
            raise ValueError(f'{shown(text)} is no limit, write "memory=16GiB" or "model=tensor"')
        if name == "micro_batch":
            if not value.isascii() or not value.isdigit():
                raise ValueError(f"micro-batch is a number of sequences, not {shown(value)}")
            found[name] = int(value[:8])
        else:
            found[name] = value if name in _KEYS[:2] else value.split(",")
    return found


def _bytes(given: Mapping[str, Any], key: str) -> float | None:
    if given.get(key) is None:
        return None
    found = parse_bytes(given[key])
    if not found:
        raise ValueError(f'{key} is {shown(given[key])}, write "16GiB" or a number of bytes')
    return float(found)


def _names(key: str, given: Any, known: Sequence[str]) -> tuple[str, ...]:
    names = [given] if isinstance(given, str) else items(given, "names")
    found = tuple(str(name) for name in names if name in known)
    if not found or len(found) < len(names):
        raise ValueError(f"{shown(key)} is some of {', '.join(known)}, not {shown(given)}")
    return found
