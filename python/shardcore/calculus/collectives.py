"""The effect of a collective on a sharding, its transpose, and the dims that it may scatter.

=================  ==============================  =============================================
``all_gather``     ``A[I_X, J] -> A[I, J]``        every device gets the blocks of all
``reduce_scatter`` ``A[I, J] {U_X} -> A[I, J_X]``  sums; each device gets one block of the sum
``all_reduce``     ``A[I, J] {U_X} -> A[I, J]``    a reduce_scatter and an all_gather
``all_to_all``     ``A[I_X, J] -> A[I, J_X]``      moves an axis to another dim
``permute``        ``A[I_X, J] -> A[I_X, J]``      sends blocks to other devices
``slice``          ``A[I, J] -> A[I_X, J]``        takes a block of a copy: no communication
=================  ==============================  =============================================

Source: "How to Scale Your Model", chapter 3, "Computation With Sharded Arrays".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from shardcore._core import AxisRef, Mesh
from shardcore.calculus.axes import Axis, axes_text, axis_refs, axis_size, axis_text, group_size
from shardcore.calculus.mistakes import choices, mistake
from shardcore.calculus.notation import NamedArray
from shardcore.calculus.sub_axes import joined, shares, split
from shardcore.errors import CalculusError, VerificationError
from shardcore.expected import expect, expect_all

OPS = ("all_gather", "reduce_scatter", "all_reduce", "all_to_all", "permute", "slice")
"""Every collective; all but the last two have these names in ``jax.lax``."""

_SPOKEN = {
    "all_gather": "AllGather",
    "reduce_scatter": "ReduceScatter",
    "all_reduce": "AllReduce",
    "all_to_all": "AllToAll",
    "permute": "Permute",
    "slice": "Slice",
}


def op_name(text: str) -> str:
    """Return the canonical name of a collective: ``all_gather`` for ``AllGather``, ``all-gather``.

    Raises:
        CalculusError: there is no such collective (``invalid-collective``).
        TypeError: ``text`` is no string.
    """
    expect(text, str)
    plain = text.replace("-", "").replace("_", "").lower()
    plain = {
        "psum": "allreduce",
        "psumscatter": "reducescatter",
        "collectivepermute": "permute",
    }.get(plain, plain)
    for op in OPS:
        if op.replace("_", "") == plain:
            return op
    raise mistake(
        CalculusError,
        "invalid-collective",
        f'unknown collective "{text}"',
        hint=choices(text, OPS),
        text=text,
        filename="<collective>",
    )


@dataclass(frozen=True, repr=False)
class Collective:
    """One collective on one array.

    ``Collective.of("all_gather", NamedArray.parse("A[I_X, J]"), ["X"])`` has the ``result``
    ``A[I, J]``.
    """

    op: str
    array: NamedArray
    axes: tuple[AxisRef, ...]
    """The mesh axes along which devices communicate."""
    result: NamedArray
    dim: int | None = None
    """The dim that gets the axes, for ops that shard a dim."""
    shift: int = 1
    """The distance, in devices, over which ``permute`` sends a block."""
    notes: tuple[str, ...] = ()
    gathered: NamedArray | None = None
    """The array after the axes are gathered, for ops that gather or move axes."""

    def __post_init__(self) -> None:
        expect(self.op, str)
        expect(self.array, NamedArray)
        expect(self.result, NamedArray)
        expect_all(self.axes, AxisRef, "axes")

    @staticmethod
    def of(
        op: str,
        array: NamedArray | str,
        axes: Axis | Sequence[Axis],
        *,
        dim: str | int | None = None,
        mesh: Mesh | None = None,
        shift: int = 1,
    ) -> Collective:
        """Apply ``op`` along ``axes`` to ``array``.

        Args:
            op: a collective's name, as :func:`op_name` accepts it.
            array: the operand, or its text.
            axes: mesh axes, major to minor, or one; also sub-axes such as ``X:(2)2``, with
                ``mesh``.
            dim: the dim that ``reduce_scatter``, ``all_to_all`` and ``slice`` shard. By default the
                first dim that the devices divide evenly (which needs ``mesh`` and sizes), else the
                first that can be sharded.
            mesh: the mesh, to check the axes and to choose the dim.
            shift: for ``permute``, the distance in devices.

        Raises:
            CalculusError: the op cannot be applied to this array (``invalid-collective``).
            ParseError, VerificationError: as for :meth:`NamedArray.parse`; the mesh lacks an axis
                (``unknown-axis``).
        """
        name = op_name(op)
        expect(array, NamedArray, str)
        if isinstance(array, str):
            array = NamedArray.parse(array, mesh)
        wanted = axis_refs(axes)
        if not wanted:
            raise _mistake(f"{book_name(name)} needs a mesh axis", array, "give --axes X")
        if len(set(wanted)) != len(wanted):
            texts = list(map(axis_text, wanted))
            raise _mistake(
                f"an axis is named twice: {', '.join(texts)}", ",".join(texts), "drop one"
            )
        if mesh is not None:
            for axis in wanted:
                axis_size(mesh, axis)
        build = {
            "all_gather": _all_gather,
            "reduce_scatter": _reduce_scatter,
            "all_reduce": _all_reduce,
            "all_to_all": _all_to_all,
            "permute": _permute,
            "slice": _slice,
        }[name]
        made = build(split(array, wanted, mesh), wanted, dim, mesh)
        return replace(
            made,
            array=joined(made.array, mesh),
            result=joined(made.result, mesh),
            gathered=None if made.gathered is None else joined(made.gathered, mesh),
            shift=shift if name == "permute" else 1,
        )

    @property
    def transpose(self) -> str:
        """The transpose of this op, which the backward pass applies to cotangents.

        AllGather and ReduceScatter are each other's transposes, AllReduce, AllToAll and permutes
        their own; the transpose of a slice is an AllGather.
        """
        return {
            "all_gather": "reduce_scatter",
            "reduce_scatter": "all_gather",
            "slice": "all_gather",
        }.get(self.op, self.op)

    def transposed(self) -> Collective:
        """Return the collective of the backward pass, applied to the cotangent of the result.

        The result of an AllGather is replicated along the axes; its cotangent, the operand of the
        transpose, is unreduced along them, and vice versa.
        """
        result = self.result
        if self.op == "all_gather":
            back = result.with_axes(
                [dim.axes for dim in result.dims], (*result.unreduced, *self.axes)
            )
            moved = self.array.with_axes(
                [dim.axes for dim in self.array.dims], self.array.unreduced
            )
            index = next(
                (i for i, dim in enumerate(self.array.dims) if shares(dim.axes, self.axes)), None
            )
            return Collective("reduce_scatter", back, self.axes, moved, index)
        if self.op == "all_reduce":
            return Collective(self.op, self.array, self.axes, result)
        if self.op in ("reduce_scatter", "slice"):
            target = result.with_axes([dim.axes for dim in self.array.dims])
            return Collective("all_gather", result, self.axes, target, gathered=target)
        if self.op == "all_to_all":
            index = next(i for i, dim in enumerate(self.array.dims) if shares(dim.axes, self.axes))
            return Collective(self.op, result, self.axes, self.array, index, gathered=self.gathered)
        return Collective(self.op, result, self.axes, self.array, None, -self.shift)

    def __repr__(self) -> str:
        return f"<Collective {self}>"

    def __str__(self) -> str:
        axes = axes_text(self.axes)
        subscript = axes if len(axes) == 1 else f"{{{axes}}}"
        if self.dim is not None:
            dim = self.result.dims[self.dim]
            subscript = f"{{{axes}, {dim.name or dim.size}}}"
        return f"{book_name(self.op)}_{subscript} {self.array} -> {self.result}"


def book_name(op: str) -> str:
    """Return the name of a collective in the book's style, ``AllGather``."""
    return _SPOKEN[op]


