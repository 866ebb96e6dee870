"""Random programs that replays cover: nothing is unused, in a group, called or manual."""

from __future__ import annotations

from random import Random

from tests.session.test_sparse import BINARY, TYPE, UNARY, written

REGIONS = {
    "barrier": "stablehlo.optimization_barrier {0}, {1} : {type}, {type}",
    "call": "stablehlo.custom_call @unknown({0}, {1}) : ({type}, {type}) -> ({type}, {type})",
    "while": """stablehlo.while(%a{number} = {0}, %b{number} = {1}) : {type}, {type}
  cond {{
    %t{number} = stablehlo.constant dense<true> : tensor<i1>
    stablehlo.return %t{number} : tensor<i1>
  }} do {{
    %i{number} = {inner}
    stablehlo.return %i{number}, %a{number} : {type}, {type}
  }}""",
    "case": """"stablehlo.case"(%index) ({{
    %i{number} = {inner}
    stablehlo.return %i{number}, {0} : {type}, {type}
  }}, {{
    stablehlo.return {1}, {0} : {type}, {type}
  }}) : (tensor<i32>) -> ({type}, {type})""",
}
"""Ops with two results."""


class Builder:
    """A program as it grows."""

    def __init__(self, rng: Random, num_args: int) -> None:
        self._rng = rng
        self.values = [f"%arg{index}" for index in range(num_args)]
        self.unused = list[str]()
        self.lines = list[str]()

    def _value(self) -> str:
        """A value, which is used from now on."""
        last = self.values[-3:] if self._rng.random() < 0.5 else self.values
        value = self._rng.choice(last)
        if value in self.unused:
            self.unused.remove(value)
        return value

    def _add(self, *results: str) -> None:
        self.values += results
        self.unused += results

    def rows(self, number: int) -> None:
        """Add sums of products along the rows."""
        self.lines += [
            f"  %p{number} = stablehlo.dot_general {self._value()}, {self._value()}, "
            f"batching_dims = [0] x [0], contracting_dims = [1] x [1] : ({TYPE}, {TYPE}) -> "
            "tensor<4xf32>",
            f"  %v{number} = stablehlo.broadcast_in_dim %p{number}, "
            f"dims = [{self._rng.randrange(2)}] : (tensor<4xf32>) -> {TYPE}",
        ]
        self._add(f"%v{number}")

    def op(self, number: int) -> None:
        """Add an op of one or two values."""
        form = self._rng.choice((*BINARY, *UNARY))
        operands = [self._value() for _ in range(2 if form in BINARY else 1)]
        self.lines.append(f"  %v{number} = {form.format(*operands, type=TYPE)}")
        self._add(f"%v{number}")

    def pair(self, number: int) -> None:
        """Add an op with two results."""
        kind, op = self._rng.choice(list(REGIONS.items()))
        first, second = self._value(), self._value()
        outer = self._value() if kind in ("while", "case") else first
        inside = (f"%a{number}", f"%b{number}") if kind == "while" else (first, second)
        operands = self._rng.choice(inside), outer
        inner = BINARY[self._rng.randrange(len(BINARY))].format(*operands, type=TYPE)
        text = op.format(first, second, type=TYPE, number=number, inner=inner)
        self.lines.append(f"  %v{number}:2 = {text}")
        self._add(f"%v{number}#0", f"%v{number}#1")


def program(rng: Random, num_args: int) -> str:
    """Ops on matrices, each of two values before it or of one, or with two results; sums of
    products along the rows.
    """
    builder = Builder(rng, num_args)
    for number in range(rng.randrange(10, 30)):
        choice = rng.random()
        if choice < 0.25:
            builder.pair(number)
        elif choice < 0.5:
            builder.rows(number)
        else:
            builder.op(number)
    args = [f"%arg{index}: {TYPE}" for index in range(num_args)]
    return written([*args, "%index: tensor<i32>"], builder.lines, builder.unused)
