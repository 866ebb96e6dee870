"""Figures of accelerators: FLOP/s, memory, links. The data are in ``hardware.toml``, with sources.

Users override figures and add chips with a TOML file of the same form: a table with a known name
changes the figures that it has, another table is a new chip, and ``base = "h100"`` in it starts
from a known chip.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

from shardcore.bounded import shown
from shardcore.calculus.achieved import Achieved, read_achieved
from shardcore.calculus.dtypes import canonical_dtype, is_dtype
from shardcore.calculus.hardware_file import HardwareFile
from shardcore.calculus.measured import Measured, read_measured
from shardcore.calculus.mistakes import choices, mistake
from shardcore.compilers import COMPILERS
from shardcore.errors import CalculusError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_FIGURES = {
    "hbm_bytes",
    "hbm_bytes_per_second",
    "link_bytes_per_second",
    "hop_seconds",
    "node_bytes_per_second",
    "dcn_bytes_per_second",
    "host_bytes_per_second",
    "combine_bytes",
    "cache_bytes",
    "cache_bytes_per_second",
}
_MAY_BE_ZERO = {"hop_seconds", "combine_bytes", "cache_bytes"}
_REQUIRED = {
    "torus": ("flops", "link_bytes_per_second"),
    "switched": ("flops", "link_bytes_per_second", "node_size", "node_bytes_per_second"),
}


_SHORT_MESSAGES = frozenset(("message_bytes", "message_shares", "chunk_bytes"))

SMALLEST, LARGEST = 1e-30, 1e30
"""The range of a chip's figures; within it, times do not overflow."""


ChipFacts: TypeAlias = tuple[int, bool, int | None, tuple[int, int, int], int | None, int]
"""What compilers know of a chip: the bytes of its cache or vector memory, whether collectives use
it, the bytes of its memory if kernels are ordered to hide the latency of collectives, the FLOPs of
products in bf16, the bytes of memory traffic and the bytes over a link in a second, the most bytes
of combined collectives, and the elements that a matrix unit sums over at a time."""
_MOST_BYTES = 1 << 64
"""Of the memory of a chip that has no such figure."""
_MOST_RATE = _MOST_BYTES - 1
"""Of a figure in a second."""
_MOST_LANES = 1 << 31
"""Of a matrix unit."""


