"""The changed shardings between two versions of a program."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from shardcore.labels import REPLICATED, is_inserted, sharding_text, without_column

if TYPE_CHECKING:
    from shardcore._core import Port, Result, TensorSharding, Value


@dataclass(frozen=True)
class PortChange:
    """An argument or a result whose sharding changed, or which only one program has."""

    name: str
    """Its path in the user's program, or its name."""
    before: str | None
    """The old sharding without its mesh, as ``sdy`` text; ``None`` if the port is new."""
    after: str | None
    """The new sharding; ``None`` if the port was removed."""

    def record(self) -> dict[str, Any]:
        """Return it as plain data."""
        return asdict(self)


@dataclass(frozen=True)
class LineShardings:
    """Values with changed shardings, of ops with one name at one source line."""

    place: str
    """The line in the new version; the name of the value if there are no locations."""
    op: str
    count: int
    """The number of values."""
    before: tuple[str, ...]
    """The distinct old shardings, without the mesh."""
    after: tuple[str, ...]
    """The distinct new shardings."""

    def record(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {**asdict(self), "before": list(self.before), "after": list(self.after)}


def port_changes(base: Result, head: Result) -> Iterator[PortChange]:
    """Yield the arguments and results whose shardings differ."""
    pairs = ((base.arguments(), head.arguments()), (base.results(), head.results()))
    for before, after in pairs:
        old, new = _ports(before), _ports(after)
        for name in dict.fromkeys([*new, *old]):
            if old.get(name) != new.get(name):
                yield PortChange(name, old.get(name), new.get(name))


def _ports(ports: Sequence[Port]) -> dict[str, str]:
    return {port.label or port.name: _text(port.sharding) for port in ports}


def _text(sharding: TensorSharding | None) -> str:
    """The sharding without its mesh; one word for a replicated value."""
    if sharding is None or sharding.is_fully_replicated:
        return REPLICATED
    return sharding_text(str(sharding.closed()))


def line_shardings(base: Result, head: Result, lines: Mapping[str, str]) -> list[LineShardings]:
    """Return the values with changed shardings, by line; lines with most values come first.

    ``lines`` comes from :func:`shardcore.diff.same_lines.same_lines`.
    """
    old, new = _values(base.values(), lines), _values(head.values(), {})
    found: dict[tuple[str, str], list[tuple[Counter[str], Counter[str]]]] = {}
    for key, after in new.items():
        before = old.get(key, Counter())
        # A line that produces other values than before counts as another line.
        if before.total() == after.total() and before != after:
            found.setdefault(key[:2], []).append((before - after, after - before))
    rows = [
        LineShardings(
            place,
            op,
            sum(after.total() for _, after in pairs),
            tuple(dict.fromkeys(text for before, _ in pairs for text in before)),
            tuple(dict.fromkeys(text for _, after in pairs for text in after)),
        )
        for (place, op), pairs in found.items()
    ]
    return sorted(rows, key=lambda row: -row.count)


def _values(
    values: Iterable[Value], lines: Mapping[str, str]
) -> dict[tuple[str, str, str], Counter[str]]:
    """By line, op and type: how many values have each sharding."""
    found: dict[tuple[str, str, str], Counter[str]] = {}
    for value in values:
        if value.op is None or value.shape is None or is_inserted(value.name):
            continue
        line = without_column(value.location or value.qualified_name)
        key = (lines.get(line, line), value.op, value.type)
        found.setdefault(key, Counter())[_text(value.sharding)] += 1
    return found
