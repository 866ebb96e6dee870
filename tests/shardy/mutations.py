"""Breaks sound modules at random and compares what is said about them.

    python -m tests.shardy.mutations [--seed S] [--count N] [--show K]

Each module is one of `MODULES` with one or two tokens in lines that are about shardings dropped,
doubled or replaced. The reference and shardcore both parse and verify it. Printed are how many both
accept and refuse, and how often shardcore says all that the reference says, at the same line; with
``--show`` also modules on which the two differ. The reference runs in a child process: it may die.
"""

from __future__ import annotations

import argparse
import atexit
import collections
import random
import re
import sys
from collections.abc import Iterator, Sequence
from functools import cache

import shardcore

from tests.shardy import reference
from tests.shardy.messages import Message, missing, of_error
from tests.shardy.worker import Worker

MESHES = """\
sdy.mesh @m = <["a"=4, "b"=2, "c"=2]>
sdy.mesh @p = <["a"=4, "b"=2, "c"=2], device_ids=[1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14]>
sdy.mesh @one = <[], device_ids=[3]>
"""  # noqa: E501

MODULES = [
    """func.func @f(%x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@m, [{"a":(1)2, ?}p1, {"b"}], replicated={"c"}>}, %t: !stablehlo.token) -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@m, [{"a":(1)2}, {?}p0], unreduced={"b", "c"}>}, !stablehlo.token) {
  %0 = stablehlo.add %x, %x {sdy.sharding = #sdy.sharding_per_value<[<@m, [{"a":(2)2}, {"a":(1)2, "c"}], replicated={"b"}>]>} : tensor<8x8xf32>
  return %0, %t : tensor<8x8xf32>, !stablehlo.token
}""",  # noqa: E501
    """func.func @f(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %0:2 = stablehlo.custom_call @g(%x) {sdy.sharding = #sdy.sharding_per_value<[<@m, [{"b"}, {}]>, <@one, []>]>} : (tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<2xi32>)
  stablehlo.custom_call @h(%x) {has_side_effect = true, sdy.sharding = #sdy.sharding_per_value<[<@one, []>]>} : (tensor<8x4xf32>) -> ()
  %1 = sdy.sharding_constraint %0#0 <mesh<["q"=2, "r"=4]>, [{"q"}, {"r":(2)2, ?}p3]> : tensor<8x4xf32>
  %2 = sdy.reshard %1 <@p, [{}, {"a"}], unreduced={"c"}> : tensor<8x4xf32>
  return %2 : tensor<8x4xf32>
}""",  # noqa: E501
    """func.func @f(%x: tensor<8x4xf32>, %y: tensor<4x6xf32>) -> tensor<32xf32> {
  %0 = stablehlo.dot %x, %y {sdy.sharding_rule = #sdy.op_sharding_rule<([i, k], [k, j])->([i, j]) {i=8, j=6, k=4} reduction={k} need_replication={j} blocked_propagation={i, j}, custom>} : (tensor<8x4xf32>, tensor<4x6xf32>) -> tensor<8x6xf32>
  %1 = stablehlo.reshape %x {sdy.sharding_rule = #sdy.op_sharding_rule<([ij, k])->([ijk]) {i=2, j=4, k=4} permutation={j, k}>} : (tensor<8x4xf32>) -> tensor<32xf32>
  return %1 : tensor<32xf32>
}""",  # noqa: E501
    """func.func @f(%x: tensor<8x8xf32>, %y: tensor<8xf32>) -> (tensor<8x8xf32>, tensor<8xf32>) {
  %0:2 = sdy.manual_computation(%x, %y) in_shardings=[<@m, [{"a", "b"}, {}]>, <@m, [{"a"}]>] out_shardings=[<@m, [{"a"}, {}], replicated={"b"}>, <@m, [{"a", "c"}]>] manual_axes={"a", "b"} (%u: tensor<1x8xf32>, %v: tensor<2xf32>) {
    %1 = stablehlo.abs %v {sdy.sharding = #sdy.sharding_per_value<[<@m, [{"c"}]>]>} : tensor<2xf32>
    %2 = stablehlo.broadcast_in_dim %1, dims = [0] : (tensor<2xf32>) -> tensor<2x8xf32>
    %3 = sdy.manual_computation(%2) in_shardings=[<@m, [{}, {"c"}]>] out_shardings=[<@m, [{}, {"c"}]>] manual_axes={"c"} (%w: tensor<2x4xf32>) {
      sdy.return %w : tensor<2x4xf32>
    } : (tensor<2x8xf32>) -> tensor<2x8xf32>
    sdy.return %3, %1 : tensor<2x8xf32>, tensor<2xf32>
  } : (tensor<8x8xf32>, tensor<8xf32>) -> (tensor<8x8xf32>, tensor<8xf32>)
  return %0#0, %0#1 : tensor<8x8xf32>, tensor<8xf32>
}""",  # noqa: E501
    """func.func @f(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0:2 = sdy.named_computation<"n">(%x, %x) in_shardings=[<@m, [{"a"}, {}]>, <@m, [{}, {?}]>] out_shardings=[<@m, [{"a"}, {"b"}]>, <@m, [{}, {}]>] (%u: tensor<8x8xf32>, %v: tensor<8x8xf32>) {
    %1 = stablehlo.add %u, %v : tensor<8x8xf32>
    sdy.return %1, %v : tensor<8x8xf32>, tensor<8x8xf32>
  } : (tensor<8x8xf32>, tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>)
  %2 = sdy.data_flow_edge %0#0 sharding=<@m, [{"a"}, {"b"}]> : tensor<8x8xf32>
  sdy.sharding_group %2 group_id=7 : tensor<8x8xf32>
  %3 = sdy.propagation_barrier %2 allowed_direction=FORWARD : tensor<8x8xf32>
  return %3 : tensor<8x8xf32>
}""",  # noqa: E501
    """func.func @f(%x: tensor<16x8x8xf32> {sdy.sharding = #sdy.sharding<@m, [{"a", "b"}, {}, {"c"}]>}) -> tensor<16x8x8xf32> {
  %0 = sdy.all_gather [{"b"}, {}, {"c"}] %x out_sharding=<@m, [{"a"}, {}, {}]> : tensor<16x8x8xf32>
  %1 = sdy.all_slice [{}, {"b"}, {}] %0 out_sharding=<@m, [{"a"}, {"b"}, {}]> : tensor<16x8x8xf32>
  %2 = sdy.all_to_all [{"a":(2)2}: 0->2] %1 out_sharding=<@m, [{"a":(1)2}, {"b"}, {"a":(2)2}]> : tensor<16x8x8xf32>
  %3 = sdy.collective_permute %2 out_sharding=<@m, [{"a":(2)2}, {"c"}, {"a":(1)2}]> : tensor<16x8x8xf32>
  %4 = sdy.replicated_to_unreduced {"b"} %3 out_sharding=<@m, [{"a":(2)2}, {"c"}, {"a":(1)2}], unreduced={"b"}> : tensor<16x8x8xf32>
  %5 = sdy.sharded_to_unreduced [{}, {"c"}, {}] %4 out_sharding=<@m, [{"a":(2)2}, {}, {"a":(1)2}], unreduced={"b", "c"}> : tensor<16x8x8xf32>
  %6 = sdy.all_reduce {"c"} %5 out_sharding=<@m, [{"a":(2)2}, {}, {"a":(1)2}], unreduced={"b"}> : tensor<16x8x8xf32>
  %7 = sdy.reduce_scatter [{}, {"b"}, {}] %6 out_sharding=<@m, [{"a":(2)2}, {"b"}, {"a":(1)2}]> : tensor<16x8x8xf32>
  return %7 : tensor<16x8x8xf32>
}""",  # noqa: E501
    """func.func @f(%x: tensor<8xf32> {sdy.sharding = #sdy.sharding<@m, [{"a"}]>}) -> tensor<8xf32> {
  %0 = stablehlo.add %x, %x {sdy.propagation_edges = #sdy.propagation_edges<[{step-0 = [{"a" = operand-0 -> [operand-1, result-0]}]}, {step-2 = [{"b":(1)2 = result-0 -> [operand-1]}]}]>, sdy.sharding = #sdy.sharding_per_value<[<@m, [{"a"}]>]>} : tensor<8xf32>
  return %0 : tensor<8xf32>
}""",  # noqa: E501
]

