"""Converts the GSPMD annotations of a module to one mesh, and ``sdy`` shardings over it.

Rust finds the annotations (``rust/src/import/hlo_annotations.rs``) and replaces them by the
shardings that this module returns (``hlo_shardings.rs``).
"""

from __future__ import annotations

import re
from typing import NamedTuple

from shardcore._core import DimSharding, Mesh, TensorSharding
from shardcore.errors import ShardcoreError
from shardcore.gspmd.convert import manual_axes, to_sharding
from shardcore.gspmd.cursor import invalid, located
from shardcore.gspmd.hlo_sharding import HloSharding
from shardcore.gspmd.infer import infer_mesh

__all__ = ["Annotation", "Meaning", "meanings"]

_OPEN_DIMS = re.compile(r"unspecified_dims=\[([0-9, ]*)\]")


class Annotation(NamedTuple):
    """One ``mhlo.sharding`` string."""

    kind: str
    """``values`` (of an argument, a result, an op), ``constraint``, ``to_shards``, ``to_full``."""
    text: str
    span: tuple[int, int]
    """Its span in the program's text, quotes included, in bytes."""
    ranks: list[int | None]
    """The rank of each value that it annotates."""
    config: str
    """The ``backend_config`` of a call."""


Meaning = tuple[list[str | None], list[int | None], list[str]]
"""For each value a sharding and a shard group, if any; and the manual axes of a body."""


def meanings(
    annotations: list[Annotation],
    source: tuple[str, str],
    partitions: int | None,
    mesh: Mesh | None,
    symbol: str,
) -> tuple[Mesh, list[Meaning]]:
    """Return the mesh, and the shardings over it that each annotation denotes.

    Args:
        annotations: all annotations of a module.
        source: the text of the module and its name, for errors.
        partitions: ``mhlo.num_partitions``.
        mesh: the mesh, if it is given.
        symbol: the name of the mesh in shardings.

    Raises:
        ParseError: an annotation is no sharding.
        VerificationError: no mesh, or not ``mesh``, has axes for all shardings.
    """
    reader = _Reader(*source)
    parsed = [reader.parse(annotation) for annotation in annotations]
    if mesh is None:
        mesh = reader.common_mesh(annotations, parsed, partitions)
    return mesh, [
        reader.meaning(annotation, sharding, mesh, symbol)
        for annotation, sharding in zip(annotations, parsed, strict=True)
    ]


class _Reader:
    """Reads annotations; its errors point into the program."""

    def __init__(self, source: str, filename: str) -> None:
        self.source = source
        self.filename = filename
        self.known: dict[str, HloSharding] = {}

    def parse(self, annotation: Annotation) -> HloSharding:
        """Read the text of an annotation."""
        text = annotation.text
        if text not in self.known:
            try:
                self.known[text] = HloSharding.parse(text)
            except ShardcoreError as error:
                raise self.error(error, annotation) from None
        return self.known[text]

    def error(self, error: ShardcoreError, annotation: Annotation) -> ShardcoreError:
        """Return ``error``, an error in the text of ``annotation``, with its position in the
        program."""
        first = error.diagnostics[0]
        encoded = self.source.encode("utf-8", "surrogatepass")
        start, end = annotation.span
        written = encoded[start + 1 : end - 1].decode("utf-8", "replace")
        if end > len(encoded):
            return error
        at = len(encoded[: start + 1].decode("utf-8", "replace"))
        span = (at, at + len(written))
        place = first.place
        # If the string has escapes, columns differ: the whole string is marked.
        if place is not None and place.line == 1 and written == annotation.text:
            begin = at + place.column - 1
            if place.end_column - place.column < len(written):
                span = (begin, max(min(at + place.end_column - 1, span[1]), begin + 1))
        moved = located(type(error), first.code, first.message, self.source, span, first.hint)
        return type(error)([d._replace(filename=self.filename) for d in moved.diagnostics])

    def common_mesh(
        self, annotations: list[Annotation], parsed: list[HloSharding], partitions: int | None
    ) -> Mesh:
        """Return a mesh such that all shardings are over its axes and sub-axes."""
        leaves = [
            (leaf, annotation)
            for annotation, sharding in zip(annotations, parsed, strict=True)
            for leaf in (sharding.elements or (sharding,))
        ]
        for leaf, _ in leaves:
            found = leaf.named.sharding.mesh if leaf.named is not None else None
            if found is not None and found.axes and not found.is_maximal:
                return found
        tiled = [(leaf, annotation) for leaf, annotation in leaves if leaf.kind == "tiled"]
        if not tiled:
            return Mesh({"x": max(partitions or 1, 1)})
        distinct = {str(leaf): (leaf, annotation) for leaf, annotation in tiled}
        try:
            return infer_mesh([leaf for leaf, _ in distinct.values()])
        except ShardcoreError as error:
            line = error.diagnostics[0].place
            _, annotation = distinct.get(line.source_line if line else "", tiled[0])
            raise self.error(error, annotation) from None

    def meaning(
        self, annotation: Annotation, sharding: HloSharding, mesh: Mesh, symbol: str
    ) -> Meaning:
        """Return the shardings that ``annotation`` denotes."""
        try:
            ranks = annotation.ranks or [0]
            parts = sharding.elements or (sharding,) * len(ranks)
            if annotation.ranks and len(parts) != len(ranks):
                message = f"{len(parts)} shardings of an op with {len(ranks)} results"
                raise invalid(message, "write one for each", text=str(sharding))
            if annotation.kind == "to_shards":
                return [], [], _body_axes(sharding, mesh)
            open_dims = _open_dims(annotation.config)
            said = [
                _sdy_text(part, rank, mesh, symbol, open_dims)
                for part, rank in zip(parts, ranks, strict=False)
            ]
        except ShardcoreError as error:
            raise self.error(error, annotation) from None
        return said, [part.shard_group[1] if part.shard_group else None for part in parts], []