@dataclass(frozen=True, repr=False)
class Hardware:
    """One kind of chip and its interconnect."""

    name: str
    kind: str
    """``"torus"``: links to neighbours. ``"switched"``: nodes of chips on a switch."""
    flops: Mapping[str, float]
    """FLOP/s by element type; a multiply-add counts as two."""
    link_bytes_per_second: float
    """In one direction: over one link of a torus, or from a chip into the switch of its node."""
    hbm_bytes: float = float("inf")
    hbm_bytes_per_second: float = float("inf")
    hop_seconds: float = 0.0
    """Latency of a hop."""
    physical_axes: int | None = None
    """Number of axes of the torus."""
    pod: tuple[int, ...] = ()
    """Sizes of the axes of the largest torus."""
    axis_links: tuple[float, ...] = ()
    """The bandwidth of a link along each axis of the torus, from the major to the minor, as
    multiples of :attr:`link_bytes_per_second`; empty if all are equal. Devices take such axes in
    the order of their ids, the minor axis first."""
    wraparound_multiple_of: int | None = None
    wraparound_sizes: tuple[int, ...] = ()
    node_size: int = 1
    """Chips on one switch."""
    node_bytes_per_second: float = 0.0
    """In one direction, out of a node, for all its chips."""
    switch_reduces: bool = False
    """Whether the switch of a node does reductions, as with NVLink SHARP."""
    dcn_bytes_per_second: float = float("inf")
    """In one direction, from a chip of a torus out of its slice."""
    host_bytes_per_second: float | None = None
    """In one direction, between a chip and its host; ``None`` if unknown."""
    combine_bytes: float = 0.0
    """The size up to which compilers combine collectives of one kind; 0 if they do not."""
    cache_bytes: float = 0.0
    """The memory between a chip's units and its HBM: the L2 cache of a GPU, the VMEM of a TPU."""
    cache_bytes_per_second: float = float("inf")
    cache_all_kernels: bool = True
    """Whether all kernels write that memory; if not, XLA's TPU compiler has what any but fusions
    without products write in HBM."""
    hides_latency: bool = False
    """Whether XLA orders kernels so that collectives run beside others, which takes memory."""
    compiler: str | None = None
    """The compiler of its programs, as ``compiler`` of :func:`shardcore.cost`; ``None`` for XLA's
    TPU compiler on a torus, else XLA's GPU compiler."""
    achieved: Achieved = field(default_factory=Achieved)
    """The shares of these figures that programs achieve."""
    measured: Mapping[str, Measured] = field(default_factory=lambda: MappingProxyType({}))
    """The errors of estimates against measured steps, by kind."""
    source: Mapping[str, str] = field(default_factory=dict)
    """The source of each figure; ``"default"`` is the source of those without an entry."""

    def __hash__(self) -> int:
        return hash((self.name, self.kind, self.link_bytes_per_second, self.hbm_bytes))

    def __reduce__(self) -> tuple[Any, ...]:
        figures = {each.name: getattr(self, each.name) for each in fields(self)}
        maps = {key: dict(figures[key]) for key in ("flops", "source", "measured")}
        return _made, ({**figures, **maps},)

    @property
    def facts(self) -> ChipFacts:
        """What compilers know of the chip."""
        memory = int(min(self.hbm_bytes, _MOST_BYTES)) if self.hides_latency else None
        rates = (self.flops["bf16"], self.hbm_bytes_per_second, self.link_bytes_per_second)
        flops, traffic, links = (int(min(rate, _MOST_RATE)) for rate in rates)
        combined = int(min(self.combine_bytes, _MOST_BYTES))
        cache = int(self.cache_bytes), self.cache_all_kernels
        lanes = int(min(self.achieved.tile[-1], _MOST_LANES))
        return *cache, memory, (flops, traffic, links), combined, lanes

    def __repr__(self) -> str:
        return (
            f"<Hardware {self.name}: {self.flops['bf16']:.3g} bf16 FLOP/s, "
            f"{self.hbm_bytes / 1e9:g} GB at {self.hbm_bytes_per_second:.3g} B/s, "
            f"{self.kind}, links {self.link_bytes_per_second:.3g} B/s>"
        )

    @property
    def is_torus(self) -> bool:
        """Whether chips have links to neighbours instead of a switch."""
        return self.kind == "torus"

    def wraps_around(self, size: int) -> bool:
        """Whether a physical axis of ``size`` chips is a ring."""
        if self.wraparound_multiple_of and size % self.wraparound_multiple_of == 0:
            return True
        return size in self.wraparound_sizes

    def links_along(self, place: int, rank: int) -> float:
        """Return the bandwidth of a link along axis ``place`` of a slice that has ``rank`` axes, as
        a multiple of :attr:`link_bytes_per_second`: its axes are the minor ones of the torus."""
        links = self.axis_links
        return links[max(place - rank, -len(links))] if links else 1.0

    def flops_per_second(self, dtype: str) -> float:
        """Return FLOP/s for elements of type ``dtype``; that of bf16 if the type has no figure.

        Raises:
            CalculusError: there is no such type (``unknown-dtype``).
        """
        found = self.flops.get(canonical_dtype(dtype))
        return self.flops["bf16"] if found is None else found

    def has_figure_for(self, dtype: str) -> bool:
        """Whether ``dtype`` has a figure of its own."""
        return canonical_dtype(dtype) in self.flops


def _made(figures: dict[str, Any]) -> Hardware:
    """Unpickle a chip from its figures."""
    maps = {key: MappingProxyType(figures[key]) for key in ("flops", "measured")}
    return Hardware(**{**figures, **maps})


def hardware_names(extra: str | Path | None = None) -> list[str]:
    """Return the names of all chips, including those in the file ``extra``.

    Raises:
        CalculusError: as for :func:`hardware`.
    """
    return list(_tables(None if extra is None else HardwareFile.read(extra)))


def _meant(name: str, known: Iterable[str]) -> str:
    """The chips whose names contain ``name`` or are contained in it; else all chips."""
    asked = _plain(name)
    close = [each for each in known if asked in _plain(each) or _plain(each) in asked]
    meant = f"did you mean {' or '.join(close)}? " if asked and close else ""
    return f"{meant}there is {', '.join(known)}; a TOML file can add others"


