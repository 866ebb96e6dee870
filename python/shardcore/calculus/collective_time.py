"""How long a collective takes: the bandwidth bound, the latency bound, and the larger of the two.

With V the bytes of the array after gathering, in one group of N devices, W the bandwidth of a link
one way (2 W both ways), T the time of a hop:

=======================  ==================================================================
AllGather, ReduceScatter  rings: ``max(T * sum(N_i // 2), V / (2 W * axes))``;
                          line: ``(N - 1) * max(T, V / (N * W))``
AllReduce                 two of these
AllToAll                  rings: ``V * max(N_i) / (4 * N * 2 W)``; lines: the same with W for 2 W;
                          one-way rings: half an AllGather
permute                   the bytes of a block over the links that it crosses
slice                     nothing
in a node                 ``V * (N - 1) / (N * W)``; AllToAll ``V * (N - 1) / (N**2 * W)``
across M nodes            ``V / W_node``; AllToAll ``V * (M - 1) / (M**2 * W_node)``
=======================  ==================================================================

What the book leaves open, and how it is here:

1. Several axes, some of them lines: all links of a chip bring in ``(N - 1) / N * V`` together, W
   for a line and 2 W for a ring. For one line, or rings alone, this is the table above.
2. ``exact`` counts on rings that a device has its own block already, ``(N - 1) / N``; that an
   AllToAll on an odd ring has no longest way, ``1 - 1 / N**2``; and across nodes ``(M - 1) / M``,
   and that all groups that leave a node share its bandwidth.
3. Along a sub-axis groups are interleaved: with ``s`` chips from one device to the next, ``s``
   groups share each link, and a step takes ``s`` hops. The outermost part of a ring is a ring,
   other parts are lines.
4. What a group that spans nodes sends inside of them is taken to overlap with what leaves them,
   and is not counted; ``exact`` takes the longer of ``V * (N - 1) / (N * W)`` and that.

Source: "How to Scale Your Model", chapter 3; chapter 12 for switches.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from shardcore._core import Mesh
from shardcore.calculus.collectives import Collective
from shardcore.calculus.mistakes import mistake
from shardcore.calculus.notation import NamedArray, axis_size
from shardcore.calculus.topology import PhysicalAxis, Topology
from shardcore.errors import CalculusError


@dataclass(frozen=True)
class TimeOptions:
    """How to count.

    Raises:
        CalculusError: the efficiency is not above 0, or above 1 (``invalid-option``).
    """

    exact: bool = False
    """Count ``(N - 1) / N`` where the book rounds to 1."""
    efficiency: float = 1.0
    """The part of the bandwidth that is reached; the book measures 0.95 on v5e."""
    one_way: bool = False
    """Rings pass blocks on in one direction only."""

    def __post_init__(self) -> None:
        if not 0 < self.efficiency <= 1:
            raise mistake(
                CalculusError,
                "invalid-option",
                f"an efficiency of {self.efficiency:g} is not above 0 and at most 1",
                hint="0.95 is what is measured on a v5e",
                text=f"{self.efficiency:g}",
                filename="<efficiency>",
            )


@dataclass(frozen=True)
class Rates:
    """What determines the time of one op along some axes, whatever the bytes.

    The bandwidth bound is ``bytes * seconds_per_byte``, and the latency bound ``latency_seconds``.
    """

    devices: int
    hops: int
    seconds_per_byte: float
    latency_seconds: float
    formula: str
    """The bandwidth bound, with ``{V}`` where the bytes go."""
    latency_formula: str
    wraparound: bool
    link_share: float
    """The part of V that crosses the busiest link, in one direction."""

    def seconds(self, num_bytes: float) -> float:
        """Return the time for V = ``num_bytes``."""
        return max(num_bytes * self.seconds_per_byte, self.latency_seconds)


@dataclass(frozen=True)
class Estimate:
    """The time of one collective, and how it comes about. Seconds and bytes throughout."""

    collective: Collective
    bytes: int
    """V: of the array after gathering, in one group of devices."""
    wire_bytes: int
    """What a device sends of its own, or passes on in a gather."""
    link_bytes: float
    """What the busiest link carries, in one direction."""
    rates: Rates
    threshold_message_bytes: float
    """A message for which a hop takes as long as a hop takes at least."""
    notes: tuple[str, ...] = ()

    @property
    def bandwidth_seconds(self) -> float:
        """How long the bytes take over the links."""
        return self.bytes * self.rates.seconds_per_byte

    @property
    def latency_seconds(self) -> float:
        """How long the hops take at least."""
        return self.rates.latency_seconds

    @property
    def seconds(self) -> float:
        """The longer of the two."""
        return max(self.bandwidth_seconds, self.latency_seconds)

    @property
    def bound(self) -> str:
        """``"bandwidth"`` or ``"latency"``."""
        return "bandwidth" if self.bandwidth_seconds >= self.latency_seconds else "latency"

    @property
    def threshold_bytes(self) -> float:
        """The V at which the bound changes; 0 without latency, infinite without bytes."""
        if self.rates.latency_seconds == 0:
            return 0.0
        if self.rates.seconds_per_byte == 0:
            return math.inf
        return self.rates.latency_seconds / self.rates.seconds_per_byte

    @property
    def formula(self) -> str:
        """What :attr:`seconds` is, with all numbers filled in."""
        if not self.rates.formula:
            return "0: no communication"
        bandwidth = self.rates.formula.replace("{V}", str(self.bytes))
        if not self.rates.latency_formula:
            return f"{bandwidth} = {_si(self.seconds)}"
        return f"max({self.rates.latency_formula}, {bandwidth}) = {_si(self.seconds)}"

    def record(self, mesh: Mesh) -> dict[str, Any]:
        """Return everything as plain data."""
        collective = self.collective
        dims = collective.result.dims
        return {
            "op": collective.op,
            "array": str(collective.array),
            "axes": list(collective.axes),
            "dim": None if collective.dim is None else dims[collective.dim].name or collective.dim,
            "result": str(collective.result),
            "local_shape": list(collective.array.local_shape(mesh)),
            "result_local_shape": list(collective.result.local_shape(mesh)),
            "seconds": self.seconds,
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
        CalculusError: sizes or the element type are not known (``missing-size``).
        VerificationError: the mesh has no such axis (``unknown-axis``).
    """
    used = options or TimeOptions()
    rates = rates_of(collective.op, collective.axes, topology, used, shift=collective.shift)
    num_bytes = gathered_bytes(collective, topology.mesh)
    hop = topology.hardware.hop_seconds * topology.hardware.link_bytes_per_second * used.efficiency
    notes = list(topology.notes)
    return Estimate(
        collective,
        num_bytes,
        wire_bytes(collective.op, num_bytes, rates.devices, shift=collective.shift),
        num_bytes * rates.link_share,
        rates,
        hop,
        tuple(notes),
    )


