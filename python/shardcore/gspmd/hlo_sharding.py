"""A sharding in GSPMD's notation.

Only the canonical form is stored: a tiling with one tile is replicated (or manual, or unreduced);
subgroups of one kind are merged into one dim, in the order manual, unreduced, replicated; and the
devices that share a tile are listed in ascending order.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from types import NoneType
from typing import TYPE_CHECKING

from shardcore.bounded import items
from shardcore.expected import expect, expect_all
from shardcore.gspmd.tiles import TileAssignment

if TYPE_CHECKING:
    from collections.abc import Iterable

    from shardcore._core import Mesh, TensorSharding
    from shardcore.gspmd.named import NamedForm

__all__ = ["SUBGROUPS", "HloSharding"]

SUBGROUPS = ("manual", "unreduced", "replicated")
"""The kinds of subgroups, whose devices share a tile, in canonical order."""
_INDEX_EVERY = 5


@dataclass(frozen=True, repr=False)
class HloSharding:
    """A sharding in GSPMD's notation, canonical as XLA prints it.

    >>> from shardcore import HloSharding
    >>> str(HloSharding.parse('{devices=[1,2,4]<=[1,8] T(0, 1) last_tile_dims={replicated}}'))
    '{devices=[1,2,4]<=[8] last_tile_dim_replicate}'
    """

    kind: str
    """``replicated``, ``maximal``, ``manual``, ``unknown``, ``unreduced``, ``tiled``, ``tuple``
    or ``named``."""
    device: int | None = None
    """The device of ``maximal``."""
    tiles: TileAssignment | None = None
    """The devices of ``tiled``."""
    subgroups: tuple[str, ...] = ()
    """The kinds of the last dims of ``tiles``, from :data:`SUBGROUPS`."""
    shard_group: tuple[str, int] | None = None
    """``("shard_as", id)`` or ``("shard_like", id)``."""
    elements: tuple[HloSharding, ...] = ()
    """The shardings in ``tuple``."""
    named: NamedForm | None = None
    """The mesh, axes and manual axes of ``named``."""

    def __post_init__(self) -> None:
        from shardcore.gspmd.named import NamedForm

        expect(self.kind, str)
        expect(self.tiles, TileAssignment, NoneType)
        expect(self.named, NamedForm, NoneType)
        expect_all(self.subgroups, str, "subgroups")
        expect_all(self.elements, HloSharding, "elements")
        if self.shard_group is not None:
            word, number = self.shard_group
            expect(word, str)
            expect(number, int)

    @staticmethod
    def parse(text: str) -> HloSharding:
        """Read a sharding.

        Raises:
            ParseError: the text is not in GSPMD's notation.
            VerificationError: it parses, but is inconsistent: a device is used twice, or there are
                too few.
        """
        from shardcore.gspmd.parse import parse

        return parse(text)

    @staticmethod
    def tiled(tiles: TileAssignment, subgroups: Iterable[str] = ()) -> HloSharding:
        """Return the canonical form of a tiling whose last dims are ``subgroups``."""
        expect(tiles, TileAssignment)
        kinds = list(items(subgroups, "subgroups"))
        if len(kinds) > len(tiles.dims) or not set(kinds) <= set(SUBGROUPS):
            known = ", ".join(SUBGROUPS)
            raise ValueError(f"subgroups are kinds of the last of the dims: some of {known}")
        if not kinds:
            return HloSharding("tiled", tiles=tiles)
        rank = len(tiles.dims) - len(kinds)
        sizes = dict.fromkeys(SUBGROUPS, 1)
        for kind, size in zip(kinds, tiles.dims[rank:], strict=True):
            sizes[kind] *= size
        present = tuple(kind for kind in SUBGROUPS if sizes[kind] > 1)
        if prod(tiles.dims[:rank]) == 1:
            if len(set(kinds)) == 1:
                return HloSharding(kinds[0])
            # Not for unreduced: XLA keeps that tiling.
            if present in (("replicated",), ("manual",)):
                return HloSharding(present[0])
        order = sorted(range(len(kinds)), key=lambda at: SUBGROUPS.index(kinds[at]))
        tiles = tiles.transposed([*range(rank), *(rank + at for at in order)])
        tiles = tiles.reshaped((*tiles.dims[:rank], *(sizes[kind] for kind in present)))
        if present[-1:] == ("replicated",):
            tiles = tiles.with_sorted_groups()
        return HloSharding("tiled", tiles=tiles, subgroups=present)

    @staticmethod
    def from_sharding(sharding: TensorSharding, manual: Iterable[str] = ()) -> HloSharding:
        """Convert ``sharding`` to GSPMD's notation; ``manual`` are its mesh's manual axes.

        Open dims, priorities and the names of axes are lost, because the notation lacks them.

        Raises:
            VerificationError: the mesh is unknown, or lacks a manual axis.
        """
        from shardcore._core import TensorSharding
        from shardcore.gspmd.convert import tiling

        expect(sharding, TensorSharding)
        found = tiling(sharding, items(manual, "axes"))
        if found is not None:
            return HloSharding.tiled(*found)
        mesh = sharding.mesh
        if mesh is not None and mesh.is_maximal and mesh.device_ids:
            return HloSharding("maximal", mesh.device_ids[0])
        return HloSharding("replicated")

    def to_sharding(self, mesh: Mesh | None = None, *, rank: int | None = None) -> TensorSharding:
        """Convert it to a sharding over the axes of ``mesh``, with sub-axes where needed.

        Without ``mesh``, one is made of the axes that the tiling needs, called ``x``, ``y``, ``z``
        if there are at most three, else ``axis_0``, ...; an order of devices that no order of axes
        gives becomes the mesh's ``device_ids``.

        Args:
            mesh: the mesh.
            rank: the rank of the tensor, which ``{replicated}`` does not tell; by default 0.

        Raises:
            VerificationError: the axes of the mesh cannot form such tiles, or it is not the
                sharding of one tensor (``manual``, tuples), or its rank is not ``rank``.
        """
        from shardcore._core import Mesh
        from shardcore.gspmd.convert import to_sharding

        expect(mesh, Mesh, NoneType)
        return to_sharding(self, mesh, rank)

    @property
    def tile_dims(self) -> tuple[int, ...]:
        """The number of tiles along each dim of the tensor."""
        if self.tiles is None:
            return ()
        return self.tiles.dims[: len(self.tiles.dims) - len(self.subgroups)]

    @property
    def num_devices(self) -> int | None:
        """Number of devices of a tiling; ``None`` for kinds without devices."""
        return self.tiles.num_devices if self.tiles else None

    def in_group(self, group: tuple[str, int] | None) -> HloSharding:
        """Return this sharding as a member of the shard group ``group``."""
        return replace(self, shard_group=group)

    def __repr__(self) -> str:
        return f"HloSharding.parse({str(self)!r})"

    def __str__(self) -> str:
        if self.named is not None:
            return str(self.named)
        if self.kind == "tuple":
            return "{" + ", ".join(map(_with_index, enumerate(self.elements))) + "}"
        words = [str(self.tiles) if self.tiles else self.kind]
        if self.device is not None:
            words.append(f"device={self.device}")
        if self.subgroups == ("replicated",):
            words.append("last_tile_dim_replicate")
        elif self.subgroups:
            words.append(f"last_tile_dims={{{', '.join(self.subgroups)}}}")
        if self.shard_group is not None:
            words.append(f"{self.shard_group[0]} {self.shard_group[1]}")
        return "{" + " ".join(words) + "}"


def _with_index(numbered: tuple[int, HloSharding]) -> str:
    at, element = numbered
    return f"/*index={at}*/{element}" if at and at % _INDEX_EVERY == 0 else str(element)
