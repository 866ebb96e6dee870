"""The form of a sharding that names its axes: ``{mesh['x'=2,'y'=4], [{'x'}, {'y', ?}]}``.

Source: XLA's HloSharding V3. It is a :class:`TensorSharding` with a set of manual axes. It is read
and written as by the XLA in the installed jaxlib; that of 0.12 has other words for one device, and
writes how unreduced axes are reduced.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import TYPE_CHECKING, Literal, TypeVar

from shardcore._core import AxisRef, DimSharding, Mesh, TensorSharding
from shardcore.errors import VerificationError
from shardcore.gspmd.cursor import FORMS, invalid
from shardcore.gspmd.metadata import read_metadata
from shardcore.gspmd.tiles import MAX_LISTED, TileAssignment
from shardcore.shardy import default_shardy

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from shardcore.gspmd.cursor import Cursor

__all__ = ["NamedForm", "is_named", "parse_named"]

_Made = TypeVar("_Made")
_Reduction = Literal["sum", "max", "min"]
_REDUCTIONS: tuple[_Reduction, ...] = ("sum", "max", "min")
_WORDS = ("replicated", "unreduced", "manual")
_INDEX = re.compile(r"\s*\+?[0-9]{1,9}\s*")


@dataclass(frozen=True)
class NamedForm:
    """A sharding over an inlined mesh."""

    sharding: TensorSharding
    manual: tuple[AxisRef, ...] = ()
    """Manual axes of the mesh."""
    order: TileAssignment | None = None
    """The order of the devices, if it is not 0, 1, 2, ..."""
    word: str | None = None
    """``replicated``, ``unreduced`` or ``manual``, if that is written instead of dims."""

    def __str__(self) -> str:
        mesh = self.sharding.mesh
        if mesh is None or mesh.is_maximal:
            ids = mesh.device_ids if mesh else None
            return f"{{{_one_device_words()[-1]}[device_id={ids[0] if ids else 0}]}}"
        parts = ["mesh[" + ",".join(f"'{a.name}'={a.size}" for a in mesh.axes) + "]"]
        if self.order is not None:
            text = str(self.order).partition("]")[2].removeprefix("<=")
            parts.append(f"device_ids=({text})")
        op = self.sharding.reduction_op
        unreduced = "unreduced" if op == "sum" else f"unreduced={op}"
        if self.word is not None:
            parts.append(unreduced if self.word == "unreduced" else self.word)
            return "{" + ", ".join(parts) + "}"
        parts.append("[" + ", ".join(map(_dim, self.sharding.dims)) + "]")
        for start, axes in (
            ("replicated=", self.sharding.replicated),
            ("unreduced=" if op == "sum" else unreduced, self.sharding.unreduced),
            ("manual=", self.manual),
        ):
            if axes:
                parts.append(f"{start}{{{', '.join(map(_axis, axes))}}}")
        return "{" + ", ".join(parts) + "}"


class _Attributes:
    """The attributes of a sharding read so far."""

    def __init__(self) -> None:
        self.axes: dict[str, list[AxisRef]] = {}
        self.reduction_op: _Reduction = "sum"


def _is_new() -> bool:
    return default_shardy() != "0.10"


def _one_device_words() -> tuple[str, ...]:
    """Return the words before the number of a single device; XLA writes the last one."""
    return ("maximal_mesh", "single_device") if _is_new() else ("maximal_mesh",)


def is_named(cursor: Cursor) -> bool:
    """Return whether this form follows a ``{``."""
    return any(cursor.sees(word) for word in ("mesh", *_one_device_words()))


def _axis(axis: AxisRef) -> str:
    return f"'{axis.name}'" + ("" if axis.is_full else f":({axis.pre_size}){axis.size}")


def _dim(dim: DimSharding) -> str:
    return "{" + ", ".join([*map(_axis, dim.axes), *(["?"] if dim.is_open else [])]) + "}"


def parse_named(cursor: Cursor) -> NamedForm:
    """Parse the form after its ``{``, up to and including the ``}``."""
    if any(cursor.accept(word) for word in _one_device_words()):
        cursor.expect("[", "to start the mesh")
        at = cursor.at
        cursor.expect("device_id", "to name the device")
        cursor.equals(at + len("device_id"), "device_id")
        mesh = _checked(cursor, lambda: Mesh.maximal(cursor.number("a device")))
        cursor.expect("]", "to end the mesh")
        if cursor.accept(","):
            _attribute(cursor, _Attributes(), (), mesh)
        cursor.expect("}", "to end the sharding")
        return NamedForm(TensorSharding(mesh, []))
    cursor.expect("mesh", "to start the mesh")
    start = cursor.at
    axes = _mesh_axes(cursor)
    cursor.product((size for _, size in axes), start)
    order = _device_order(cursor, tuple(size for _, size in axes))
    mesh = _checked(cursor, lambda: Mesh(axes, order.listed() if order else None))
    order = order if mesh.device_ids is not None else None
    dims: list[DimSharding] = []
    read = _Attributes()
    word = next((word for word in _WORDS if cursor.accept(word)), None)
    names = _WORDS if word is None else ()
    if word is None:
        dims = _dims(cursor, mesh)
    elif word == "unreduced" and _is_new() and cursor.accept("="):
        read.reduction_op = _reduction(cursor)
        if cursor.sees("{"):
            read.axes[word] = _axes(cursor, mesh, may_be_open=False)[0]
            word = None
    while cursor.accept(","):
        _attribute(cursor, read, names, mesh)
    cursor.expect("}", "to end the sharding")
    every = [AxisRef(axis.name) for axis in mesh.axes]
    if word == "unreduced" and not every and _is_new():
        word = "replicated"
    if word in ("unreduced", "manual") and not every:
        raise invalid(
            f"a mesh without axes has none that are {word}", "give it axes", text=cursor.text
        )
    if word == "unreduced":
        read.axes["unreduced"] = every
    manual = tuple(every if word == "manual" else read.axes.get("manual", []))
    sharding = _checked(cursor, lambda: _strict(mesh, dims, read))
    _check_manual(cursor, sharding, manual)
    if not dims and word is None:
        word = _word_of(sharding, manual, mesh)
    return NamedForm(sharding, manual, order, word)


def _word_of(sharding: TensorSharding, manual: tuple[AxisRef, ...], mesh: Mesh) -> str | None:
    """Return the word for a sharding without dims, if there is one; axes of size 1 are ignored."""
    if not (sharding.unreduced or manual or sharding.replicated):
        return "replicated"
    for word, axes in (("unreduced", sharding.unreduced), ("manual", manual)):
        if axes and prod(axis.size_in(mesh) for axis in axes) == mesh.num_devices:
            return word
    return None


def _strict(mesh: Mesh, dims: Sequence[DimSharding], read: _Attributes) -> TensorSharding:
    """Return the sharding; its axes have to be in canonical order, as XLA requires."""
    text = f"<@mesh, [{', '.join(map(str, dims))}]"
    replicated, unreduced = (read.axes.get(name, []) for name in ("replicated", "unreduced"))
    for name, axes in (("replicated", replicated), ("unreduced", unreduced)):
        if axes:
            text += f", {name}={{{', '.join(map(str, axes))}}}"
    TensorSharding.parse(f"{text}>", mesh)
    op = read.reduction_op if unreduced else "sum"
    return TensorSharding(mesh, dims, replicated=replicated, unreduced=unreduced, reduction_op=op)


def _checked(cursor: Cursor, make: Callable[[], _Made]) -> _Made:
    """Return what ``make`` returns; its errors get the position in the text."""
    try:
        return make()
    except VerificationError as error:
        raise invalid(error.message, error.hint or FORMS, text=cursor.text) from None


def _check_manual(cursor: Cursor, sharding: TensorSharding, manual: tuple[AxisRef, ...]) -> None:
    mesh = sharding.mesh
    if mesh is None:
        return
    try:
        # Manual axes have to be sorted and merged, like unreduced axes.
        alike = _Attributes()
        alike.axes["unreduced"] = list(manual)
        _strict(mesh, [], alike)
    except VerificationError as error:
        message = error.message.replace("unreduced axes", "manual axes")
        raise invalid(message, error.hint or FORMS, text=cursor.text) from None
    used: dict[str, list[AxisRef]] = {}
    dims = (axis for dim in sharding.dims for axis in dim.axes)
    for axis in (*dims, *sharding.replicated, *sharding.unreduced):
        used.setdefault(axis.name, []).append(axis)
    for axis in manual:
        for other in used.get(axis.name, ()):
            if axis.overlaps(other):
                message = f"{axis.name!r} is manual and used otherwise"
                raise invalid(message, "drop one of both", text=cursor.text)


def _mesh_axes(cursor: Cursor) -> list[tuple[str, int]]:
    cursor.expect("[", "to start the axes")
    axes: list[tuple[str, int]] = []
    while not cursor.accept("]"):
        if axes:
            cursor.expect(",", "between the axes")
        name = cursor.string("the name of an axis")
        cursor.expect("=", "and the size of the axis")
        axes.append((name, cursor.number("the size of an axis")))
    cursor.accept(",")
    return axes


def _device_order(cursor: Cursor, sizes: tuple[int, ...]) -> TileAssignment | None:
    start = cursor.at
    if not cursor.accept("device_ids"):
        return None
    cursor.equals(start + len("device_ids"), "device_ids")
    cursor.expect("(", "to start the devices")
    if cursor.accept("["):
        reshape = tuple(cursor.numbers("a size"))
        count = cursor.product(reshape, start)
        cursor.expect("]", "to end the dims of the devices")
        order = TileAssignment.iota(sizes, reshape, cursor.iota_order(reshape))
    else:
        order = TileAssignment(sizes, devices=tuple(cursor.numbers("a device", MAX_LISTED)))
        count = len(order.listed())
    cursor.expect(")", "to end the devices")
    if count != prod(sizes):
        raise cursor.bad(
            f"{count} devices on a mesh of {prod(sizes)}", start, "both have to be the same"
        )
    if order.devices is not None and order.devices == tuple(range(count)):
        raise cursor.bad("the devices are in order", start, "leave device_ids out")
    cursor.accept(",")
    return order


def _dims(cursor: Cursor, mesh: Mesh) -> list[DimSharding]:
    cursor.expect("[", "to start the dims")
    dims: list[DimSharding] = []
    while not cursor.accept("]"):
        if dims:
            cursor.expect(",", "between the dims")
        axes, is_open = _axes(cursor, mesh, may_be_open=True)
        dims.append(_checked(cursor, partial(DimSharding, axes, not is_open)))
    return dims


def _axes(cursor: Cursor, mesh: Mesh, *, may_be_open: bool) -> tuple[list[AxisRef], bool]:
    cursor.expect("{", "to start the axes")
    axes: list[AxisRef] = []
    while not cursor.accept("}"):
        if axes:
            cursor.expect(",", "between the axes")
        if may_be_open and cursor.accept("?"):
            cursor.expect("}", "after '?'")
            return axes, True
        name = _axis_name(cursor.string("the name of an axis"), mesh)
        if not cursor.accept(":"):
            axes.append(AxisRef(name))
            continue
        cursor.expect("(", "to start the pre-size")
        pre = cursor.number("the pre-size")
        cursor.expect(")", "to end the pre-size")
        size = cursor.number("the size")
        axes.append(_checked(cursor, partial(AxisRef, name, pre, size)))
    return axes, False


def _axis_name(written: str, mesh: Mesh) -> str:
    """Return the named axis; XLA also accepts its index instead of the name."""
    if written in mesh or not _INDEX.fullmatch(written):
        return written
    names = mesh.axis_names
    return names[int(written)] if int(written) < len(names) else written


def _attribute(cursor: Cursor, read: _Attributes, names: tuple[str, ...], mesh: Mesh) -> None:
    start = cursor.at
    name = cursor.attribute()
    if name == "metadata":
        read_metadata(cursor)
    elif name in names and name not in read.axes:
        if name == "unreduced" and _is_new() and not cursor.sees("{"):
            read.reduction_op = _reduction(cursor)
        read.axes[name] = _axes(cursor, mesh, may_be_open=False)[0]
    else:
        what = "given twice" if name in read.axes else "no attribute here"
        hint = f"there is {', '.join((*names, 'metadata'))}"
        raise cursor.error(f"{name} is {what}", hint, (start, start + max(len(name), 1)))


def _reduction(cursor: Cursor) -> _Reduction:
    """Step over the reduction of unreduced axes."""
    start = cursor.at
    word = cursor.word()
    for op in _REDUCTIONS:
        if word == op:
            return op
    span = (start, max(start + len(word or ""), start + 1))
    raise cursor.error("this is no reduction", f"there is {', '.join(_REDUCTIONS)}", span)