def wire_bytes(op: str, num_bytes: int, devices: int, *, shift: int = 1) -> int:
    """Return what a device sends of its own, or passes on in a gather, for V = ``num_bytes``."""
    share = {
        "all_gather": (devices - 1, devices),
        "reduce_scatter": (devices - 1, devices),
        "all_reduce": (2 * (devices - 1), devices),
        "all_to_all": (devices - 1, devices * devices),
        "permute": (1 if devices > 1 and shift % devices else 0, 1),
        "slice": (0, 1),
    }[op]
    return num_bytes * share[0] // share[1]


def gathered_bytes(collective: Collective, mesh: Mesh) -> int:
    """V: the bytes that a device has of the array once the axes of the op are gathered."""
    array: NamedArray = collective.gathered or collective.array
    return array.bytes_per_device(mesh)


def rates_of(
    op: str, axes: tuple[str, ...], topology: Topology, options: TimeOptions, *, shift: int = 1
) -> Rates:
    """Return what the time of ``op`` along ``axes`` depends on, but for the bytes."""
    devices = math.prod(axis_size(topology.mesh, axis) for axis in axes)
    if op == "slice" or devices == 1 or (op == "permute" and shift % devices == 0):
        wraps = all(part.wraps_around for part in topology.along(axes))
        return Rates(devices, 0, 0.0, 0.0, "", "", wraps, 0.0)
    if topology.hardware.is_torus:
        return _torus(op, topology.along(axes), devices, topology, options, shift)
    return _switched(op, axes, devices, topology, options)


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
    else:
        width = one_way * sum(
            (2 if part.wraps_around and not options.one_way else 1) / part.stride for part in parts
        )
        partly = options.exact or not is_ring
        share = ((devices - 1) / devices if partly else 1.0) / width
        fraction = f" * {devices - 1}/{devices}" if partly else ""
        formula = f"{{V}} B{fraction} / {width:.4g} B/s"
    times = 2 if op == "all_reduce" else 1
    prefix = "2 * " if times == 2 else ""
    # Both directions of a ring carry half; all links of the axes share.
    link_share = times * share * one_way
    latency = times * hop * hops
    return Rates(
        devices,
        times * hops,
        times * share,
        latency,
        prefix + formula,
        f"{prefix}{hops} * {_si(hop)}" if latency else "",
        is_ring,
        link_share,
    )


