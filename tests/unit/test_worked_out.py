"""Properties that are worked out once, without a lock."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from pathlib import Path

import shardcore
from shardcore.cached_property import cached_property


@dataclass(frozen=True)
class Slow:
    waits: threading.Event | None
    calls: list[int]

    @cached_property
    def figure(self) -> list[int]:
        """What takes long."""
        self.calls.append(1)
        if self.waits is not None:
            assert self.waits.wait(60)
        return [len(self.calls)]


def test_it_is_worked_out_once() -> None:
    slow = Slow(None, [])
    assert slow.figure is slow.figure
    assert slow.calls == [1]
    assert Slow.figure.__doc__ == "What takes long."


def test_nobody_waits_for_the_property_of_another_object() -> None:
    go = threading.Event()
    first = Slow(go, [])
    thread = threading.Thread(target=lambda: first.figure, daemon=True)
    thread.start()
    found: list[list[int]] = []
    other = threading.Thread(target=lambda: found.append(Slow(None, []).figure), daemon=True)
    other.start()
    other.join(30)
    go.set()
    thread.join(30)
    assert found == [[1]]
    assert first.figure == [1]


def test_what_costs_are_read_from_has_no_locks() -> None:
    root = Path(shardcore.__file__).parent
    for folder in ("costs", "session", "why", "expect", "jax", "partition"):
        for path in (root / folder).rglob("*.py"):
            for line in path.read_text("utf-8").splitlines():
                assert not ("functools" in line and "cached_property" in line), path
