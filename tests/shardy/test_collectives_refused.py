"""Where Shardy plans collectives that its own verifier refuses, `with_collectives` says so too.

Between shardings along parts of an axis that do not nest, Shardy's `sdy-reshard-to-collectives`
makes slices whose axes overlap. Costs are counted on that program all the same.
"""

from __future__ import annotations

import pytest
from shardcore import Module, ShardcoreError

from tests.shardy import reference
from tests.shardy.generator.programs import make

PIPELINE = (
    "builtin.module(sdy-propagation-pipeline,"
    "sdy-export-pipeline{enable-insert-explicit-collectives=true})"
)


@pytest.mark.parametrize(("seed", "sends"), [(152, True), (173, False)])
def test_both_refuse_parts_of_an_axis_that_overlap(seed: int, sends: bool) -> None:
    text = make(seed)
    with pytest.raises(reference.RejectedError) as theirs:
        reference.run_isolated(text, PIPELINE)
    result = Module.parse(text).propagate()
    with pytest.raises(ShardcoreError) as ours:
        _ = result.with_collectives
    assert ours.value.code == "axis-overlap"
    assert any(ours.value.message in said for said in theirs.value.diagnostics)
    cost = result.cost("h100")
    assert cost.peak_bytes > 0
    assert bool(cost.collectives) is sends
    assert str(Module.parse(str(result.module))) == str(result.module)
