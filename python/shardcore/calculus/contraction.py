"""Products of sharded arrays, ``A[I, J_X] * B[J, K] -> C[I, K]``, and their cases.

A dim is *contracting* if the output lacks it, *batch* if both operands and the output have it, and
*free* otherwise. The four cases:

1. no contracting dim is sharded: every device multiplies its shards;
2. a contracting dim is sharded in one operand only, or differently in both: one operand is
   gathered, or the other is sliced and the products are summed;
3. both are sharded along it by the same axes: devices multiply, and the terms are summed;
4. both are sharded by the same axis along free dims: one of them has to be gathered.

Source: "How to Scale Your Model", chapter 3, "Computation With Sharded Arrays".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from shardcore._core import AxisRef, Mesh
from shardcore.cached_property import cached_property
from shardcore.calculus.axes import axis_text
from shardcore.calculus.mistakes import choices, mistake
from shardcore.calculus.notation import NamedArray, NamedDim
from shardcore.calculus.notation_parser import Parser
from shardcore.errors import CalculusError
from shardcore.expected import expect, expect_all

_OPERATOR = re.compile(r"(?:\*|·|•|⋅|@|\.|\\cdot)(?:_\{?[A-Za-z][A-Za-z0-9]*\}?|_LOCAL)?")
_FORM = "a product is written A[I, J] * B[J, K] -> C[I, K]"
_ARROW = re.compile(r"->|→|\\rightarrow|\\to")

CASES = {
    1: "no contracting dim is cut: no communication",
    2: "a contracting dim is cut in one operand, or otherwise than in the other",
    3: "both operands are cut alike along a contracting dim: terms have to be summed",
    4: "both operands are cut by the same axis along different dims: one has to be gathered",
}
"""The cases, as text."""


@dataclass(frozen=True, repr=False)
class Contraction:
    """A product of two arrays, summed over the dims that the output lacks."""

    operands: tuple[NamedArray, NamedArray]
    output: NamedArray

    def __post_init__(self) -> None:
        object.__setattr__(self, "operands", expect_all(self.operands, NamedArray, "operands"))
        expect(self.output, NamedArray)

    @cached_property
    def dims(self) -> tuple[str, ...]:
        """All dims, in order of appearance."""
        return tuple(dict.fromkeys(name for array in self.operands for name in names(array)))

    @cached_property
    def contracting(self) -> tuple[str, ...]:
        """The contracting dims."""
        kept = names(self.output)
        return tuple(dim for dim in self.dims if dim not in kept)

    @property
    def case(self) -> int:
        """1 to 4; see :data:`CASES`."""
        left, right = self.operands
        if clashes(left, right):
            return 4
        cut_left, cut_right = cuts(left), cuts(right)
        pairs = [(cut_left.get(dim, ()), cut_right.get(dim, ())) for dim in self.contracting]
        if any(one != other for one, other in pairs):
            return 2
        return 3 if any(one for one, _ in pairs) else 1

    def __repr__(self) -> str:
        return f"<Contraction {self}>"

    def __str__(self) -> str:
        left, right = self.operands
        return f"{left} * {right} -> {self.output}"


def names(array: NamedArray) -> tuple[str, ...]:
    """The names of the dims of ``array``."""
    return array.dim_names


def cuts(array: NamedArray) -> dict[str, tuple[AxisRef, ...]]:
    """The axes that shard each dim of ``array``."""
    return {dim.name or "": dim.axes for dim in array.dims}


def clashes(left: NamedArray, right: NamedArray) -> bool:
    """Whether one axis shards two different non-contracting dims of the operands."""
    theirs = cuts(right)
    return any(
        set(axes) & set(other)
        for dim, axes in cuts(left).items()
        for name, other in theirs.items()
        if name != dim and dim not in theirs and name not in cuts(left)
    )


def parse_product(
    text: str,
    mesh: Mesh | None = None,
    *,
    sizes: Mapping[str, int] | None = None,
    dtype: str | None = None,
) -> tuple[list[NamedArray], NamedArray]:
    """Parse ``A[I, J_X] * B[J, K] -> C[I, K]``: the operands, two or more, and the output.

    ``·``, ``@`` and ``*_J`` are accepted for ``*``. ``C[I, K] {U_X}`` leaves the terms along ``X``
    unreduced, one on each device. Without ``->``, the output has the dims that only one operand
    has, sharded as in that operand if possible.

    Raises:
        ParseError: ``text`` is no product (``notation``).
        CalculusError: dims are unnamed, repeated, or have several sizes; the output has dims that
            no operand has, or is unreduced along an axis that shards no contracting dim
            (``contraction``, ``size-mismatch``).
        VerificationError: as for :meth:`NamedArray.parse`.
    """
    parser = Parser(text, mesh, "<product>", form=_FORM)
    arrays = [parser.array()]
    spans = [(0, parser.position)]
    output = None
    while True:
        parser.skip_space()
        start = parser.position
        if parser.match(_ARROW):
            parser.skip_space()
            start = parser.position
            output = parser.array()
            _check_dims(output, text, (start, parser.position))
            parser.end()
            break
        if not parser.match(_OPERATOR):
            if len(arrays) > 1 and start == len(text):
                break
            raise parser.unexpected('"*" or "->"', _FORM)
        parser.skip_space()
        start = parser.position
        arrays.append(parser.array())
        spans.append((start, parser.position))
    if len(arrays) < 2:
        raise parser.mistake("a product has two operands", (0, len(text)), "A[I, J] * B[J, K]")
    for array, span in zip(arrays, spans, strict=True):
        _check_dims(array, text, span)
        if array.unreduced:
            raise _mistake(
                f"{array} has still to be summed", text, span, "reduce it first, and drop {U_...}"
            )
    known = _sizes([*arrays, *([output] if output else [])], sizes or {})
    filled = _named([array.with_sizes(known, dtype) for array in arrays])
    result = _output(filled, output, text, (start, len(text)))
    return filled, result.with_sizes(known, dtype or filled[0].dtype)


def pairwise(operands: list[NamedArray], output: NamedArray) -> list[Contraction]:
    """Split a product into products of two, from the left; intermediate arrays are named ``A·B``.

    A dim is contracted if it is the last of the left operand and the first of the right one, or if
    neither a later operand nor the output has it: in ``In[B, D] * W_in[D, F] * W_out[F, D]`` the
    first product contracts ``D``, and the ``D`` of the output is that of ``W_out``.
    """
    expect(output, NamedArray)
    operands = [*expect_all(operands, NamedArray, "operands")]
    if not operands:
        return []
    found = []
    left = operands[0]
    for index, right in enumerate(operands[1:], start=1):
        if index == len(operands) - 1:
            found.append(Contraction((left, right), output))
            break
        later = {name for array in (*operands[index + 1 :], output) for name in names(array)}
        if left.dims and right.dims and left.dims[-1].name == right.dims[0].name:
            later.discard(right.dims[0].name or "")
        dims = {dim.name: dim for dim in (*left.dims, *right.dims) if dim.name in later}
        between = NamedArray(
            tuple(NamedDim(dim.name, dim.size) for dim in dims.values()),
            f"{left.name}·{right.name}",
            left.dtype,
        )
        found.append(Contraction((left, right), between))
        left = between
    return found


def _check_dims(array: NamedArray, text: str, span: tuple[int, int]) -> None:
    found = names(array)
    if "" in found:
        raise _mistake(
            f"every dim of a product needs a name, in {array} one has none",
            text,
            span,
            "write I=1024 for 1024",
        )
    if len(set(found)) != len(found):
        raise _mistake(f"{array} has a dim twice", text, span, "rename one of the two")
    if any(not axis.is_full for axis in array.axes) or any(dim.is_open for dim in array.dims):
        raise _mistake(
            f"{array}: products take whole axes and closed dims",
            text,
            span,
            "split the axis of the mesh in two, and drop ?",
        )


def _sizes(arrays: list[NamedArray], sizes: Mapping[str, int]) -> dict[str, int]:
    known = dict(sizes)
    for array in arrays:
        for dim in array.dims:
            if (
                dim.name
                and dim.size is not None
                and known.setdefault(dim.name, dim.size) != dim.size
            ):
                raise mistake(
                    CalculusError,
                    "size-mismatch",
                    f"{dim.name} is both {known[dim.name]} and {dim.size}",
                    hint="dims with one name have one size; rename one",
                    text=str(array),
                )
    return known


def _named(arrays: list[NamedArray]) -> list[NamedArray]:
    """Return the arrays with names ``A``, ``B``, ... where one has no name or a repeated one."""
    taken: set[str] = set()
    found = []
    for array in arrays:
        name = array.name
        if name is None or name in taken:
            others = list("ABDEFGH") if name is None else []
            others += [f"{name or 'A'}{number}" for number in range(2, 99)]
            name = next(other for other in others if other not in taken)
        taken.add(name)
        found.append(NamedArray(array.dims, name, array.dtype, array.unreduced))
    return found


def _output(
    operands: list[NamedArray], output: NamedArray | None, text: str, span: tuple[int, int]
) -> NamedArray:
    cut: dict[str, tuple[AxisRef, ...]] = {}
    count: dict[str, int] = {}
    for array in operands:
        for dim, axes in cuts(array).items():
            count[dim] = count.get(dim, 0) + 1
            cut[dim] = cut.get(dim) or axes
    if output is None:
        used: set[AxisRef] = set()
        dims = []
        for dim in (dim for dim in cut if count[dim] == 1):
            axes = tuple(axis for axis in cut[dim] if axis not in used)
            used |= set(axes)
            dims.append(NamedDim(dim, None, axes))
        return NamedArray(tuple(dims), "C" if "C" not in {a.name for a in operands} else "Out")
    for dim in names(output):
        if dim not in cut:
            raise _mistake(
                f"no operand has the dim {dim} of {output}", text, span, choices(dim, cut)
            )
    summed = {axis for dim, axes in cut.items() if dim not in names(output) for axis in axes}
    for axis in output.unreduced:
        if axis not in summed:
            raise _mistake(
                f"there are no terms along {axis_text(axis)} to leave unsummed in {output}",
                text,
                span,
                f"cut a contracting dim of the operands along {axis_text(axis)}, or drop {{U_...}}",
            )
    name = output.name
    if name is None or name in {array.name for array in operands}:
        name = "C" if "C" not in {array.name for array in operands} else "Out"
    return NamedArray(output.dims, name, output.dtype, output.unreduced)


def _mistake(message: str, text: str, span: tuple[int, int], hint: str) -> CalculusError:
    return mistake(
        CalculusError,
        "contraction",
        message,
        hint=hint,
        text=text,
        span=span,
        filename="<product>",
    )
