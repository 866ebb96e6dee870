"""Dim shardings and tensor shardings."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass

from . import axis
from .axis import AxisRef
from .mesh import Mesh


def _axes_text(axes: Iterable[AxisRef]) -> str:
    return ", ".join(map(str, axes))


@dataclass(frozen=True)
class DimSharding:
    """The sharding of one dim along `axes`, major to minor, to which an open dim may add."""

    axes: tuple[AxisRef, ...] = ()
    is_closed: bool = False
    priority: int | None = None

    def sharded_size(self, mesh: Mesh) -> int:
        return axis.total_size(self.axes, mesh)

    def without_priority(self) -> DimSharding:
        return dataclasses.replace(self, priority=None)

    def __str__(self) -> str:
        parts = [str(ref) for ref in self.axes] + ([] if self.is_closed else ["?"])
        priority = "" if self.priority is None else f"p{self.priority}"
        return "{" + ", ".join(parts) + "}" + priority


@dataclass(frozen=True)
class TensorSharding:
    """The sharding of a tensor over a mesh, which is a name or an inlined mesh."""

    mesh: str | Mesh
    dims: tuple[DimSharding, ...] = ()
    replicated: tuple[AxisRef, ...] = ()
    unreduced: tuple[AxisRef, ...] = ()

    @property
    def is_fully_replicated(self) -> bool:
        return not any(dim.axes for dim in self.dims)

    @property
    def has_no_axes(self) -> bool:
        return self.is_fully_replicated and not self.replicated and not self.unreduced

    def __str__(self) -> str:
        mesh = f"@{self.mesh}" if isinstance(self.mesh, str) else f"mesh{self.mesh}"
        text = mesh + ", [" + ", ".join(map(str, self.dims)) + "]"
        if self.replicated:
            text += ", replicated={" + _axes_text(self.replicated) + "}"
        if self.unreduced:
            text += ", unreduced={" + _axes_text(self.unreduced) + "}"
        return f"<{text}>"


def fully_open(mesh: str | Mesh, rank: int) -> TensorSharding:
    return TensorSharding(mesh, (DimSharding(),) * rank)


def fully_closed(mesh: str | Mesh, rank: int) -> TensorSharding:
    return TensorSharding(mesh, (DimSharding(is_closed=True),) * rank)


def common_mesh_name(
    shardings: Iterable[TensorSharding | None], meshes: dict[str, Mesh]
) -> str | None:
    """Return the name of the one mesh all shardings use, if there is such a mesh.

    Empty meshes are compatible with any other. Of equal meshes with different names the
    first name is returned.
    """
    common: str | None = None
    for sharding in shardings:
        if sharding is None:
            continue
        assert isinstance(sharding.mesh, str), "inlined meshes are lifted before propagation"
        if common is None or meshes[common].is_empty:
            common = sharding.mesh
        elif not meshes[sharding.mesh].is_empty and meshes[sharding.mesh] != meshes[common]:
            return None
    return common
