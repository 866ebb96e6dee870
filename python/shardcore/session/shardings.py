"""Reads the shardings that users write for a target."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from shardcore._core import DimSharding, Mesh, TensorSharding
from shardcore.errors import Diagnostic, ParseError, ShardcoreError, VerificationError

NamedMesh: TypeAlias = tuple[str | None, Mesh]
"""A mesh and its name; a mesh without a name is written out in shardings."""

_HINT = 'write [{"data"}, {?}], P("data", None), or give a TensorSharding'


def read_for(
    name: str,
    sharding: object,
    rank: int | None,
    mesh: NamedMesh | None,
    meshes: dict[str, Mesh],
) -> TensorSharding:
    """Like :func:`read`; errors name the target ``name``."""
    try:
        return read(sharding, rank, mesh, meshes)
    except ShardcoreError as error:
        problems = (
            problem._replace(message=f"{name}: {problem.message}", hint=_hint(problem, mesh))
            for problem in error.diagnostics
        )
        raise type(error)(problems) from None


def _hint(problem: Diagnostic, mesh: NamedMesh | None) -> str | None:
    """The hint of ``problem``; for a mesh without a name it also says which mesh was used."""
    if problem.code != "unknown-axis" or mesh is None or mesh[0] is not None:
        return problem.hint
    over = f"without a mesh it is over the program's first one, {mesh[1]}"
    own = 'another one is written in front, <mesh<["x"=8]>, [{"x"}, {}]>'
    return f"{problem.hint} {over}; {own}" if problem.hint else f"{over}; {own}"


def read(
    sharding: object, rank: int | None, mesh: NamedMesh | None, meshes: dict[str, Mesh]
) -> TensorSharding:
    """Return ``sharding`` of a tensor of ``rank`` as a :class:`TensorSharding`.

    Args:
        sharding: ``sdy`` text with or without a mesh, the text of a ``PartitionSpec``, text in
            GSPMD's notation, a sharding as JAX prints it, a ``PartitionSpec`` or an object that has
            one as ``spec``, or a ``TensorSharding``.
        rank: the number of dims of the tensor.
        mesh: the mesh, and its name, for shardings that name no mesh.
        meshes: all meshes by name.

    Raises:
        VerificationError: ``sharding`` is none of these (``invalid-sharding``), or is not valid.
        ParseError: the text is malformed.
    """
    # The calculus is imported here, as the package does not import it.
    from shardcore.bounded import shown
    from shardcore.calculus.partition_spec import is_spec
    from shardcore.calculus.pasted import over, unwrap
    from shardcore.calculus.spellings import parse_spec

    if isinstance(sharding, TensorSharding):
        return sharding
    if isinstance(sharding, str):
        pasted = unwrap(sharding.strip())
        text = pasted.text
        over(pasted, mesh and mesh[1], sharding)
        if text.startswith("{"):
            return _of_hlo(text, rank, mesh)
        if text.startswith(("P(", "PartitionSpec(")):
            try:
                parsed = parse_spec(text)
            except ParseError as error:
                message = f"{shown(sharding)} is no PartitionSpec: {error.message}"
                problem = error.diagnostics[0]
                problem = problem._replace(code="invalid-sharding", message=message)
                raise VerificationError(problem) from None
            return _of_spec(parsed, rank, mesh)
        if text.startswith("["):
            name, default = _known(mesh)
            if name is None:
                return TensorSharding.parse(f"<mesh{default}, {text}>")
            return TensorSharding.parse(f"<@{_symbol(name)}, {text}>", {name: default})
        return TensorSharding.parse(text, meshes)
    spec: Any = getattr(sharding, "spec", sharding)
    if spec is not sharding:
        mesh = _over(sharding, mesh, meshes)
    if is_spec(spec) or isinstance(spec, (tuple, list)):
        return _of_spec(spec, rank, mesh)
    raise _mistake(f"a {type(sharding).__name__} is no sharding")


def _over(sharding: object, mesh: NamedMesh | None, meshes: dict[str, Mesh]) -> NamedMesh | None:
    """The program's mesh with the same axes as the mesh of the JAX sharding ``sharding``."""
    shape = getattr(getattr(sharding, "mesh", None), "shape", None)
    if not isinstance(shape, Mapping) or not shape or mesh is None:
        return mesh
    wanted = dict(shape)
    named: list[NamedMesh] = [mesh, *meshes.items()]
    found = next((each for each in named if dict(each[1].shape) == wanted), None)
    if found is None:
        message = f"{sharding} is over a mesh that the program does not have"
        hint = (
            f"give the spec alone, {getattr(sharding, 'spec', None)}, or a TensorSharding, which "
            "may have a mesh of its own"
        )
        raise VerificationError(Diagnostic("invalid-mesh", message, hint))
    return found


def _of_hlo(text: str, rank: int | None, mesh: NamedMesh | None) -> TensorSharding:
    name, known = _known(mesh)
    found = TensorSharding.from_hlo(text, known, rank=rank)
    return TensorSharding(known, found.dims, unreduced=found.unreduced, mesh_name=name)


def _of_spec(spec: Any, rank: int | None, mesh: NamedMesh | None) -> TensorSharding:
    from shardcore.calculus.partition_spec import from_spec, kind_of

    name, known = _known(mesh)
    array = from_spec(spec, rank, any_kind=True)
    dims = [DimSharding(dim.axes, is_closed=not dim.is_open) for dim in array.dims]
    places = {axis: place for place, axis in enumerate(known.axis_names)}
    ordered = sorted((places.get(axis.name, len(places)), axis) for axis in array.unreduced)
    unreduced = [axis for _, axis in ordered]
    return TensorSharding(
        known,
        dims,
        unreduced=unreduced,
        reduction_op=kind_of(spec) if unreduced else "sum",
        mesh_name=name,
    )


def _symbol(name: str) -> str:
    return name if name.replace("_", "a").isalnum() else f'"{name}"'


def _known(mesh: NamedMesh | None) -> NamedMesh:
    if mesh is None:
        message = "the program has no mesh that the sharding could be over"
        hint = 'give the session one: module.session(mesh=shardcore.Mesh({"data": 8}))'
        raise VerificationError(Diagnostic("unknown-mesh", message, hint))
    return mesh


def _mistake(message: str) -> VerificationError:
    return VerificationError(Diagnostic("invalid-sharding", message, _HINT))