def _all_to_all(
    parts: list[PhysicalAxis], devices: int, one_way: float, options: TimeOptions
) -> tuple[float, str]:
    """Seconds per byte: the slowest axis, whose middle half of all bytes has to cross."""
    worst, formula = 0.0, ""
    for part in parts:
        size = part.size
        if part.wraps_around and options.one_way:
            fraction = (size - 1) / size if options.exact else 1.0
            width = one_way / part.stride
            share = fraction * size / (2 * devices * width)
            text = f"{{V}} B * {size} / (2 * {devices} * {width:.4g} B/s)"
        else:
            width = one_way * (2 if part.wraps_around else 1) / part.stride
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
    """A shift by ``k`` of N devices: links carry k blocks; round the ends of a line, N - 1 hops."""
    is_ring = all(part.wraps_around for part in parts)
    # A part of an axis goes from one of its devices to the next over those in between.
    stride = max((part.stride for part in parts), default=1)
    distance = stride * min(shift % devices, -shift % devices)
    hops = distance if is_ring else stride * max(shift % devices, -shift % devices)
    formula = f"{{V}} B * {distance} / {one_way:.4g} B/s"
    return Rates(
        devices,
        hops,
        distance / one_way,
        hop * hops,
        formula,
        f"{hops} * {_si(hop)}" if hop else "",
        is_ring,
        float(distance),
    )


def _switched(
    op: str, axes: tuple[str, ...], devices: int, topology: Topology, options: TimeOptions
) -> Rates:
    chip = topology.hardware
    nodes, inside = topology.nodes_of(axes)
    width = chip.link_bytes_per_second * options.efficiency
    out = chip.node_bytes_per_second * options.efficiency
    share, formula = _in_node(op, devices, width)
    if nodes > 1:
        across = _across(op, nodes, inside, out, topology, options)
        # The book lets what the switches of the nodes do overlap, and does not count it.
        share, formula = max(across, (share, formula)) if options.exact else across
    times = 2 if op == "all_reduce" else 1
    prefix = "2 * " if times == 2 else ""
    hops = 1 if nodes == 1 else 2
    latency = times * hops * chip.hop_seconds
    return Rates(
        devices,
        times * hops,
        times * share,
        latency,
        prefix + formula,
        f"{prefix}{hops} * {_si(chip.hop_seconds)}" if latency else "",
        False,
        times * share * width,
    )


def _in_node(op: str, devices: int, width: float) -> tuple[float, str]:
    """Seconds per byte over the switch of a node, and the formula."""
    if op == "permute":
        return 1 / width, f"{{V}} B / {width:.4g} B/s"
    power = 2 if op == "all_to_all" else 1
    text = f"{{V}} B * {devices - 1}/{devices}{'^2' if power == 2 else ''} / {width:.4g} B/s"
    return (devices - 1) / devices**power / width, text


def _across(
    op: str, nodes: int, inside: int, out: float, topology: Topology, options: TimeOptions
) -> tuple[float, str]:
    """Seconds per byte between nodes, and the formula."""
    share, text = 1.0, ""
    if op == "all_to_all":
        share, text = (nodes - 1) / nodes**2, f" * {nodes - 1}/{nodes}^2"
    elif options.exact and op != "permute":
        share, text = (nodes - 1) / nodes, f" * {nodes - 1}/{nodes}"
    if options.exact:
        groups = max(min(topology.hardware.node_size, topology.mesh.num_devices) // inside, 1)
        if groups > 1:
            share *= groups
            text += f" * {groups} groups"
    return share / out, f"{{V}} B{text} / {out:.4g} B/s"


def _si(seconds: float) -> str:
    """Seconds with a unit that suits: ``12.5 us``."""
    for unit, factor in (("s", 1.0), ("ms", 1e3), ("us", 1e6)):
        if seconds * factor >= 1:
            return f"{seconds * factor:.4g} {unit}"
    return f"{seconds * 1e9:.4g} ns"
