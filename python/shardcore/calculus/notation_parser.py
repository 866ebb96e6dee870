"""The parser of named-axis notation; :mod:`shardcore.calculus.notation` defines its meaning.

::

    array    ::= [name [":" dtype] | dtype] "[" [dim {"," dim}] "]" ["{" unreduced "}"]
    dim      ::= name ["=" size] [subscript] | size [subscript]
    subscript::= "_" word | "_" "{" axis {"," axis} "}"
    unreduced::= "U" subscript {"," "U" subscript}
    axis     ::= word | '"' anything '"', then ":(" number ")" number for a sub-axis; or "?"

A word that is not itself an axis is split into axes: ``XY`` into ``X`` and ``Y``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from types import NoneType

from shardcore._core import AxisRef, Mesh
from shardcore.calculus.axes import axis_ref, axis_text
from shardcore.calculus.dtypes import is_dtype
from shardcore.calculus.mistakes import Span, choices, mistake
from shardcore.calculus.notation import NamedArray, NamedDim, overlap_hint
from shardcore.errors import ParseError, VerificationError
from shardcore.expected import expect

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*'*")
_DIM_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]*'*")
_NUMBER = re.compile(r"[0-9]+")
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9]*")
_AXIS = re.compile(r'(?:"(?P<quoted>[^"]*)"|(?P<word>[A-Za-z_][A-Za-z0-9_]*))(?P<sub>:\(\d+\)\d+)?')
_MESH_FORM = "a mesh is written X=8,Y=4"
_SIZES_FORM = "sizes are written I=128,J=8192"
_LETTERS = re.compile(r"(?:[A-Z][0-9]*)+")


def parse_array(text: str, mesh: Mesh | None, *, filename: str = "<notation>") -> NamedArray:
    """Parse ``text``, which is one array; see :meth:`NamedArray.parse`."""
    parser = Parser(text, mesh, filename)
    array = parser.array()
    parser.end()
    return array


@dataclass
class Parser:
    """Reads ``text`` from ``position`` on."""

    text: str
    mesh: Mesh | None
    filename: str = "<notation>"
    position: int = 0
    form: str = "an array is written bf16[I=1024_X, J_{YZ}] {U_W}"
    """The expected form, for hints."""
    uses: list[tuple[AxisRef, Span]] = field(default_factory=list)
    """The axes of the current array, with their spans."""

    def __post_init__(self) -> None:
        expect(self.text, str)
        expect(self.mesh, Mesh, NoneType)

    def skip_space(self) -> None:
        """Skip white space."""
        while self.position < len(self.text) and self.text[self.position].isspace():
            self.position += 1

    def take(self, token: str) -> bool:
        """Move over ``token`` if it comes next; return whether it did."""
        self.skip_space()
        if not self.text.startswith(token, self.position):
            return False
        self.position += len(token)
        return True

    def match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Move over ``pattern`` if it comes next."""
        self.skip_space()
        found = pattern.match(self.text, self.position)
        if found:
            self.position = found.end()
        return found

    def expect(self, token: str, hint: str | None = None) -> None:
        """Move over ``token``, or raise if it does not come next."""
        if not self.take(token):
            raise self.unexpected(f'"{token}"', hint)

    def end(self) -> None:
        """Raise if anything follows."""
        self.skip_space()
        if self.position < len(self.text):
            raise self.unexpected("the end")

    def unexpected(self, wanted: str, hint: str | None = None) -> ParseError:
        """The error that the next token is not ``wanted``."""
        self.skip_space()
        rest = self.text[self.position : self.position + 1]
        found = f'"{rest}"' if rest else "the end"
        span = (self.position, self.position + 1)
        return self.mistake(f"expected {wanted}, found {found}", span, hint)

    def mistake(self, message: str, span: Span, hint: str | None = None) -> ParseError:
        """An error at ``span``."""
        return mistake(
            ParseError,
            "notation",
            message,
            hint=hint or self.form,
            text=self.text,
            span=span,
            filename=self.filename,
        )

    def array(self) -> NamedArray:
        """Read an array."""
        self.uses = []
        name, dtype = self._label()
        self.expect("[", "an array is written A[I_X, J]")
        dims: list[NamedDim] = []
        if not self.take("]"):
            while True:
                dims.append(self._dim())
                if self.take("]"):
                    break
                self.expect(",", 'dims are separated by ","; several axes go in braces, I_{X,Y}')
        unreduced = self._unreduced()
        self._check_uses(dims, name, dtype)
        return NamedArray(tuple(dims), name, dtype, unreduced)

    def _label(self) -> tuple[str | None, str | None]:
        found = self.match(_NAME)
        if not found:
            return None, None
        if not self.take(":"):
            return (None, found[0]) if is_dtype(found[0]) else (found[0], None)
        dtype = self.match(_NAME)
        if not dtype:
            raise self.unexpected("an element type")
        if not is_dtype(dtype[0]):
            raise self.mistake(f'unknown element type "{dtype[0]}"', dtype.span())
        return found[0], dtype[0]

    def _dim(self) -> NamedDim:
        name = self.match(_DIM_NAME)
        size = None
        if not name or self.take("="):
            size = self.match(_NUMBER)
            if not size:
                raise self.unexpected(
                    "a size" if name else "a dim", "a dim is written I, I_X, 1024_X or I=1024_X"
                )
            if len(size[0]) > 18:
                raise self.mistake("a size has 18 digits at most", size.span())
        axes, is_open = self._subscript()
        return NamedDim(
            name[0] if name else None, int(size[0]) if size else None, tuple(axes), is_open
        )

    def _subscript(self) -> tuple[list[AxisRef], bool]:
        if not self.text.startswith("_", self.position):
            return [], False
        self.position += 1
        if self.text[self.position : self.position + 1] == "?":
            self.position += 1
            return [], True
        if not self.text.startswith("{", self.position):
            word = _WORD.match(self.text, self.position)
            if not word:
                raise self.unexpected("an axis", "a subscript is written I_X or I_{X,Y}")
            self.position = word.end()
            return self._axes(word[0], word.span(), is_listed=False), False
        self.position += 1
        return self._braces()

    def _braces(self) -> tuple[list[AxisRef], bool]:
        axes: list[AxisRef] = []
        is_open = False
        items: list[re.Match[str]] = []
        has_comma = False
        while not self.take("}"):
            if self.take("?"):
                is_open = True
            else:
                item = self.match(_AXIS)
                if not item:
                    raise self.unexpected('an axis or "}"')
                items.append(item)
            has_comma = self.take(",") or has_comma
        for item in items:
            if item["quoted"] is not None or item["sub"]:
                found = item["quoted"] if item["quoted"] is not None else item["word"]
                axes.append(self._use(found + (item["sub"] or ""), item.span()))
            else:
                axes += self._axes(item["word"], item.span(), is_listed=has_comma)
        return axes, is_open

    def _unreduced(self) -> tuple[AxisRef, ...]:
        axes: list[AxisRef] = []
        if self.take("{"):
            while True:
                self.expect("U", "what has still to be summed is written {U_X}")
                found, is_open = self._subscript()
                if is_open or not found:
                    raise self.unexpected("_ and an axis", "write {U_X}")
                axes += found
                if self.take("}"):
                    break
                self.expect(",")
        return tuple(axes)

    def _axes(self, word: str, span: Span, *, is_listed: bool) -> list[AxisRef]:
        """The axes that ``word`` names: itself, or the axes that it consists of."""
        names = [word]
        if self.mesh is not None:
            names = split_axes(word, self.mesh) or [word]
        elif not is_listed and _LETTERS.fullmatch(word):
            names = re.findall(r"[A-Z][0-9]*", word)
        start = span[0]
        spans = []
        for name in names:
            spans.append((start, start + len(name)))
            start += len(name)
        return [self._use(name, where) for name, where in zip(names, spans, strict=True)]

    def _use(self, axis: str, span: Span) -> AxisRef:
        try:
            ref = axis_ref(axis)
        except VerificationError as error:
            raise mistake(
                VerificationError,
                "invalid-sub-axis",
                error.message,
                hint="X:(2)2 is the part of X after a part of 2, and has 2 devices",
                text=self.text,
                span=span,
                filename=self.filename,
            ) from None
        if self.mesh is not None and ref.name not in self.mesh:
            raise mistake(
                VerificationError,
                "unknown-axis",
                f'the mesh has no axis "{ref.name}"',
                hint=choices(ref.name, self.mesh.axis_names),
                text=self.text,
                span=span,
                filename=self.filename,
            )
        if self.mesh is not None and not ref.is_full:
            self._check_part(ref, self.mesh, span)
        self.uses.append((ref, span))
        return ref

    def _check_part(self, ref: AxisRef, mesh: Mesh, span: Span) -> None:
        """Check that ``ref`` is a sub-axis of its axis in ``mesh``."""
        whole, end = mesh.axis_size(ref.name), (ref.pre_size or 1) * (ref.size or 1)
        if whole % end or (ref.pre_size, ref.size) == (1, whole):
            raise mistake(
                VerificationError,
                "invalid-sub-axis",
                f"{axis_text(ref)} is no part of {ref.name}, which has size {whole}",
                hint=f"{ref.name}:(a)b is one if a * b divides {whole}, and is not all of it",
                text=self.text,
                span=span,
                filename=self.filename,
            )

    def _check_uses(self, dims: list[NamedDim], name: str | None, dtype: str | None) -> None:
        for index, (axis, span) in enumerate(self.uses):
            for other, before in self.uses[:index]:
                if not axis.overlaps(other):
                    continue
                # The constructor would raise an error without a position.
                array = object.__new__(NamedArray)
                for key, value in (("dims", tuple(dims)), ("name", name), ("dtype", dtype)):
                    object.__setattr__(array, key, value)
                raise mistake(
                    VerificationError,
                    "axis-overlap",
                    f'axis "{axis_text(axis)}" is used twice in one array',
                    hint=overlap_hint(array, axis),
                    text=self.text,
                    span=span,
                    filename=self.filename,
                    related=(before, "first used here"),
                )


