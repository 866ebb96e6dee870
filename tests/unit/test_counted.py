"""The per-device program that costs and diagnostics are counted from is made once."""

from __future__ import annotations

import gc

import pytest
import shardcore
import shardcore.partition.partitioned
from shardcore._core import collective_passes
from shardcore.partition import counted

from tests.shardy.xla.models import catalog

PROGRAM = """
sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func @main(%a: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>})
    -> tensor<8x16xf32> {
  %0 = stablehlo.add %a, %a : tensor<8x16xf32>
  return %0 : tensor<8x16xf32>
}"""


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    made: list[str] = []
    partition = counted.partition

    def counting(result: shardcore.Result, policy: str, **options: bool) -> shardcore.Partitioned:
        made.append(policy)
        return partition(result, policy, **options)

    monkeypatch.setattr(counted, "partition", counting)
    return made


def test_costs_and_diagnostics_share_one_program(calls: list[str]) -> None:
    result = shardcore.Module.parse(PROGRAM).propagate()
    first = result.cost("tpu-v5p")
    assert result.cost("tpu-v5p").record() == first.record()
    result.diagnostics()
    result.diagnostics("tpu-v5p")
    assert calls == ["xla"]
    result.cost("tpu-v5p", policy="least")
    assert calls == ["xla", "least"]


def test_other_rules_make_another_program(calls: list[str]) -> None:
    result = shardcore.Module.parse(PROGRAM).propagate()
    costs = [result.cost("tpu-v5p")]
    shardcore.rule("my.op", "i -> i")
    try:
        costs.append(result.cost("tpu-v5p"))
        shardcore.partition_rule("my_target", "i -> i")
        costs.append(result.cost("tpu-v5p"))
    finally:
        shardcore.rules.unregister("my.op")
        shardcore.rules.shards.unregister_partition_rule("my_target")
    assert len(calls) == 3
    assert len({str(cost.record()) for cost in costs}) == 1


def test_a_program_is_freed_with_the_last_cost(calls: list[str]) -> None:
    result = shardcore.Module.parse(PROGRAM).propagate()
    gc.collect()  # costs of other tests that only the collector frees
    before = set(counted._alive)
    cost = result.cost("tpu-v5p")
    (made,) = set(counted._alive) - before
    del cost
    gc.collect()
    assert made not in counted._alive
    result.diagnostics()
    assert calls == ["xla", "xla"]


TWO_SUMS = """
sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func @main(%a: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"y"}]>},
    %b: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {}]>},
    %c: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {}]>})
    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
    : (tensor<8x16xf32>, tensor<16x8xf32>) -> tensor<8x8xf32>
  %1 = stablehlo.dot_general %a, %c, contracting_dims = [1] x [0]
    : (tensor<8x16xf32>, tensor<16x8xf32>) -> tensor<8x8xf32>
  %2 = stablehlo.add %0, %1 : tensor<8x8xf32>
  return %2 : tensor<8x8xf32>
}"""


@pytest.mark.parametrize("policy", ["least", "shardy", "xla"])
def test_figures_are_those_after_the_passes(policy: str) -> None:
    # The plans of `least` are compared by what they send, before the passes.
    result = shardcore.Module.parse(TWO_SUMS).propagate()
    plain = counted.counted(result, policy)
    after = counted.counted(result, policy, passes="all-reduce-reassociate")
    assert [row.kind for row in plain.collectives] == ["all_reduce"] * 2
    assert [row.kind for row in after.collectives] == ["all_reduce"]
    assert (
        after.sent_bytes
        == plain.sent_bytes // 2
        == sum(row.wire_bytes for row in after.collectives)
    )


@pytest.mark.parametrize("policy", shardcore.partition.policies.POLICIES)
def test_passes_run_before_a_program_is_handed_out_or_after(policy: str) -> None:
    passes, num_changed = collective_passes("xla-tpu"), 0
    for name in ("llama-fsdp", "experts-experts", "llama-scan-fsdp"):
        result = shardcore.Module.parse(catalog.text(name)).propagate()
        before = result.partition(policy)
        after = shardcore.partition.partition(result, policy, passes=passes)
        num_changed += str(before.module) != str(after.module)
        before.run_passes(passes)
        assert (before.passes, str(before.module)) == (after.passes, str(after.module))
        assert before.collectives == after.collectives
    assert num_changed > 0
