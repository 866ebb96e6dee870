"""Under the policy `least` the plan that sends the fewest bytes is taken."""

from __future__ import annotations

import pytest
import shardcore
from shardcore.partition.partitioned import lowered

from tests.shardy.programs import registry


def propagated(name: str) -> shardcore.Result:
    return shardcore.Module.parse(registry.text(name)).propagate(legalize_chlo=True)


@pytest.mark.parametrize("name", ["gradient-of-loops", "mapped-batches"])
def test_calls_have_shardings_of_their_own_once_they_are_inlined(name: str) -> None:
    result = propagated(name)
    inlined = result._inlined()
    assert inlined is not None
    plans = [
        lowered(result, source, "least", None, keep_results=True)
        for source in (result.module, inlined)
    ]
    partitioned = result.partition("least")
    assert partitioned.sent_bytes == plans[1].sent_bytes < plans[0].sent_bytes
    for mine, theirs in zip(partitioned.results, result.results(), strict=True):
        assert mine.local_shape == theirs.local_shape
    assert shardcore.prove(partitioned).is_proven


def test_no_plan_is_made_for_calls_that_nothing_is_resharded_for() -> None:
    assert propagated("gpt-full")._inlined() is None


def test_values_that_lie_differently_do_not_move_back_and_forth() -> None:
    """XLA's partitioner sends 841,236 bytes."""
    assert propagated("gpt-conflict").partition("least").sent_bytes < 700_000