TOKEN = re.compile(r'"[^"]*"|[@%#!]?[A-Za-z_][\w.$]*|\d+|->|[^\s\w]')
#: What stands in place of a token of the same kind.
OTHERS = {
    '"': ['"a"', '"b"', '"c"', '"z"', '""'],
    "0": ["0", "1", "2", "3", "4", "8", "16", "-1", "9223372036854775807"],
    "@": ["@m", "@p", "@one", "@nope"],
    "w": ["i", "j", "k", "z", "z_1", "z_0", "ij", "p1", "p01", "replicated", "unreduced", "mesh"],
    ".": list("[]{}()<>,:=?-\"'*"),
}


def kind(token: str) -> str:
    """The kind of a token: a key of `OTHERS`, or nothing if it is left alone."""
    if token[0] in '"@':
        return token[0]
    if token[0].isdigit():
        return "0"
    if token[0].isalpha():
        return "w" if "." not in token else ""
    return "." if token[0] not in "%#!" else ""


def break_one(text: str, random: random.Random) -> str:
    """`text` with one token of a line that is about shardings broken."""
    places = [
        match
        for line in re.finditer(r".+", text)
        if "sdy." in line[0]
        for match in TOKEN.finditer(text, line.start(), line.end())
        if kind(match[0])
    ]
    at = random.choice(places)
    token = at[0]
    other = random.choice(OTHERS[kind(token) if random.random() < 0.9 else random.choice("0w.")])
    new = random.choices(["", f"{token} {token}", f"{token}, {token}", other], [3, 1, 1, 8])[0]
    return text[: at.start()] + new + text[at.end() :]