def split_axes(word: str, mesh: Mesh) -> list[str] | None:
    """The axes of ``mesh`` that ``word`` is composed of, longest names first; ``None`` if of
    none."""
    if word in mesh:
        return [word]
    for length in range(len(word) - 1, 0, -1):
        if word[:length] in mesh:
            rest = split_axes(word[length:], mesh)
            if rest is not None:
                return [word[:length], *rest]
    return None


def parse_mesh(text: str) -> Mesh:
    """Parse ``X=8,Y=4``, or a mesh as `sdy` writes it.

    Raises:
        ParseError: the text is neither (``notation``).
        VerificationError: the sizes are not valid (``invalid-mesh``).
    """
    if text.lstrip().startswith(("<", "#")):
        return Mesh.parse(text)
    parser = Parser(text, None, "<mesh>", form=_MESH_FORM)
    axes: dict[str, int] = {}
    while True:
        name = parser.match(_NAME)
        if not name:
            raise parser.unexpected("the name of an axis", _MESH_FORM)
        if name[0] in axes:
            raise _no_mesh(parser, f'axis "{name[0]}" is given twice', name.span(), "drop one")
        parser.expect("=", _MESH_FORM)
        size = parser.match(_NUMBER)
        if not size or len(size[0]) > 18:
            raise parser.unexpected("a number of devices", _MESH_FORM)
        if int(size[0]) == 0:
            hint = "an axis has at least one device"
            raise _no_mesh(parser, f'axis "{name[0]}" has size 0', size.span(), hint)
        axes[name[0]] = int(size[0])
        if not parser.take(","):
            break
    parser.end()
    try:
        return Mesh(axes)
    except VerificationError as error:
        hint = error.hint or "take smaller sizes"
        raise _no_mesh(parser, error.message, (0, len(text)), hint) from None


def _no_mesh(parser: Parser, message: str, span: Span, hint: str) -> VerificationError:
    return mistake(
        VerificationError,
        "invalid-mesh",
        message,
        hint=hint,
        text=parser.text,
        span=span,
        filename=parser.filename,
    )


def parse_sizes(text: str) -> dict[str, int]:
    """Parse ``I=128,J=8192``.

    Raises:
        ParseError: the text has another form, or a size is 0 (``notation``).
    """
    parser = Parser(text, None, "<sizes>", form=_SIZES_FORM)
    sizes: dict[str, int] = {}
    while True:
        name = parser.match(_DIM_NAME)
        if not name:
            raise parser.unexpected("the name of a dim", _SIZES_FORM)
        parser.expect("=", _SIZES_FORM)
        size = parser.match(_NUMBER)
        if not size or len(size[0]) > 18 or int(size[0]) == 0:
            raise parser.unexpected("a size", _SIZES_FORM)
        if sizes.setdefault(name[0], int(size[0])) != int(size[0]):
            raise parser.mistake(f"{name[0]} has two sizes", size.span())
        if not parser.take(","):
            break
    parser.end()
    return sizes
