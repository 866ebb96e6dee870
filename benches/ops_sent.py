"""Does an op send under the policy ``xla`` what it sends under XLA, and under ``least`` no more?

For programs of one op each, whose operands and results have random shardings over a mesh of 2 by 4
devices: how many send within 5 % of the bytes that XLA's partitioner sends, or at most as many.
Programs that XLA fails to compile are left out. Random shardings are harder than those of real
programs, where an op mostly agrees with its neighbours. Run it with
`python -m benches.ops_sent [--policy least] [--programs N] [--list] [OP ...]`.
"""

from __future__ import annotations

import argparse
import functools
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import shardcore
from jax.errors import JaxRuntimeError

from tests.shardy.xla import sent
from tests.shardy.xla.model_rows import as_all_reduce, sent_by_kind

WITHIN = 0.05
AXES = (("x", 2), ("y", 4))
PROGRAM = """module attributes {{mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32}} {{
  sdy.mesh @mesh = <[{axes}]>
  func.func public @main({arguments}, %i: tensor<i32>) -> ({result} {{{sharding}}}) {{
    %z = stablehlo.constant dense<0.0> : tensor<f32>
    %k = stablehlo.constant dense<0> : tensor<i32>
    %j = stablehlo.iota dim = 0 : tensor<16x8x1xi32>
    %0 = {op}
    return %0 : {result}
  }}
}}"""
SUM = """({
      ^bb0(%p: tensor<f32>, %q: tensor<f32>):
        %r = stablehlo.add %p, %q : tensor<f32>
        stablehlo.return %r : tensor<f32>
    })"""
SCATTER = """<{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [2],
      inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 2>}>"""
GATHER = """<{dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [0],
      start_index_map = [0], index_vector_dim = 2>, slice_sizes = array<i64: 1, 32>}>"""
CONVOLUTION = """stablehlo.convolution(%a, %b)
      dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {WINDOW}
      {batch_group_count = 1 : i64, feature_group_count = 1 : i64}"""


@dataclass(frozen=True)
class Op:
    """An op of the arguments ``%a`` and ``%b``."""

    text: str
    arguments: tuple[str, ...]
    """The types of the arguments."""
    result: str
    others: tuple[str, ...] = ()
    """The types of the operands that follow the first argument and are none."""

    def __str__(self) -> str:
        first, *rest = self.arguments
        types = ", ".join(f"tensor<{ty}>" for ty in (first, *self.others, *rest))
        return f"{self.text} : ({types}) -> tensor<{self.result}>"


NUMBER, INDEX = ("f32",), ("i32", "i32")
OPS = {
    "add": Op("stablehlo.add %a, %b", ("16x32x64xf32",) * 2, "16x32x64xf32"),
    "transpose": Op("stablehlo.transpose %a, dims = [2, 0, 1]", ("16x32x64xf32",), "64x16x32xf32"),
    "broadcast": Op("stablehlo.broadcast_in_dim %a, dims = [0, 2]", ("16x64xf32",), "16x32x64xf32"),
    "merge": Op("stablehlo.reshape %a", ("16x32x64xf32",), "16x2048xf32"),
    "split": Op("stablehlo.reshape %a", ("16x2048xf32",), "16x32x64xf32"),
    "reduce": Op(
        f'"stablehlo.reduce"(%a, %z) <{{dimensions = array<i64: 1>}}> {SUM}',
        ("16x32x64xf32",),
        "16x64xf32",
        NUMBER,
    ),
    "concatenate": Op("stablehlo.concatenate %a, %b, dim = 0", ("16x32xf32",) * 2, "32x32xf32"),
    "slice": Op("stablehlo.slice %a [8:24, 0:64]", ("32x64xf32",), "16x64xf32"),
    "half": Op("stablehlo.slice %a [0:16, 0:64]", ("32x64xf32",), "16x64xf32"),
    "pad": Op(
        "stablehlo.pad %a, %z, low = [4, 0], high = [4, 0], interior = [0, 0]",
        ("32x64xf32",),
        "40x64xf32",
        NUMBER,
    ),
    "reverse": Op("stablehlo.reverse %a, dims = [0]", ("32x64xf32",), "32x64xf32"),
    "dynamic_slice": Op(
        "stablehlo.dynamic_slice %a, %i, %k, sizes = [8, 64]", ("32x64xf32",), "8x64xf32", INDEX
    ),
    "update": Op(
        "stablehlo.dynamic_update_slice %a, %b, %i, %k",
        ("32x64xf32", "8x64xf32", "i32", "i32"),
        "32x64xf32",
    ),
    "gather": Op(
        f'"stablehlo.gather"(%a, %b) {GATHER}', ("64x32xf32", "16x8x1xi32"), "16x8x32xf32"
    ),
    "scatter": Op(
        f'"stablehlo.scatter"(%a, %j, %b) {SCATTER} {SUM}',
        ("64x32xf32", "16x8x32xf32"),
        "64x32xf32",
        ("16x8x1xi32",),
    ),
    "product": Op(
        "stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]",
        ("64x32xf32", "32x128xf32"),
        "64x128xf32",
    ),
    "gradient": Op(
        "stablehlo.dot_general %a, %b, contracting_dims = [0, 1] x [0, 1]",
        ("16x64x32xf32", "16x64x128xf32"),
        "32x128xf32",
    ),
    "experts": Op(
        "stablehlo.dot_general %a, %b, batching_dims = [0] x [0], contracting_dims = [2] x [1]",
        ("8x64x32xf32", "8x32x128xf32"),
        "8x64x128xf32",
    ),
    "attention": Op(
        "stablehlo.dot_general %a, %b, batching_dims = [0, 1] x [0, 1],"
        " contracting_dims = [3] x [2]",
        ("16x8x64x64xf32", "16x8x64x32xf32"),
        "16x8x64x32xf32",
    ),
    "convolution": Op(
        CONVOLUTION.replace("WINDOW", "pad = [[1, 1], [1, 1]]"),
        ("16x16x16x8xf32", "3x3x8x32xf32"),
        "16x16x16x32xf32",
    ),
    "pointwise": Op(
        CONVOLUTION.replace("WINDOW", ""), ("16x16x16x8xf32", "1x1x8x32xf32"), "16x16x16x32xf32"
    ),
}


