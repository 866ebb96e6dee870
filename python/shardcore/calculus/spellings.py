"""Parses an array in any of the notations: named axes, ``PartitionSpec``, `sdy`, GSPMD.

=========================================  =================
``A[I_X, J_Y]``, ``bf16[2048_Y, 8192]``    named axes
``P("X", None)``                           JAX
``<@mesh, [{"X"}, {}]>``, ``[{"X"}, {}]``  Shardy
``{devices=[2,1,4]<=[8] ...}``             GSPMD
``NamedSharding(mesh=..., spec=...)``      as JAX prints it
``GSPMDSharding({...}, memory_kind=...)``  likewise
=========================================  =================
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import NamedTuple

from shardcore._core import Mesh, TensorSharding
from shardcore.calculus.axes import axis_size
from shardcore.calculus.mistakes import mistake
from shardcore.calculus.notation import NamedArray
from shardcore.calculus.notation_parser import Parser
from shardcore.calculus.partition_spec import (
    KINDS,
    UNCONSTRAINED,
    Spec,
    Unconstrained,
    from_spec,
)
from shardcore.calculus.pasted import over, unwrap
from shardcore.errors import CalculusError
from shardcore.expected import expect

_SPEC = re.compile(r"\s*(?:jax\.sharding\.)?(?:P|PartitionSpec)\s*\(")
_SDY = re.compile(r"\s*(?:<|#sdy|\[\s*\{)")
_STRING = re.compile(r"'((?:[^'\\\n]|\\.)*)'|\"((?:[^\"\\\n]|\\.)*)\"")
_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U000[0-9a-fA-F]{5}|[\\'\"ntr])")
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r"}
_UNCONSTRAINED = re.compile(r"(?:(?:jax\.sharding\.)?(?:P|PartitionSpec)\.)?UNCONSTRAINED\b")
_NONE = re.compile(r"None\b")
_AXES = re.compile(r"(unreduced|reduced)\s*=")
_KIND = re.compile(r"unreduced_kind\s*=\s*(?:(?:jax\.sharding\.)?UnreducedKind\.)?(\w+)")
_HINT = 'a spec is written P("X", None, ("Y", "Z"))'

Entry = str | tuple[str, ...] | Unconstrained | None


def parse_spec(text: str) -> Spec:
    """Parse ``P("X", None, ("Y", "Z"), P.UNCONSTRAINED, unreduced={"W"})``.

    After ``unreduced`` may come ``unreduced_kind=max``, as JAX prints it, and ``reduced={"V"}``.

    Raises:
        ParseError: the text is no spec (``notation``).
    """
    parser = Parser(text, None, "<spec>", form=_HINT)
    if not parser.match(_SPEC):
        raise parser.unexpected("a spec", _HINT)
    entries: list[Entry] = []
    said: dict[str, tuple[str, ...]] = {}
    kind = None
    while not parser.take(")"):
        if entries or said or kind:
            parser.expect(",", _HINT)
            if parser.take(")"):
                break
        start = parser.position
        if kind is None and (found := parser.match(_KIND)):
            kind = found[1]
            if kind not in KINDS:
                parser.position = start
                raise parser.unexpected(f"a kind, one of {', '.join(KINDS)}", _HINT)
        elif (found := parser.match(_AXES)) and found[1] not in said:
            said[found[1]] = _axes(parser, "{", "}")
        else:
            parser.position = start
            entries.append(_entry(parser))
    parser.end()
    unreduced, reduced = (frozenset(said.get(name, ())) for name in ("unreduced", "reduced"))
    return Spec(tuple(entries), unreduced, kind or "sum", reduced)


def _entry(parser: Parser) -> Entry:
    if parser.match(_NONE):
        return None
    if parser.match(_UNCONSTRAINED):
        return UNCONSTRAINED
    for opening, closing in ("()", "[]"):
        if parser.take(opening):
            parser.position -= 1
            return _axes(parser, opening, closing)
    return _axis(parser)


def _axis(parser: Parser) -> str:
    found = parser.match(_STRING)
    if not found:
        raise parser.unexpected("an axis in quotes, a tuple of axes, None or UNCONSTRAINED", _HINT)
    return _ESCAPE.sub(_unescaped, found[1] if found[1] is not None else found[2])


def _unescaped(match: re.Match[str]) -> str:
    """The character that the Python escape ``match`` stands for."""
    escape = match[1]
    return chr(int(escape[1:], 16)) if len(escape) > 1 else _ESCAPED.get(escape, escape)


def _axes(parser: Parser, opening: str, closing: str) -> tuple[str, ...]:
    parser.expect(opening, _HINT)
    axes: list[str] = []
    while not parser.take(closing):
        if axes:
            parser.expect(",", _HINT)
            if parser.take(closing):
                break
        axes.append(_axis(parser))
    return tuple(axes)


class Spelling(NamedTuple):
    """An array, as read from a text in any notation."""

    array: NamedArray
    mesh: Mesh
    sharding: TensorSharding
    """The sharding over :attr:`mesh`, including priorities and replicated axes of `sdy` text, which
    the array lacks."""


def parse_any(
    text: str, mesh: Mesh | None = None, *, shape: Sequence[int] | None = None
) -> tuple[NamedArray, Mesh]:
    """Return the array in ``text``, in any notation, and its mesh; see :func:`parse_whole`."""
    return parse_whole(text, mesh, shape=shape)[:2]


def parse_whole(
    text: str, mesh: Mesh | None = None, *, shape: Sequence[int] | None = None
) -> Spelling:
    """Return the array in ``text``, in any notation, with its mesh and its whole sharding.

    Args:
        text: the array.
        mesh: the mesh; not needed if the text has one, or lists devices from which it follows.
        shape: the sizes of dims, if the text lacks them.

    Raises:
        ParseError, VerificationError: as for the notation that it is in.
        CalculusError: a mesh is needed but not given (``invalid-option``), or the sizes do not fit
            the dims (``size-mismatch``).
    """
    expect(text, str)
    pasted = unwrap(text)
    mesh = over(pasted, mesh, text)
    text = pasted.text
    if text.lstrip().startswith("{"):
        rank = None if shape is None else len(shape)
        return _of(TensorSharding.from_hlo(text, mesh, rank=rank), text, shape)
    if _SDY.match(text):
        whole = text if re.match(r"\s*(?:<|#)", text) else f"<@mesh, {text.strip()}>"
        return _of(TensorSharding.parse(whole, mesh=mesh), text, shape)
    if mesh is None:
        raise _no_mesh(text)
    if _SPEC.match(text):
        array = from_spec(parse_spec(text), shape=shape)
        for axis in (*array.axes, *array.unreduced):
            axis_size(mesh, axis)
        return Spelling(array, mesh, array.to_sharding(mesh))
    array = NamedArray.parse(text, mesh, filename="<array>")
    array = array if shape is None else _sized(array, shape, text)
    return Spelling(array, mesh, array.to_sharding(mesh))


def assumed_mesh(text: str, size: int = 2) -> Mesh | None:
    """Return a mesh for ``text``: its axes in order of appearance, each of ``size`` devices, or of
    as many as its sub-axes need; ``None`` for a text without axes.

    Raises:
        ParseError, VerificationError: as for the notation that it is in.
    """
    text = unwrap(text).text
    if _SDY.match(text):
        whole = text if re.match(r"\s*(?:<|#)", text) else f"<@mesh, {text.strip()}>"
        sharding = TensorSharding.parse(whole)
        dims = [axis for dim in sharding.dims for axis in dim.axes]
        axes = [*dims, *sharding.replicated, *sharding.unreduced]
    else:
        array = from_spec(parse_spec(text)) if _SPEC.match(text) else NamedArray.parse(text)
        axes = [*array.axes, *array.unreduced]
    sizes: dict[str, int] = {}
    for axis in axes:
        needed = size if axis.size is None else (axis.pre_size or 1) * axis.size
        sizes[axis.name] = math.lcm(sizes.get(axis.name, 1), needed)
    return Mesh(sizes) if sizes else None


def _of(sharding: TensorSharding, text: str, shape: Sequence[int] | None) -> Spelling:
    mesh = sharding.mesh
    if mesh is None or mesh.num_devices == 0:
        raise _no_mesh(text)
    array = NamedArray.from_sharding(sharding)
    array = array if shape is None else _sized(array, shape, text)
    whole = TensorSharding(
        mesh,
        sharding.dims,
        replicated=sharding.replicated,
        unreduced=sharding.unreduced,
        reduction_op=sharding.reduction_op,
    )
    return Spelling(array, mesh, whole)


def _sized(array: NamedArray, shape: Sequence[int], text: str) -> NamedArray:
    if len(shape) != len(array.dims):
        raise mistake(
            CalculusError,
            "size-mismatch",
            f"{len(shape)} sizes for an array of {len(array.dims)} dims",
            hint="give one size for each dim",
            text=text,
            filename="<array>",
        )
    return array.with_shape(shape)


def _no_mesh(text: str) -> CalculusError:
    return mistake(
        CalculusError,
        "invalid-option",
        "the mesh is not known",
        hint="give it, as in --mesh X=2,Y=4",
        text=text,
        filename="<array>",
    )
