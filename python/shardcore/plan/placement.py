"""Where the axes of a mesh lie on a machine: links within nodes or slices, and the network."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from shardcore._core import Mesh

if TYPE_CHECKING:
    from shardcore.calculus.physical_axes import PhysicalAxis
    from shardcore.calculus.topology import Topology


@dataclass(frozen=True)
class AxisPlace:
    """Where the groups along one axis lie."""

    size: int
    parts: int
    """The number of slices, or of nodes, that a group has devices in."""
    inside: int
    """The most devices that a group has in one of them."""
    physical: tuple[PhysicalAxis, ...]
    """Of a torus, the physical axes within a slice."""


@dataclass(frozen=True, repr=False)
class Placement:
    """Where each axis of a mesh lies."""

    mesh: Mesh
    axes: Mapping[str, AxisPlace]
    parts: int
    """The slices, or the nodes, that the mesh lies on."""
    is_torus: bool

    @staticmethod
    def of(topology: Topology) -> Placement:
        """Return where the axes of the mesh of ``topology`` lie."""
        is_torus = topology.hardware.is_torus
        axes = {}
        for axis in topology.mesh.axes:
            along = topology.slices_of if is_torus else topology.nodes_of
            parts, inside = along([axis.name])
            physical = topology.axes[axis.name] if is_torus else ()
            used = tuple(part for part in physical if part.size > 1)
            axes[axis.name] = AxisPlace(axis.size, parts, inside, used)
        if is_torus:
            return Placement(topology.mesh, axes, topology.slices, is_torus)
        nodes = -(-topology.mesh.num_devices // topology.hardware.node_size)
        return Placement(topology.mesh, axes, nodes, is_torus)

    @property
    def code(self) -> str:
        """The expression that makes the mesh of JAX's devices, placed so."""
        sizes, names = tuple(self.mesh.shape.values()), tuple(self.mesh.shape)
        if not self.is_torus or (self.parts == 1 and not self._splits):
            # Constraints are for axes that propagation shards along.
            types = f"(jax.sharding.AxisType.Auto,) * {len(names)}"
            return f"jax.make_mesh({sizes}, {names}, axis_types={types})"
        if self.parts == 1:
            made = f"create_device_mesh({sizes}, allow_split_physical_axes=True)"
        else:
            inside = tuple(each.inside for each in self.axes.values())
            across = tuple(each.parts for each in self.axes.values())
            split = ", allow_split_physical_axes=True" if self._splits else ""
            made = f"create_hybrid_device_mesh({inside}, {across}{split})"
        return f"jax.sharding.Mesh(mesh_utils.{made}, {names})"

    @property
    def _splits(self) -> bool:
        """Whether several axes lie on one physical axis."""
        return any(part.shared is not None for each in self.axes.values() for part in each.physical)

    def record(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "slices" if self.is_torus else "nodes": self.parts,
            "axes": {
                name: {
                    "size": each.size,
                    "slices" if self.is_torus else "nodes": each.parts,
                    "physical": [
                        {
                            "chips": part.size,
                            "ring": part.wraps_around,
                            "stride": part.stride,
                            "links": part.links,
                        }
                        for part in each.physical
                    ],
                }
                for name, each in self.axes.items()
            },
            "code": self.code,
        }

    def __str__(self) -> str:
        return "; ".join(
            f"{name} {self._where(each)}" for name, each in self.axes.items() if each.size > 1
        )

    def __repr__(self) -> str:
        return f"<shardcore.Placement {self}>"

    def _where(self, axis: AxisPlace) -> str:
        found = []
        if axis.parts > 1:
            found.append(f"across {axis.parts} {'slices' if self.is_torus else 'nodes'}")
        if axis.inside > 1 and not self.is_torus:
            found.append(f"on {axis.inside} chips of a node")
        for part in axis.physical:
            apart = f", {part.stride} chips apart" if part.stride > 1 else ""
            apart += f", links x{part.links:g}" if part.links != 1 else ""
            found.append(f"on a {'ring' if part.wraps_around else 'line'} of {part.size}{apart}")
        return " and ".join(found) or "on one chip"


def places(topology: Topology) -> tuple[AxisPlace, ...]:
    """Return what meshes have in common whose axes lie alike, in whatever order."""
    axes = Placement.of(topology).axes.values()
    return tuple(sorted((each for each in axes if each.size > 1), key=repr))
