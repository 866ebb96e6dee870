"""What is wrong with a module is said as the reference says it, at the same line."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.shardy import reference
from tests.shardy.messages import missing
from tests.shardy.mutations import MESHES, MODULES, ask_shardcore

EDGES = "#sdy.propagation_edges"
OPS = [
    f'stablehlo.abs %x {{sdy.propagation_edges = {EDGES}<[{{step-0 = [{{"a" = foo-0 -> []}}]}}]>}}',
    f"stablehlo.abs %x {{sdy.propagation_edges = {EDGES}<[]>}}",
    f"stablehlo.abs %x {{sdy.propagation_edges = {EDGES}<[{{step-x = []}}]>}}",
    "stablehlo.abs %x {sdy.sharding = 7 : i64}",
    "stablehlo.abs %x {sdy.sharding_rule = #sdy.sharding<@m, [{}]>}",
    "stablehlo.abs %x {sdy.sharding_rule = #sdy.op_sharding_rule<([i])->([i, j]) {i=8}>}",
    "stablehlo.abs %x {sdy.sharding_rule = #sdy.op_sharding_rule<([i])->([]) {i=8}>}",
    "stablehlo.abs %x {sdy.sharding_rule = #sdy.op_sharding_rule<([i])->([i]) {ij=8}>}",
    'stablehlo.abs %x {sdy.sharding = #sdy.sharding_per_value<[<@m, [{"z"}, {"z"}]>]>}',
    'sdy.all_gather [{"a":(1)x}] %x out_sharding=<@m, [{}]>',
    "sdy.all_gather [{a}] %x out_sharding=<@m, [{}]>",
    'sdy.all_gather [{"z"}] %x out_sharding=<@m, [{}]>',
    "sdy.all_to_all [{}: 0->1] %x out_sharding=<@m, [{}]>",
    'sdy.all_to_all [{"a"}: x->1] %x out_sharding=<@m, [{}]>',
    "sdy.sharding_constraint %x <x, []>",
    'sdy.sharding_constraint %x <mesh<["a"=x]>, []>',
    'sdy.sharding_constraint %x <@m, [{"a", "a":(1)2}], replicated={"c", "b"}>',
    "sdy.sharding_constraint %x <@m, [{}], replicated={}>",
    'sdy.sharding_constraint %x <@one, [{"a"}]>',
    'sdy.reshard %x <@m, [{"a"]>',
    "sdy.reshard %y <@m, [{}]>",
]


@pytest.mark.parametrize("op", OPS)
def test_everything_that_the_reference_says_is_said(op: str) -> None:
    text = f"""{MESHES}
func.func @f(%x: tensor<8xf32>) -> tensor<8xf32> {{
  %0 = {op} : tensor<8xf32>
  return %0 : tensor<8xf32>
}}"""
    with pytest.raises(reference.RejectedError) as rejected:
        reference.run(text, "builtin.module()")
    assert rejected.value.errors
    assert missing(rejected.value.errors, ask_shardcore(text)) == []


@pytest.mark.parametrize("module", MODULES)
def test_what_is_broken_at_random_was_sound(module: str) -> None:
    reference.run(MESHES + module, "builtin.module()")
    assert ask_shardcore(MESHES + module) == []


def test_modules_that_are_broken_at_random() -> None:
    command = [sys.executable, "-m", "tests.shardy.mutations", "--count", "300"]
    root = Path(__file__).parents[2]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    last = done.stdout.strip().rpartition("\n")[2]
    counts = {name: int(count) for name, count in re.findall(r"([a-z, ]+?) (\d+)(?:, |$)", last)}
    assert "only the reference refuses" not in counts
    # `docs/deviations.md` says what shardcore refuses in addition.
    assert counts.get("only shardcore refuses", 0) <= 2
    assert counts["both refuse alike"] >= 5 * counts["both refuse, other words"]
