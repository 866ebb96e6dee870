"""The kind of parallelism of a layout: data, FSDP, ZeRO, tensor, sequence, expert or spatial."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING

from shardcore.plan.classes import NO_CLASS, Tensor, Work, class_bytes
from shardcore.plan.layouts import Dims, Layout
from shardcore.plan.roles import Role, bytes_of, is_within

if TYPE_CHECKING:
    from shardcore._core import Mesh
    from shardcore.plan.trials import Trial

KINDS = (
    "replicated",
    "data",
    "fsdp",
    "zero",
    "tensor",
    "sequence",
    "expert",
    "spatial",
    "mixed",
)
"""The kinds of plans."""

_STATES = -2
"""Stands for the classes that an axis shards in optimizer states alone."""
_LEAST_SHARE = 0.02
"""A class that occurs in a smaller share of argument and result bytes is not worth an axis."""
_AS_MANY = 0.95
"""Classes with at least this share of the most frequent class's bytes may be the batch too: in a KV
cache all dims have the same bytes, and weights contain its heads as well."""
_SMALL = 500
"""Roles with less than one part in this number of all bytes are left to propagation."""
MOST_CLASSES = 10
"""How many classes are considered at most."""


class Meanings:
    """The meanings of the classes of a program: batch, weight dims, experts."""

    def __init__(self, work: Mapping[Work, int], roles: Sequence[Role]) -> None:
        inside: dict[int, float] = defaultdict(float)
        for number, num_bytes in class_bytes(work):
            inside[number] += num_bytes
        held: dict[int, float] = defaultdict(float)
        for role in roles:
            for number in set(role.classes) - {NO_CLASS}:
                held[number] += role.bytes
        every = max(sum(sum(t.bytes for t in op.results) * n for op, n in work.items()), 1.0)
        total = max(sum(role.bytes for role in roles), 1)
        self._whole, self._stacks = _needed_whole(work), _stacks(work)
        """Classes of dims that some op needs whole, and those along which loops stack what each of
        their iterations takes."""
        self.batch = _batch(inside, work, roles, self._whole)
        """The class of the batch; ``NO_CLASS`` if there is none."""
        weights = [role for role in roles if self.batch not in role.classes]
        self.of_weights = {number for role in weights for number in role.classes} - {NO_CLASS}
        """The classes of dims of arguments without a batch (weights)."""
        share = {
            number: max(inside.get(number, 0.0) / every, held.get(number, 0.0) / total)
            for number in {*inside, *held}
        }
        ported = {number for role in roles for number in role.classes}
        self.is_inside = self.batch not in ported
        """Whether the batch occurs only inside the program, so that values have to be
        constrained."""
        ported.add(self.batch)
        ranked = sorted((n for n in share if n in ported), key=lambda n: (-share[n], n))
        self.considered = [n for n in ranked if share[n] >= _LEAST_SHARE][:MOST_CLASSES]
        """The classes worth an axis: the batch, and those that arguments have, the most frequent
        first."""
        self.held = dict(held)
        """For each class the bytes of the arguments that have it."""
        self.experts = _batches_of_weights(work, self.batch)
        """The classes of weight dims that count experts."""
        self.of_products = _multiplied(work, self.batch)
        """The classes of dims of what products multiply with activations."""
        self._spatial = _spatial(work, self.batch) - self.of_weights
        self.widths = _widths(weights, self._stacks)
        """Classes that together occur once in each argument without a batch: the widths of residual
        streams."""

    def stored(self) -> tuple[int, ...]:
        """Return the considered classes of weights in the order in which FSDP shards them: first
        the width of the residual stream."""
        inner = self.inner()
        return (*(n for n in self.of_most_weights() if n not in inner), *inner)

    def inner(self) -> tuple[int, ...]:
        """Return the considered classes of weights other than the width of the residual stream:
        hidden dims, heads, the vocabulary. Tensor parallelism shards weights along them."""
        return tuple(n for n in self.of_most_weights() if n not in self.widths)

    def of_most_weights(self) -> list[int]:
        """Return the considered classes of weights, by bytes, the largest first; after these, those
        that some op needs whole, as attention the dims of a head, and those of stacks."""
        weights = [number for number in self.considered if number in self.of_weights]
        return sorted(
            weights,
            key=lambda n: (n in self._stacks, n in self._whole, -self.held.get(n, 0.0)),
        )

    def exchanges(self, classes: Sequence[int]) -> bool:
        """Return whether an axis that shards ``classes`` shards both the batch and experts."""
        return self.batch in classes and not self.experts.isdisjoint(classes)

    def kind(self, layout: Layout) -> str:
        """Return the kind of ``layout``, one of :data:`KINDS`."""
        return self._joined(layout.axes)

    def kinds(self, layout: Layout) -> frozenset[str]:
        """Return the kinds that the axes of ``layout`` are for."""
        return frozenset(self._of_axis(classes) for classes in layout.axes if classes)

    def kind_of(self, trial: Trial, roles: Sequence[Role]) -> str:
        """Return the kind of the annotations of ``trial``."""
        return self._joined(self._classes_of_axes(trial.mesh, trial.shardings, roles).values())

    def kinds_of_axes(
        self, mesh: Mesh, shardings: Sequence[Dims | None], roles: Sequence[Role]
    ) -> dict[str, str | None]:
        """Return the kind that annotations of ``roles`` use each axis for; ``None`` for none."""
        found = self._classes_of_axes(mesh, shardings, roles)
        return {axis: self._of_axis(own) if own else None for axis, own in found.items()}

    def _classes_of_axes(
        self, mesh: Mesh, shardings: Sequence[Dims | None], roles: Sequence[Role]
    ) -> dict[str, tuple[int, ...]]:
        found: dict[str, set[int]] = {axis.name: set() for axis in mesh.axes}
        exchanged: set[str] = set()
        for role, dims in zip(roles, shardings, strict=True):
            is_state = is_within(role, roles)
            for axes, number in zip(dims or (), role.classes, strict=False):
                for axis in axes:
                    found[axis].add(_STATES if is_state else number)
                    if role.what == "sent" and number in self.experts:
                        exchanged.add(axis)
        # Along these axes tokens are exchanged with experts, whatever else they shard.
        experts = tuple(self.experts)
        return {
            axis: experts if axis in exchanged else tuple(numbers)
            for axis, numbers in found.items()
        }

    def _joined(self, axes: Iterable[tuple[int, ...]]) -> str:
        found = {self._of_axis(classes) for classes in axes if classes}
        if not found:
            return "replicated"
        return found.pop() if len(found) == 1 else "mixed"

    def _of_axis(self, classes: tuple[int, ...]) -> str:
        if self.batch in classes and set(classes) & self.of_weights:
            return "fsdp"
        if self.batch in classes:
            return "zero" if _STATES in classes else "data"
        if self.experts & set(classes):
            return "expert"
        if set(classes) & self.of_weights:
            return "tensor"
        if _STATES in classes:
            return "zero"
        return "spatial" if set(classes) & self._spatial else "sequence"


def _needed_whole(work: Mapping[Work, int]) -> set[int]:
    """The classes of dims that some op needs whole."""
    return {op.classes[factor] for op in work for factor in op.replicated} - {NO_CLASS}


def _stacks(work: Mapping[Work, int]) -> set[int]:
    """The classes of dims of which one element is taken, or set, at an index."""
    return {
        number
        for op in work
        if op.name in ("stablehlo.dynamic_slice", "stablehlo.dynamic_update_slice")
        for number, size, part in zip(
            op.operands[0].classes, op.operands[0].sizes, _part(op).sizes, strict=True
        )
        if part == 1 < size
    } - {NO_CLASS}


def _part(op: Work) -> Tensor:
    """What an op that slices takes of its first operand, or sets there."""
    return op.results[0] if op.name == "stablehlo.dynamic_slice" else op.operands[1]


def _batch(
    inside: Mapping[int, float], work: Mapping[Work, int], roles: Sequence[Role], whole: set[int]
) -> int:
    """The class with the most bytes of values, where a class that occurs twice in a value counts
    half. Among classes with about as many, one of integer arguments (tokens, labels) wins, of these
    one that no op needs ``whole``, as attention the tokens of a sequence; among equals, one that
    arguments have, and that is major there. Arguments do not have the batch if it is split into the
    iterations of a loop.
    """
    twice = {
        number
        for op in work
        for tensor in (*op.operands, *op.results)
        for number in tensor.classes
        if number != NO_CLASS and tensor.classes.count(number) > 1
    }
    place: dict[int, int] = {}
    for role in roles:
        for dim, number in enumerate(role.classes):
            if number != NO_CLASS:
                place[number] = min(place.get(number, dim), dim)
    if not any(number in inside for number in place):
        return NO_CLASS
    tokens = {number for role in roles if role.is_integer for number in role.classes}
    having = {n: round(inside[n] * (0.5 if n in twice else 1)) for n in inside}
    least = max(having.values()) * _AS_MANY
    return max(
        (n for n in having if having[n] >= least),
        key=lambda n: (
            n in tokens,
            n in tokens and n not in whole,
            having[n],
            n in place,
            -place.get(n, 0),
            -n,
        ),
    )


def _widths(weights: Sequence[Role], stacks: set[int]) -> set[int]:
    """Classes that together occur once in each of ``weights`` of rank two or more, besides the dims
    of ``stacks``, found greedily: each time the class with the most bytes of weights not covered
    yet; of equals the one with most roles. Biases are left out: they have the classes of the dims
    that they are added to, which may be hidden dims, and are a part of those of a weight."""
    of_roles = [(frozenset(role.classes) - {NO_CLASS} - stacks, role.bytes) for role in weights]
    every = {numbers for numbers, _ in of_roles}
    parts = {numbers for numbers in every if any(numbers < other for other in every)}
    left = [
        (numbers, num_bytes)
        for numbers, num_bytes in of_roles
        if len(numbers) > 1 and numbers not in parts
    ]
    having: dict[int, set[int]] = defaultdict(set)
    held: dict[int, int] = defaultdict(int)
    for place, (numbers, num_bytes) in enumerate(left):
        for number in numbers:
            having[number].add(place)
            held[number] += num_bytes
    found: set[int] = set()
    ranked = [(-held[number], -len(having[number]), number) for number in having]
    heapify(ranked)
    while ranked:
        was = heappop(ranked)
        number = was[2]
        now = (-held[number], -len(having[number]), number)
        if was != now:
            # Some of the roles that had it also contain another one of those found.
            if having[number]:
                heappush(ranked, now)
            continue
        found.add(number)
        for place in list(having[number]):
            numbers, num_bytes = left[place]
            for other in numbers:
                having[other].discard(place)
                held[other] -= num_bytes
    return found


def _batches_of_weights(work: Mapping[Work, int], batch: int) -> set[int]:
    """The classes of batch dims of products in which one operand lacks the batch."""
    found: set[int] = set()
    for op in work:
        if op.name != "stablehlo.dot_general" or len(op.operands) != 2:
            continue
        one, other = op.operands
        if (batch in one.classes) == (batch in other.classes):
            continue
        both = set(one.factors) & set(other.factors) - op.reduction - {-1}
        found |= {op.classes[factor] for factor in both}
    return found - {NO_CLASS}


def _multiplied(work: Mapping[Work, int], batch: int) -> set[int]:
    """The classes of operands of products that lack the batch, where the other operand has it."""
    products = (op.operands for op in work if op.name == "stablehlo.dot_general")
    return {
        number
        for one, other in products
        if (batch in one.classes) != (batch in other.classes)
        for number in (other if batch in one.classes else one).classes
    } - {NO_CLASS}


def _spatial(work: Mapping[Work, int], batch: int) -> set[int]:
    """The classes of spatial dims of convolutions."""
    return {
        number
        for op in work
        if op.name == "stablehlo.convolution"
        for number in op.operands[0].classes
        if number not in (batch, NO_CLASS)
    }


def large(roles: Sequence[Role], meanings: Meanings) -> list[bool]:
    """Return for each role whether it is large: more than a small part of all bytes, or with a
    batch, or the largest with some class."""
    total = bytes_of(roles)
    most: dict[int, int] = {}
    for role in roles:
        if role.what in ("next", "states"):
            continue
        for number in role.classes:
            most[number] = max(most.get(number, 0), role.bytes)
    return [
        role.is_value
        or role.is_integer
        or meanings.batch in role.classes
        or role.bytes * _SMALL >= total
        or any(role.bytes == most.get(n) for n in role.classes if n in meanings.considered)
        for role in roles
    ]
