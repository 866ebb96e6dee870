"""What kind of parallelism a layout is: data, FSDP, tensor, sequence, expert, spatial, or mixed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING

from shardcore.plan.classes import NO_CLASS, Work, class_bytes
from shardcore.plan.layouts import Dims, Layout
from shardcore.plan.roles import Role, bytes_of

if TYPE_CHECKING:
    from shardcore._core import Mesh
    from shardcore.plan.trials import Trial

KINDS = (
    "replicated",
    "data",
    "fsdp",
    "tensor",
    "sequence",
    "expert",
    "spatial",
    "mixed",
)
"""The kinds of plans."""

_LEAST_SHARE = 0.02
"""A class that fewer of the bytes of arguments and results have is not worth an axis."""
_AS_MANY = 0.95
"""The part of the bytes that most values have of one class, from which on others may be the batch:
in a cache all dims have as many, and weights have those of its heads too."""
_SMALL = 500
"""Roles of less than this part of the bytes of all follow from others by propagation."""
MOST_CLASSES = 10
"""The classes that are considered."""


class Meanings:
    """What the classes of a program's dims are to it."""

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
        self.batch = _batch(inside, work, roles)
        """The class of the batch; ``NO_CLASS`` where there is none."""
        weights = [role for role in roles if self.batch not in role.classes]
        self.of_weights = {number for role in weights for number in role.classes} - {NO_CLASS}
        """The classes of dims of arguments without a batch."""
        share = {
            number: max(inside.get(number, 0.0) / every, held.get(number, 0.0) / total)
            for number in {*inside, *held}
        }
        ported = {number for role in roles for number in role.classes}
        self.is_inside = self.batch not in ported
        """Whether only values inside the program have the batch, so that they are constrained."""
        ported.add(self.batch)
        ranked = sorted((n for n in share if n in ported), key=lambda n: (-share[n], n))
        self.considered = [n for n in ranked if share[n] >= _LEAST_SHARE][:MOST_CLASSES]
        """The classes worth an axis: the batch, and those that some argument has; the most frequent
        first."""
        self.held = dict(held)
        """The bytes of the arguments that have each class."""
        self.experts = _batches_of_weights(work, self.batch)
        """The classes of dims of weights that count experts."""
        self._spatial = _spatial(work, self.batch) - self.of_weights
        self._widths = _widths(weights)
        """Classes of which each argument without a batch has one: the widths of residual
        streams."""

    def stored(self) -> tuple[int, ...]:
        """Return the classes of weights that are considered, in the order in which fully sharded
        data parallelism cuts them: each weight along the width of the residual stream."""
        inner = self.inner()
        return (*(n for n in self.of_most_weights() if n not in inner), *inner)

    def inner(self) -> tuple[int, ...]:
        """Return the classes of weights, other than the width of the residual stream, that are
        considered: hidden dims, heads, the vocabulary. Tensor parallelism cuts weights along
        them."""
        return tuple(n for n in self.of_most_weights() if n not in self._widths)

    def of_most_weights(self) -> list[int]:
        """Return the classes of weights that are considered, those that most bytes have first."""
        weights = [number for number in self.considered if number in self.of_weights]
        return sorted(weights, key=lambda number: -self.held.get(number, 0.0))

    def exchanges(self, classes: Sequence[int]) -> bool:
        """Return whether an axis that shards ``classes`` has both the batch and experts."""
        return self.batch in classes and not self.experts.isdisjoint(classes)

    def kind(self, layout: Layout) -> str:
        """Return the kind of ``layout``, one of :data:`KINDS`."""
        return self._joined(layout.axes)

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
            for axes, number in zip(dims or (), role.classes, strict=False):
                for axis in axes:
                    found[axis].add(number)
                    if role.what == "sent" and number in self.experts:
                        exchanged.add(axis)
        # Along these axes tokens go to the experts, whatever else they shard.
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
        if self.batch in classes:
            return "fsdp" if set(classes) & self.of_weights else "data"
        if self.experts & set(classes):
            return "expert"
        if set(classes) & self.of_weights:
            return "tensor"
        return "spatial" if set(classes) & self._spatial else "sequence"


def _batch(inside: Mapping[int, float], work: Mapping[Work, int], roles: Sequence[Role]) -> int:
    """The class that most bytes of values have, halved if some value has it twice: of several that
    about as many have, one of tokens or labels; of equals one that arguments have, and where it is
    major. Arguments do not have it where their batch is cut into the turns of a loop.
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
            having[n],
            n in place,
            -place.get(n, 0),
            -n,
        ),
    )


def _widths(weights: Sequence[Role]) -> set[int]:
    """Classes that all of ``weights`` of two dims or more have one of, each time the one that most
    bytes of those have that have none yet, of equals the one that most roles have. Biases have the
    class of what they are added to, hidden dims too, and say nothing."""
    of_roles = [(set(role.classes) - {NO_CLASS}, role.bytes) for role in weights]
    left = [(numbers, num_bytes) for numbers, num_bytes in of_roles if len(numbers) > 1]
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
            # Some of the roles that had it have another one of those found.
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
    """The classes that are batch dims of products in which one operand has no batch."""
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


def _spatial(work: Mapping[Work, int], batch: int) -> set[int]:
    """The classes of the dims of images that convolutions slide over."""
    return {
        number
        for op in work
        if op.name == "stablehlo.convolution"
        for number in op.operands[0].classes
        if number not in (batch, NO_CLASS)
    }


def large(roles: Sequence[Role], meanings: Meanings) -> list[bool]:
    """Return whether each role is more than a small part of all, has a batch, or is the largest
    that has some class."""
    total = bytes_of(roles)
    most: dict[int, int] = {}
    for role in roles:
        if role.what == "next":
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
