"""Where Shardy plans collectives that its own verifier refuses, `with_collectives` says so too.

Between shardings along parts of an axis that do not nest, Shardy's `sdy-reshard-to-collectives`
makes slices whose axes overlap. Costs are counted on that program all the same, and programs of one
device are made from the reshards themselves, under every policy.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from shardcore import Module, ShardcoreError
from shardcore.partition.policies import POLICIES
from shardcore.partition.proof import prove

from tests.shardy import reference
from tests.shardy.worker import Worker

PIPELINE = (
    "builtin.module(sdy-propagation-pipeline,"
    "sdy-export-pipeline{enable-insert-explicit-collectives=true})"
)
PARTS = [
    ('"x":(1)4', '"x":(1)6'),
    ('"x":(1)6', '"x":(1)4'),
    ('"x":(2)3', '"x":(1)4'),
    ('"x":(1)4', '"x":(2)3'),
    ('"x":(3)2', '"x":(2)3'),
    ('"x":(2)3', '"x":(3)2'),
]


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    started = Worker()
    yield started
    started.close()


@pytest.mark.parametrize("sends", [True, False])
@pytest.mark.parametrize(("before", "after"), PARTS)
def test_both_refuse_parts_of_an_axis_that_overlap(
    before: str, after: str, sends: bool, worker: Worker
) -> None:
    """Where the result of the call is used; where it is not, nothing is sent."""
    text = f"""sdy.mesh @mesh = <["x"=12]>
func.func private @f(%a: tensor<24xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{{before}}}]>}})
    -> tensor<24xf32> {{
  %0 = sdy.sharding_constraint %a <@mesh, [{{{after}}}]> : tensor<24xf32>
  %1 = stablehlo.negate %0 : tensor<24xf32>
  return %1 : tensor<24xf32>
}}
func.func @main(%a: tensor<24xf32>) -> tensor<24xf32> {{
  %0 = call @f(%a) : (tensor<24xf32>) -> tensor<24xf32>
  return {"%0" if sends else "%a"} : tensor<24xf32>
}}"""
    with pytest.raises(reference.RejectedError) as theirs:
        worker.run(text, PIPELINE)
    result = Module.parse(text).propagate()
    with pytest.raises(ShardcoreError) as ours:
        _ = result.with_collectives
    assert ours.value.code == "axis-overlap"
    assert any(ours.value.message in said for said in theirs.value.diagnostics)
    # XLA removes a constraint that nothing uses before it shards arguments without annotation; we
    # do not, so arguments are counted as in the result.
    cost = result.cost("h100", keep_ports=True)
    assert cost.peak_bytes > 0
    assert bool(cost.collectives) is sends
    assert str(Module.parse(str(result.module))) == str(result.module)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(("before", "after"), PARTS)
def test_devices_reshard_between_parts_that_overlap(before: str, after: str, policy: str) -> None:
    """To the same dim, to another one, beside another axis, and to padded shards."""
    places = [
        (f"[{{{before}}}, {{}}]", f"[{{{after}}}, {{}}]"),
        (f"[{{{before}}}, {{}}]", f"[{{}}, {{{after}}}]"),
        (f'[{{"y", {before}}}, {{}}]', f'[{{{after}}}, {{"y"}}]'),
    ]
    for rows in (24, 7):
        type_ = f"tensor<{rows}x24xf32>"
        for own, other in places:
            text = f"""sdy.mesh @mesh = <["x"=12, "y"=2]>
func.func @main(%a: {type_}) -> {type_} {{
  %0 = sdy.sharding_constraint %a <@mesh, {own}> : {type_}
  %1 = stablehlo.negate %0 : {type_}
  %2 = sdy.sharding_constraint %1 <@mesh, {other}> : {type_}
  %3 = stablehlo.negate %2 : {type_}
  return %3 : {type_}
}}"""
            proof = prove(Module.parse(text).propagate().partition(policy))
            assert proof.is_proven, (own, other, str(proof))
