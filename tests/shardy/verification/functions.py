"""Functions, calls and returns, sound and broken."""

from __future__ import annotations

import re
from collections.abc import Iterator

T = "tensor<4xf32>"

SOUND = [
    """func.func @f(%a: T) -> T {
  return %a : T
}
func.func private @g(T, i32) -> (T, T)
func.func @h(%a: T, %b: i32) -> T attributes {no_inline} {
  %0:2 = func.call @g(%a, %b) : (T, i32) -> (T, T)
  %1 = "func.call"(%0#0) <{callee = @f}> : (T) -> T
  "func.return"(%1) : (T) -> ()
}""",
    """"func.func"() <{function_type = (T, i32) -> T, sym_name = "f", sym_visibility = "nested"}> ({
^bb0(%a: T, %b: i32):
  "func.return"(%a) : (T) -> ()
}) {a.b = 1 : i64} : () -> ()""",
    """"func.func"() ({
}) {function_type = (T) -> T, sym_name = "f", sym_visibility = "private", arg_attrs = [{a.b = 1 : i64}], res_attrs = [{}]} : () -> ()""",  # noqa: E501
    """func.func @f(%a: T {a.b = "c"}) -> (T {a.b}) {
  %f = func.constant @f : (T) -> T
  %0 = func.call_indirect %f(%a) : (T) -> T
  %g = "func.constant"() <{value = @f}> : () -> ((T) -> T)
  %1 = "func.call_indirect"(%g, %0) : ((T) -> T, T) -> T
  return %1 : T
}""",
]
TOKENS = re.compile(r'tensor<[^>]*>|@\w+|%\w+(?:#\d)?|"[^"]*"|\w+(?:\.\w+)+|\w+|->|[(){}\[\],=:]')
"""What is changed: a token at a time."""
TYPES = ["T", "i32", "tensor<5xf32>", "tensor<4xf64>", "!stablehlo.token", "(T) -> T", "none"]


def others(token: str) -> list[str]:
    """What may stand in place of ``token``."""
    if token in ("T", "i32"):
        return [ty for ty in TYPES if ty != token]
    if token.startswith("@"):
        return ["@f", "@nobody", "@g", '@"f"']
    if token.startswith("%"):
        return ["%a", "%b", "%0", "%nobody"]
    if token in ("private", "no_inline"):
        return ["public", "nested", "no_inline = 1 : i64", ""]
    if token.startswith('"'):
        if "func." in token:
            return ['"func.call"', '"func.return"', '"stablehlo.return"', '"func.nothing"']
        return ['"f"', '"private"', '"public"', "1 : i64", "@f"]
    if "." in token:
        return ["func.call", "func.return", "stablehlo.return", "sdy.return", "func.nothing"]
    if token.isdigit():
        return ["0", "1", "2"]
    return []


def variants(text: str) -> Iterator[str]:
    """``text`` with a token replaced, dropped or doubled, or a line dropped, doubled or moved."""
    for match in TOKENS.finditer(text):
        for other in [*others(match[0]), "", f"{match[0]} {match[0]}", f"{match[0]}, {match[0]}"]:
            yield text[: match.start()] + other + text[match.end() :]
    lines = text.split("\n")
    for at, line in enumerate(lines):
        rest = lines[:at] + lines[at + 1 :]
        yield "\n".join(rest)
        yield "\n".join([*lines[: at + 1], *lines[at:]])
        for to in range(len(rest)):
            yield "\n".join([*rest[:to], line, *rest[to:]])


def broken() -> list[str]:
    """All of them, each once."""
    made = [other for text in SOUND for other in variants(text)]
    return list(dict.fromkeys(spelt(text) for text in made))


def sound() -> list[str]:
    return [spelt(text) for text in SOUND]


def spelt(text: str) -> str:
    """``text`` with its types written out."""
    return re.sub(r"\bT\b", T, text)