def programs(name: str, count: int) -> Iterator[str]:
    """The texts of ``count`` programs of the op called ``name``."""
    op, draw = OPS[name], random.Random(name)
    types = [ty for ty in op.arguments if "x" in ty]
    for _ in range(count):
        *given, wanted = [_sharding(draw, ty) for ty in (*types, op.result)]
        arguments = zip("ab", types, given, strict=False)
        yield PROGRAM.format(
            axes=", ".join(f'"{axis}"={size}' for axis, size in AXES),
            arguments=", ".join(f"%{name}: tensor<{ty}> {{{how}}}" for name, ty, how in arguments),
            result=f"tensor<{op.result}>",
            sharding=wanted,
            op=op,
        )


def _sharding(draw: random.Random, ty: str) -> str:
    """Each axis is on one dim or, one time in four, on none."""
    dims: list[list[str]] = [[] for _ in ty.split("x")[:-1]]
    for axis, _ in draw.sample(AXES, len(AXES)):
        if draw.random() < 0.75:
            draw.choice(dims).append(f'"{axis}"')
    text = ", ".join(f"{{{', '.join(axes)}}}" for axes in dims)
    return f"sdy.sharding = #sdy.sharding<@mesh, [{text}]>"


def both(text: str, policy: str) -> tuple[dict[str, float], dict[str, float]]:
    """The bytes that a device sends, by kind: ours under ``policy`` and XLA's."""
    result = shardcore.Module.parse(text).propagate(legalize_chlo=True)
    if policy == "least":
        rows = result.partition().collectives
        ours = [{row.kind: row.wire_bytes * row.count} for row in rows]
        return dict(sum(map(Counter, ours), Counter())), dict(sent.sent_bytes(text))
    cost = result.cost()
    return dict(sent_by_kind(cost)), dict(as_all_reduce(sent.sent_bytes(text)))


def report(
    names: Iterable[str],
    programs: Callable[[str], Iterable[str]],
    policy: str,
    lists: bool,
) -> None:
    """Print for each op how many of its programs send what XLA's do; with ``lists`` the others."""
    is_least = policy == "least"
    print(f"| op | programs | {'no more' if is_least else f'within {WITHIN:.0%}'} |")
    print("| --- | --- | --- |")
    for name in names:
        count, differ = 0, []
        for text in programs(name):
            try:
                ours, xla = both(text, policy)
            except JaxRuntimeError:
                continue
            count += 1
            more = sum(ours.values()) - sum(xla.values())
            if more > 0 if is_least else abs(more) > WITHIN * sum(xla.values()):
                differ.append(f"{text}\nours {ours}\nXLA  {xla}\n")
        print(f"| {name} | {count} | {count - len(differ)} |", flush=True)
        if lists:
            print(*differ, sep="\n")


def parser_for(description: str | None, ops: Iterable[str]) -> argparse.ArgumentParser:
    """The arguments of a comparison of some of ``ops``."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("ops", nargs="*", choices=[[], *ops], default=[])
    parser.add_argument("--programs", type=int, default=40)
    parser.add_argument("--list", action="store_true", help="print the programs that differ")
    return parser


def main() -> int:
    """Entry point."""
    parser = parser_for(__doc__, OPS)
    parser.add_argument("--policy", choices=["least", "xla"], default="xla")
    options = parser.parse_args()
    made = functools.partial(programs, count=options.programs)
    report(options.ops or OPS, made, options.policy, options.list)
    return 0


if __name__ == "__main__":
    sys.exit(main())
