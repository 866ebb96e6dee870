"""Under the policy `shardy` each reshard of `with_collectives` is the collective of its kind."""

from __future__ import annotations

import re
from collections import defaultdict

import pytest
import shardcore
from shardcore.partition.partitioned import lowered

from tests.deep import IS_DEEP
from tests.shardy.programs import registry

SENDS = r"(?:sdy|stablehlo)\.(all_gather|all_reduce|all_to_all|collective_permute|reduce_scatter)"

MOVES = {
    "chlo.top_k",
    "stablehlo.composite",
    "stablehlo.concatenate",
    "stablehlo.convolution",
    "stablehlo.custom_call",
    "stablehlo.pad",
    "stablehlo.reduce_window",
    "stablehlo.reverse",
    "stablehlo.select_and_scatter",
    "stablehlo.slice",
}
"""Ops that move elements along dims which Shardy leaves sharded, or for which it has no rule."""

REFUSED = {
    "callbacks", "custom-rule-batched", "custom-rule-grouped", "custom-rule-matmul",
    "custom-rule-opaque", "custom-rule-reduced", "foreign-calls", "ordered-effects",
}  # fmt: skip
"""Programs that call the host, or targets of which nothing is known."""

NAMES = [name for name in registry.names() if name not in REFUSED]
if not IS_DEEP:
    NAMES = NAMES[::4]


def marked(text: str) -> str:
    """The program with a location on each of its reshards, which its collectives keep."""
    lines = text.splitlines()
    for number, line in enumerate(lines):
        if re.search(r"= sdy\.(all_|reduce_scatter|collective_permute)", line):
            lines[number] = f'{line} loc("reshard {number + 1}")'
    return "\n".join(lines)


def is_joined(reshard: shardcore.Op) -> bool:
    """Whether it reduces the results of an op that has no sums: a variadic reduce that selects."""
    operand = reshard.operands[0]
    return operand.op == "stablehlo.reduce" and "#" in operand.name


def is_even(reshard: shardcore.Op) -> bool:
    """Whether all shards have equally many elements."""
    both = (reshard.operands[0], reshard.results[0])
    return all(
        size % local == 0
        for value in both
        for size, local in zip(value.shape or (), value.local_shape or (), strict=True)
    )


@pytest.mark.parametrize("name", NAMES)
def test_reshards_are_collectives_of_their_kind(name: str) -> None:
    module = shardcore.Module.parse(registry.text(name))
    result = module.propagate(legalize_chlo=True)
    source = shardcore.Module.parse(marked(str(result.with_collectives)))
    partitioned = lowered(result, source, "shardy", None)
    found: dict[str | None, list[str]] = defaultdict(list)
    for op in partitioned.module.ops():
        if kind := re.fullmatch(SENDS, op.name):
            found[op.location].append(kind[1])
    given = sum(bool(re.fullmatch(SENDS, op.name)) for op in source.ops())
    matched = 0
    for op in source.ops():
        kind = re.fullmatch(SENDS, op.name)
        if not kind or not op.name.startswith("sdy."):
            continue
        mine = found.pop(op.location, [])
        matched += 1
        if is_joined(op):
            assert not mine
        elif kind[1] == "all_gather" and not is_even(op):
            assert set(mine) == {"all_gather"}
        else:
            assert mine == [kind[1]], op.location
    senders = {row.name for row in partitioned.outcomes if row.kind != "local"}
    others = {name for name in senders if not name.startswith("sdy.")}
    assert others <= MOVES | {"stablehlo.reduce", "stablehlo.reshape"}
    if not others:
        assert sum(map(len, found.values())) == given - matched


@pytest.mark.parametrize("before", ['"one", "x":(2)2', '"x":(1)2, "one"', '"x", "one"', '"one"'])
@pytest.mark.parametrize("after", ['"x"', '"x":(2)2', '"one"'])
def test_permutes_over_meshes_with_an_axis_of_size_one(before: str, after: str) -> None:
    module = shardcore.Module.parse(f"""sdy.mesh @mesh = <["x"=4, "one"=1, "y"=2]>
func.func @main(%a: tensor<8x8xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{{before}}}, {{}}]>}})
    -> (tensor<8x8xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{}}, {{{after}}}]>}}) {{
  %0 = stablehlo.negate %a : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}}""")
    result = module.propagate()
    assert shardcore.prove(result.partition(policy="shardy")).is_proven
    assert result.cost("h100", policy="shardy").peak_bytes > 0