def _plain(name: str) -> str:
    return re.sub(r"[\W_]", "", name.lower())


def hardware(name: str, extra: str | Path | None = None) -> Hardware:
    """Return the chip ``name``; figures in the TOML file ``extra`` have precedence.

    Raises:
        CalculusError: there is no such chip (``unknown-hardware``), or the file is no TOML or has
            wrong figures (``hardware-file``).
        OSError: the file cannot be read.
        TypeError: ``name`` is no string.
    """
    if not isinstance(name, str):
        raise TypeError(f"expected the name of a chip, not {type(name).__name__}")
    file = None if extra is None else HardwareFile.read(extra)
    tables = _tables(file)
    if name not in tables:
        raise mistake(
            CalculusError,
            "unknown-hardware",
            f'unknown hardware "{name}"',
            hint=_meant(name, tables),
            text=name,
            filename="<hardware>",
        )
    return _shipped_chip(name) if file is None else _build(name, tables[name], file)


def _tables(file: HardwareFile | None) -> dict[str, dict[str, Any]]:
    tables = dict(_shipped())
    if file is None:
        return tables
    for name, table in file.tables().items():
        if not isinstance(table, dict):
            hint = "write [name-of-the-chip] above it"
            raise file.mistake(f'"{name}" is not in a table', hint, key=name)
        base = table.pop("base", name)
        if not isinstance(table.get("source", {}), dict):
            hint = 'write source = { flops = "..." }'
            raise file.mistake(f"the sources of {name} are no table", hint, name, "source")
        if not isinstance(base, str) or (base not in tables and base != name):
            message = f'the base of {name}, "{base}", is not known'
            raise file.mistake(message, choices(str(base), tables), name, "base")
        tables[name] = _based(name, base, table, tables, file.name)
    return tables


def _based(
    name: str, base: str, table: dict[str, Any], tables: Mapping[str, Any], filename: str
) -> dict[str, Any]:
    """The figures of ``table``, and those of ``base`` that it does not have."""
    start = tables.get(base, {})
    if base != name:
        # Measurements of the base do not hold for another chip.
        start = {key: value for key, value in start.items() if key != "measured"}
    return _merged(start, table, filename)


def _merged(base: dict[str, Any], table: dict[str, Any], filename: str) -> dict[str, Any]:
    """``base`` with the figures of ``table``; their source is the file unless it names another."""
    source = {**base.get("source", {}), **{key: filename for key in table if key != "source"}}
    source.update(table.get("source", {}))
    merged = {**base, **table, "source": source}
    if "flops" in base and isinstance(table.get("flops"), dict):
        merged["flops"] = {**base["flops"], **table["flops"]}
    if isinstance(base.get("achieved"), dict) and isinstance(table.get("achieved"), dict):
        merged["achieved"] = _merged_shares(base["achieved"], table["achieved"])
    if {"wraparound_sizes", "wraparound_multiple_of"} & table.keys():
        for key in {"wraparound_sizes", "wraparound_multiple_of"} - table.keys():
            merged.pop(key, None)
    return merged


def _merged_shares(base: dict[str, Any], table: dict[str, Any]) -> dict[str, Any]:
    """The shares of ``base`` with those of ``table``; its figures of short messages replace all."""
    if not _SHORT_MESSAGES.isdisjoint(table):
        base = {key: value for key, value in base.items() if key not in _SHORT_MESSAGES}
    merged = {**base, **table}
    if isinstance(base.get("products"), dict) and isinstance(table.get("products"), dict):
        merged["products"] = {**base["products"], **table["products"]}
    return merged


@cache
def _shipped() -> Mapping[str, dict[str, Any]]:
    path = Path(__file__).with_name("hardware.toml")
    tables = tomllib.loads(path.read_text(encoding="utf-8"))
    for name, table in tables.items():
        if "base" in table:
            tables[name] = _based(name, table.pop("base"), table, tables, path.name)
    return MappingProxyType(tables)


@cache
def _shipped_chip(name: str) -> Hardware:
    return _build(name, _tables(None)[name], None)


