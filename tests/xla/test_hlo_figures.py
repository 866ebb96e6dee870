"""Kernels and collectives of compiled HLO."""

from __future__ import annotations

import pytest
from shardcore.explain.hlo_text import HloModule, read
from shardcore.xla.hlo_figures import Sent, num_kernels, sent_by_kind

LOOP = """\
HloModule jit_f, is_scheduled=true, num_partitions=8

%sum (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %add = f32[] add(%a, %b)
}

%fused (p: f32[16,4]) -> f32[2,4] {
  %p = f32[16,4]{1,0} parameter(0)
  %inner = f32[16,4]{1,0} all-reduce(%p), channel_id=3, replica_groups=[2,4]<=[8], to_apply=%sum
  ROOT %cut = f32[2,4]{1,0} slice(%inner), slice={[0:2], [0:4]}
}

%step (x: (s32[], f32[16,4])) -> (s32[], f32[16,4]) {
  %x = (s32[], f32[16,4]{1,0}) parameter(0)
  %i = s32[] get-tuple-element(%x), index=0
  %v = f32[16,4]{1,0} get-tuple-element(%x), index=1
  %start = (f32[16,4]{1,0}, f32[16,4]{1,0}) collective-permute-start(%v), channel_id=1, \
source_target_pairs={{0,1},{1,0}}
  %done = f32[16,4]{1,0} collective-permute-done(%start)
  ROOT %next = (s32[], f32[16,4]{1,0}) tuple(%i, %done)
}

%more (x: (s32[], f32[16,4])) -> pred[] {
  %x.1 = (s32[], f32[16,4]{1,0}) parameter(0)
  %i.1 = s32[] get-tuple-element(%x.1), index=0
  %n = s32[] constant(5)
  ROOT %less = pred[] compare(%i.1, %n), direction=LT
}

%one (x: f32[16,4]) -> bf16[64,4] {
  %x.2 = f32[16,4]{1,0} parameter(0)
  %half = bf16[16,4]{1,0} convert(%x.2)
  ROOT %all = bf16[64,4]{1,0} all-gather(%half), channel_id=4, replica_groups=[2,4]<=[8], \
dimensions={0}
}

%other (x: f32[16,4]) -> bf16[64,4] {
  %x.3 = f32[16,4]{1,0} parameter(0)
  ROOT %none = bf16[64,4]{1,0} custom-call(%x.3), custom_call_target="f"
}

ENTRY %main (w: f32[16,4], p: pred[]) -> f32[2,4] {
  %w = f32[16,4]{1,0} parameter(0)
  %p.1 = pred[] parameter(1)
  %zero = s32[] constant(0)
  %given = (s32[], f32[16,4]{1,0}) tuple(%zero, %w)
  %loop = (s32[], f32[16,4]{1,0}) while(%given), condition=%more, body=%step
  %out = f32[16,4]{1,0} get-tuple-element(%loop), index=1
  %either = bf16[64,4]{1,0} conditional(%p.1, %out, %out), true_computation=%one, \
false_computation=%other
  ROOT %all-reduce-scatter = f32[2,4]{1,0} fusion(%out), kind=kCustom, calls=%fused
}
"""


def module(text: str) -> HloModule:
    [found] = read(text)
    return found


def test_collectives_count_as_often_as_they_run() -> None:
    assert sent_by_kind(module(LOOP)) == {
        # Half of the runs take the branch; the array is gathered over four devices.
        "all_gather": Sent(0.5, 0.5 * 64 * 4 * 2),
        "collective_permute": Sent(5, 5 * 16 * 4 * 4),
        # A sum of which a fusion takes a slice.
        "reduce_scatter": Sent(1, 16 * 4 * 4),
    }


def test_a_chain_of_fusions_takes_one_collective_along() -> None:
    chained = LOOP.replace("channel_id=3", 'channel_id=3, frontend_attributes={chain_id="7"}')
    chained = chained.replace(
        "  ROOT %all-reduce-scatter",
        "  %before = f32[2,4]{1,0} fusion(%out), calls=%fused\n  ROOT %last",
    )
    assert sent_by_kind(module(chained))["all_reduce"] == Sent(1, 256)
    unchained = chained.replace('chain_id="7"', "")
    assert sent_by_kind(module(unchained))["all_reduce"] == Sent(2, 512)


def test_a_loop_of_unknown_trips_counts_once() -> None:
    unknown = LOOP.replace("%n = s32[] constant(5)", "%n = s32[] custom-call(%i.1)")
    assert sent_by_kind(module(unknown))["collective_permute"].runs == 1


def test_kernels_are_what_starts_something() -> None:
    # The fusion, the custom call, the conversion and the gather, the permute once, the comparison.
    assert num_kernels(module(LOOP)) == 6


@pytest.mark.parametrize(("dtype", "size"), [("pred", 1), ("s4", 0.5), ("c64", 8), ("f8e4m3fn", 1)])
def test_sizes_of_elements(dtype: str, size: float) -> None:
    text = f"""\
HloModule m, num_partitions=2
ENTRY %main (w: {dtype}[8]) -> {dtype}[8] {{
  %w = {dtype}[8]{{0}} parameter(0)
  ROOT %p = {dtype}[8]{{0}} collective-permute(%w), channel_id=1, source_target_pairs={{{{0,1}}}}
}}
"""
    assert sent_by_kind(module(text)) == {"collective_permute": Sent(1, 8 * size)}
