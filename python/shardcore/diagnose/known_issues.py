"""Programs that XLA's partitioner is known to partition wrongly, or not at all.

Each issue has a test that runs XLA on such a program; the listed versions are those in which the
issue was observed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from shardcore.cached_property import cached_property

if TYPE_CHECKING:
    from shardcore._core import Op, Value


@dataclass(frozen=True)
class Program:
    """The ops of a propagated program."""

    ops: Sequence[Op]

    @cached_property
    def makers(self) -> dict[str, Op]:
        """The op that defines each value, by the value's name."""
        return {value.qualified_name: op for op in self.ops for value in op.results}

    def constant(self, value: Value) -> int | None:
        """Return the value of ``value`` if it is a constant integer."""
        op = self.makers.get(value.qualified_name)
        if op is None or op.name not in ("stablehlo.constant", "sdy.constant"):
            return None
        found = op.attributes.get("value")
        while isinstance(found, list) and len(found) == 1:
            [found] = found
        return found if isinstance(found, int) else None


@dataclass(frozen=True)
class KnownIssue:
    """A pattern of programs that XLA partitions wrongly."""

    url: str
    """The URL of the report."""
    effect: str
    """What goes wrong."""
    versions: tuple[str, ...]
    """The jaxlib releases in which it was observed, in the form of :attr:`Module.shardy`."""
    find: Callable[[Program], Iterator[Op]]
    """Yields the ops that may be affected."""


@dataclass(frozen=True)
class Suspect:
    """Ops of a program that XLA may partition wrongly."""

    issue: KnownIssue
    value: str
    """The first result of the first such op."""
    location: str | None
    """The source location of the first such op."""
    count: int
    """The number of such ops."""

    def record(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "issue": self.issue.url,
            "effect": self.issue.effect,
            "versions": list(self.issue.versions),
            "value": self.value,
            "location": self.location,
            "count": self.count,
        }


def suspects(ops: Sequence[Op], version: str) -> list[Suspect]:
    """Return the ops that the XLA of this jaxlib release may partition wrongly."""
    program, found = Program(ops), list[Suspect]()
    for issue in KNOWN_ISSUES:
        rows = list(issue.find(program)) if version in issue.versions else []
        if rows:
            first = rows[0].results[0]
            found.append(Suspect(issue, first.qualified_name, first.location, len(rows)))
    return found


def _lost_updates(program: Program) -> Iterator[Op]:
    """Updates of one element along a sharded dim, with a start that may be out of range."""
    for op in program.ops:
        if op.name == "stablehlo.dynamic_update_slice":
            operand, update, *starts = op.operands
            for start, size, taken in _along_shards(op.results[0], (operand, update), starts):
                at = program.constant(start)
                if taken == 1 and (at is None or at >= size):
                    yield op
                    break


def _shifted_slices(program: Program) -> Iterator[Op]:
    """Slices along a sharded dim, with a start that may be out of range."""
    for op in program.ops:
        if op.name == "stablehlo.dynamic_slice":
            operand, *starts = op.operands
            for start, size, taken in _along_shards(
                op.results[0], (operand, op.results[0]), starts
            ):
                at = program.constant(start)
                if at is None or not 0 <= at <= size - taken:
                    yield op
                    break


def _along_shards(
    sharded: Value, sizes: tuple[Value, Value], starts: Sequence[Value]
) -> Iterator[tuple[Value, int, int]]:
    """For each sharded dim of which only a part is taken: the start, the size, and the size of the
    part, which is the second of ``sizes``.
    """
    whole, part = (value.shape or () for value in sizes)
    sharding = sharded.sharding
    if sharding is None or not sharding.rank == len(whole) == len(part) == len(starts):
        return
    for dim, size, taken, start in zip(sharding.dims, whole, part, starts, strict=True):
        if dim.axes and size is not None and taken is not None and taken < size:
            yield start, size, taken


def _malformed_rolls(program: Program) -> Iterator[Op]:
    """Rolls (concatenations of pads that also cut) of one value, or of each other, whose first part
    has fewer elements than there are shards.
    """
    widths: dict[str, set[_Widths]] = defaultdict(set)
    for op in program.ops:
        if op.name != "stablehlo.concatenate" or not _is_narrow(op):
            continue
        rolled = _rolled(op, program)
        if rolled is None:
            continue
        own = tuple(value.shape for value in op.operands)
        if widths[rolled.qualified_name] - {own}:
            yield op
        # A roll of the result of this one counts as one of the same value.
        for value in (rolled, op.results[0]):
            widths[value.qualified_name].add(own)


_Widths = tuple["tuple[int | None, ...] | None", ...]
"""The shapes of the two parts of a roll."""


def _rolled(op: Op, program: Program) -> Value | None:
    """The value that ``op``, a concatenation, rolls: both its operands are cut from it."""
    pads = [program.makers.get(value.qualified_name) for value in op.operands]
    sources = [pad.operands[0] for pad in pads if pad is not None and _cuts(pad)]
    if len(pads) != 2 or len(sources) != 2:
        return None
    first, second = sources
    return first if first.qualified_name == second.qualified_name else None


def _cuts(op: Op) -> bool:
    if op.name != "stablehlo.pad":
        return False
    edges = [*op.attributes["edge_padding_low"], *op.attributes["edge_padding_high"]]
    return any(edge < 0 for edge in edges)


def _is_narrow(op: Op) -> bool:
    """Whether ``op`` concatenates fewer elements than there are shards with further ones."""
    result, dim = op.results[0], op.attributes["dimension"]
    sharding, shape = result.sharding, op.operands[0].shape
    if sharding is None or sharding.mesh is None or not shape or dim >= sharding.rank:
        return False
    width = shape[dim]
    return width is not None and width < sharding.sharded_size(dim)


KNOWN_ISSUES = (
    KnownIssue(
        "https://github.com/openxla/xla/issues/49118",
        "if this update starts beyond the end, so that it has to be moved into the tensor, it is "
        "lost, since the tensor is sharded along that dim",
        ("0.10", "0.12"),
        _lost_updates,
    ),
    KnownIssue(
        "https://github.com/openxla/xla/issues/49122",
        "if this slice starts out of range, so that it has to be moved into the tensor, it has "
        "wrong elements, since it is sharded along that dim",
        ("0.10",),
        _shifted_slices,
    ),
    KnownIssue(
        "https://github.com/jax-ml/jax/issues/39301",
        "this does not compile: it is the second of two rolls of one value by less than the number "
        "of devices that the dim is sharded over",
        ("0.10", "0.12"),
        _malformed_rolls,
    ),
)
"""All known issues."""
