"""Under policy ``xla`` results without annotation are sharded, and cost, as under XLA."""

from __future__ import annotations

import itertools
from functools import cache

import pytest
import shardcore

from tests.shardy.xla.compiled import compiled
from tests.shardy.xla.model_rows import as_all_reduce, sent_by_kind
from tests.shardy.xla.plans import plans
from tests.shardy.xla.sent import sent_bytes


@cache
def decoders() -> list[str]:
    return list(itertools.islice(plans("decoder", 13), 13))


@pytest.mark.parametrize("number", [2, 13])
def test_gradients_are_sharded_as_under_xla(number: int) -> None:
    """Their axes conflict, and the order in which XLA has the ops decides."""
    text = decoders()[number - 1]
    result = shardcore.Module.parse(text).propagate(legalize_chlo=True)
    cost, local = result.cost(), result.partition("xla")
    assert cost.output_bytes == compiled(text).output_bytes
    assert {**sent_by_kind(cost)} == pytest.approx({**as_all_reduce(sent_bytes(text))}, rel=0.05)
    both = (result, local.source)
    shardings = [[str(port.sharding) for port in ports.results()] for ports in both]
    assert shardings[0] != shardings[1]
    assert [str(port.sharding) for port in local.results] == shardings[1]
