"""Blocks, branches and the ways between them: what MLIR refuses is refused, in its words."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from shardcore import Module, PassManager

from tests.shardy.verification.compare import compare

TYPE = "tensor<8xf32>"


def branch(random: Random, labels: list[str], args: dict[str, int], values: list[str]) -> str:
    """A branch to some of `labels`, mostly with the operands that they take."""

    def passed(label: str) -> list[str]:
        count = args[label] + (random.random() < 0.02)
        return [random.choice(values) for _ in range(count)]

    if random.random() < 0.15:
        return '"func.return"() : () -> ()'
    if random.random() < 0.5:
        to = random.choice(labels)
        operands = passed(to)
        types = ", ".join([TYPE] * len(operands))
        more = f", {random.choice(labels)}" if random.random() < 0.03 else ""
        return f'"cf.br"({", ".join(operands)})[{to}{more}] : ({types}) -> ()'
    then, otherwise = random.choice(labels), random.choice(labels)
    first, second = passed(then), passed(otherwise)
    types = ", ".join(["i1", *[TYPE] * len(first + second)])
    sizes = f"array<i32: 1, {len(first)}, {len(second)}>"
    properties = f"<{{operandSegmentSizes = {sizes}}}>"
    to = f"[{then}, {otherwise}]"
    return f'"cf.cond_br"({", ".join(["%p", *first, *second])}){to} {properties} : ({types}) -> ()'


def function(seed: int) -> str:
    """A function of several blocks, some of which use values that may not be defined there."""
    random = Random(seed)
    count = random.randint(2, 6)
    labels = [f"^bb{block}" for block in range(1, count)]
    args = {label: random.choice([0, 0, 1]) for label in labels}
    places = [f"%b{block}" for block in range(1, count) if args[f"^bb{block}"]]
    made = [f"%v{block}" for block in range(count)]
    lines = [f"func.func @f(%a: {TYPE}, %p: i1) {{"]
    for block in range(count):
        if block:
            label = f"^bb{block}"
            lines.append(f"{label}(%b{block}: {TYPE}):" if args[label] else f"{label}:")
        near = random.random() < 0.6
        usable = ["%a"] if near else ["%a", *places, *made[:block], *made[block + 1 :]]
        lines.append(f"  %v{block} = stablehlo.abs {random.choice(usable)} : {TYPE}")
        if random.random() < 0.3:
            lines.append(
                f'  %w{block} = "stablehlo.case"(%i{block}) ({{\n'
                f"    %x{block} = stablehlo.negate {random.choice(usable)} : {TYPE}\n"
                f"    stablehlo.return %x{block} : {TYPE}\n  }}) : (tensor<i32>) -> {TYPE}"
            )
            lines.insert(-1, f"  %i{block} = stablehlo.constant dense<0> : tensor<i32>")
        lines.append("  " + branch(random, labels, args, [*usable, f"%v{block}"]))
    return "\n".join([*lines, "}"])


@pytest.mark.parametrize("start", range(0, 400, 50))
def test_random_blocks(start: int) -> None:
    answers = list(compare([function(seed) for seed in range(start, start + 50)]))
    verdicts = Counter(answer.verdict for answer in answers)
    assert set(verdicts) == {"both accept", "both refuse alike"}, [
        answer for answer in answers if "only" in answer.verdict or "other" in answer.verdict
    ]
    assert min(verdicts.values()) >= 5


def conditional(operands: str, blocks: str, sizes: str, types: str) -> str:
    properties = f"<{{operandSegmentSizes = array<i32: {sizes}>}}>"
    return f'"cf.cond_br"({operands})[{blocks}] {properties} : ({types}) -> ()'


BRANCHES = {
    "two successors": '"cf.br"()[^bb1, ^bb2] : () -> ()',
    "no successor": '"cf.br"() : () -> ()',
    "a result": '%r = "cf.br"()[^bb1] : () -> tensor<8xf32>',
    "operands": '"cf.br"(%a)[^bb1] : (tensor<8xf32>) -> ()',
    "other type": '"cf.br"(%c)[^bb3] : (tensor<2xf32>) -> ()',
    "right": '"cf.br"(%a)[^bb3] : (tensor<8xf32>) -> ()',
    "one of two": conditional("%p", "^bb1", "1, 0, 0", "i1"),
    "no sizes": '"cf.cond_br"(%p)[^bb1, ^bb2] : (i1) -> ()',
    "no condition": conditional("%a", "^bb1, ^bb2", "1, 0, 0", "tensor<8xf32>"),
    "wide condition": conditional("%n", "^bb1, ^bb2", "1, 0, 0", "i32"),
    "second operand": conditional("%p, %c", "^bb1, ^bb3", "1, 0, 1", "i1, tensor<2xf32>"),
    "of a return": '"func.return"()[^bb1] : () -> ()',
    "of no terminator": '%r = "stablehlo.abs"(%a)[^bb1] : (tensor<8xf32>) -> tensor<8xf32>\nreturn',
}


def test_branches() -> None:
    texts = {
        name: f"""func.func @f(%a: tensor<8xf32>, %c: tensor<2xf32>, %p: i1, %n: i32) {{
  {op}
^bb1:
  return
^bb2:
  return
^bb3(%b: tensor<8xf32>):
  return
}}"""
        for name, op in BRANCHES.items()
    }
    for name, answer in zip(texts, compare(list(texts.values())), strict=True):
        verdict = "both accept" if name == "right" else "both refuse alike"
        assert answer.verdict == verdict, (name, answer)


def test_the_entry_is_not_jumped_to() -> None:
    (answer,) = compare(['func.func @f() {\n^bb0:\n  "cf.br"()[^bb0] : () -> ()\n}'])
    assert answer.verdict == "both refuse alike"
    assert answer.ours == [(1, "entry block of region may not have predecessors")]


def test_branches_stay_after_passes() -> None:
    text = 'func.func @f() {\n  "cf.br"()[^bb1] : () -> ()\n^bb1:\n  return\n}'
    module = Module.parse(text)
    manager = PassManager.parse("builtin.module(symbol-dce)")
    manager.enable_verifier(True)
    manager.run(module)
    assert "^bb1" in str(module)


def switch(
    sizes: str,
    segments: str | None = "",
    values: str | None = None,
    to: str = "[^bb1]",
    operands: str = "%i",
    types: str = "i32",
) -> str:
    """A switch whose operands are the flag, those of the default, and those of the cases."""
    listed = [] if values is None else [f"case_values = {values}"]
    if segments is not None:
        colon = ": " if segments else ""
        listed.append(f"case_operand_segments = array<i32{colon}{segments}>")
    listed.append(f"operandSegmentSizes = array<i32: {sizes}>")
    return f'"cf.switch"({operands}){to} <{{{", ".join(listed)}}}> : ({types}) -> ()'


ONE = "dense<3> : tensor<1xi32>"
TWO = "[^bb1, ^bb1]"
TO_ARG = "[^bb1, ^bb2]"

SWITCHES = {
    "right": switch("1, 0, 0"),
    "right with a case": switch("1, 0, 0", "0", ONE, TWO),
    "right with equal cases": switch(
        "1, 0, 0", "0, 0", "dense<3> : tensor<2xi32>", "[^bb1, ^bb1, ^bb1]"
    ),
    "right with values in rows": switch("1, 0, 0", "0", "dense<3> : tensor<1x1xi32>", TWO),
    "right with values in a vector": switch("1, 0, 0", "0", "dense<3> : vector<1xi32>", TWO),
    "right without cases": switch("1, 0, 0", "", "dense<> : tensor<0xi32>"),
    "right with two flags": switch("2, 0, 0", operands="%i, %i", types="i32, i32"),
    "right with arguments": switch(
        "1, 1, 1", "1", ONE, "[^bb2, ^bb2]", "%i, %a, %a", f"i32, {TYPE}, {TYPE}"
    ),
    "by a tensor": switch("1, 0, 0", operands="%t", types="tensor<i32>"),
    "by an index": switch("1, 0, 0", operands="%x", types="index"),
    "without a flag": switch("0, 0, 0", operands="", types=""),
    "too large a sum": switch("1, 1, 0"),
    "a negative size": switch("1, -1, 1"),
    "without segments": switch("1, 0, 0", None),
    "values of another type": switch("1, 0, 0", "0", "dense<3> : tensor<1xi64>", TWO),
    "too many values": switch("1, 0, 0", "0", "dense<[3, 4]> : tensor<2xi32>", TWO),
    "values without cases": switch("1, 0, 0", "", ONE),
    "segments beyond the operands": switch("1, 0, 0", "1", ONE, TWO),
    "a negative segment": switch(
        "1, 0, 0", "1, -1", "dense<[3, 4]> : tensor<2xi32>", "[^bb1, ^bb1, ^bb1]"
    ),
    "a default without its argument": switch("1, 0, 0", to="[^bb2]"),
    "a default with another argument": switch(
        "1, 1, 0", to="[^bb2]", operands="%i, %i", types="i32, i32"
    ),
    "a case without its argument": switch("1, 0, 0", "0", ONE, TO_ARG),
    "a case with another argument": switch(
        "1, 0, 1", "1", ONE, TO_ARG, operands="%i, %i", types="i32, i32"
    ),
    "nowhere": switch("1, 0, 0", to=""),
    "a result": "%r = " + switch("1, 0, 0")[:-2] + "i32",
}


def test_switches() -> None:
    texts = {
        name: f"""func.func @f(%i: i32, %t: tensor<i32>, %x: index, %a: {TYPE}) {{
  {op}
^bb1:
  return
^bb2(%b: {TYPE}):
  return
}}"""
        for name, op in SWITCHES.items()
    }
    for name, answer in zip(texts, compare(list(texts.values())), strict=True):
        verdict = "both accept" if name.startswith("right") else "both refuse alike"
        assert answer.verdict == verdict, (name, answer)


ODD_SWITCHES = {
    "only the number of elements": switch(
        "1, 0, 0", "0", "dense<3.000000e+00> : tensor<1xf32>", TWO
    ),
    "a number": switch("1, 0, 0", "0", "3 : i32", TWO),
    "a list": switch("1, 0, 0", "0", "array<i32: 3>", TWO),
    "segments of i64": switch("1, 0, 0").replace("segments = array<i32>", "segments = array<i64>"),
}


def test_attributes_of_switches_that_cannot_be_stored() -> None:
    texts = [
        f"func.func @f(%i: i32) {{\n  {op}\n^bb1:\n  return\n}}" for op in ODD_SWITCHES.values()
    ]
    for answer in compare(texts):
        assert answer.verdict == "both refuse alike", answer
        assert "in property conversion" in answer.ours[0][1]


@pytest.mark.parametrize(("segments", "values"), [("0", None), ("", ONE)])
def test_switches_that_the_reference_dies_of(segments: str, values: str | None) -> None:
    op = switch("1, 0, 0", segments, values, TWO)
    (answer,) = compare([f"func.func @f(%i: i32) {{\n  {op}\n^bb1:\n  return\n}}"])
    assert answer.verdict == "the reference dies"
    assert answer.ours


ASSERTIONS = {
    "right": '"cf.assert"(%p) <{msg = "x"}> : (i1) -> ()',
    "another type": '"cf.assert"(%i) <{msg = "x"}> : (i32) -> ()',
    "a tensor": '"cf.assert"(%t) <{msg = "x"}> : (tensor<i1>) -> ()',
    "no message": '"cf.assert"(%p) : (i1) -> ()',
    "a number as property": '"cf.assert"(%p) <{msg = 3}> : (i1) -> ()',
    "a number": '"cf.assert"(%p) {msg = 3} : (i1) -> ()',
    "no operand": '"cf.assert"() <{msg = "x"}> : () -> ()',
    "two operands": '"cf.assert"(%p, %p) <{msg = "x"}> : (i1, i1) -> ()',
    "a result": '%r = "cf.assert"(%p) <{msg = "x"}> : (i1) -> i1',
    "a region": '"cf.assert"(%p) ({}) {msg = "x"} : (i1) -> ()',
    "a successor": '"cf.assert"(%p)[^bb1] <{msg = "x"}> : (i1) -> ()\n^bb1:',
    "an op that is not there": '"cf.foo"(%p) : (i1) -> ()',
}


def test_assertions() -> None:
    texts = {
        name: f"func.func @f(%p: i1, %i: i32, %t: tensor<i1>) {{\n  {op}\n  return\n}}"
        for name, op in ASSERTIONS.items()
    }
    for name, answer in zip(texts, compare(list(texts.values())), strict=True):
        verdict = "both accept" if name == "right" else "both refuse alike"
        assert answer.verdict == verdict, (name, answer)


EARLY = {
    "an operand": f"%0 = stablehlo.add %a, %1 : {TYPE}\n  %1 = stablehlo.abs %a : {TYPE}",
    "a result of its own": f"%0 = stablehlo.abs %0 : {TYPE}",
    "the first of two uses": f"""%0 = stablehlo.add %1, %1 : {TYPE}
  %2 = stablehlo.add %1, %1 : {TYPE}
  %1 = stablehlo.abs %a : {TYPE}""",
    "the first of two names": f"""%0 = stablehlo.add %x, %y : {TYPE}
  %y = stablehlo.abs %a : {TYPE}
  %x = stablehlo.abs %a : {TYPE}""",
    "an initial value": f"""%0 = stablehlo.reduce(%a init: %c) applies stablehlo.add across
      dimensions = [0] : ({TYPE}, tensor<f32>) -> tensor<f32>
  %c = stablehlo.constant dense<0.0> : tensor<f32>""",
    "within a region": f"""%0 = "stablehlo.case"(%i) ({{
    stablehlo.return %1 : {TYPE}
  }}) : (tensor<i32>) -> {TYPE}
  %1 = stablehlo.abs %a : {TYPE}""",
    "defined within a region": f"""%2 = stablehlo.abs %1 : {TYPE}
  %0 = "stablehlo.case"(%i) ({{
    %1 = stablehlo.abs %a : {TYPE}
    stablehlo.return %1 : {TYPE}
  }}) : (tensor<i32>) -> {TYPE}""",
    "of another type": f"""%0 = stablehlo.add %a, %1 : {TYPE}
  %1 = stablehlo.constant dense<1> : tensor<2xi32>""",
    "never defined": f"%0 = stablehlo.add %a, %1 : {TYPE}",
    "a number that comes later": f"""%0 = stablehlo.add %a, %1#1 : {TYPE}
  %1 = stablehlo.abs %a : {TYPE}""",
    "a number that is not there": f"%0 = stablehlo.add %a, %a#1 : {TYPE}",
}


def test_uses_before_definitions() -> None:
    texts = {
        name: f"func.func @f(%a: {TYPE}, %i: tensor<i32>) {{\n  {ops}\n  return\n}}"
        for name, ops in EARLY.items()
    }
    for name, answer in zip(texts, compare(list(texts.values())), strict=True):
        assert answer.verdict == "both refuse alike", (name, answer)