def mutants(seed: int, count: int) -> Iterator[str]:
    """`count` broken modules."""
    for number in range(seed, seed + count):
        rng = random.Random(number)
        text = MESHES + rng.choice(MODULES)
        for _ in range(rng.choices([1, 2], [4, 1])[0]):
            text = break_one(text, rng)
        yield text


@cache
def _worker() -> Worker:
    worker = Worker()
    atexit.register(worker.close)
    return worker


def ask_reference(texts: Sequence[str]) -> Iterator[list[Message] | None]:
    """What the reference says of each text, nothing if it accepts it; `None` if it dies of it."""
    for text in texts:
        try:
            _worker().run(text, "builtin.module()")
        except reference.RejectedError as rejected:
            yield rejected.errors or [(None, str(rejected))]
        except reference.DiedError:
            yield None
        else:
            yield []


def ask_shardcore(text: str) -> list[Message]:
    """What shardcore says of `text`, nothing if it accepts it."""
    try:
        shardcore.Module.parse(text)
    except shardcore.ShardcoreError as error:
        return of_error(error)
    return []


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--show", type=int, default=0, help="how many of each to show")
    options = parser.parse_args()
    counts: collections.Counter[str] = collections.Counter()
    texts = list(mutants(options.seed, options.count))
    for number, (text, theirs) in enumerate(zip(texts, ask_reference(texts), strict=True)):
        ours = ask_shardcore(text)
        if theirs is None:
            verdict = "the reference dies"
        elif bool(theirs) != bool(ours):
            verdict = "only the reference refuses" if theirs else "only shardcore refuses"
        elif not theirs:
            verdict = "both accept"
        else:
            verdict = "both refuse, other words" if missing(theirs, ours) else "both refuse alike"
        counts[verdict] += 1
        if counts[verdict] <= options.show and verdict not in ("both accept", "both refuse alike"):
            print(f"--- {options.seed + number}: {verdict}\n{text.removeprefix(MESHES)}")
            print(*(f"theirs: {said}" for said in theirs or ()), sep="\n")
            print(*(f"  ours: {said}" for said in ours), sep="\n")
    print(", ".join(f"{verdict} {count}" for verdict, count in sorted(counts.items())))
    return 0


if __name__ == "__main__":
    sys.exit(main())
