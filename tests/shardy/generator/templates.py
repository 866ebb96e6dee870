"""Ops of every family with a rule, taken from `rule_cases`, on values of a scope."""

from __future__ import annotations

import re

from tests.shardy import rule_cases
from tests.shardy.generator.scope import Scope, Value, parse_tensor

OPERAND = re.compile(r"%a(\d+)\b")
LOCAL = re.compile(r"%([a-z]\d*)\b")


def op(scope: Scope) -> None:
    """Add an op of a random family."""
    make = scope.rng.choice(rule_cases.FAMILIES)
    case = make(scope.rng)
    # The shape of random numbers must be that of the constant it is computed from.
    if not isinstance(case, rule_cases.Case) or '"stablehlo.rng"' in case:
        return
    types = [parse_tensor(text) for text in case.operands]
    shapes = [parse_tensor(text) for text in case.results]
    if None in types or None in shapes:
        return
    if any(len(shape) > 6 for shape, _ in (*types, *shapes)):
        return
    operands = [scope.of(shape, dtype) for shape, dtype in types]
    prefix = scope.module.name()
    line = case.line
    if case.results:
        results = [
            Value(f"{prefix}_r#{at}", shape, dtype) for at, (shape, dtype) in enumerate(shapes)
        ]
        signature = f" : ({', '.join(case.operands)}) -> ({', '.join(case.results)})"
        head, _, tail = line.rpartition(signature)
        if not tail and "{sdy." not in head:
            line = f"{head}{scope.attribute(results)}{signature}"
        scope.pool += results

    def rename(text: str) -> str:
        text = OPERAND.sub(lambda match: f"\0{operands[int(match[1])].name[1:]}", text)
        return LOCAL.sub(lambda match: f"{prefix}_{match[1]}", text).replace("\0", "%")

    if case.before:
        scope.emit(rename(case.before))
    scope.emit(rename(line))