def scatter_choices(array: NamedArray, axes: Sequence[Axis], mesh: Mesh | None) -> list[int]:
    """Return the dims that a ReduceScatter or a slice along ``axes`` may shard, the best first.

    All dims may be sharded; those that the devices divide without padding come first.
    """
    expect(array, NamedArray)
    if mesh is None:
        return list(range(len(array.dims)))
    devices = group_size(mesh, axes)

    def is_uneven(index: int) -> bool:
        dim = array.dims[index]
        return dim.size is not None and dim.size % (devices * group_size(mesh, dim.axes)) != 0

    return sorted(range(len(array.dims)), key=is_uneven)


def deferred(
    array: NamedArray,
    axes: Sequence[Axis],
    *,
    dim: str | int | None = None,
    mesh: Mesh | None = None,
) -> tuple[Collective, Collective]:
    """Return an AllReduce as a ReduceScatter and an AllGather; the latter may be deferred or
    omitted.

    Raises:
        CalculusError, VerificationError: as for :meth:`Collective.of`.
    """
    first = Collective.of("reduce_scatter", array, axes, dim=dim, mesh=mesh)
    return first, Collective.of("all_gather", first.result, axes, mesh=mesh)


def _without(array: NamedArray, axes: Iterable[AxisRef]) -> list[tuple[AxisRef, ...]]:
    gone = set(axes)
    return [tuple(axis for axis in dim.axes if axis not in gone) for dim in array.dims]


def _all_gather(
    array: NamedArray, axes: tuple[AxisRef, ...], dim: str | int | None, mesh: Mesh | None
) -> Collective:
    _check_cut("all_gather", array, axes)
    notes = []
    for cut in array.dims:
        left = [axis for axis in cut.axes if axis not in axes]
        if left and tuple(left) != cut.axes[: len(left)]:
            first = next(axis for axis in cut.axes if axis in axes)
            notes.append(
                f"{axis_text(first)} is major to {axis_text(left[-1])} in {cut}: each device ends "
                "with blocks that are not next to each other; blocks in order take a permute first"
            )
    result = array.with_axes(_without(array, axes), array.unreduced)
    return Collective("all_gather", array, axes, result, notes=tuple(notes), gathered=result)


