"""Reads shardings as JAX prints them: ``NamedSharding(mesh=Mesh('x': 2), spec=P('x'))``,
``GSPMDSharding({devices=[2,1]<=[2]}, memory_kind=device)``.

The memory kind and the axis types are skipped: they do not affect which device holds what.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from shardcore.calculus.mistakes import Span, mistake
from shardcore.errors import ParseError, VerificationError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from shardcore._core import Mesh, TensorSharding

__all__ = ["Pasted", "is_pasted", "sharding_of", "unwrap"]

_START = re.compile(r"\s*(?:jax\.sharding\.)?(NamedSharding|GSPMDSharding)\s*\(")
_MESH = re.compile(r"\s*(?:jax\.sharding\.)?(?:AbstractMesh|Mesh)\s*\(")
_AXIS = re.compile(r"\s*(?:'([^'\\]*)'|\"([^\"\\]*)\")\s*:\s*([0-9]{1,18})\s*")
_FORMS = (
    "JAX prints NamedSharding(mesh=Mesh('x': 2, 'y': 4), spec=P('x', None)) or "
    "GSPMDSharding({devices=[2,4]<=[8]}, memory_kind=device)"
)
_PAIRS = {"(": ")", "[": "]", "{": "}"}


class Pasted(NamedTuple):
    """The contents of a printed sharding."""

    text: str
    """A ``PartitionSpec`` or a sharding in GSPMD's notation."""
    mesh: Mesh | None
    """The mesh of a ``NamedSharding``, with devices in default order: the text does not list
    them."""


def is_pasted(text: str) -> bool:
    """Whether ``text`` begins like a sharding that JAX prints."""
    return _START.match(text) is not None


def unwrap(text: str) -> Pasted:
    """Return the contents of ``text``; other texts are returned unchanged.

    Raises:
        ParseError: it begins like a sharding that JAX prints, but is malformed (``notation``).
        VerificationError: its mesh is not valid (``invalid-mesh``).
    """
    start = _START.match(text)
    if start is None:
        return Pasted(text, None)
    arguments = _arguments(text, start.end())
    if start[1] == "GSPMDSharding":
        at, end = arguments.get("", (len(text), len(text)))
        if not text.startswith("{", at):
            raise _mistake(text, (at, end), "expected a sharding in braces")
        return Pasted(text[at:end], None)
    for name in ("mesh", "spec"):
        if name not in arguments:
            raise _mistake(text, (start.end(), len(text)), f"expected {name}=")
    at, end = arguments["spec"]
    return Pasted(text[at:end], _mesh(text, arguments["mesh"]))


def sharding_of(text: str, mesh: Mesh | Mapping[str, Mesh] | None = None) -> TensorSharding:
    """Return the sharding in ``text``, which JAX printed; over ``mesh`` if it is given.

    Raises:
        ParseError: the text is malformed (``notation``).
        VerificationError: the sharding is not valid, or over another mesh (``invalid-mesh``).
    """
    from shardcore._core import Mesh, TensorSharding
    from shardcore.calculus.spellings import parse_whole

    if mesh is None or isinstance(mesh, Mesh):
        return parse_whole(text, mesh).sharding
    own = unwrap(text).mesh
    named = [
        (name, each)
        for name, each in mesh.items()
        if own is None or dict(own.shape) == dict(each.shape)
    ]
    if len(named) != 1:
        return parse_whole(text).sharding
    ((name, known),) = named
    sharding = parse_whole(text, known).sharding
    assert sharding.mesh is not None
    return TensorSharding(
        sharding.mesh,
        sharding.dims,
        unreduced=sharding.unreduced,
        reduction_op=sharding.reduction_op,
        mesh_name=name,
    )


def over(pasted: Pasted, mesh: Mesh | None, text: str) -> Mesh | None:
    """Return the mesh of ``pasted``, which was read from ``text``: ``mesh`` if its axes are the
    same.

    Raises:
        VerificationError: the two meshes have different axes (``invalid-mesh``).
    """
    if pasted.mesh is None or mesh is None:
        return mesh if pasted.mesh is None else pasted.mesh
    if dict(pasted.mesh.shape) != dict(mesh.shape):
        message = f"the sharding is over {pasted.mesh}, and the mesh is {mesh}"
        hint = "paste the spec alone, P(...)"
        raise _no_mesh(message, text, (0, len(text)), hint)
    return mesh


def _arguments(text: str, at: int) -> dict[str, tuple[int, int]]:
    """The span of each argument of a call, whose first argument starts at ``at``; an unnamed first
    argument has the name ``""``.
    """
    found: dict[str, tuple[int, int]] = {}
    depth: list[str] = []
    start = at
    for place in range(at, len(text)):
        char = text[place]
        if char in _PAIRS:
            depth.append(_PAIRS[char])
        elif depth and char == depth[-1]:
            depth.pop()
        elif not depth and char in ",)":
            part = text[start:place]
            name = re.match(r"\s*([a-z_]+)=", part)
            begin = start + (name.end() if name else len(part) - len(part.lstrip()))
            if part.strip():
                found.setdefault(name[1] if name else "", (begin, start + len(part.rstrip())))
            start = place + 1
            if char == ")":
                if text[place + 1 :].strip():
                    raise _mistake(text, (place + 1, len(text)), "text after the end")
                return found
    raise _mistake(text, (len(text), len(text) + 1), "expected ')', found the end")


def _mesh(text: str, span: tuple[int, int]) -> Mesh:
    from shardcore._core import Mesh

    start = _MESH.match(text, span[0])
    if start is None:
        raise _mistake(text, span, "expected Mesh('x': 2, ...)")
    axes: list[tuple[str, int]] = []
    at = start.end()
    while axis := _AXIS.match(text, at):
        axes.append((axis[1] if axis[1] is not None else axis[2], int(axis[3])))
        at = axis.end()
        if not text.startswith(",", at):
            break
        at += 1
    if not axes and text[at:].lstrip()[:1] != ")":
        raise _mistake(text, (at, at + 1), "expected an axis and its size, 'x': 2")
    try:
        return Mesh(axes)
    except VerificationError as error:
        raise _no_mesh(error.message, text, span, error.hint) from None


def _mistake(text: str, span: Span, message: str) -> ParseError:
    return mistake(
        ParseError, "notation", message, text=text, span=span, hint=_FORMS, filename="<sharding>"
    )


def _no_mesh(message: str, text: str, span: Span, hint: str | None) -> VerificationError:
    return mistake(
        VerificationError,
        "invalid-mesh",
        message,
        text=text,
        span=span,
        hint=hint,
        filename="<sharding>",
    )
