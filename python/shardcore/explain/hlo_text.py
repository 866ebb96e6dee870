"""Reads the text of compiled HLO modules: instructions, the computations they call, and locations.

A module is read line by line in linear time; an instruction's attributes are parsed only when they
are needed.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field

from shardcore.cached_property import cached_property
from shardcore.errors import Diagnostic, ParseError, Place
from shardcore.explain.device_groups import groups_of, pairs_of

__all__ = ["Computation", "Frame", "HloModule", "Instruction", "element_count", "num_bytes", "read"]

_HEADER = re.compile(r"(ENTRY )?%?([\w.\-<>]+)(?= )")
_INSTRUCTION = re.compile(r"\s+(ROOT )?%?([\w.\-]+) = (.*?) ([a-z][\w\-]*)\(")
_SIMPLE_OPERANDS = re.compile(r"([^()]*)\)")
_COMMENT = re.compile(r"/\*.*?\*/")
_NAME = re.compile(r"%([\w.\-]+)")
_CALLED = re.compile(
    r"[ ,](?:calls|to_apply|body|condition|true_computation|false_computation)=%?([\w.\-]+)"
    r"|[ ,](?:branch_computations|called_computations|calls)=\{([^}]*)\}"
)
_OP_NAME = re.compile(r'op_name="((?:[^"\\]|\\.)*)"')
_FRAME = re.compile(r"stack_frame_id=(\d+)")
_SOURCE = re.compile(r'source_file="((?:[^"\\]|\\.)*)"(?:[^}]*?source_line=(\d+))?')
_ROW = re.compile(r'(\d+) (?:"((?:[^"\\]|\\.)*)"|\{(.*)\})\s*$')
_FIELD = re.compile(r"(\w+)=(-?\d+)")
_ARRAY = re.compile(r"([a-z]\w*)\[([\d,<=? ]*)\]")
_WIDTH = re.compile(r"[a-z]+?(\d+)")
_SCALAR = 32
"""The length up to which the text of a constant is kept."""
_TABLES = ("FileNames", "FunctionNames", "FileLocations", "StackFrames")


@dataclass(frozen=True)
class Frame:
    """A location in the user's program, with its caller."""

    file: str
    line: int
    column: int
    function: str
    caller: int
    """The number of the calling frame; 0 if there is none."""

    @property
    def location(self) -> str:
        """``file:line:column``, as in :attr:`shardcore.Value.location`."""
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction of a computation."""

    name: str
    opcode: str
    shape: str
    """The text of its type: ``f32[8,16]{1,0}``, or a tuple of types."""
    operands: tuple[str, ...]
    """The names of its operands; for a parameter its number, for a short constant its text."""
    rest: str
    """The text of its attributes."""
    line: int
    """The line in the text, from 1."""

    @property
    def inputs(self) -> tuple[str, ...]:
        """The names of the instructions that are its operands."""
        return () if self.opcode in ("parameter", "constant") else self.operands

    @property
    def op_name(self) -> str:
        """The op that it was made for, as a JAX name stack; empty if there is none."""
        found = _OP_NAME.search(self.rest)
        return "" if found is None else found[1].replace('\\"', '"').replace("\\'", "'")

    @property
    def called(self) -> tuple[str, ...]:
        """The names of the computations that it calls."""
        names: list[str] = []
        for one, several in _CALLED.findall(self.rest):
            names += [one] if one else [name.strip().lstrip("%") for name in several.split(",")]
        return tuple(names)

    @property
    def arrays(self) -> tuple[tuple[str, tuple[int, ...]], ...]:
        """The element type and the dims of each array in its type."""
        return tuple(
            (
                dtype,
                tuple(int(size.lstrip("<= ")) for size in dims.split(",") if size.strip(" <=?")),
            )
            for dtype, dims in _ARRAY.findall(_without_layouts(self.shape))
        )

    @property
    def dims(self) -> tuple[tuple[int, ...], ...]:
        """The dims of each array in its type."""
        return tuple(dims for _, dims in self.arrays)


@dataclass
class Computation:
    """The instructions of a computation, by name and in order."""

    name: str
    is_entry: bool
    instructions: dict[str, Instruction] = field(default_factory=dict)
    root: str | None = None


@dataclass
class HloModule:
    """A compiled module."""

    name: str
    header: str
    """The first line of its text."""
    computations: dict[str, Computation] = field(default_factory=dict)
    entry: str = ""
    tables: dict[str, dict[int, str]] = field(default_factory=dict)
    """The rows of its tables of files and stack frames."""

    @property
    def num_instructions(self) -> int:
        """The number of its instructions."""
        return sum(len(each.instructions) for each in self.computations.values())

    @cached_property
    def num_devices(self) -> int:
        """The number of partitions times the number of replicas."""
        found = re.findall(r"\b(?:num_partitions|replica_count)=(\d+)", self.header)
        if found:
            return math.prod(map(int, found))
        # Protos do not have it; the devices that take part in collectives are all there are.
        rows = (
            row.rest for each in self.computations.values() for row in each.instructions.values()
        )
        groups = (group for rest in rows for group in (*groups_of(rest, 1), *pairs_of(rest)))
        return 1 + max((device for group in groups for device in group), default=0)

    @cached_property
    def frames(self) -> dict[int, Frame]:
        """The frames by number."""
        rows = {
            name: {key: _fields(row) for key, row in self.tables.get(name, {}).items()}
            for name in _TABLES[2:]
        }
        files, functions = (self.tables.get(name, {}) for name in _TABLES[:2])
        stacks = rows["StackFrames"]
        # If callers count from 1 with 0 for none, and a frame without a caller refers to itself,
        # # all caller numbers are one too large.
        shift = int(any(key == row.get("parent_frame_id") for key, row in stacks.items()))
        frames = {}
        for key, row in stacks.items():
            at = rows["FileLocations"].get(row.get("file_location_id", 0))
            if at is not None:
                frames[key] = Frame(
                    files.get(at.get("file_name_id", 0), ""),
                    at.get("line", 0),
                    at.get("column", 0),
                    functions.get(at.get("function_name_id", 0), ""),
                    max(row.get("parent_frame_id", 0) - shift, 0),
                )
        return frames

    def location(self, instruction: Instruction) -> str | None:
        """Return the location of ``instruction``, ``file:line:column`` or ``file:line``."""
        number = _FRAME.search(instruction.rest)
        frame = self.frames.get(int(number[1])) if number else None
        if frame is not None:
            return frame.location
        found = _SOURCE.search(instruction.rest)
        return None if found is None else f"{found[1]}:{found[2]}" if found[2] else found[1]

    def stack(self, instruction: Instruction) -> tuple[str, ...]:
        """Return the location of ``instruction`` and those of its callers, innermost first."""
        number = _FRAME.search(instruction.rest)
        found: list[str] = []
        key = int(number[1]) if number else 0
        while key in self.frames and len(found) < len(self.frames):
            found.append(self.frames[key].location)
            key = self.frames[key].caller
        return tuple(found)


def element_count(dims: tuple[int, ...]) -> int:
    """Return the number of elements of an array with ``dims``."""
    count = 1
    for size in dims:
        count *= size
    return count


def num_bytes(dtype: str, elements: int) -> int:
    """Return the bytes of ``elements`` elements of type ``dtype``, as HLO spells it."""
    found = _WIDTH.match(dtype)
    return elements * (int(found[1]) if found else 8) // 8


def read(text: str, filename: str = "<hlo>") -> tuple[HloModule, ...]:
    """Return the modules in ``text``.

    Raises:
        ParseError: the text is no HLO, or ends too early (``syntax``); has the position.
    """
    return _Reader(text, filename).modules()


class _Reader:
    """Reads one text."""

    def __init__(self, text: str, filename: str) -> None:
        self.lines = text.splitlines()
        self.filename = filename
        self.found: list[HloModule] = []
        self.current: Computation | None = None
        self.table: dict[int, str] | None = None

    def modules(self) -> tuple[HloModule, ...]:
        for number, line in enumerate(self.lines, 1):
            if self.current is not None:
                self._inside(self.current, line, number)
            elif not line or line.isspace():
                self.table = None
            elif line.startswith("HloModule"):
                name = line[10:].split(",")[0].split(" ")[0].strip()
                self.found.append(HloModule(name, line))
            elif not self.found:
                raise self._error(number, 1, "expected HloModule: this is no text of HLO")
            else:
                self._outside(self.found[-1], line, number)
        if self.current is not None:
            raise self._cut_off(self.current)
        if not self.found:
            raise self._error(1, 1, "expected HloModule: the text is empty")
        for module in self.found:
            if not module.entry:
                message = f"module {module.name} has no ENTRY computation: it was cut off"
                raise self._error(len(self.lines), len(self.lines[-1]) + 1, message)
        return tuple(self.found)

    def _outside(self, module: HloModule, line: str, number: int) -> None:
        if self.table is not None and (row := _ROW.match(line)):
            self.table[int(row[1])] = row[2] if row[3] is None else row[3]
        elif line.strip() in _TABLES:
            self.table = module.tables.setdefault(line.strip(), {})
        elif line.rstrip().endswith("{") and (found := _HEADER.match(line)):
            self.current = Computation(found[2], found[1] is not None)
            module.computations[found[2]] = self.current
            if found[1]:
                module.entry = found[2]
        else:
            raise self._error(number, 1, "expected a computation")

    def _inside(self, current: Computation, line: str, number: int) -> None:
        found = _INSTRUCTION.match(line)
        if found is None:
            if line.startswith("}"):
                self.current = None
            elif number == len(self.lines):
                raise self._cut_off(current)
            elif line.strip():
                raise self._error(
                    number,
                    len(line) - len(line.lstrip()) + 1,
                    f"expected an instruction of {current.name}",
                )
            return
        opcode = found[4]
        simple = _SIMPLE_OPERANDS.match(line, found.end())
        end = simple.end(1) if simple else self._end(line, found.end(), number)
        inside = line[found.end() : end]
        if opcode == "parameter":
            operands: tuple[str, ...] = (inside.strip(),)
        elif opcode == "constant":
            operands = (inside.strip(),) if len(inside) < _SCALAR else ()
        else:
            operands = _operands(inside)
        row = Instruction(found[2], opcode, found[3], operands, line[end + 1 :], number)
        current.instructions[row.name] = row
        if found[1]:
            current.root = row.name

    def _end(self, line: str, start: int, number: int) -> int:
        """The position of the parenthesis that closes the one before ``start``."""
        depth, is_quoted = 1, False
        for at in range(start, len(line)):
            char = line[at]
            if char == '"' and line[at - 1] != "\\":
                is_quoted = not is_quoted
            elif not is_quoted and char == "(":
                depth += 1
            elif not is_quoted and char == ")":
                depth -= 1
                if not depth:
                    return at
        raise self._error(number, len(line) + 1, "the operands of the instruction do not end")

    def _cut_off(self, current: Computation) -> ParseError:
        message = f"the text ends within the computation {current.name}: it was cut off"
        return self._error(len(self.lines), len(self.lines[-1]) + 1, message)

    def _error(self, number: int, column: int, message: str) -> ParseError:
        line = self.lines[number - 1] if self.lines else ""
        place = Place(max(number, 1), column, column + 1, line)
        hint = "give the text that compiled.as_text() or XLA's dump wrote, whole"
        return ParseError(Diagnostic("syntax", message, hint, self.filename, place))


def _operands(text: str) -> tuple[str, ...]:
    if "%" in text:
        return tuple(_NAME.findall(text))
    # Without percent signs, a name is the last word between commas; the types before names may
    # # have commas in brackets.
    parts, depth, start = [], 0, 0
    text = _COMMENT.sub("", text)
    for at, char in enumerate(text):
        if char in "([{":
            depth += 1
        elif char in ")]}":
            depth -= 1
        elif char == "," and not depth:
            parts.append(text[start:at])
            start = at + 1
    parts.append(text[start:])
    return tuple(words[-1] for part in parts if (words := part.split()))


def _fields(row: str) -> dict[str, int]:
    return {name: int(value) for name, value in _FIELD.findall(row)}


def _without_layouts(shape: str) -> str:
    return re.sub(r"\{[^}]*\}", "", shape)
