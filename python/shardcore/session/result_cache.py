"""Results of earlier annotations, so that repeating them needs no new evaluation."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from shardcore._core import TensorSharding, registry_version
from shardcore.rules.costs import registered_cost_rules
from shardcore.rules.shards import registered_shard_rules

if TYPE_CHECKING:
    from shardcore.costs import Cost
    from shardcore.session.evaluate import Evaluation
    from shardcore.session.targets import Target

    Edits = Mapping[Target, TensorSharding | None]

_MOST_EDITS = 1 << 17
"""How many edits all remembered rows have together at most."""

_MOST_OPS = 1 << 18
"""How many ops all programs with remembered costs have together at most. A cost keeps its
per-device program, about 600 bytes per op."""

_LEAST_OPS = 1 << 11
"""A smaller program counts as this many ops."""

V = TypeVar("V")


class Remembered:
    """The most recent rows and costs of a program, by annotations and options.

    Everything remembered is for one chip and one set of options: another chip, other options, or a
    change of the registered rules clears it.
    """

    def __init__(self, num_ops: int) -> None:
        self._num_ops = num_ops
        self._of: _Kept | None = None

    def cost(
        self, edits: Edits, hardware: object, options: Mapping[str, Any], make: Callable[[], Cost]
    ) -> Cost:
        """Return the cost with ``edits``; it is computed by ``make`` if it is not remembered."""
        kept, weight = self._kept(hardware, options), max(self._num_ops, _LEAST_OPS)
        return make() if kept is None else kept.costs.get(_Key(edits), weight, make)

    def row(
        self,
        edits: Edits,
        hardware: object,
        options: Mapping[str, Any],
        make: Callable[[], Evaluation],
    ) -> Evaluation:
        """Return the row with ``edits``; it is computed by ``make`` if it is not remembered."""
        kept, weight = self._kept(hardware, options), 1 + len(edits)
        return make() if kept is None else kept.rows.get(_Key(edits), weight, make)

    def _kept(self, hardware: object, options: Mapping[str, Any]) -> _Kept | None:
        """What is remembered for this chip and these options; ``None`` if nothing may be
        remembered: a chip given as an object or a file can change."""
        if not isinstance(hardware, str) or "hardware_file" in options:
            return None
        given = _frozen(options)
        if given is None:
            return None
        rules = registry_version(), registered_shard_rules(), registered_cost_rules()
        key = hardware, given, rules
        kept = self._of
        if kept is None or kept.key != key:
            kept = self._of = _Kept(key)
        return kept


class _Kept:
    """What is remembered for one chip and one set of options."""

    def __init__(self, key: Hashable) -> None:
        self.key = key
        self.rows: _Recent[Evaluation] = _Recent(_MOST_EDITS)
        self.costs: _Recent[Cost] = _Recent(_MOST_OPS)


class _Key:
    """Edits as a dictionary key; the hash is computed once."""

    def __init__(self, edits: Edits) -> None:
        self._edits = tuple(edits.items())
        self._hash = hash(self._edits)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Key) and self._edits == other._edits

    def __hash__(self) -> int:
        return self._hash


class _Recent(Generic[V]):
    """A cache of the most recently used values, with at most ``most`` weight in total."""

    def __init__(self, most: int) -> None:
        self._most, self._weight = most, 0
        self._values: dict[Hashable, tuple[V, int]] = {}
        self._lock = threading.Lock()

    def get(self, key: Hashable, weight: int, make: Callable[[], V]) -> V:
        """Return the value of ``key``; it is computed by ``make`` if it is missing."""
        found = self._use(key)
        if found is None:
            found = make(), weight
            self._use(key, found)
        return found[0]

    def _use(self, key: Hashable, new: tuple[V, int] | None = None) -> tuple[V, int] | None:
        """Return the value of ``key``, or ``new`` if it is missing, and mark it as used last."""
        dropped = []
        # Does not block: after a fork the lock may stay taken by a thread of the parent forever.
        if not self._lock.acquire(blocking=False):
            return new
        try:
            found = self._values.pop(key, None)
            if found is None and new is not None:
                found, self._weight = new, self._weight + new[1]
            if found is not None:
                self._values[key] = found
            while self._weight > self._most and len(self._values) > 1:
                dropped.append(self._values.pop(next(iter(self._values))))
                self._weight -= dropped[-1][1]
        finally:
            self._lock.release()
        return found


def _frozen(value: object) -> Hashable | None:
    """An immutable copy of ``value`` that includes its types; ``None`` if it is mutable."""
    if isinstance(value, Mapping):
        parts = [(name, _frozen(each)) for name, each in value.items()]
        return None if any(part is None for _, part in parts) else frozenset(parts)
    if type(value) in (list, tuple):
        items = [_frozen(each) for each in value]  # type: ignore[attr-defined]
        return None if any(item is None for item in items) else tuple(items)
    if value is None or type(value) in (str, int, float, bool):
        return type(value), value
    return None
