"""Times of the collectives of a program, each distinct one computed once."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from shardcore._core import AxisRef, Mesh
from shardcore.calculus.collective_time import Rates, TimeOptions, rates_of, wire_bytes
from shardcore.calculus.hardware import LARGEST, Hardware
from shardcore.calculus.mistakes import mistake
from shardcore.calculus.slices import networked
from shardcore.calculus.topology import Topology, parse_mapping, parse_shape
from shardcore.errors import CalculusError, ShardcoreError, VerificationError
from shardcore.expected import expect

OPS = {
    "all_gather": "all_gather",
    "reduce_scatter": "reduce_scatter",
    "all_reduce": "all_reduce",
    "all_to_all": "all_to_all",
    "collective_permute": "permute",
}
"""For each kind, the collective of the calculus that gives its time."""

_NO_TIME = "what is sent to other slices takes no time"

LINKS, NETWORK = 1, 2
"""The streams of collectives: on links within slices or nodes, and on the network between them."""

SPLIT = ("all_gather", "reduce_scatter")
"""Collectives that compilers overlap with an adjacent product, chunk by chunk."""


@dataclass(frozen=True)
class Transfer:
    """One run of a collective."""

    bytes: int
    """Bytes that a device sends."""
    seconds: float
    """Seconds at the full bandwidth, by the formulas of the calculus."""
    fastest: float
    """A lower bound of the seconds, at the full bandwidth."""
    achieved: float
    """Seconds at the achieved bandwidth."""
    stream: int
    """:data:`LINKS` or :data:`NETWORK`."""
    overlaps: bool
    """Whether computation may run at the same time."""
    chunks: int
    """The number of chunks in which it overlaps with a product; 1 without such an overlap."""
    network_bytes: float = 0.0
    """The part of :attr:`bytes` that a device sends to other slices or nodes."""
    in_products: bool = False
    """Whether kernels of products take its steps: it stands still beside other ops."""
    slows: float = 0.0
    """The seconds that ops which run meanwhile lose to it."""

    def share(self, part: float, num_bytes: int) -> Transfer:
        """Return this ``part`` of the transfer, in which a device sends ``num_bytes``."""
        names = ("seconds", "fastest", "achieved", "slows")
        shares = {name: getattr(self, name) * part for name in names}
        return replace(self, bytes=num_bytes, **shares)


_KnownRates = dict[tuple[str, Mesh, tuple[AxisRef, ...]], tuple[Rates, Rates]]
"""The rates of collectives along mesh axes: under the options, and for lower bounds."""

_MOST_RATES = 1 << 12
"""How many rates are kept for other programs."""


_KnownTransfers = dict[tuple[str, Mesh, tuple[AxisRef, ...], int], Transfer]
"""Transfers by kind of collective, mesh, axes and bytes."""

_MOST_TRANSFERS = 1 << 14
"""How many transfers are kept for other programs."""


@lru_cache(maxsize=16)
def _known(*_: Hashable) -> tuple[_KnownRates, _KnownTransfers]:
    """The known rates and transfers for a chip, a topology and options."""
    return {}, {}


@lru_cache(maxsize=64)
def _placed(mesh: Mesh, chip: Hardware, slices: int | None) -> Topology:
    """The topology that ``mesh`` gets if none is given."""
    return Topology.of(mesh, chip, slices=slices)


class Links:
    """The links of a chip, for the meshes of one program."""

    def __init__(
        self,
        chip: Hardware,
        shape: str | Sequence[int] | None = None,
        mapping: Mapping[str, Sequence[int]] | str | None = None,
        options: TimeOptions | None = None,
        slices: int | None = None,
    ) -> None:
        self._is_network_known = chip.dcn_bytes_per_second <= LARGEST
        if not self._is_network_known:
            # Traffic over the network is separate even if no figure limits it.
            chip = replace(chip, dcn_bytes_per_second=LARGEST)
        self._chip = chip
        self._slices = slices
        self._shape = None if shape is None else parse_shape(shape)
        expect(mapping, Mapping, str, type(None))
        self._mapping = parse_mapping([mapping]) if isinstance(mapping, str) else mapping
        self._options = options or TimeOptions()
        self._topologies: dict[Mesh, Topology] = {}
        self._shared: tuple[_KnownRates, _KnownTransfers] | None = None

    @property
    def notes(self) -> tuple[str, ...]:
        """Remarks on the topologies that were used, as in :attr:`Topology.notes`."""
        found = dict.fromkeys(note for row in self._topologies.values() for note in row.notes)
        if self.has_network and self._chip.is_torus and not self._is_network_known:
            found[f"{self._chip.name} has no dcn_bytes_per_second: {_NO_TIME}"] = None
        return tuple(found)

    @property
    def has_network(self) -> bool:
        """Whether a mesh that was used spans several slices or nodes."""
        return any(row.slices > 1 for row in self._topologies.values())

    @property
    def _network_rate(self) -> float:
        return self._chip.dcn_bytes_per_second * self._options.efficiency

    def check(self, meshes: Iterable[Mesh]) -> None:
        """Check that one of the program's ``meshes`` fits the topology and the mapping, even if the
        program has no collectives.

        Raises:
            CalculusError, VerificationError: as for :meth:`topology`, for the first mesh.
        """
        problem: ShardcoreError | None = None
        for mesh in meshes:
            try:
                self._place(mesh)
            except (CalculusError, VerificationError) as error:
                problem = problem or error
            else:
                return
        if problem is not None:
            raise problem
        for name in self._mapping or ():
            raise mistake(
                VerificationError,
                "unknown-axis",
                f'the program has no mesh with an axis "{name}"',
                hint="leave the mapping out",
                text=name,
                filename="<mapping>",
            )

    def has(self, mesh: Mesh) -> bool:
        """Whether ``mesh`` fits the topology."""
        try:
            self.topology(mesh)
        except (CalculusError, VerificationError):
            return False
        return True

    def topology(self, mesh: Mesh) -> Topology:
        """Return the physical axes of ``mesh``.

        Raises:
            CalculusError: the sizes do not match, or similar (``invalid-topology``).
            VerificationError: the mapping names an axis that the mesh lacks (``unknown-axis``).
        """
        if mesh not in self._topologies:
            self._topologies[mesh] = self._place(mesh)
        return self._topologies[mesh]

    def _place(self, mesh: Mesh) -> Topology:
        if self._shape is None and self._mapping is None:
            return _placed(mesh, self._chip, self._slices)
        return Topology.of(mesh, self._chip, self._shape, self._mapping, self._slices)

    def cost(self, kind: str, mesh: Mesh, axes: tuple[AxisRef, ...], num_bytes: int) -> Transfer:
        """Return the bytes that a device sends in one run, and the times, for V = ``num_bytes``.

        Raises:
            CalculusError, VerificationError: as for :meth:`topology`.
        """
        topology = self.topology(mesh)
        _, transfers = self._known()
        key = (kind, mesh, axes, num_bytes)
        found = transfers.get(key)
        if found is None:
            if len(transfers) >= _MOST_TRANSFERS:
                transfers.clear()
            found = transfers[key] = self._transfer(OPS[kind], topology, axes, num_bytes)
        return found

    def _known(self) -> tuple[_KnownRates, _KnownTransfers]:
        """What is known for the same chip, topology and options. The topology is resolved, so the
        mapping is hashable.
        """
        if self._shared is None:
            items = None if self._mapping is None else self._mapping.items()
            mapping = None if items is None else tuple((name, tuple(on)) for name, on in items)
            self._shared = _known(self._chip, self._shape, mapping, self._options, self._slices)
        return self._shared

    def _rates_of(
        self, op: str, axes: tuple[AxisRef, ...], topology: Topology
    ) -> tuple[Rates, Rates]:
        rates, _ = self._known()
        key = (op, topology.mesh, axes)
        found = rates.get(key)
        if found is None:
            if len(rates) >= _MOST_RATES:
                rates.clear()
            exact = replace(self._options, exact=True)
            found = rates[key] = (
                rates_of(op, axes, topology, self._options),
                rates_of(op, axes, topology, exact),
            )
        return found

    def _transfer(
        self, op: str, topology: Topology, axes: tuple[AxisRef, ...], num_bytes: int
    ) -> Transfer:
        rates, exact = self._rates_of(op, axes, topology)
        sent = wire_bytes(op, num_bytes, rates.devices)
        shares = self._chip.achieved
        # The contention within a group does not depend on options.
        network = exact.network_seconds_per_byte
        waiting = exact.waiting_seconds(shares) if sent else exact.latency_seconds
        is_sum = shares.gathers_by_sums and op in SPLIT
        moving = exact.moving_seconds(num_bytes, sent, shares) * (2 if is_sum else 1)
        seconds = moving + waiting
        peak = rates.seconds(num_bytes)
        achieved = max(seconds, exact.seconds(num_bytes))
        # A gather that is a sum adds to zeros, which are written before.
        written = num_bytes if is_sum and op == "all_gather" else 0
        written_seconds = written / (self._chip.hbm_bytes_per_second * shares.memory)
        splits = shares.splits_collectives and op in SPLIT and not is_sum
        return Transfer(
            bytes=sent,
            seconds=peak,
            fastest=min(peak, exact.seconds(num_bytes)),
            achieved=achieved,
            stream=NETWORK if network > 0 else LINKS,
            overlaps=shares.overlaps_network or network == 0,
            chunks=rates.devices if splits else 1,
            network_bytes=num_bytes * network * self._network_rate,
            in_products=shares.steps_in_products and network == 0,
            slows=achieved * shares.contention + written_seconds,
        )


def links(chip: Hardware, options: Mapping[str, Any]) -> Links:
    """Return the links of ``chip`` under options of :func:`shardcore.cost`."""
    timed = TimeOptions(
        options.get("exact", False),
        options.get("efficiency", 1.0),
        options.get("one_way", False),
    )
    chip = networked(chip, options.get("dcn"))
    topology, mapping = options.get("topology"), options.get("mapping")
    return Links(chip, topology, mapping, timed, options.get("slices"))
