"""Random chains of ops that move elements along one sharded dim, proven by running them."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
import shardcore
from shardcore.partition.policies import POLICIES

from tests.deep import IS_DEEP

SEEDS = range(3_000 if IS_DEEP else 60)
LONGEST = 60

Value = tuple[str, int]
"""A name, and the number of elements along the dim."""


def type_of(size: int) -> str:
    return f"tensor<{size}x2xf32>"


class Chain:
    """A function of one or two arguments that is drawn by a seed, op by op."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        self.devices = self.draw.choice([2, 3, 4, 8])
        sizes = [self.devices * count for count in (1, 2, 3, 4)]
        size = self.draw.choice([*sizes, 4 * self.devices + 1, 3 * self.devices - 1])
        self.values: list[Value] = [("%a", size), ("%b", size)]
        self.lines: list[str] = []
        ops: list[Callable[[], None]] = [self.slice, self.concatenate, self.reverse, self.pad]
        for _ in range(self.draw.randint(2, 6)):
            self.draw.choice([self.slice, *ops, self.concatenate])()
            if self.draw.random() < 0.3:
                self.constrain()

    def any(self) -> Value:
        return self.draw.choice(self.values[-4:])

    def add(self, text: str, size: int) -> None:
        name = f"%{len(self.lines)}"
        self.lines.append(f"  {name} = {text}")
        self.values.append((name, size))

    def slice(self) -> None:
        value, size = self.any()
        start = self.draw.randrange(size)
        limit, stride = self.draw.randint(start + 1, size), self.draw.choice([1, 1, 1, 2])
        count = -(-(limit - start) // stride)
        types = f"({type_of(size)}) -> {type_of(count)}"
        self.add(f"stablehlo.slice {value} [{start}:{limit}:{stride}, 0:2] : {types}", count)

    def concatenate(self) -> None:
        parts = [self.draw.choice(self.values) for _ in range(self.draw.randint(2, 3))]
        names = ", ".join(name for name, _ in parts)
        types = ", ".join(type_of(size) for _, size in parts)
        total = sum(size for _, size in parts)
        if total <= LONGEST:
            text = f"stablehlo.concatenate {names}, dim = 0 : ({types}) -> {type_of(total)}"
            self.add(text, total)

    def reverse(self) -> None:
        value, size = self.any()
        self.add(f"stablehlo.reverse {value}, dims = [0] : {type_of(size)}", size)

    def pad(self) -> None:
        value, size = self.any()
        low, high = self.draw.randint(-1, 3), self.draw.randint(-1, 3)
        between = self.draw.choice([0, 0, 1])
        total = size + low + high + between * (size - 1)
        if total > 0:
            edges = f"low = [{low}, 0], high = [{high}, 0], interior = [{between}, 0]"
            types = f"({type_of(size)}, tensor<f32>) -> {type_of(total)}"
            self.add(f"stablehlo.pad {value}, %z, {edges} : {types}", total)

    def constrain(self) -> None:
        value, size = self.values[-1]
        axes = self.draw.choice(["", '"d"'])
        text = f"sdy.sharding_constraint {value} <@mesh, [{{{axes}}}, {{}}]>"
        self.add(f"{text} : {type_of(size)}", size)

    def module(self) -> shardcore.Module:
        """The function; arguments are sharded along the dim, and the result may be."""
        sharded = '{sdy.sharding = #sdy.sharding<@mesh, [{"d"}, {}]>}'
        (_, size), (returned, total) = self.values[0], self.values[-1]
        argument, result = type_of(size), type_of(total)
        return shardcore.Module.parse(f"""
sdy.mesh @mesh = <["d"={self.devices}]>
func.func @main(%a: {argument} {sharded}, %b: {argument} {sharded})
    -> ({result} {self.draw.choice(["", sharded])}) {{
  %z = stablehlo.constant dense<5.0> : tensor<f32>
{chr(10).join(self.lines)}
  return {returned} : {result}
}}""")


@pytest.mark.parametrize("policy", POLICIES)
def test_chains_of_moves_are_right(policy: str) -> None:
    for seed in SEEDS:
        partitioned = Chain(seed).module().propagate().partition(policy)
        assert shardcore.prove(partitioned).is_proven, seed


@pytest.mark.parametrize("policy", POLICIES)
def test_a_shard_has_an_element_twice(policy: str) -> None:
    """The next value of each step, and of the last step its own, as in advantages over time."""
    whole, rest, last = "tensor<16x3xf32>", "tensor<15x3xf32>", "tensor<1x3xf32>"
    module = shardcore.Module.parse(f"""
sdy.mesh @mesh = <["x"=8]>
func.func @main(%a: {whole} {{sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}, {{}}]>}})
    -> ({whole} {{sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}, {{}}]>}}) {{
  %0 = stablehlo.slice %a [1:16, 0:3] : ({whole}) -> {rest}
  %1 = stablehlo.slice %a [15:16, 0:3] : ({whole}) -> {last}
  %2 = stablehlo.concatenate %0, %1, dim = 0 : ({rest}, {last}) -> {whole}
  return %2 : {whole}
}}""")
    partitioned = module.propagate().partition(policy)
    assert shardcore.prove(partitioned).is_proven


@pytest.mark.parametrize("policy", POLICIES)
def test_fused_permutes_are_not_like_those_before(policy: str) -> None:
    """The second permute was like the first, until it was fused with another."""
    part = "tensor<2x1x4xf32>"
    module = shardcore.Module.parse(f"""
sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @main(%a: tensor<4x2x4xf32>
    {{sdy.sharding = #sdy.sharding<@mesh, [{{"y"}}, {{}}, {{"x"}}]>}}) -> {part} {{
  %0 = stablehlo.slice %a [0:2, 1:2, 0:4] : (tensor<4x2x4xf32>) -> {part}
  %1 = stablehlo.reverse %0, dims = [2] : {part}
  %2 = stablehlo.reverse %1, dims = [0, 2] : {part}
  return %2 : {part}
}}""")
    partitioned = module.propagate().partition(policy)
    assert shardcore.prove(partitioned).is_proven
