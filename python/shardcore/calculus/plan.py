"""Strategies without sizes (*plans*), and their costs for given sizes.

A strategy says how the dims of each product are sharded while devices multiply; this determines the
collectives on the operands before, and on the result after. A plan does not depend on sizes, so its
costs can be computed for many of them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from shardcore._core import AxisRef
from shardcore.cached_property import cached_property
from shardcore.calculus.axes import group_size
from shardcore.calculus.collective_time import Rates, TimeOptions, rates_of
from shardcore.calculus.contraction import Contraction, names
from shardcore.calculus.dtypes import element_bytes
from shardcore.calculus.notation import NamedArray
from shardcore.calculus.reshard import Layout, Step
from shardcore.calculus.topology import Topology
from shardcore.expected import expect

Cut = Mapping[str, tuple[AxisRef, ...]]
"""The axes that shard each dim of a product while devices multiply."""


@dataclass(frozen=True)
class Stage:
    """One product of two arrays: collectives before it, its cut, collectives after it."""

    contraction: Contraction
    before: tuple[Step, ...]
    cut: Cut
    after: tuple[Step, ...]
    stored: tuple[Layout, Layout]
    """The layouts of the operands before all steps."""
    result: Layout
    """The layout of the output after all steps."""

    @cached_property
    def cut_layouts(self) -> tuple[Layout, Layout, Layout]:
        """The layouts of both operands and the output while devices multiply."""
        left, right = self.contraction.operands
        output = self.contraction.output
        return (
            layout_in(left, self.cut),
            layout_in(right, self.cut),
            layout_in(output, self.cut),
        )

    @property
    def unreduced(self) -> tuple[AxisRef, ...]:
        """Axes along which the products are unreduced."""
        return summed_axes(self.contraction, self.cut)


@dataclass
class Pricing:
    """Computes times and bytes of steps, for one mesh and one chip."""

    topology: Topology
    options: TimeOptions
    dtypes: Mapping[str, str]
    """The element type of each tensor."""
    _rates: dict[tuple[str, tuple[AxisRef, ...]], Rates] = field(default_factory=dict)
    _sizes: dict[tuple[AxisRef, ...], int] = field(default_factory=dict)
    _sized: Mapping[str, float] | None = None
    """The sizes for which ``_bytes`` holds values."""
    _bytes: dict[tuple[str | None, Layout], float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        expect(self.topology, Topology)
        expect(self.options, TimeOptions)

    def devices(self, axes: tuple[AxisRef, ...]) -> int:
        """Number of devices along ``axes``."""
        if axes not in self._sizes:
            self._sizes[axes] = group_size(self.topology.mesh, axes)
        return self._sizes[axes]

    def rates(self, op: str, axes: tuple[AxisRef, ...]) -> Rates:
        """The rates from which the time of ``op`` along ``axes`` follows."""
        key = (op, axes)
        if key not in self._rates:
            shift = max(self.devices(axes) // 2, 1) if op == "permute" else 1
            self._rates[key] = rates_of(op, axes, self.topology, self.options, shift=shift)
        return self._rates[key]

    def local_bytes(self, array: NamedArray, layout: Layout, sizes: Mapping[str, float]) -> float:
        """The bytes of ``array`` on one device."""
        if sizes is not self._sized:
            self._sized, self._bytes = sizes, {}
        key = (array.name, layout)
        count = self._bytes.get(key)
        if count is None:
            count = element_bytes(self.dtypes[array.name or ""])
            for name, axes in zip(names(array), layout, strict=True):
                count *= extent(sizes[name], self.devices(axes))
            self._bytes[key] = count
        return count

    def step_bytes(self, step: Step, array: NamedArray, sizes: Mapping[str, float]) -> float:
        """V of a step: the bytes of the gathered array in one group of devices."""
        return self.local_bytes(array, step.volume, sizes)

    def step_seconds(self, step: Step, array: NamedArray, sizes: Mapping[str, float]) -> float:
        """Seconds of a step."""
        if step.op == "slice":
            return 0.0
        return self.rates(step.op, step.axes).seconds(self.step_bytes(step, array, sizes))

    def communication(self, stage: Stage, sizes: Mapping[str, float]) -> float:
        """Seconds of all collectives of a stage, one after the other."""
        arrays = arrays_of(stage.contraction)
        return sum(
            self.step_seconds(step, arrays[step.tensor], sizes)
            for step in (*stage.before, *stage.after)
        )

    def flops(self, stage: Stage, sizes: Mapping[str, float]) -> float:
        """FLOPs on one device; a multiply-add counts as two."""
        return 2.0 * math.prod(
            extent(sizes[dim], self.devices(stage.cut.get(dim, ())))
            for dim in stage.contraction.dims
        )

    def compute(self, stage: Stage, sizes: Mapping[str, float]) -> float:
        """Seconds of the multiplication on one device."""
        dtype = self.dtypes[stage.contraction.operands[0].name or ""]
        return self.flops(stage, sizes) / self.topology.hardware.flops_per_second(dtype)

    def peak_bytes(self, stage: Stage, sizes: Mapping[str, float]) -> float:
        """The most bytes of the stage's own tensors that a device holds at once.

        During the multiplication these are the stored and the gathered operands and the result;
        after it, the stored operands and the result before and after a collective.
        """
        arrays = arrays_of(stage.contraction)
        left, right = stage.contraction.operands
        stored = sum(
            self.local_bytes(array, layout, sizes)
            for array, layout in zip((left, right), stage.stored, strict=True)
        )
        ready = 0.0
        gathered = {step.tensor for step in stage.before}
        for array, layout in zip((left, right), stage.cut_layouts[:2], strict=True):
            if array.name in gathered:
                ready += self.local_bytes(array, layout, sizes)
        product = self.local_bytes(stage.contraction.output, stage.cut_layouts[2], sizes)
        most = stored + ready + product
        for step in stage.after:
            array = arrays[step.tensor]
            both = self.local_bytes(array, step.before, sizes)
            if step.before != step.after:
                both += self.local_bytes(array, step.after, sizes)
            most = max(most, stored + both)
        return most


def arrays_of(contraction: Contraction) -> dict[str, NamedArray]:
    """The arrays of a product by name."""
    return {array.name or "": array for array in (*contraction.operands, contraction.output)}


def layout_of(array: NamedArray) -> Layout:
    """The axes that shard each dim of ``array``."""
    return tuple(dim.axes for dim in array.dims)


def layout_in(array: NamedArray, cut: Cut) -> Layout:
    """The axes that shard each dim of ``array`` while devices multiply with the cut ``cut``."""
    return tuple(tuple(cut.get(name, ())) for name in names(array))


def summed_axes(contraction: Contraction, cut: Cut) -> tuple[AxisRef, ...]:
    """Axes along which the local products have to be summed."""
    return tuple(axis for dim in contraction.contracting for axis in cut.get(dim, ()))


def extent(size: float, devices: int) -> float:
    """The size of a dim on one device, rounded up if ``size`` is an integer."""
    return -(-size // devices) if isinstance(size, int) else size / devices


def layout_text(array: NamedArray, layout: Layout, unreduced: Sequence[AxisRef] = ()) -> str:
    """``array`` with another layout, without sizes and element type."""
    cut = array.with_axes(layout, unreduced)
    bare = NamedArray(cut.dims, cut.name, None, cut.unreduced)
    text = str(bare)
    for dim in cut.dims:
        if dim.size is not None:
            text = text.replace(f"{dim.name}={dim.size}", f"{dim.name}", 1)
    return text
