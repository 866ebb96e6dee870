"""A collective matmul: a product and a collective as one loop over a ring of devices.

While a block is sent to the next device of the ring, the device multiplies the block that it has:

* an AllGather of an operand: block ``r`` starts at device ``r`` and goes around. Each block gives a
  part of the result, or, if the gathered dim is contracted, a term of it. Each device adds these
  terms in another order, so the devices of the ring must hold different parts of the result:
  replicas would differ in their last bits;
* a ReduceScatter, or an AllReduce as a ReduceScatter and an AllGather: the sum of block ``b``
  starts at device ``b + 1`` and collects the terms of all devices on its way to device ``b``.

On a ring of N devices this takes N - 1 hops, with the bytes of the collective. The loop is in a
``sdy.manual_computation``, whose body the partitioner keeps; it adds the other data movement of the
strategy around it.

Source: Wang et al., "Overlap Communication with Dependent Computation via Decomposition in Large
Deep Learning Models", ASPLOS 2023.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from shardcore._core import AxisRef, Mesh, TensorSharding
from shardcore.calculus.axes import group_size
from shardcore.calculus.contraction import names
from shardcore.calculus.exchange import coordinates
from shardcore.calculus.plan import Stage, summed_axes
from shardcore.calculus.reshard import Layout
from shardcore.calculus.stablehlo_lines import Lines, Tensor

Axes: TypeAlias = tuple[AxisRef, ...]


@dataclass(frozen=True)
class Loop:
    """A collective that becomes a loop, and the shardings around it."""

    axes: Axes
    """The axes of the ring."""
    dim: str
    """The dim that is gathered or scattered."""
    gathered: int | None
    """The index of the gathered operand; ``None`` if the result is scattered."""
    layouts: tuple[Layout, Layout, Layout]
    """The layouts of the operands before the loop, and of the result after it."""


def loop_of(stage: Stage, mesh: Mesh) -> Loop | None:
    """Return the collective of ``stage`` that becomes a loop; ``None`` if none can.

    A ReduceScatter is preferred to an AllGather, because it comes last. All blocks must have equal
    sizes.
    """
    summed = summed_axes(stage.contraction, stage.cut)
    loops = _scatters(stage, mesh) if summed else _gathers(stage)
    return next((loop for loop in loops if _is_even(stage, loop, mesh)), None)


def looped(lines: Lines, stage: Stage, left: Tensor, right: Tensor, element: str) -> Tensor:
    """Add the loop of ``stage`` to ``lines``; return the product, sharded as after the loop."""
    loop = loop_of(stage, lines.mesh)
    assert loop is not None
    contraction = stage.contraction
    arrays = (*contraction.operands, contraction.output)
    sharding = [lines.sharding(layout) for layout in loop.layouts]
    local = [
        _local_shape(lines.mesh, array.shape, layout)
        for array, layout in zip(arrays, loop.layouts, strict=True)
    ]
    inside = [
        Tensor(lines.name(), shape, tensor.element)
        for tensor, shape in zip((left, right), local, strict=False)
    ]
    outside = Tensor(lines.name(), arrays[2].shape, element)
    axes = ", ".join(f'"{axis.name}"' for axis in lines.mesh.axes)
    arguments = ", ".join(f"{tensor.name}: {tensor.type}" for tensor in inside)
    lines.text.append(
        f"{outside.name} = sdy.manual_computation({left.name}, {right.name}) "
        f"in_shardings=[{sharding[0]}, {sharding[1]}] out_shardings=[{sharding[2]}] "
        f"manual_axes={{{axes}}} ({arguments}) {{"
    )
    ring = _Ring(lines, stage, loop, local[2], element)
    found = ring.gather(inside) if loop.gathered is not None else ring.scatter(inside)
    lines.text += [
        f"sdy.return {found.name} : {found.type}",
        f"}} : ({left.type}, {right.type}) -> {outside.type}",
    ]
    return outside


class _Ring:
    """The loop over the devices of a ring."""

    def __init__(
        self, lines: Lines, stage: Stage, loop: Loop, shape: tuple[int, ...], element: str
    ) -> None:
        self.lines, self.stage, self.loop = lines, stage, loop
        self.shape, self.element = shape, element
        self.devices = group_size(lines.mesh, loop.axes)
        self.count = lines.constant(str(self.devices))
        self.place = self._place()

    def gather(self, operands: list[Tensor]) -> Tensor:
        """Multiply each block as it arrives, and send it on."""
        at = self.loop.gathered or 0
        size = operands[at].shape[self._dim_of(at)]

        def multiplied(hop: Tensor, block: Tensor, whole: Tensor) -> Tensor:
            start = self._start(hop, 0, size)
            other = self._part(operands[1 - at], 1 - at, start, size)
            pair = (block, other) if at == 0 else (other, block)
            part = self.lines.product(self.stage.contraction, *pair, self.element)
            if self.loop.dim in names(self.stage.contraction.output):
                return self.lines.updated(whole, part, self._dim_of(2), start)
            return self.lines.binary("add", whole, part)

        def body(hop: Tensor, block: Tensor, whole: Tensor) -> tuple[Tensor, Tensor]:
            return self._sent(block), multiplied(hop, block, whole)

        whole = self.lines.zero(self.shape, self.element)
        block, whole = self._loop(body, operands[at], whole)
        return multiplied(self.lines.constant(str(self.devices - 1)), block, whole)

    def scatter(self, operands: list[Tensor]) -> Tensor:
        """Send partial sums on, and add the device's own term to each."""
        size = self.shape[self._dim_of(2)]

        def term(hop: Tensor) -> Tensor:
            start = self._start(hop, 1, size)
            pair = [self._part(operand, at, start, size) for at, operand in enumerate(operands)]
            return self.lines.product(self.stage.contraction, pair[0], pair[1], self.element)

        def body(hop: Tensor, total: Tensor) -> tuple[Tensor]:
            following = self.lines.binary("add", hop, self.lines.constant("1"))
            return (self.lines.binary("add", self._sent(total), term(following)),)

        (total,) = self._loop(body, term(self.lines.constant("0")))
        return total

    def _loop(
        self, body: Callable[..., tuple[Tensor, ...]], *initial: Tensor
    ) -> tuple[Tensor, ...]:
        """Add a loop with one iteration fewer than there are devices, with the values
        ``initial``."""
        lines = self.lines
        first = (lines.constant("0"), *initial)
        last = lines.constant(str(self.devices - 1))
        inside = [tensor._replace(name=lines.name()) for tensor in first]
        name = lines.name()
        types = ", ".join(tensor.type for tensor in first)
        pairs = zip(inside, first, strict=True)
        lines.text += [
            f"{name}:{len(first)} = stablehlo.while("
            f"{', '.join(f'{a.name} = {b.name}' for a, b in pairs)}) : {types} cond {{",
        ]
        less = lines.op(
            f"stablehlo.compare LT, {inside[0].name}, {last.name} : ({last.type}, {last.type}) -> ",
            (),
            "i1",
        )
        lines.text += [f"stablehlo.return {less.name} : {less.type}", "} do {"]
        found = body(*inside)
        hop = lines.binary("add", inside[0], lines.constant("1"))
        returned = ", ".join(tensor.name for tensor in (hop, *found))
        lines.text += [f"stablehlo.return {returned} : {types}", "}"]
        return tuple(
            tensor._replace(name=f"{name}#{number}")
            for number, tensor in enumerate(first)
            if number
        )

    def _place(self) -> Tensor:
        """Add the position of this device in its ring."""
        lines = self.lines
        numbers = [place for _, place in sorted(_places(lines.mesh, self.loop.axes).items())]
        table = lines.constant(str(numbers), (len(numbers),))
        own = lines.op("stablehlo.partition_id : ", (), "ui32")
        own = lines.op(f"stablehlo.convert {own.name} : ({own.type}) -> ", (), "i32")
        row = lines.slice(table, 0, own, 1)
        return lines.op(f"stablehlo.reshape {row.name} : ({row.type}) -> ", (), "i32")

    def _start(self, hop: Tensor, behind: int, size: int) -> Tensor:
        """Add the start of the block that is ``hop + behind`` devices behind this one."""
        lines = self.lines
        ahead = lines.binary("add", self.place, self.count)
        back = lines.binary("add", hop, lines.constant(str(behind)))
        block = lines.binary("remainder", lines.binary("subtract", ahead, back), self.count)
        return lines.binary("multiply", block, lines.constant(str(size)))

    def _part(self, operand: Tensor, at: int, start: Tensor, size: int) -> Tensor:
        """Add the part of an operand that belongs to a block; all of it if it lacks the dim."""
        if self.loop.dim not in names(self.stage.contraction.operands[at]):
            return operand
        return self.lines.slice(operand, self._dim_of(at), start, size)

    def _sent(self, block: Tensor) -> Tensor:
        """Add the block received from the previous device."""
        pairs = _neighbours(self.lines.mesh, self.loop.axes)
        return self.lines.op(
            f'"stablehlo.collective_permute"({block.name}) <{{'
            "channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, "
            f"source_target_pairs = dense<{pairs}> : tensor<{len(pairs)}x2xi64>}}> : "
            f"({block.type}) -> ",
            block.shape,
            block.element,
        )

    def _dim_of(self, at: int) -> int:
        contraction = self.stage.contraction
        return names((*contraction.operands, contraction.output)[at]).index(self.loop.dim)


