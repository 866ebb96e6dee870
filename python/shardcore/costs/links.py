"""Times of the collectives of a program, each distinct one computed once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from shardcore._core import AxisRef, Mesh
from shardcore.calculus.collective_time import TimeOptions, rates_of, wire_bytes
from shardcore.calculus.hardware import Hardware
from shardcore.calculus.mistakes import mistake
from shardcore.calculus.topology import Topology, parse_mapping, parse_shape
from shardcore.errors import CalculusError, ShardcoreError, VerificationError

OPS = {
    "all_gather": "all_gather",
    "reduce_scatter": "reduce_scatter",
    "all_reduce": "all_reduce",
    "all_to_all": "all_to_all",
    "collective_permute": "permute",
}
"""The collective of the calculus that each kind is timed as."""


class Links:
    """The links of a chip, for the meshes of one program."""

    def __init__(
        self,
        chip: Hardware,
        shape: str | Sequence[int] | None = None,
        mapping: Mapping[str, Sequence[int]] | str | None = None,
        options: TimeOptions | None = None,
    ) -> None:
        self._chip = chip
        self._shape = None if shape is None else parse_shape(shape)
        self._mapping = parse_mapping([mapping]) if isinstance(mapping, str) else mapping
        self._options = options or TimeOptions()
        self._topologies: dict[Mesh, Topology] = {}
        self._known: dict[tuple[str, Mesh, tuple[AxisRef, ...], int], tuple[int, float]] = {}

    @property
    def notes(self) -> tuple[str, ...]:
        """Remarks on the topologies that were used, as :attr:`Topology.notes`."""
        return tuple(dict.fromkeys(note for row in self._topologies.values() for note in row.notes))

    def check(self, meshes: Iterable[Mesh]) -> None:
        """Check that the topology and the mapping fit one of ``meshes``, those of a program, also
        if the program has no collectives.

        Raises:
            CalculusError, VerificationError: as for :meth:`topology`, of the first mesh.
        """
        problem: ShardcoreError | None = None
        for mesh in meshes:
            try:
                Topology.of(mesh, self._chip, self._shape, self._mapping)
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

    def topology(self, mesh: Mesh) -> Topology:
        """Return the physical axes of ``mesh``.

        Raises:
            CalculusError: sizes do not match, ... (``invalid-topology``).
            VerificationError: the mapping names an axis that the mesh lacks (``unknown-axis``).
        """
        if mesh not in self._topologies:
            self._topologies[mesh] = Topology.of(mesh, self._chip, self._shape, self._mapping)
        return self._topologies[mesh]

    def cost(
        self, kind: str, mesh: Mesh, axes: tuple[AxisRef, ...], num_bytes: int
    ) -> tuple[int, float]:
        """Return the bytes that a device sends in one run, and its seconds, for V = ``num_bytes``.

        Raises:
            CalculusError, VerificationError: as for :meth:`topology`.
        """
        key = (kind, mesh, axes, num_bytes)
        if key not in self._known:
            rates = rates_of(OPS[kind], axes, self.topology(mesh), self._options)
            sent = wire_bytes(OPS[kind], num_bytes, rates.devices)
            self._known[key] = (sent, rates.seconds(num_bytes))
        return self._known[key]