def _open_dims(config: str) -> tuple[int, ...]:
    found = _OPEN_DIMS.search(config)
    dims = re.findall("[0-9]+", found[1]) if found else []
    return tuple(int(dim) for dim in dims if len(dim) < 10)


def _body_axes(sharding: HloSharding, mesh: Mesh) -> list[str]:
    """The manual axes of the body that starts at a call with ``sharding``."""
    if sharding.kind == "manual":
        return [axis.name for axis in mesh.axes]
    if sharding.named is not None:
        axes = list(sharding.named.manual)
    elif sharding.kind == "tiled":
        axes, _ = manual_axes(sharding, mesh)
    else:
        raise invalid("a manual body has manual devices", "say {manual}", text=str(sharding))
    if not axes or any(not axis.is_full for axis in axes):
        raise invalid(
            "the manual devices are not whole axes of the mesh",
            "give a mesh with such an axis",
            text=str(sharding),
        )
    return [axis.name for axis in axes]


def _sdy_text(
    sharding: HloSharding, rank: int | None, mesh: Mesh, symbol: str, open_dims: tuple[int, ...]
) -> str | None:
    """``sdy`` text of a sharding; ``None`` if it does not constrain the value."""
    if rank is None:
        return None
    if sharding.kind == "manual" or (sharding.named and sharding.named.word == "manual"):
        # Inside a manual body over all axes there is nothing left to shard.
        return None
    if sharding.kind == "unknown" and sharding.shard_group is not None:
        return None
    if sharding.kind == "tiled" and "manual" in sharding.subgroups:
        # Inside a manual body, the manual axes must not be repeated.
        _, dims = manual_axes(sharding, mesh)
        found = TensorSharding(mesh, dims)
        if found.rank != rank:
            raise invalid(
                f"it has {found.rank} dims, the tensor {rank}",
                "both have to be the same",
                text=str(sharding),
            )
    elif sharding.named and sharding.named.manual:
        found = sharding.named.sharding
    elif sharding.kind == "maximal" or (
        sharding.named and _is_on_one_device(sharding.named.sharding)
    ):
        # A maximal sharding has its own mesh, which is inlined; propagation lifts it.
        return str(to_sharding(sharding, None, rank))
    else:
        found = to_sharding(sharding, mesh, rank)
    dims_said = [
        DimSharding(dim.axes, dim.is_closed and at not in open_dims)
        for at, dim in enumerate(found.dims)
    ]
    return str(
        TensorSharding(
            mesh,
            dims_said,
            replicated=found.replicated,
            unreduced=found.unreduced,
            reduction_op=found.reduction_op,
            mesh_name=symbol,
        )
    )


def _is_on_one_device(sharding: TensorSharding) -> bool:
    return sharding.mesh is not None and sharding.mesh.is_maximal
