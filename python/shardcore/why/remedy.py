"""Finds the cheapest edit of one annotation that removes a collective, by trying edits."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from shardcore._core import AxisRef, DimSharding, Mesh, TensorSharding
from shardcore.errors import ShardcoreError

if TYPE_CHECKING:
    from shardcore.costs import Cost
    from shardcore.costs.records import CollectiveCost
    from shardcore.why import Source
    from shardcore.why.trial import Trial
    from shardcore.why.values import Found

MOST_TRIALS = 48
"""How many edits are tried at most."""

_MOST_ARGUMENTS = 4
"""How many unannotated arguments are tried at most, the nearest first."""

_SETTABLE = frozenset({"argument", "result", "constraint"})

_SUMS = frozenset({"all_reduce", "reduce_scatter"})
"""The compiler for CPUs has no reduce-scatter: it sums everything, and slices the sum."""

Edit = tuple[str, TensorSharding]
"""A target of :meth:`shardcore.Session.set`, and its new annotation."""


@dataclass(frozen=True)
class Remedy:
    """An edit that removes a collective, with its other effects."""

    target: str
    """The target to annotate, as :meth:`shardcore.Session.set` takes it."""
    sharding: str
    """The annotation, as :meth:`shardcore.Session.set` takes it."""
    seconds: float
    """What is added to :attr:`shardcore.Cost.step_seconds`; negative if it gets shorter."""
    peak_bytes: int
    """The change of the peak bytes."""
    wire_bytes: int
    """The change of the bytes that a device sends."""
    is_replaced: bool = False
    """Whether a collective of another kind replaces it, in a shorter step."""
    line: str | None = None
    """The code that constrains a value, ``h = jax.lax.with_sharding_constraint(h, P('data'))``."""
    place: str | None = None
    """The file and line where the code belongs."""

    def product(self, before: Cost) -> float:
        """Return step time times peak memory after the edit, as a share of that ``before``."""
        step = _share(self.seconds, before.step_seconds)
        return step * _share(self.peak_bytes, before.peak_bytes)

    def rank(self) -> tuple[bool, bool, float, int, int]:
        """A sort key for edits that remove a collective; the smallest is the best."""
        return self.seconds > 0, self.is_replaced, self.seconds, self.wire_bytes, self.peak_bytes

    @staticmethod
    def of(edit: Edit, trial: Trial, after: Cost, *, is_replaced: bool = False) -> Remedy:
        """Return ``edit`` with its effects relative to the cost of ``trial``."""
        target, sharding = edit
        before = trial.cost
        return Remedy(
            target,
            _text(sharding),
            after.step_seconds - before.step_seconds,
            after.peak_bytes - before.peak_bytes,
            _sent(after) - _sent(before),
            is_replaced,
            *trial.lines.code(target, sharding),
        )

    def record(self) -> dict[str, Any]:
        """Return it as plain data."""
        return dict(vars(self))


def _share(change: float, before: float) -> float:
    if before:
        return 1 + change / before
    return float("inf") if change > 0 else 1.0


@dataclass(frozen=True)
class Search:
    """A collective for which an edit is searched."""

    trial: Trial
    row: CollectiveCost
    sources: Sequence[Source]
    """The conflicting annotations."""
    tensors: Sequence[Found]
    """The tensors of the op that needs it."""
    arguments: Sequence[int]
    """The indices of the arguments that these come from, the nearest first."""


def remedy(search: Search) -> Remedy | None:
    """Return the edit that removes the collective and gives the shortest step. If all of these
    lengthen the step, an edit that replaces it by a collective of another kind in a shorter step is
    preferred.
    """
    return min(removals(search, MOST_TRIALS), key=Remedy.rank, default=None)


def removals(search: Search, most: int, *, keep_sharded: bool = False) -> Iterator[Remedy]:
    """Yield the edits that remove the collective, or replace it by one of another kind in a shorter
    step.

    At most ``most`` annotations of the sources, of the arguments and of the tensors are tried:
    without the axes of the collective, with these on one dim only, and left to propagation; with
    ``keep_sharded`` only those of :func:`keeping_shards`.
    """
    edits = edits_of(search)
    for edit in islice(keeping_shards(search.trial, edits) if keep_sharded else edits, most):
        after = search.trial.after(*edit)
        found = None if after is None else removal(search, edit, after)
        if found is not None:
            yield found


def removal(search: Search, edit: Edit, after: Cost) -> Remedy | None:
    """Return ``edit``, whose cost is ``after``, if it removes the collective, or replaces it by one
    of another kind in a shorter step.
    """
    before, row = search.trial.cost, search.row
    kinds = _alike(row.kind, before.compiler)
    if _runs(after, row, kinds) > _runs(before, row, kinds) - row.count:
        return None
    # For another op of the same line it would only be moved.
    if _bytes(after, row, kinds) >= _bytes(before, row, kinds):
        return None
    is_replaced = _runs(after, row) > _runs(before, row) - row.count
    found = Remedy.of(edit, search.trial, after, is_replaced=is_replaced)
    # What neither shortens the step nor sends less only moves it.
    is_worse = found.seconds >= 0 and (is_replaced or found.wire_bytes >= 0)
    return None if is_worse else found


def keeping_shards(trial: Trial, edits: Iterable[Edit]) -> Iterator[Edit]:
    """Yield those of ``edits`` that leave each argument with at least as many shards as before,
    because otherwise the caller would pay with memory.
    """
    ports = trial.result.arguments()
    least = {port.label or port.name: _num_shards(port.sharding) for port in ports}
    return (edit for edit in edits if _num_shards(edit[1]) >= least.get(edit[0], 1))


def _num_shards(sharding: TensorSharding | None) -> int:
    if sharding is None or sharding.mesh is None:
        return 1
    return math.prod(map(sharding.sharded_size, range(sharding.rank)))


def _alike(kind: str, compiler: str) -> Collection[str]:
    """The kinds that ``compiler`` runs as it runs ``kind``."""
    return _SUMS if compiler == "xla-cpu" and kind in _SUMS else (kind,)


def _runs(cost: Cost, row: CollectiveCost, kinds: Collection[str] = ()) -> int:
    """How many collectives, of some kinds or any, run along axes of ``row`` for its op at its
    location."""
    rows = _at(cost, row, kinds)
    return sum(each.count for each in rows if each.cause == row.cause)


def _bytes(cost: Cost, row: CollectiveCost, kinds: Collection[str]) -> int:
    """The bytes of collectives of ``kinds`` along axes of ``row`` for any op at its location."""
    return sum(each.total_bytes for each in _at(cost, row, kinds))


def _at(cost: Cost, row: CollectiveCost, kinds: Collection[str]) -> Iterator[CollectiveCost]:
    place = row.cause_location or row.location
    return (
        each
        for each in cost.collectives
        if (each.cause_location or each.location) == place
        and (place is not None or each.cause == row.cause)
        and (not kinds or each.kind in kinds)
        and any(axis.overlaps(own) for axis in each.axis_refs for own in row.axis_refs)
    )


def _sent(cost: Cost) -> int:
    return sum(row.total_wire_bytes for row in cost.collectives)


def edits_of(search: Search) -> Iterator[Edit]:
    """The edits to try, without duplicates; those of existing annotations come first."""
    seen: set[tuple[str, str]] = set()
    for target, sharding, shape in _targets(search):
        seen.add((target, str(sharding)))
        for edit in _variants(sharding, shape, search.row.axis_refs):
            if (target, str(edit)) not in seen:
                seen.add((target, str(edit)))
                yield target, edit


def _targets(
    search: Search,
) -> Iterator[tuple[str, TensorSharding, tuple[int | None, ...]]]:
    """The possible targets: name, sharding and shape."""
    result = search.trial.result
    inputs, outputs = result.arguments(), result.results()
    ports = {port.name: port for port in [*inputs, *outputs]}
    written = search.trial.session.annotations
    known = {source.name for source in search.sources}
    for source in search.sources:
        if source.kind not in _SETTABLE:
            continue
        port = ports.get(source.name)
        name = (port and port.label) or source.name
        sharding = written.get(name) or written.get(source.name)
        if sharding is None:
            sharding = TensorSharding.parse(source.sharding, result.module.meshes)
        shape = port.shape if port else None
        yield name, sharding, shape or (None,) * sharding.rank
    near = [inputs[index] for index in search.arguments if index < len(inputs)]
    new = [port for port in near if port.name not in known][:_MOST_ARGUMENTS]
    names = {tensor.name for tensor in search.tensors} - known
    for port in [*new, *(port for port in outputs if port.name in names)]:
        if port.shape is not None:
            sharding = port.sharding or _replicated(result.module.meshes, len(port.shape))
            if sharding is not None:
                yield port.label or port.name, sharding, port.shape
    for tensor in search.tensors:
        is_value = tensor.number is not None and tensor.name not in ports
        if is_value and tensor.sharding is not None:
            values = search.trial.lines.reach(tensor.name, search.row.cause_location)
            if values is not None:
                yield values, tensor.sharding, (None,) * tensor.sharding.rank


def _replicated(meshes: dict[str, Mesh], rank: int) -> TensorSharding | None:
    for name, mesh in meshes.items():
        if mesh.axes:
            return TensorSharding.fully_replicated(mesh, rank, mesh_name=name)
    return None


def _variants(
    sharding: TensorSharding, shape: tuple[int | None, ...], axes: Sequence[AxisRef]
) -> Iterator[TensorSharding]:
    """Variants of ``sharding``: with ``axes`` nowhere, on one dim only, and with all dims open."""
    mesh = sharding.mesh
    if mesh is None or not {axis.name for axis in axes} <= {*mesh.axis_names}:
        return

    def of(dims: Sequence[DimSharding]) -> TensorSharding | None:
        try:
            # Without its unreduced axes the tensor would have another value.
            return TensorSharding(
                mesh,
                dims,
                unreduced=sharding.unreduced,
                reduction_op=sharding.reduction_op,
                mesh_name=sharding.mesh_name,
            )
        except ShardcoreError:
            return None

    bare = [_without(dim, axes) for dim in sharding.dims]
    found = [of(bare)]
    for place, dim in enumerate(bare):
        added = _with(dim, axes)
        if added is not None and _divides(shape[place], added, mesh):
            found.append(of([*bare[:place], added, *bare[place + 1 :]]))
    found.append(of([DimSharding((), is_closed=False)] * sharding.rank))
    yield from (edit for edit in found if edit is not None)


def _without(dim: DimSharding, axes: Sequence[AxisRef]) -> DimSharding:
    left = [axis for axis in dim.axes if not any(axis.overlaps(other) for other in axes)]
    keeps_priority = bool(left) or dim.is_open
    return DimSharding(left, dim.is_closed, dim.priority if keeps_priority else None)


def _with(dim: DimSharding, axes: Sequence[AxisRef]) -> DimSharding | None:
    try:
        return DimSharding([*dim.axes, *axes], dim.is_closed, dim.priority)
    except ShardcoreError:
        return None


def _divides(size: int | None, dim: DimSharding, mesh: Mesh) -> bool:
    parts = 1
    for axis in dim.axes:
        parts *= axis.size_in(mesh)
    return size is None or size % parts == 0


def _text(sharding: TensorSharding) -> str:
    """``sharding`` as :meth:`shardcore.Session.set` takes it."""
    return str(sharding).removeprefix("#sdy.sharding")