def _summed(
    op: str, array: NamedArray, axes: tuple[AxisRef, ...]
) -> tuple[NamedArray, tuple[str, ...]]:
    """``array`` unreduced along ``axes``, and a note if it was not unreduced before."""
    for axis in axes:
        if axis in array.axes:
            name = axis_text(axis)
            raise _mistake(
                f"{book_name(op)} along {name} needs terms of a sum along {name}, but {array} is "
                "cut along it",
                array,
                f"gather it with all_gather, or write {{U_{name}}} and do not cut along {name}",
            )
    missing = [axis for axis in axes if axis not in array.unreduced]
    if not missing:
        return array, ()
    full = array.with_axes([dim.axes for dim in array.dims], (*array.unreduced, *missing))
    return full, (f"taken as {full}: without terms of a sum there is nothing to reduce",)


def _reduce_scatter(
    array: NamedArray, axes: tuple[AxisRef, ...], dim: str | int | None, mesh: Mesh | None
) -> Collective:
    source, notes = _summed("reduce_scatter", array, axes)
    index = _target("reduce_scatter", source, axes, dim, mesh, avoid=())
    cuts = [each.axes for each in source.dims]
    cuts[index] = (*cuts[index], *axes)
    unreduced = [axis for axis in source.unreduced if axis not in axes]
    return Collective(
        "reduce_scatter", source, axes, source.with_axes(cuts, unreduced), index, notes=notes
    )


def _all_reduce(
    array: NamedArray, axes: tuple[AxisRef, ...], dim: str | int | None, mesh: Mesh | None
) -> Collective:
    source, notes = _summed("all_reduce", array, axes)
    unreduced = [axis for axis in source.unreduced if axis not in axes]
    result = source.with_axes([each.axes for each in source.dims], unreduced)
    return Collective("all_reduce", source, axes, result, notes=notes)


def _all_to_all(
    array: NamedArray, axes: tuple[AxisRef, ...], dim: str | int | None, mesh: Mesh | None
) -> Collective:
    _check_cut("all_to_all", array, axes)
    sources = [index for index, each in enumerate(array.dims) if set(each.axes) & set(axes)]
    if len(array.dims) < 2:
        raise _mistake(
            f"AllToAll moves an axis to another dim, and {array} has one dim only",
            array,
            "gather it with all_gather",
        )
    index = _target("all_to_all", array, axes, dim, mesh, avoid=sources)
    cuts = _without(array, axes)
    gathered = array.with_axes(cuts, array.unreduced)
    cuts[index] = (*cuts[index], *axes)
    result = array.with_axes(cuts, array.unreduced)
    return Collective("all_to_all", array, axes, result, index, gathered=gathered)


def _permute(
    array: NamedArray, axes: tuple[AxisRef, ...], dim: str | int | None, mesh: Mesh | None
) -> Collective:
    _check_cut("permute", array, axes)
    return Collective("permute", array, axes, array)


def _slice(
    array: NamedArray, axes: tuple[AxisRef, ...], dim: str | int | None, mesh: Mesh | None
) -> Collective:
    for axis in axes:
        if axis in array.axes or axis in array.unreduced:
            raise _mistake(
                f"there are no copies of {array} along {axis_text(axis)} to take a block of",
                array,
                "slice along an axis that the array does not mention",
            )
    index = _target("slice", array, axes, dim, mesh, avoid=())
    cuts = [each.axes for each in array.dims]
    cuts[index] = (*cuts[index], *axes)
    return Collective("slice", array, axes, array.with_axes(cuts, array.unreduced), index)


def _check_cut(op: str, array: NamedArray, axes: tuple[AxisRef, ...]) -> None:
    for axis in axes:
        if axis not in array.axes:
            name, known = axis_text(axis), list(map(axis_text, array.axes))
            raise mistake(
                VerificationError,
                "invalid-collective",
                f"{book_name(op)} along {name}: {array} is not cut along {name}",
                hint=choices(name, known) if known else f"cut it, as in I_{name}",
                text=str(array),
            )


def _target(
    op: str,
    array: NamedArray,
    axes: tuple[AxisRef, ...],
    dim: str | int | None,
    mesh: Mesh | None,
    avoid: Sequence[int],
) -> int:
    """The dim to shard: ``dim``, or the first that the devices divide evenly."""
    if dim is not None:
        index = array.dim_index(dim)
        if index in avoid:
            raise _mistake(
                f"{book_name(op)} moves {', '.join(map(axis_text, axes))} to another dim than it "
                "cuts now",
                array,
                "give the other dim",
            )
        return index
    free = [index for index in scatter_choices(array, axes, mesh) if index not in avoid]
    if not free:
        raise _mistake(
            f"{array} has no dim that {book_name(op)} could cut",
            array,
            "an array is written A[I, J]",
        )
    return free[0]


def _mistake(message: str, shown: object, hint: str) -> CalculusError:
    """The error that a collective cannot be applied to ``shown``, an array or axes."""
    return mistake(CalculusError, "invalid-collective", message, hint=hint, text=str(shown))
