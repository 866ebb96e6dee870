"""How long collectives of a program take: its mesh axes on links, each question asked once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from shardcore._core import AxisRef, Mesh
from shardcore.calculus.collective_time import TimeOptions, rates_of, wire_bytes
from shardcore.calculus.hardware import Hardware
from shardcore.calculus.topology import Topology, parse_mapping

Axis = tuple[str, int, int]
"""Name, pre-size and size: a whole axis has pre-size 1 and its own size."""

OPS = {
    "all_gather": "all_gather",
    "reduce_scatter": "reduce_scatter",
    "all_reduce": "all_reduce",
    "all_to_all": "all_to_all",
    "collective_permute": "permute",
    "all_slice": "slice",
}
"""What the calculus calls the kinds of collectives."""


class Links:
    """The links of a chip, for the meshes of one program."""

    def __init__(
        self,
        meshes: Sequence[Mesh],
        chip: Hardware,
        shape: str | Sequence[int] | None = None,
        mapping: Mapping[str, Sequence[int]] | str | None = None,
        options: TimeOptions | None = None,
    ) -> None:
        self._meshes = meshes
        self._chip = chip
        self._shape = shape
        self._mapping = parse_mapping([mapping]) if isinstance(mapping, str) else mapping
        self._options = options or TimeOptions()
        self._topologies: dict[int, Topology] = {}
        self._known: dict[tuple[str, int, tuple[Axis, ...], int], tuple[int, float]] = {}

    @property
    def notes(self) -> tuple[str, ...]:
        """What is odd about the topologies that were asked for."""
        return tuple(dict.fromkeys(note for row in self._topologies.values() for note in row.notes))

    def axis(self, mesh: int, axis: Axis) -> AxisRef:
        """Return the axis or sub-axis that ``axis`` is."""
        name, pre, size = axis
        is_full = size == self._meshes[mesh].axis_size(name)
        return AxisRef(name) if is_full else AxisRef(name, pre, size)

    def topology(self, mesh: int) -> Topology:
        """Return how the ``mesh``-th mesh lies on the chips.

        Raises:
            CalculusError: sizes do not match, ... (``invalid-topology``).
            VerificationError: the mapping names an axis that the mesh lacks (``unknown-axis``).
        """
        if mesh not in self._topologies:
            self._topologies[mesh] = Topology.of(
                self._meshes[mesh], self._chip, self._shape, self._mapping
            )
        return self._topologies[mesh]

    def cost(
        self, kind: str, mesh: int, axes: tuple[Axis, ...], num_bytes: int
    ) -> tuple[int, float]:
        """Return what a device sends and the seconds of one run, for V = ``num_bytes``."""
        key = (kind, mesh, axes, num_bytes)
        if key not in self._known:
            refs = tuple(self.axis(mesh, axis) for axis in axes)
            topology = self.topology(mesh)
            rates = rates_of(OPS[kind], refs, topology, self._options)
            sent = wire_bytes(OPS[kind], num_bytes, rates.devices)
            self._known[key] = (sent, rates.seconds(num_bytes))
        return self._known[key]