def _gathers(stage: Stage) -> list[Loop]:
    found = []
    for step in stage.before:
        if step.op != "all_gather":
            continue
        at = next(
            at for at, array in enumerate(stage.contraction.operands) if array.name == step.tensor
        )
        array = stage.contraction.operands[at]
        ready = stage.cut_layouts[at]
        cut = [dim for dim, axes in enumerate(step.before) if set(axes) & set(step.axes)]
        dim = cut[0]
        if len(cut) > 1 or step.before[dim] != (*ready[dim], *step.axes):
            continue
        held = {axis for axes in stage.cut_layouts[2] for axis in axes}
        if names(array)[dim] in stage.contraction.contracting and not held.issuperset(step.axes):
            continue
        before = tuple(step.before[d] if d == dim else axes for d, axes in enumerate(ready))
        layouts = [*stage.cut_layouts]
        layouts[at] = before
        found.append(Loop(step.axes, names(array)[dim], at, (layouts[0], layouts[1], layouts[2])))
    return found


def _scatters(stage: Stage, mesh: Mesh) -> list[Loop]:
    """Loops that scatter the result, along the dim that the strategy names, or along any dim."""
    output = stage.contraction.output
    left, right, cut = stage.cut_layouts
    summed = summed_axes(stage.contraction, stage.cut)
    scattered = [step.dim for step in stage.after if step.op == "reduce_scatter"]
    wanted = [dim for dim in scattered if dim is not None] or range(len(output.dims))
    found = []
    for dim in wanted:
        after = tuple((*axes, *summed) if at == dim else axes for at, axes in enumerate(cut))
        found.append(Loop(summed, names(output)[dim], None, (left, right, after)))
    return found