def _build(name: str, table: dict[str, Any], file: HardwareFile | None) -> Hardware:
    # The tables in the package are valid; a test reads all of them.
    where = file or HardwareFile("hardware.toml", "")

    def wrong(message: str, hint: str, key: str | None = None) -> CalculusError:
        return where.mistake(message, hint, name, key)

    known = set(Hardware.__dataclass_fields__) - {"name"}
    for key in table.keys() - known:
        raise wrong(f'{name} has an unknown figure "{key}"', choices(key, sorted(known)), key)
    kind = table.get("kind")
    if not isinstance(kind, str) or kind not in _REQUIRED:
        hint = 'write kind = "torus" or "switched", or base = "h100"'
        raise wrong(f"the kind of {name} is {shown(kind)}", hint, "kind")
    for key in _REQUIRED[kind]:
        if key not in table:
            raise wrong(f"{name} has no {key}", f"write {key} = ...")
    values = dict(table)
    for key in sorted(_FIGURES & values.keys()):
        if not _is_number(values[key], allow_zero=key in _MAY_BE_ZERO):
            message = f"{key} of {name} is {shown(values[key])}, no number above 0"
            raise wrong(message, f"write {key} = 1e-6", key)
        values[key] = float(values[key])
    flops = values["flops"]
    if not isinstance(flops, dict) or "bf16" not in flops:
        raise wrong(f"{name} has no FLOP/s for bf16", "write flops = { bf16 = 1e14 }", "flops")
    for dtype, value in flops.items():
        if not is_dtype(dtype) or not _is_number(value):
            message = f"flops of {name} has {dtype} = {shown(value)}"
            raise wrong(message, "write flops = { bf16 = 1e14, int8 = 2e14 }", "flops")
    values["flops"] = MappingProxyType(
        {canonical_dtype(key): float(value) for key, value in flops.items()}
    )
    for key in sorted({"pod", "wraparound_sizes"} & values.keys()):
        sizes = values[key]
        if not isinstance(sizes, list) or not all(_is_count(size) for size in sizes):
            raise wrong(
                f"{key} of {name} is {shown(sizes)}, no list of sizes", "write [16, 16]", key
            )
        values[key] = tuple(sizes)
    for key in sorted({"physical_axes", "wraparound_multiple_of", "node_size"} & values.keys()):
        if not _is_count(values[key]):
            message = f"{key} of {name} is {shown(values[key])}, no whole number above 0"
            raise wrong(message, f"write {key} = 4", key)
    links, axes = values.get("axis_links", []), values.get("physical_axes")
    if (
        not isinstance(links, list)
        or not all(map(_is_number, links))
        or len(links) not in (0, axes)
    ):
        message = (
            f"axis_links of {name} is {shown(links)}, no number above 0 for each physical axis"
        )
        raise wrong(message, "write axis_links = [0.5, 1, 1], the major axis first", "axis_links")
    values["axis_links"] = tuple(map(float, links))
    for flag in ("switch_reduces", "cache_all_kernels", "hides_latency"):
        if not isinstance(values.get(flag, False), bool):
            message = f"{flag} of {name} is {shown(values[flag])}"
            raise wrong(message, f"write {flag} = true or false", flag)
    compiler = values.get("compiler", COMPILERS[0])
    if compiler not in COMPILERS:
        message = f"the compiler of {name} is {shown(compiler)}"
        raise wrong(message, choices(str(compiler), COMPILERS), "compiler")
    values["achieved"] = read_achieved(
        values.get("achieved", {}),
        lambda problem, hint, key: wrong(f"achieved of {name} {problem}", hint, key),
    )
    values["measured"] = read_measured(
        values.get("measured", {}),
        lambda problem, hint: wrong(f"measured of {name} {problem}", hint, "measured"),
    )
    source = values.get("source", {})
    if not isinstance(source, dict) or not all(isinstance(text, str) for text in source.values()):
        raise wrong(
            f"the sources of {name} are no texts", 'write source = { flops = "..." }', "source"
        )
    return Hardware(name=name, **values)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 < value < 1 << 63


def _is_number(value: object, *, allow_zero: bool = False) -> bool:
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return False
    return SMALLEST <= value <= LARGEST or (allow_zero and value == 0)
