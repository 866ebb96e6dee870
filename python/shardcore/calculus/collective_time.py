"""The time of a collective: the larger of its bandwidth bound and its latency bound.

With V the bytes of the gathered array in one group of N devices, W the bytes per second of a link
in one direction (2 W in both), T the seconds of a hop:

=======================  ==================================================================
AllGather, ReduceScatter  rings: ``max(T * sum(N_i // 2), V / (2 W * axes))``;
                          line: ``(N - 1) * max(T, V / (N * W))``
AllReduce                 two of these
AllToAll                  rings: ``V * max(N_i) / (4 * N * 2 W)``; lines: the same with W for 2 W;
                          one-way rings: half an AllGather
permute                   the bytes of a block over the bandwidth of the links that it crosses
slice                     0
in a node                 ``V * (N - 1) / (N * W)``; AllToAll ``V * (N - 1) / (N**2 * W)``
across M nodes            ``V / W_node``; AllToAll ``V * (M - 1) / (M**2 * W_node)``
across M slices           that in a slice of n of its chips, and ``V * (M - 1) / (M * n * W_dcn)``
=======================  ==================================================================

The source does not define these cases:

1. Several axes, some of them lines: all links of a chip together receive ``(N - 1) / N * V``, at
   W for a line and 2 W for a ring. For one line, or rings alone, this is the table above.
2. ``exact`` counts on rings that a device has its own block already, ``(N - 1) / N``; that in an
   AllToAll on an odd ring no two devices are half a ring apart, ``1 - 1 / N**2``; and across nodes
   ``(M - 1) / M``, and that all groups that leave a node share its bandwidth.
3. Along a sub-axis, and along a mesh axis that shares a physical axis with others, groups are
   interleaved: where neighbours are ``s`` chips apart, ``s`` groups share each link, and a step
   takes ``s`` hops. The major-most part of a ring is a ring, others are lines.
4. Where axes have links of different bandwidth, the axes that have to carry most for theirs decide
   (:mod:`~shardcore.calculus.cuts`).
5. Traffic within nodes of a group that spans nodes is taken to overlap with that between nodes, and
   is not counted; ``exact`` takes the longer of it, ``V * (N - 1) / (N * W)``, and the latter.

Source: "How to Scale Your Model", chapter 3; chapter 12 for switches.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

from shardcore._core import AxisRef, Mesh
from shardcore.calculus.axes import axis_text, group_size
from shardcore.calculus.collectives import Collective
from shardcore.calculus.cuts import shift_width, slowest_cut
from shardcore.calculus.notation import NamedArray
from shardcore.calculus.physical_axes import PhysicalAxis
from shardcore.calculus.rates import Rates, TimeOptions, chunks_of, steps_of
from shardcore.calculus.switches import groups_of_node, switched
from shardcore.calculus.topology import Topology
from shardcore.expected import expect
from shardcore.units import format_seconds

__all__ = [
    "Estimate",
    "Rates",
    "TimeOptions",
    "estimate",
    "gathered_bytes",
    "rates_of",
    "reached_share",
    "wire_bytes",
]


@dataclass(frozen=True, repr=False)
class Estimate:
    """The time of one collective, with its inputs, in seconds and bytes."""

    collective: Collective
    bytes: int
    """V: the bytes of the gathered array in one group of devices."""
    wire_bytes: int
    """Bytes that a device sends, including blocks that it forwards in a gather."""
    link_bytes: float
    """Bytes that the busiest link carries in one direction."""
    rates: Rates
    threshold_message_bytes: float
    """The bytes of a message whose transfer over a link takes as long as the latency of a hop."""
    notes: tuple[str, ...] = ()
    reached: float = 1.0
    """The share of the bandwidth for messages of this size, from the chip's figures; more than 1 if
    the switch of a node does reductions that the formula assigns to devices."""
    waiting_seconds: float = 0.0
    """The part of the time that does not depend on the size of messages, in seconds."""

    def __repr__(self) -> str:
        return f"<Estimate {self.collective}: {self.formula}, {self.bound}>"

    @property
    def bandwidth_seconds(self) -> float:
        """Seconds in which the busiest link transfers its bytes."""
        return self.bytes * self.rates.seconds_per_byte

    @property
    def latency_seconds(self) -> float:
        """Seconds of all hops, whatever the size of the messages."""
        return self.rates.latency_seconds

    @property
    def seconds(self) -> float:
        """The longer of the two."""
        return max(self.bandwidth_seconds, self.latency_seconds)

    @property
    def achieved_seconds(self) -> float:
        """Seconds at the bandwidth that messages of this size reach, plus the waiting time."""
        return self.bandwidth_seconds / self.reached + self.waiting_seconds

    @property
    def bound(self) -> str:
        """``"bandwidth"`` or ``"latency"``."""
        return "bandwidth" if self.bandwidth_seconds >= self.latency_seconds else "latency"

    @property
    def threshold_bytes(self) -> float:
        """The V at which the bound changes; 0 without latency, infinite if nothing is sent."""
        if self.rates.latency_seconds == 0:
            return 0.0
        if self.rates.seconds_per_byte == 0:
            return math.inf
        return self.rates.latency_seconds / self.rates.seconds_per_byte

    @property
    def formula(self) -> str:
        """The formula of :attr:`seconds`, with numbers filled in."""
        if not self.rates.formula:
            return "0: no communication"
        bandwidth = self.rates.formula.replace("{V}", str(self.bytes))
        seconds = format_seconds(self.seconds, 4)
        if not self.rates.latency_formula:
            return f"{bandwidth} = {seconds}"
        return f"max({self.rates.latency_formula}, {bandwidth}) = {seconds}"

    def record(self, mesh: Mesh) -> dict[str, Any]:
        """Return everything as plain data."""
        collective = self.collective
        dims = collective.result.dims
        return {
            "op": collective.op,
            "array": str(collective.array),
            "axes": list(map(axis_text, collective.axes)),
            "dim": None if collective.dim is None else dims[collective.dim].name or collective.dim,
            "result": str(collective.result),
            "local_shape": list(collective.array.local_shape(mesh)),
            "result_local_shape": list(collective.result.local_shape(mesh)),
            "seconds": self.seconds,
            "achieved_seconds": self.achieved_seconds,
            "reached": self.reached,
            "bound": self.bound,
            "bandwidth_seconds": self.bandwidth_seconds,
            "latency_seconds": self.latency_seconds,
            "wraparound": self.rates.wraparound,
            "devices": self.rates.devices,
            "hops": self.rates.hops,
            "bytes": self.bytes,
            "wire_bytes": self.wire_bytes,
            "link_bytes": self.link_bytes,
            "threshold_bytes": None if math.isinf(self.threshold_bytes) else self.threshold_bytes,
            "threshold_message_bytes": self.threshold_message_bytes,
            "formula": self.formula,
            "transpose": collective.transpose,
            "notes": [*collective.notes, *self.notes],
        }


def estimate(
    collective: Collective, topology: Topology, options: TimeOptions | None = None
) -> Estimate:
    """Return the time of ``collective`` on the mesh and hardware of ``topology``.

    Raises:
        CalculusError: sizes or the element type are unknown (``missing-size``).
        VerificationError: the mesh lacks an axis (``unknown-axis``).
    """
    expect(collective, Collective)
    expect(topology, Topology)
    used = options or TimeOptions()
    expect(used, TimeOptions)
    rates = rates_of(collective.op, collective.axes, topology, used, shift=collective.shift)
    num_bytes = gathered_bytes(collective, topology.mesh)
    hop = topology.hardware.hop_seconds * topology.hardware.link_bytes_per_second * used.efficiency
    notes = [*topology.notes, *_shared_nodes(collective, topology, used)]
    sent = wire_bytes(collective.op, num_bytes, rates.devices, shift=collective.shift)
    return Estimate(
        collective,
        num_bytes,
        sent,
        num_bytes * rates.link_share,
        rates,
        hop,
        tuple(notes),
        reached_share(topology, rates, num_bytes, sent),
        rates.waiting_seconds(topology.hardware.achieved) if sent else rates.latency_seconds,
    )


def reached_share(topology: Topology, rates: Rates, num_bytes: int, sent: int) -> float:
    """Return the share of the bandwidth that a collective of V = ``num_bytes`` reaches.

    ``sent`` is the number of bytes that a device sends.
    """
    moving = rates.moving_seconds(num_bytes, sent, topology.hardware.achieved)
    return num_bytes * rates.seconds_per_byte / moving if moving else 1.0


def wire_bytes(op: str, num_bytes: int, devices: int, *, shift: int = 1) -> int:
    """Return the bytes that a device sends or forwards, for V = ``num_bytes``."""
    share = {
        "all_gather": (devices - 1, devices),
        "reduce_scatter": (devices - 1, devices),
        "all_reduce": (2 * (devices - 1), devices),
        "all_to_all": (devices - 1, devices * devices),
        "permute": (1 if devices > 1 and shift % devices else 0, 1),
        "slice": (0, 1),
    }[op]
    return num_bytes * share[0] // share[1]


def _shared_nodes(collective: Collective, topology: Topology, options: TimeOptions) -> list[str]:
    """Notes on groups that share the bandwidth of a node, which the source's formula ignores."""
    if topology.hardware.is_torus or options.exact or collective.op == "slice":
        return []
    nodes, inside = topology.nodes_of(collective.axes)
    groups = groups_of_node(inside, topology)
    if nodes == 1 or groups == 1:
        return []
    return [f"{groups} such groups leave each node at the same time; exact counts that"]


