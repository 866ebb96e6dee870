"""Runs the steps of a strategy with NumPy on devices that hold blocks of arrays.

A device holds, for each array, a block of numbers. A step may use only the blocks of the devices of
one group; it is an error if a device gets a number that no device of its group had. Simple and
slow.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import numpy as np

Place = tuple[int, ...]
"""The coordinates of a device along each mesh axis."""


class Devices:
    """A mesh of devices, each with blocks of arrays by name."""

    def __init__(self, mesh: Mapping[str, int]) -> None:
        self.names = list(mesh)
        self.sizes = dict(mesh)
        self.places: list[Place] = list(itertools.product(*(range(n) for n in mesh.values())))
        self.held: dict[str, dict[Place, np.ndarray]] = {}
        self.shapes: dict[str, tuple[int, ...]] = {}

    def block(self, shape: Sequence[int], layout, place: Place) -> tuple[slice, ...]:
        """The slice of an array with the layout ``layout`` on the device at ``place``."""
        parts = []
        for size, axes in zip(shape, layout, strict=True):
            index, count = 0, 1
            for axis in axes:
                index = index * self.sizes[axis.name] + place[self.names.index(axis.name)]
                count *= self.sizes[axis.name]
            assert size % count == 0, "sizes are to be divisible here"
            parts.append(slice(index * size // count, (index + 1) * size // count))
        return tuple(parts)

    def put(self, name: str, array: np.ndarray, layout) -> None:
        """Give every device its block of ``array``."""
        self.shapes[name] = array.shape
        self.held[name] = {p: array[self.block(array.shape, layout, p)] for p in self.places}

    def group(self, place: Place, axes) -> list[Place]:
        """The devices that differ from ``place`` along ``axes`` only."""
        varying = {axis.name for axis in axes}
        fixed = [i for i, name in enumerate(self.names) if name not in varying]
        return [other for other in self.places if all(other[i] == place[i] for i in fixed)]

    def step(self, step) -> None:
        """Run one step of :mod:`shardcore.calculus.reshard`."""
        held, shape = self.held[step.tensor], self.shapes[step.tensor]
        done = {}
        for place in self.places:
            whole = np.full(shape, np.nan)
            if step.op in ("all_reduce", "reduce_scatter"):
                own = self.block(shape, step.before, place)
                whole[own] = sum(held[other] for other in self.group(place, step.axes))
            else:
                axes = () if step.op == "slice" else step.axes
                for other in self.group(place, axes):
                    whole[self.block(shape, step.before, other)] = held[other]
            done[place] = whole[self.block(shape, step.after, place)]
            assert not np.isnan(done[place]).any(), f"{place} has not got all of {step}"
        self.held[step.tensor] = done

    def multiply(self, subscripts: str, left: str, right: str, output: str, shape) -> None:
        """Multiply the blocks of every device."""
        self.shapes[output] = tuple(shape)
        self.held[output] = {
            place: np.einsum(subscripts, self.held[left][place], self.held[right][place])
            for place in self.places
        }

    def check(self, name: str, array: np.ndarray, layout) -> None:
        """Assert that every device has its block of ``array``."""
        for place in self.places:
            expected = array[self.block(array.shape, layout, place)]
            np.testing.assert_array_equal(self.held[name][place], expected)


def run_strategy(strategy, mesh: Mapping[str, int], sizes: Mapping[str, int]) -> None:
    """Run a strategy on random integers and check every device's block of the result."""
    devices = Devices(mesh)
    rng = np.random.default_rng(0)
    letters: dict[str, str] = {}

    def subscript(array) -> str:
        return "".join(letters.setdefault(d.name, chr(97 + len(letters))) for d in array.dims)

    def random(array) -> np.ndarray:
        shape = [sizes[dim.name] for dim in array.dims]
        return rng.integers(-4, 5, shape).astype(float)

    whole = None
    for stage in strategy.stages:
        left, right = stage.contraction.operands
        output = stage.contraction.output
        if whole is None:
            whole = random(left)
            devices.put(left.name, whole, stage.stored[0])
        other = random(right)
        devices.put(right.name, other, stage.stored[1])
        for step in stage.before:
            devices.step(step)
        text = f"{subscript(left)},{subscript(right)}->{subscript(output)}"
        whole = np.einsum(text, whole, other)
        devices.multiply(text, left.name, right.name, output.name, whole.shape)
        for step in stage.after:
            devices.step(step)
        devices.check(output.name, whole, stage.result)


def ring_loads(devices: int, op: str, *, both_ways: bool) -> float:
    """Blocks over the busiest link in one direction, if blocks take the shortest way on a ring.

    Each device has ``devices`` blocks. ``all_gather`` sends all of them to all other devices, which
    forward them; ``all_to_all`` sends one block to each.
    """
    loads = {(link, way): 0.0 for link in range(devices) for way in (1, -1)}

    def send(source: int, hops: int, way: int, blocks: float) -> None:
        for hop in range(hops):
            link = (source + way * hop - (way < 0)) % devices
            loads[link, way] += blocks

    for source in range(devices):
        if op == "all_gather":
            if both_ways:
                # Half of the blocks go in each direction.
                send(source, devices - 1, 1, devices / 2)
                send(source, devices - 1, -1, devices / 2)
            else:
                send(source, devices - 1, 1, devices)
            continue
        for distance in range(1, devices):
            back = devices - distance
            if not both_ways or distance < back:
                send(source, distance, 1, 1)
            elif distance > back:
                send(source, back, -1, 1)
            else:
                send(source, distance, 1, 0.5)
                send(source, back, -1, 0.5)
    return max(loads.values())