def _is_even(stage: Stage, loop: Loop, mesh: Mesh) -> bool:
    """Whether all blocks have equal sizes, before, during and after the loop."""
    arrays = (*stage.contraction.operands, stage.contraction.output)
    return all(
        size % group_size(mesh, axes) == 0
        for layouts in (loop.layouts, stage.cut_layouts)
        for array, layout in zip(arrays, layouts, strict=True)
        for size, axes in zip(array.shape, layout, strict=True)
    )


def _local_shape(mesh: Mesh, shape: tuple[int, ...], layout: Layout) -> tuple[int, ...]:
    return tuple(size // group_size(mesh, axes) for size, axes in zip(shape, layout, strict=True))


def _places(mesh: Mesh, axes: Axes) -> dict[int, int]:
    """The position of each device in its ring."""
    size = group_size(mesh, axes)
    slices = TensorSharding(mesh, [list(axes)]).device_slices((size,))
    return {device: part[0].start for device, part in slices.items()}


def _neighbours(mesh: Mesh, axes: Axes) -> list[list[int]]:
    """Pairs of each device and the next one in its ring."""
    rings: dict[tuple[int, ...], dict[int, int]] = {}
    places = _places(mesh, axes)
    for device, point in coordinates(mesh).items():
        rest = list(point)
        for axis in axes:
            at = mesh.axis_names.index(axis.name)
            size = axis.size_in(mesh)
            step = mesh.axes[at].size // ((axis.pre_size or 1) * size)
            rest[at] -= point[at] // step % size * step
        rings.setdefault(tuple(rest), {})[places[device]] = device
    return sorted(
        [ring[place], ring[(place + 1) % len(ring)]] for ring in rings.values() for place in ring
    )
