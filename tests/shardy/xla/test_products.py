"""Under policy ``xla`` products that contract a sharded dim send what they send under XLA."""

from __future__ import annotations

import pytest
import shardcore

from tests.shardy.xla.model_rows import as_all_reduce, sent_by_kind
from tests.shardy.xla.sent import sent_bytes
from tests.shardy.xla.test_reshards import shardings

PROGRAM = """module attributes {{mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32}} {{
  sdy.mesh @mesh = <["a"=2, "b"=4]>
  func.func public @main(
      %a: tensor<64x128xf32> {{sdy.sharding = #sdy.sharding<@mesh, {left}>}},
      %b: tensor<128x256xf32> {{sdy.sharding = #sdy.sharding<@mesh, {right}>}})
      -> (tensor<64x256xf32> {{sdy.sharding = #sdy.sharding<@mesh, {result}>}}) {{
    %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
        : (tensor<64x128xf32>, tensor<128x256xf32>) -> tensor<64x256xf32>
    %1 = stablehlo.sine %0 : tensor<64x256xf32>
    return %1 : tensor<64x256xf32>
  }}
}}"""
SPLIT = ['[{"a"}, {}]', '[{}, {"a"}]']
"""Results along the contracted axis alone, for which XLA splits the axis of the copies in two."""


@pytest.mark.parametrize(("axis", "rows"), [("a", ""), ("a", '"b"'), ("b", ""), ("b", '"a"')])
def test_products_send_what_they_do_under_xla(axis: str, rows: str) -> None:
    left, right = f'[{{{rows}}}, {{"{axis}"}}]', f'[{{"{axis}"}}, {{}}]'
    for result in shardings(("a", "b"), 2):
        if axis == "a" and result in SPLIT:
            continue
        text = PROGRAM.format(left=left, right=right, result=result)
        ours = sent_by_kind(shardcore.Module.parse(text).propagate().cost("tpu-v5p"))
        theirs = as_all_reduce(sent_bytes(text))
        assert sum(ours.values()) == sum(theirs.values()), (left, right, result)