def gathered_bytes(collective: Collective, mesh: Mesh) -> int:
    """V: the bytes of the array on a device after the axes of the op are gathered."""
    array: NamedArray = collective.gathered or collective.array
    return array.bytes_per_device(mesh)


def rates_of(
    op: str, axes: tuple[AxisRef, ...], topology: Topology, options: TimeOptions, *, shift: int = 1
) -> Rates:
    """Return the rates from which, with the bytes, the time of ``op`` along ``axes`` follows."""
    devices = group_size(topology.mesh, axes)
    if op == "slice" or devices == 1 or (op == "permute" and shift % devices == 0):
        wraps = all(part.wraps_around for part in topology.along(axes))
        return Rates(devices, 0, 0.0, 0.0, "", "", wraps, 0.0)
    if topology.hardware.is_torus:
        if topology.slices > 1:
            slices, inside = topology.slices_of(axes)
            if slices > 1:
                return _across_slices(op, axes, (slices, inside), topology, options)
        return _torus(op, topology.along_group(axes, devices), devices, topology, options, shift)
    return switched(op, axes, devices, topology, options)


def _torus(
    op: str,
    parts: list[PhysicalAxis],
    devices: int,
    topology: Topology,
    options: TimeOptions,
    shift: int,
) -> Rates:
    one_way = topology.hardware.link_bytes_per_second * options.efficiency
    hop = topology.hardware.hop_seconds
    is_ring = all(part.wraps_around for part in parts)
    hops = sum(
        part.stride * (part.size - 1) if part.wraps_around and options.one_way else part.hops
        for part in parts
    )
    if op == "permute":
        return _permute(parts, devices, one_way, hop, shift)
    if op == "all_to_all":
        share, formula = _all_to_all(parts, devices, one_way, options)
        links = max((part.links for part in parts), default=1.0)
    else:
        cut = slowest_cut(parts, one_way, not options.one_way, options.exact or not is_ring)
        share, formula, links = cut.seconds_per_byte, cut.formula, cut.links
    times = 2 if op == "all_reduce" else 1
    prefix = "2 * " if times == 2 else ""
    # Each direction of a ring carries half of the bytes, split over the links of all axes.
    link_share = times * share * one_way * links
    latency = times * hop * hops
    return Rates(
        devices,
        times * hops,
        times * share,
        latency,
        prefix + formula,
        f"{prefix}{hops} * {format_seconds(hop, 4)}" if latency else "",
        is_ring,
        link_share,
        links_steps=steps_of(op, devices),
        chunks=chunks_of(op, devices),
    )


