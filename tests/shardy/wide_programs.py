"""Random programs of one op of many tensors, whose rule is random too.

There are dims of several factors, factors that few tensors or all of them have, and shardings by
axes and parts of axes that disagree.
"""

from __future__ import annotations

import random

# The parts of an axis of size 6 need not nest: one of such axes, and all tensors are looked at.
AXES = {"a": 2, "b": 4, "c": 8, "d": 6}
NESTING_AXES = AXES | {"d": 8}

Dims = list[list[int]]
"""The factors of each dim of a tensor."""


def _symbol(factor: int) -> str:
    return "ijklmnopqrstuvwxyz"[factor] if factor < 18 else f"z_{factor - 17}"


def _axes(choose: random.Random, sizes: dict[str, int]) -> list[str]:
    """Axes and parts of axes that do not overlap."""
    axes = []
    for name, size in sizes.items():
        kind = choose.random()
        if kind < 0.25:
            axes.append(f'"{name}"')
        elif kind < 0.5 and size > 2:
            # Parts of an axis of size 6 need not nest.
            parts = ["(1)2", "(1)3", "(2)3", "(3)2"] if size == 6 else ["(1)2", f"(2){size // 2}"]
            axes.append(f'"{name}":{choose.choice(parts)}')
    choose.shuffle(axes)
    return axes


def _sharding(choose: random.Random, sizes: dict[str, int], rank: int, probability: float) -> str:
    """The attributes of an argument or a result; empty if it gets no sharding."""
    if choose.random() > probability:
        return ""
    dims: list[list[str]] = [[] for _ in range(rank)]
    for axis in _axes(choose, sizes):
        choose.choice(dims).append(axis)
    texts = []
    for dim in dims:
        is_open = choose.random() < 0.75
        priority = f"p{choose.randrange(2)}" if dim and choose.random() < 0.2 else ""
        texts.append(f"{{{', '.join([*dim, *['?'] * is_open])}}}{priority}")
    return f" {{sdy.sharding = #sdy.sharding<@m, [{', '.join(texts)}]>}}"


class _Rule:
    """A random rule of an op."""

    def __init__(self, choose: random.Random) -> None:
        self.choose = choose
        self.num_factors = choose.choice([3, 6, 12, 24, 80])
        self.has_splits = choose.random() < 0.5
        self.has_shared = choose.random() < 0.6
        self.sizes = [choose.choice([2, 3, 4, 6, 8, 8, 16]) for _ in range(self.num_factors)]
        self.operands = [self.tensor() for _ in range(choose.choice([3, 10, 14, 20, 45]))]
        count = choose.choice([1, 2, len(self.operands)])
        self.results = [
            self.tensor() if choose.random() < 0.5 else choose.choice(self.operands)
            for _ in range(count)
        ]
        tensors = self.operands + self.results
        factors = [factor for dims in tensors for dim in dims for factor in dim]
        # Factors are numbered in the order of their first appearance.
        self.numbers = {factor: number for number, factor in enumerate(dict.fromkeys(factors))}

    def tensor(self) -> Dims:
        dims: Dims = []
        used: set[int] = set()
        for _ in range(self.choose.randint(1, 3)):
            dim = []
            for _ in range(self.choose.choice([1, 1, 2, 3]) if self.has_splits else 1):
                is_shared = self.has_shared and not used and self.choose.random() < 0.6
                factor = 0 if is_shared else self.choose.randrange(self.num_factors)
                if factor not in used:
                    used.add(factor)
                    dim.append(factor)
            if dim:
                dims.append(dim)
        return dims

    def symbol(self, factor: int) -> str:
        return _symbol(self.numbers[factor])

    def type(self, dims: Dims) -> str:
        sizes = []
        for dim in dims:
            size = 1
            for factor in dim:
                size *= self.sizes[factor]
            sizes.append(f"{size}x")
        return f"tensor<{''.join(sizes)}f32>"

    def text(self) -> str:
        def side(tensors: list[Dims]) -> str:
            return ", ".join(
                f"[{', '.join(''.join(map(self.symbol, dim)) for dim in dims)}]" for dims in tensors
            )

        sizes = ", ".join(f"{self.symbol(factor)}={self.sizes[factor]}" for factor in self.numbers)
        return f"({side(self.operands)})->({side(self.results)}) {{{sizes}}}, custom"


def program(seed: int) -> str:
    """The program of that number."""
    choose = random.Random(seed)
    axes = NESTING_AXES if choose.random() < 0.5 else AXES
    rule = _Rule(choose)
    types, result_types = map(rule.type, rule.operands), map(rule.type, rule.results)
    args, operands, lines, results = [], [], [], []
    operand_types, returned_types = list(types), list(result_types)
    for i, type_ in enumerate(operand_types):
        args.append(f"%x{i}: {type_}{_sharding(choose, axes, len(rule.operands[i]), 0.6)}")
        operands.append(f"%x{i}")
        if choose.random() < 0.4:
            lines.append(f"%n{i} = stablehlo.negate %x{i} : {type_}")
            operands[-1] = f"%n{i}"
    attribute = f"{{sdy.sharding_rule = #sdy.op_sharding_rule<{rule.text()}>}}"
    ends = f"({', '.join(operand_types)}) -> ({', '.join(returned_types)})"
    call = f"stablehlo.custom_call @f({', '.join(operands)}) {attribute} : {ends}"
    lines.append(f"%r:{len(returned_types)} = {call}")
    annotated = []
    for i, type_ in enumerate(returned_types):
        annotated.append(type_ + _sharding(choose, axes, len(rule.results[i]), 0.4))
        results.append(f"%r#{i}")
        if choose.random() < 0.4:
            lines.append(f"%o{i} = stablehlo.negate %r#{i} : {type_}")
            results[-1] = f"%o{i}"
    head = f"func.func @main({', '.join(args)}) -> ({', '.join(annotated)}) {{"
    last = f"return {', '.join(results)} : {', '.join(returned_types)}"
    mesh = ", ".join(f'"{name}"={size}' for name, size in axes.items())
    return "\n".join([f"sdy.mesh @m = <[{mesh}]>", head, *lines, last, "}\n"])
