"""Collectives on a ring, hop by hop: which device sends which block to which neighbour.

On a ring of N devices, with the blocks 0 to N - 1:

==================  ==========================================================================
``all_gather``      each device sends on what it got last: N - 1 hops of a block one way,
                    ``N // 2`` hops of a block each way
``reduce_scatter``  the same backwards: sums travel to the device that keeps them
``all_reduce``      a ReduceScatter, then an AllGather
``all_to_all``      each block travels to its own device: one way N - 1, N - 2, ... 1 blocks a
                    hop; both ways, at most N / 2 hops far
``matmul``          a collective matmul: an AllGather whose blocks are multiplied on arrival,
                    so that all but the first product overlap with a hop
==================  ==========================================================================

Source: "How to Scale Your Model", chapter 3, where these are animations; for the collective matmul,
Wang et al., ASPLOS 2023.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from shardcore.calculus.collectives import op_name
from shardcore.calculus.mistakes import mistake
from shardcore.errors import CalculusError
from shardcore.expected import expect, expect_all
from shardcore.units import plural

RING_OPS = ("all_gather", "reduce_scatter", "all_reduce", "all_to_all", "matmul")
"""The collectives that :func:`ring` has a schedule for."""

MAX_RING = 64
"""The largest ring for which a schedule is made."""


@dataclass(frozen=True)
class Send:
    """One message of a hop: the blocks that a device sends to a neighbour."""

    source: int
    target: int
    blocks: tuple[str, ...]
    """``"2"`` is block 2; ``"2+3"`` is the sum of the terms of devices 2 and 3; ``"0>2"`` is the
    block that device 0 has for device 2."""


@dataclass(frozen=True, repr=False)
class Ring:
    """The schedule of a collective on a ring of devices."""

    op: str
    devices: int
    both_ways: bool
    hops: tuple[tuple[Send, ...], ...]
    held: tuple[tuple[tuple[str, ...], ...], ...]
    """The blocks on each device before the first hop and after each hop."""

    def __post_init__(self) -> None:
        expect(self.op, str)
        expect(self.devices, int)
        for hop in expect_all(self.hops, tuple, "hops"):
            expect_all(hop, Send, "hops")
        for state in expect_all(self.held, tuple, "held"):
            expect_all(state, tuple, "held")

    @property
    def blocks_per_link(self) -> int:
        """The number of blocks that the busiest link carries in one direction, over all hops."""
        carried: dict[tuple[int, int], int] = {}
        for sends in self.hops:
            for send in sends:
                link = (send.source, send.target)
                carried[link] = carried.get(link, 0) + len(send.blocks)
        return max(carried.values(), default=0)

    def __repr__(self) -> str:
        way = "both ways" if self.both_ways else "one way"
        return f"<Ring {self.op} of {self.devices}, {way}: {plural(len(self.hops), 'hop')}>"

    def __str__(self) -> str:
        rows = [["", *(f"device {device}" for device in range(self.devices))]]
        for number, state in enumerate(self.held):
            label = "start" if number == 0 else f"hop {number}"
            rows.append([label, *(" ".join(blocks) for blocks in state)])
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = []
        for row in rows:
            cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
            lines.append("  ".join(cells).rstrip())
        return "\n".join(lines)

    def svg(self) -> str:
        """Return an animated SVG: devices on a circle, and blocks that travel along the links."""
        from shardcore.calculus.rings_svg import animation

        return animation(self)

    def _repr_svg_(self) -> str:
        return self.svg()


def ring(op: str, devices: int, *, both_ways: bool = True) -> Ring:
    """Return the schedule of ``op`` on a ring.

    Args:
        op: one of :data:`RING_OPS`, in the spellings of :func:`Collective.of`.
        devices: the number of devices.
        both_ways: whether links carry blocks in both directions at the same time.

    Raises:
        CalculusError: ``op`` has no schedule (``invalid-collective``), or there are fewer than 2
            devices or more than 64 (``invalid-option``).
    """
    expect(op, str)
    expect(devices, int)
    name = "matmul" if op in ("matmul", "collective_matmul") else op_name(op)
    if name not in RING_OPS:
        hint = "there is a schedule for " + ", ".join(RING_OPS)
        raise mistake(
            CalculusError, "invalid-collective", f"{op} has no schedule", text=op, hint=hint
        )
    if not 2 <= devices <= MAX_RING:
        raise mistake(
            CalculusError,
            "invalid-option",
            f"a ring of {devices} devices",
            text=str(devices),
            hint=f"take 2 to {MAX_RING} devices",
        )
    if name == "all_reduce":
        first = ring("reduce_scatter", devices, both_ways=both_ways)
        second = ring("all_gather", devices, both_ways=both_ways)
        whole = "+".join(map(str, range(devices)))
        after = tuple(
            tuple(tuple(f"{whole}@{block}" for block in blocks) for blocks in state)
            for state in second.held[1:]
        )
        sends = tuple(
            tuple(
                Send(send.source, send.target, tuple(f"{whole}@{each}" for each in send.blocks))
                for send in hop
            )
            for hop in second.hops
        )
        return Ring(name, devices, both_ways, first.hops + sends, first.held + after)
    builders = {
        "all_gather": _gather,
        "matmul": _matmul,
        "reduce_scatter": _scatter,
        "all_to_all": _exchange,
    }
    hops, held = builders[name](devices, both_ways)
    return Ring(name, devices, both_ways, tuple(map(tuple, hops)), tuple(held))


Held = tuple[tuple[str, ...], ...]


def _ways(devices: int, both_ways: bool) -> list[tuple[int, int]]:
    """For each direction, its sign, and how many hops blocks travel in it."""
    if not both_ways:
        return [(1, devices - 1)]
    return [(1, devices // 2), (-1, (devices - 1) // 2)]


def _gather(devices: int, both_ways: bool) -> tuple[list[list[Send]], list[Held]]:
    held = [[device] for device in range(devices)]
    states = [_blocks(held)]
    hops: list[list[Send]] = []
    ways = _ways(devices, both_ways)
    for hop in range(1, max(far for _, far in ways) + 1):
        sends = []
        for sign, far in ways:
            if hop > far:
                continue
            for device in range(devices):
                block = (device - sign * (hop - 1)) % devices
                sends.append(Send(device, (device + sign) % devices, (str(block),)))
        for send in sends:
            held[send.target].append(int(send.blocks[0]))
        hops.append(sends)
        states.append(_blocks(held))
    return hops, states


def _matmul(devices: int, both_ways: bool) -> tuple[list[list[Send]], list[Held]]:
    """An AllGather; after hop h, a device has multiplied the blocks that it held before that
    hop."""
    hops, states = _gather(devices, both_ways)
    done: list[Held] = [tuple(() for _ in range(devices))]
    for before in states:
        done.append(tuple(tuple(f"{block}*B" for block in blocks) for blocks in before))
    shown = []
    for state, products in zip([*states, states[-1]], done, strict=True):
        ready = [{product.removesuffix("*B") for product in row} for row in products]
        shown.append(
            tuple(
                (*row, *(block for block in blocks if block not in done_here))
                for row, blocks, done_here in zip(products, state, ready, strict=True)
            )
        )
    return [*hops, []], shown


def _scatter(devices: int, both_ways: bool) -> tuple[list[list[Send]], list[Held]]:
    """Block b of the sum starts at the devices farthest from b, and collects terms on its way."""
    ways = _ways(devices, both_ways)
    most = max(far for _, far in ways)
    terms = [{block: {device} for block in range(devices)} for device in range(devices)]
    states = [_sums(terms)]
    hops = []
    for hop in range(1, most + 1):
        sends = []
        for sign, far in ways:
            distance = most - hop + 1
            if distance > far:
                continue
            for device in range(devices):
                block = (device + sign * distance) % devices
                sends.append((device, (device + sign) % devices, block))
        moving = [(s, t, b, frozenset(terms[s].pop(b, set()))) for s, t, b in sends]
        for _, target, block, parts in moving:
            terms[target][block] |= parts
        hops.append(
            [Send(s, t, (f"{'+'.join(map(str, sorted(parts)))}@{b}",)) for s, t, b, parts in moving]
        )
        states.append(_sums(terms))
    return hops, states


def _exchange(devices: int, both_ways: bool) -> tuple[list[list[Send]], list[Held]]:
    """Each block ``source>target`` takes the shorter way, one neighbour per hop."""
    at = {(s, t): s for s in range(devices) for t in range(devices)}
    ways = _ways(devices, both_ways)

    def state() -> Held:
        found: list[list[str]] = [[] for _ in range(devices)]
        for (source, target), place in at.items():
            found[place].append(f"{source}>{target}")
        return tuple(map(tuple, found))

    states = [state()]
    hops = []
    for _ in range(max(far for _, far in ways)):
        messages: dict[tuple[int, int], list[str]] = {}
        for (source, target), place in list(at.items()):
            if place == target:
                continue
            sign = 1 if not both_ways or (target - source) % devices <= devices // 2 else -1
            there = (place + sign) % devices
            messages.setdefault((place, there), []).append(f"{source}>{target}")
            at[source, target] = there
        hops.append([Send(s, t, tuple(blocks)) for (s, t), blocks in messages.items()])
        states.append(state())
    return hops, states


def _blocks(held: Sequence[Sequence[int]]) -> Held:
    return tuple(tuple(map(str, sorted(blocks))) for blocks in held)


def _sums(terms: Sequence[dict[int, set[int]]]) -> Held:
    return tuple(
        tuple(
            f"{'+'.join(map(str, sorted(parts)))}@{block}" for block, parts in sorted(own.items())
        )
        for own in terms
    )