def _across_slices(
    op: str,
    axes: tuple[AxisRef, ...],
    group: tuple[int, int],
    topology: Topology,
    options: TimeOptions,
) -> Rates:
    """A collective among chips of several slices: inside each slice, and between them.

    Each chip of a group sends its own part of the data that leaves the slice.
    """
    slices, inside = group
    out = topology.hardware.dcn_bytes_per_second * options.efficiency
    share = {
        "all_to_all": (slices - 1) / (slices * slices * inside),
        "permute": 1.0,
    }.get(op, (slices - 1) / (slices * inside))
    times = 2 if op == "all_reduce" else 1
    network = times * share / out
    formula = f"{'2 * ' if times == 2 else ''}{{V}} B * {share:.4g} / {out:.4g} B/s"
    devices = slices * inside
    # All slices reach each other over the network, at once.
    steps, chunks = times, chunks_of(op, devices)
    if inside == 1 or op == "permute":
        return Rates(
            devices,
            0,
            network,
            0.0,
            formula,
            "",
            False,
            0.0,
            network,
            network_steps=steps,
            chunks=chunks,
        )
    within = _torus(op, topology.along_group(axes, inside), inside, topology, options, 1)
    return replace(
        within,
        devices=devices,
        seconds_per_byte=within.seconds_per_byte + network,
        formula=f"{within.formula} + {formula}",
        network_seconds_per_byte=network,
        network_steps=steps,
        chunks=chunks,
    )


