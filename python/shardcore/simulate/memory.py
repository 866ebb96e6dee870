"""Estimates the memory that a simulation needs before it runs, and reads how much is available."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path

from shardcore.simulate.dtypes import DTYPES, is_narrow
from shardcore.simulate.prepare import Program
from shardcore.simulate.site import Body, Step

__all__ = ["available_bytes", "peak_bytes"]

_PRODUCTS = (
    "chlo.ragged_dot",
    "stablehlo.convolution",
    "stablehlo.dot",
    "stablehlo.dot_general",
    "stablehlo.dynamic_conv",
)
_VIEWS = ("stablehlo.broadcast_in_dim", "stablehlo.constant")
"""Ops that allocate no array of the size of their result."""
_ON_EACH = ("stablehlo.partition_id", "stablehlo.replica_id")


class _Estimate:
    """The memory of a program's values on some devices."""

    def __init__(self, program: Program, devices: int) -> None:
        self._program = program
        self._devices = devices
        self._known: dict[tuple[int, int], tuple[int, int]] = {}
        self._open: set[int] = set()

    def body(self, body: Body, rows: Sequence[int], captured: dict[int, int]) -> tuple[int, int]:
        """The peak of live bytes of ``body`` without its arguments, and the number of rows of each
        of its results.

        Args:
            body: the ops that run.
            rows: the number of rows of each argument.
            captured: the number of rows of captured values, by slot.
        """
        places = dict(zip(body.arguments, rows, strict=False)) | captured
        sizes: dict[int, int] = {}
        live = peak = 0
        for step in body.steps:
            count = max((places.get(place, 1) for place in step.operands), default=1)
            count = self._devices if step.op.name in _ON_EACH else count
            inner, made = self._inner(step, count, places)
            count = max(count, made)
            for place, value in zip(step.results, step.op.results, strict=True):
                places[place] = count
                is_view = step.op.name in _VIEWS
                sizes[place] = 0 if is_view else self._bytes(value.shape, value.dtype) * count
                live += sizes[place]
            peak = max(peak, live + max(inner, self._working(step, places)))
            live -= sum(sizes.pop(place, 0) for place in step.dead)
        return peak, max((places.get(place, 1) for place in body.returned), default=1)

    def _inner(self, step: Step, count: int, places: dict[int, int]) -> tuple[int, int]:
        """The peak of the bodies of ``step``, or of the function that it calls, and the number of
        rows of each of their results."""
        bodies: list[Body] = list(step.bodies)
        name = next((step.op.attributes[key] for key in _callees(step)), None)
        if name is not None:
            function = self._program.body(name)
            bodies = [] if function is None else [function]
        if step.op.name == "sdy.manual_computation" and count == 1:
            count = max((mesh.num_devices for mesh in self._program.meshes.values()), default=1)
        found = []
        for body in bodies:
            # A recursive call is refused when it runs.
            if id(body) in self._open or (body.argument_types and _is_of_scalars(body)):
                continue
            key = id(body), count
            if key not in self._known:
                self._open.add(id(body))
                captured = {place: places.get(place, count) for place in body.captured}
                self._known[key] = self.body(body, [count] * len(body.arguments), captured)
                self._open.discard(id(body))
            found.append(self._known[key])
        is_global = step.op.name == "sdy.manual_computation" and self._devices == 1
        rows = 1 if is_global else max((made for _, made in found), default=1)
        return max((peak for peak, _ in found), default=0), rows

    def _bytes(self, shape: Iterable[int | None] | None, dtype: str | None) -> int:
        kind = self._program.dtypes.get(dtype or "", DTYPES["i1"])
        return 0 if shape is None else math.prod(size or 0 for size in shape) * kind.itemsize

    def _working(self, step: Step, places: dict[int, int]) -> int:
        """The bytes of the copies that ``step`` makes, in wider types and in other orders of
        dims."""
        total = 0
        is_product = step.op.name in _PRODUCTS
        for place, value in zip(step.operands, step.op.operands, strict=False):
            dtype = self._program.dtypes.get(value.dtype or "")
            if dtype is None or dtype.kind not in "fcV":
                continue
            elements = math.prod(size or 0 for size in value.shape or ()) * places.get(place, 1)
            wide = max(dtype.itemsize, 4)
            if is_product:
                total += elements * wide * (1 + is_narrow(dtype))
            elif is_narrow(dtype):
                total += elements * wide
        return total


def _callees(step: Step) -> list[str]:
    keys = {"func.call": "callee", "stablehlo.composite": "decomposition"}
    return [keys[step.op.name]] if step.op.name in keys else []


def _is_of_scalars(body: Body) -> bool:
    """Whether ``body`` is a function of scalars, like the body of a reduction."""
    return all(kind is not None and not kind.shape for kind in body.argument_types)


def peak_bytes(program: Program, body: Body, rows: Sequence[int], devices: int) -> int:
    """The peak of live bytes of the values of ``body``, without its arguments.

    Args:
        program: the program of ``body``.
        body: the ops that run.
        rows: for each argument the number of devices, or 1 if all devices have the same value.
        devices: the number of devices.
    """
    return _Estimate(program, devices).body(body, rows, {})[0]


_GROUPS = (
    ("memory.max", "memory.current"),
    ("memory/memory.limit_in_bytes", "memory/memory.usage_in_bytes"),
)
"""Linux files with the memory limits and the memory in use of the process's cgroup."""


def available_bytes() -> int | None:
    """How many bytes the process can still allocate; ``None`` if that is unknown."""
    found = []
    try:
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith(("MemAvailable:", "SwapFree:")):
                found.append(int(line.split()[1]) << 10)
    except (OSError, ValueError):
        return None
    known = [sum(found)] if found else []
    for most, used in _GROUPS:
        try:
            group = Path("/sys/fs/cgroup")
            known.append(int((group / most).read_text()) - int((group / used).read_text()))
        except (OSError, ValueError):
            continue
    return max(min(known), 0) if known else None
