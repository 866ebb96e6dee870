"""Expectations as data, read from TOML or a mapping of the same form.

=================  ==========================================================================
``policy``         the policy that makes the per-device program whose collectives and memory are
                   compared: ``"xla"``, which it is without this key, ``"shardy"`` or ``"least"``
``hardware``       the chip whose memory is compared, and that diagnostics are asked for
``[mesh]``         the axes of the mesh in order with their sizes; axes of size 1 make no
                   difference
``[shapes]``       for a name the shape that it has, ``[512, 128]``
``[constraints]``  for a type, ``"bfloat16[8,128]"`` or, of those that a file makes,
                   ``"attentions/query: bfloat16[8,128]"``, one or several shardings to each of
                   which some value of the type is constrained
``[shardings]``    for a name the sharding it has; see :mod:`shardcore.expect.sharding_text`
``[collectives]``  ``forbid``: kinds, each may be on an axis, ``"all_gather on model"``;
                   ``max_bytes`` and ``max_count``: limits for mesh axes, of what one device sends
                   and of how often collectives run
``[memory]``       ``peak``: the most bytes live on a device; ``arguments``: of its arguments
``[replicated]``   ``max_bytes``: of a value that every device holds whole; ``allow``: names
``[divisible]``    ``all = true``: no dim is padded; ``allow``: names
``[diagnostics]``  ``forbid``: codes that ``result.diagnostics()`` may not find, or ``["all"]``;
                   ``allow``: codes that it may; ``hardware``: another chip that it is asked for
=================  ==========================================================================

Bytes are numbers, or text with a unit, ``"1.5 GiB"``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from shardcore.bounded import shown
from shardcore.calculus.hardware import hardware, hardware_names
from shardcore.calculus.mistakes import choices
from shardcore.diagnose import DIAGNOSTICS
from shardcore.errors import ShardcoreError
from shardcore.expect.mistakes import Mistakes
from shardcore.expect.sharding_text import ExpectedSharding, parse_sharding
from shardcore.expect.toml_places import Path
from shardcore.partition.policies import POLICIES
from shardcore.units import MAX_BYTES, parse_bytes

KINDS = (
    "all_gather",
    "all_reduce",
    "all_to_all",
    "collective_permute",
    "other",
    "reduce_scatter",
)
"""The kinds of collectives that can be forbidden."""

_T = TypeVar("_T")


@dataclass(frozen=True)
class Forbidden:
    """A kind of collective that is forbidden along ``axis`` or, if that is ``None``, anywhere."""

    kind: str
    axis: str | None

    def __str__(self) -> str:
        return self.kind if self.axis is None else f"{self.kind} on {self.axis}"


@dataclass
class Expectations:
    """Expectations of a result; fields that are empty or ``None`` are not compared."""

    mesh: dict[str, int] = field(default_factory=dict)
    shardings: dict[str, ExpectedSharding] = field(default_factory=dict)
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    constraints: dict[str, list[ExpectedSharding]] = field(default_factory=dict)
    forbid: list[Forbidden] = field(default_factory=list)
    max_bytes: dict[str, int] = field(default_factory=dict)
    max_count: dict[str, int] = field(default_factory=dict)
    peak: int | None = None
    arguments: int | None = None
    replicated: int | None = None
    replicated_allow: list[str] = field(default_factory=list)
    divisible: bool = False
    divisible_allow: list[str] = field(default_factory=list)
    diagnostics: list[str] = field(default_factory=list)
    diagnostics_allow: list[str] = field(default_factory=list)
    diagnostics_hardware: str | None = None
    hardware: str | None = None
    policy: str = "xla"

    @property
    def needs_cost(self) -> bool:
        """Whether there are expectations of collectives or memory."""
        limits = (self.forbid, self.max_bytes, self.max_count)
        return any(limits) or self.peak is not None or self.arguments is not None


def expectations(data: Mapping[str, Any], mistakes: Mistakes) -> Expectations:
    """Return the expectations in ``data``; mistakes are added to ``mistakes``."""
    reader = _Reader(mistakes)
    reader.table((), data, reader.sections())
    return reader.found


class _Reader:
    """Reads sections into :class:`Expectations`, key by key."""

    def __init__(self, mistakes: Mistakes) -> None:
        self.mistakes = mistakes
        self.found = Expectations()

    def sections(self) -> Mapping[str, Callable[[Path, Any], None]]:
        return {
            "policy": self.into("policy", self.policy),
            "hardware": self.into("hardware", self.chip),
            "mesh": self.rows(self.found.mesh, self.number),
            "shardings": self.rows(self.found.shardings, self.sharding),
            "shapes": self.rows(self.found.shapes, self.shape),
            "constraints": self.rows(self.found.constraints, self.several),
            "collectives": self.keys(
                {
                    "forbid": self.forbid,
                    "max_bytes": self.rows(
                        self.found.max_bytes, self.byte_count, "write max_bytes = { model = 10 }"
                    ),
                    "max_count": self.rows(
                        self.found.max_count, self.number, "write max_count = { model = 10 }"
                    ),
                }
            ),
            "memory": self.keys(
                {
                    "peak": self.into("peak", self.byte_count),
                    "arguments": self.into("arguments", self.byte_count),
                }
            ),
            "replicated": self.keys(
                {
                    "max_bytes": self.into("replicated", self.byte_count),
                    "allow": self.into("replicated_allow", self.names),
                }
            ),
            "divisible": self.keys(
                {
                    "all": self.into("divisible", self.flag),
                    "allow": self.into("divisible_allow", self.names),
                }
            ),
            "diagnostics": self.keys(
                {
                    "forbid": self.into("diagnostics", self.codes),
                    "allow": self.into("diagnostics_allow", self.codes),
                    "hardware": self.into("diagnostics_hardware", self.chip),
                }
            ),
        }

    def keys(self, known: Mapping[str, Callable[[Path, Any], None]]) -> Callable[[Path, Any], None]:
        return lambda path, value: self.table(path, value, known)

    def table(
        self, path: Path, value: Any, known: Mapping[str, Callable[[Path, Any], None]]
    ) -> None:
        """Read a table with the keys ``known``."""
        if not isinstance(value, Mapping):
            self.mistakes.invalid(
                path, f"{shown(value)} is no table", f"write [{path[-1]}] above keys"
            )
            return
        for key, item in value.items():
            if key in known:
                known[key]((*path, key), item)
            else:
                what = "section" if not path else f"key of [{path[-1]}]"
                self.mistakes.unknown(
                    (*path, key), f'"{key}" is no {what}', choices(str(key), known)
                )

    def into(
        self, name: str, read: Callable[[Path, Any], _T | None]
    ) -> Callable[[Path, Any], None]:
        def put(path: Path, value: Any) -> None:
            found = read(path, value)
            if found is not None:
                setattr(self.found, name, found)

        return put

    def rows(
        self, found: dict[str, _T], read: Callable[[Path, Any], _T | None], hint: str | None = None
    ) -> Callable[[Path, Any], None]:
        """A function that reads a table with arbitrary keys."""

        def put(path: Path, value: Any) -> None:
            if not isinstance(value, Mapping):
                advice = hint or f"write [{path[-1]}] above names"
                self.mistakes.invalid(path, f"{shown(value)} is no table", advice)
                return
            for name, item in value.items():
                row = read((*path, name), item)
                if row is not None:
                    found[name] = row

        return put

    def sharding(self, path: Path, value: Any) -> ExpectedSharding | None:
        expected = parse_sharding(value)
        if isinstance(expected, ExpectedSharding):
            return expected
        self.mistakes.invalid(path, *expected)
        return None

    def several(self, path: Path, value: Any) -> list[ExpectedSharding]:
        """One or several shardings."""
        given = value if isinstance(value, list) else [value]
        return [found for each in given if (found := self.sharding(path, each)) is not None]

    def shape(self, path: Path, value: Any) -> tuple[int, ...] | None:
        if isinstance(value, Sequence) and all(type(size) is int and size >= 0 for size in value):
            return tuple(value)
        self.mistakes.invalid(path, f"{shown(value)} is no shape", "write [512, 128]")
        return None

    def forbid(self, path: Path, value: Any) -> None:
        for number, text in self.items(path, value):
            kind, _, axis = text.partition(" on ")
            kind = kind.strip().replace("-", "_")
            if kind not in KINDS:
                self.mistakes.invalid(
                    (*path, number), f"{shown(kind)} is no kind of collective", choices(kind, KINDS)
                )
            elif " on " in text and not axis.strip():
                self.mistakes.invalid(
                    (*path, number), f"{shown(text)} names no axis", f'write "{kind} on model"'
                )
            else:
                self.found.forbid.append(Forbidden(kind, axis.strip().strip('"') or None))

    def names(self, path: Path, value: Any) -> list[str]:
        return [text for _, text in self.items(path, value)]

    def codes(self, path: Path, value: Any) -> list[str]:
        known = ("all", *DIAGNOSTICS)
        found = []
        for number, code in self.items(path, value):
            if code in known:
                found.append(code)
            else:
                message = f"{shown(code)} is no code of a diagnostic"
                self.mistakes.invalid((*path, number), message, choices(code, known))
        return found

    def chip(self, path: Path, value: Any) -> str | None:
        try:
            return hardware(value).name
        except (ShardcoreError, TypeError):
            hint = choices(str(value), hardware_names())
            self.mistakes.invalid(path, f"{shown(value)} is no chip", hint)
            return None

    def items(self, path: Path, value: Any) -> list[tuple[int, str]]:
        """The strings in an array, with their indices."""
        if isinstance(value, (str, bytes)) or not isinstance(value, Sequence):
            self.mistakes.invalid(
                path, f"{shown(value)} is no array", f'write {path[-1]} = ["..."]'
            )
            return []
        found = []
        for number, item in enumerate(value):
            if isinstance(item, str):
                found.append((number, item))
            else:
                self.mistakes.invalid(
                    (*path, number), f"{shown(item)} is no text", "put it in quotes"
                )
        return found

    def byte_count(self, path: Path, value: Any) -> int | None:
        found = parse_bytes(value)
        if found is None:
            self.mistakes.invalid(
                path, f"{shown(value)} is no number of bytes", 'write 1024, or "1.5 GiB"'
            )
        return found

    def number(self, path: Path, value: Any) -> int | None:
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < MAX_BYTES:
            return value
        self.mistakes.invalid(
            path, f"{shown(value)} is no count", "write a whole number, 0 or more"
        )
        return None

    def policy(self, path: Path, value: Any) -> str | None:
        if isinstance(value, str) and value in POLICIES:
            return value
        hint = choices(value, POLICIES) if isinstance(value, str) else 'write "xla"'
        self.mistakes.invalid(path, f"{shown(value)} is no policy", hint)
        return None

    def flag(self, path: Path, value: Any) -> bool | None:
        if isinstance(value, bool):
            return value
        self.mistakes.invalid(path, f"{shown(value)} is neither true nor false", "write true")
        return None