def _all_to_all(
    parts: list[PhysicalAxis], devices: int, one_way: float, options: TimeOptions
) -> tuple[float, str]:
    """Seconds per byte of the slowest axis: half of all bytes cross its bisection."""
    worst, formula = 0.0, ""
    for part in parts:
        size = part.size
        if part.wraps_around and options.one_way:
            fraction = (size - 1) / size if options.exact else 1.0
            width = one_way * part.links / part.stride
            share = fraction * size / (2 * devices * width)
            text = f"{{V}} B * {size} / (2 * {devices} * {width:.4g} B/s)"
        else:
            width = one_way * part.links * (2 if part.wraps_around else 1) / part.stride
            fraction = 1 - 1 / size**2 if options.exact and size % 2 else 1.0
            share = fraction * size / (4 * devices * width)
            text = f"{{V}} B * {size} / (4 * {devices} * {width:.4g} B/s)"
        if fraction != 1:
            text += f" * {fraction:.4g}"
        if share > worst:
            worst, formula = share, text
    return worst, formula


def _permute(
    parts: list[PhysicalAxis], devices: int, one_way: float, hop: float, shift: int
) -> Rates:
    """A shift by ``k`` of N devices: each link carries k blocks; wrapping on a line takes N - 1
    hops."""
    is_ring = all(part.wraps_around for part in parts)
    # Along a sub-axis neighbours are `stride` chips apart.
    stride = max((part.stride for part in parts), default=1)
    distance = stride * min(shift % devices, -shift % devices)
    hops = distance if is_ring else stride * max(shift % devices, -shift % devices)
    width = shift_width(parts, one_way)
    formula = f"{{V}} B * {distance} / {width:.4g} B/s"
    return Rates(
        devices,
        hops,
        distance / width,
        hop * hops,
        formula,
        f"{hops} * {format_seconds(hop, 4)}" if hop else "",
        is_ring,
        float(distance),
    )
