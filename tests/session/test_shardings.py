"""Shardings as users write them."""

from __future__ import annotations

import gc
import sys
import threading

import pytest
from shardcore import Mesh, VerificationError
from shardcore.session.shardings import read

OVER = ("mesh", Mesh({"a": 2, "b": 2}))


def test_specs_are_read_in_threads_while_garbage_is_collected() -> None:
    """Python's own parser fails then, where callbacks of the collector let other threads run."""
    wrong: list[object] = []

    def read_many() -> None:
        for _ in range(1500):
            try:
                read("P(('a', 'b'), None, UNCONSTRAINED)", 3, OVER, {})
            except BaseException as error:
                wrong.append(error)

    def collected(*_: object) -> None:
        sum(range(50))

    interval, thresholds = sys.getswitchinterval(), gc.get_threshold()
    sys.setswitchinterval(1e-6)
    gc.callbacks.append(collected)
    gc.set_threshold(3, 2, 2)
    try:
        threads = [threading.Thread(target=read_many) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        gc.set_threshold(*thresholds)
        gc.callbacks.remove(collected)
        sys.setswitchinterval(interval)
    assert not wrong


def test_a_mistake_in_a_spec_is_shown_where_it_is() -> None:
    with pytest.raises(VerificationError) as caught:
        read("P('a', b)", 2, OVER, {})
    problem = caught.value.diagnostics[0]
    assert "is no PartitionSpec: expected an axis in quotes" in problem.message
    assert problem.place is not None
    assert problem.place.column == 8
