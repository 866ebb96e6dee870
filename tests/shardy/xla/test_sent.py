"""Bytes counted in the text of XLA's modules, in all notations of replica groups."""

from __future__ import annotations

from collections import Counter

import pytest

pytest.importorskip("jax", reason="jax 0.10.2 needs Python 3.11")

import shardcore

from tests.shardy.programs import registry
from tests.shardy.xla import sent

HLO = """\
HloModule m

%cond (p: (s32[], f32[8])) -> pred[] {
  %c = s32[] constant(5)
  ROOT %lt = pred[] compare(%i, %c), direction=LT
}

%body (p: (s32[], f32[8])) -> (s32[], f32[8]) {
  %ar = f32[8]{0} all-reduce(%x), channel_id=1, replica_groups={{0,1},{2,3}}, to_apply=%add
}

ENTRY %main (a: f32[8]) -> f32[8] {
  %w = (s32[], f32[8]{0}) while(%t), condition=%cond, body=%body
  %ag = bf16[4,8]{1,0} all-gather(%y), channel_id=2, replica_groups=[2,4]<=[8], dimensions={0}
  %rs = f32[2]{0} reduce-scatter(%z), channel_id=3, replica_groups=mesh['a'=4,'b'=2] {'a'}
  %cp = f32[8]{0} collective-permute(%z), channel_id=4, source_target_pairs={{0,1},{1,0}}
  %no = f32[8]{0} collective-permute(%z), channel_id=5, source_target_pairs={{0,0},{1,1}}
  ROOT %aa = f32[8]{0} all-to-all(%z), channel_id=6, replica_groups={}, dimensions={0}
}
"""


def test_each_notation_and_loop_is_counted() -> None:
    assert dict(sent.count(HLO, 8)) == {
        "all-reduce": 5 * 2 * 32 / 2,
        "all-gather": 64 * 3 / 4,
        "reduce-scatter": 8 * 3,
        "collective-permute": 32,
        "all-to-all": 32 * 7 / 8,
    }


def test_the_module_right_after_the_partitioner_is_read() -> None:
    assert sum(sent.sent_bytes(registry.text("mlp-megatron")).values()) == 1536


@pytest.mark.parametrize(
    "name",
    [
        "expert-all-to-all",
        "explicit-mlp-step",
        "mlp-batch-and-weight-compete",
        "mlp-only-weight",
        "mlp-train-fsdp",
        "mlp-train-megatron",
        "mlp-train-only-batch",
        "remat-nothing-saved",
        "ring-attention",
    ],
)
def test_the_policy_xla_sends_what_xla_does(name: str) -> None:
    text = registry.text(name)
    module = shardcore.Module.parse(text)
    partitioned = module.propagate(legalize_chlo=True).partition("xla")
    ours: Counter[str] = Counter()
    for collective in partitioned.collectives:
        # XLA's partitioner writes an all-reduce and a slice, which sends twice as much.
        is_scatter = collective.kind == "reduce_scatter"
        kind = "all_reduce" if is_scatter else collective.kind
        ours[kind] += collective.total_wire_bytes * (2 if is_scatter else 1)
    theirs = {kind.replace("-", "_"): bytes for kind, bytes in sent.sent_bytes(text).items()}
    assert +ours == theirs


def test_an_all_reduce_of_which_one_slice_is_used_is_a_reduce_scatter() -> None:
    lines = HLO.replace("ENTRY %main", "%other").splitlines()
    lines[-1:] = [
        "  %ar.1 = f32[8]{0} all-reduce(%z), channel_id=7, replica_groups=[2,4]<=[8]",
        "  %slice = f32[2]{0} dynamic-slice(%ar.1, %at), dynamic_slice_sizes={2}",
        "  %ar.2 = f32[8]{0} all-reduce(%z), channel_id=8, replica_groups=[2,4]<=[8]",
        "  %half = f32[4]{0} dynamic-slice(%ar.2, %at), dynamic_slice_sizes={4}",
        "}",
    ]
    text = "\n".join(lines).replace("%other", "ENTRY %main")
    whole, scattered = (sent.count(each, 8) for each in (text, sent.with_scatters(text)))
    assert whole["all-reduce"] - scattered["all-reduce"] == 2 * 32 * 3 / 4
    assert scattered["reduce-scatter"] - whole["reduce-scatter"] == 8 * 3
