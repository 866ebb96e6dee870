"""Scans of CHLO: which operands are inputs, and which are carried, is what their syntax says."""

from __future__ import annotations

from tests.shardy.verification.compare import compare

LONG, SHORT = "tensor<4xf32>", "tensor<f32>"


def scan(inputs: str, inits: str, operands: str, args: str, returned: str, results: str) -> str:
    """A scan of two operands and results; types are letters, long or short."""

    def types(letters: str) -> str:
        return ", ".join(LONG if letter == "l" else SHORT for letter in letters)

    first, second = types(args).split(", ")
    return f"""func.func @f(%x: {LONG}, %c: {LONG}, %d: {SHORT}) {{
  %0:2 = chlo.scan({inputs}) inits ({inits}) dimension=0 {{
  ^bb0(%i: {first}, %j: {second}):
    stablehlo.return %i, %j : {types(returned)}
  }} : ({types(operands)}) -> ({types(results)})
  return
}}"""


SCANS = {
    "two inputs": scan("%x, %c", "", "ll", "ss", "ss", "ll"),
    "an input and an initial value": scan("%x", "%d", "ls", "ss", "ss", "ls"),
    "an initial value that looks like an input": scan("%x", "%c", "ll", "ss", "ss", "ls"),
    "an input without the dim": scan("%x, %d", "", "ls", "ss", "ss", "ls"),
    "neither inputs nor outputs": scan("", "%x, %d", "ls", "ls", "ls", "ls"),
    "initial values that look like inputs": scan("", "%x, %c", "ll", "ss", "ss", "ss"),
}


def test_scans() -> None:
    for name, answer in zip(SCANS, compare(list(SCANS.values())), strict=True):
        is_right = name in ("two inputs", "an input and an initial value")
        verdict = "both accept" if is_right else "both refuse alike"
        assert answer.verdict == verdict, (name, answer)
