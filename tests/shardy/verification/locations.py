"""Locations, sound and broken, wherever MLIR reads one; aliases of them, in every order."""

from __future__ import annotations

T = "tensor<4xf32>"
DEFINED = '#l = loc("x":1:1)\n#number = 1 : i64\n'
LATER = '\n#later = loc("y")'

PLACES = [
    '"a"', '"a":1:2', '"a":1', '"a":1:2 to 3:4', '"a":1:2 to :4', '"a":1:2 to 3', '"a":1:2 to',
    '"a":x:2', '"a":1:x', '"a":-1:2', '"a":1:', '"a":', '"a":4294967295:1', '"a":4294967296:1',
    '"a":1:99999999999', '"a":0x10:0xf', '"a":01:1', '"a":0:0', '"a":3:2 to 1:1', '"a":1:1:1',
    '"a" : 1 : 2', '"a"(unknown)', '"a"("b":1:2)', '"a"(', '"a"()', '"a"(#l)', '"a"(#nope)',
    '"a"(#later)', '"a"(loc("b"))', '"a"#l', '"a" "b"', '"a', '"\\zz"', '""', '"":1:1', "unknown",
    "Unknown", "unknown 1", "unknown, unknown", "nope", "", "1", "@a", "f32", "[]", "{}",
    'callsite("a" at "b")', 'callsite("a":1:1 at callsite("b":1:1 at unknown))',
    'callsite("a")', 'callsite("a" "b")', 'callsite("a" at)', 'callsite(at "b")', "callsite",
    "callsite()", 'callsite("a" at "b"', 'callsite("a" AT "b")', "callsite(#l at #l)",
    "callsite(#l at #nope)", "callsite(#nope at #l)", "callsite(#later at #l)",
    "callsite(#number at #l)", 'callsite(loc("a") at "b")', "fused[]", 'fused["a"]',
    'fused["a", "b":1:2]', 'fused<"m">["a"]', "fused<1>[unknown]", 'fused<"m" : i32>["a"]',
    'fused<{a = 1}>["a"]', 'fused<>["a"]', 'fused<"a", "b">["c"]', 'fused<#number>["a"]',
    'fused<#nope>["a"]', 'fused<#later>["a"]', 'fused<"m">', "fused", 'fused["a",]', 'fused["a"',
    "fused[#l, #nope]", "fused[#later]", "fused[#number]", 'fused[loc("b")]', "#l", "#nope",
    "#later", "#number", "#", "#l, #l", "#later(#l)", 'loc("a")',
]  # fmt: skip
"""What stands between the parentheses."""

AROUND = [
    "func.func @f(%a: {T}) -> {T} {{\n"
    "  %0 = stablehlo.abs %a : {T} loc({at})\n  return %0 : {T}\n}}",
    "func.func @f(%a: {T} loc({at})) -> {T} {{\n  return %a : {T}\n}}",
    "#m =\n loc({at})\nfunc.func private @f()",
    "module attributes {{a.b =\n loc({at})}} {{\n}}",
    "func.func @f(%a: {T}) {{\n  return\n}}\n#m = loc({at})\nfunc.func private @g()",
    "module {{\n func.func private @f()\n}} loc({at})",
    '"func.func"() <{{function_type = ({T}) -> (), sym_name = "f"}}> ({{\n'
    "^bb0(%b: {T} loc({at})):\n"
    '  "func.return"() : () -> ()\n}}) : () -> ()',
]
"""Where it stands."""

ALIASES = [
    '{f} loc(#b)\n#a = loc(#b)\n#b = loc("x")',
    "{f} loc(#a)\n#a = 1 : i64",
    "{f} loc(#a)\n#a = loc(unknown)\n#a = loc(unknown)",
    "{f} loc(#a)",
    '{f} loc(#a)\n#a = "x"',
    '#a = loc(#b)\n#b = loc("x")\n{f} loc(#a)',
    '#b = loc("x")\n#a = loc(#b)\n{f} loc(#a)',
    "#a = loc(#a)\n{f} loc(#a)",
    '#a = loc(callsite("x" at #b))\n#b = loc("y")\n{f} loc(#a)',
    '#b = loc("y")\n#a = loc(callsite("x" at #b))\n{f} loc(#a)',
    '#a = #b\n#b = loc("y")\n{f} loc(#a)',
    '#b = loc("y")\n#a = #b\n{f} loc(#a)',
    '#b = loc("y")\n#a = #b\n#c = loc(fused[#a, #b])\n{f} loc(#c)',
    "#b = 1 : i64\n#a = #b\n{f} loc(#a)",
    '#b = loc("y")\n{f} attributes {{a.b = #b}}',
    '{f} attributes {{a.b = #b}}\n#b = loc("y")',
    '{f} attributes {{a.b = loc(#b)}}\n#b = loc("y")',
    '#b = loc("y")\n{f} attributes {{a.b = loc(#b)}}',
    '#b loc("y")\n{f}',
    "#b = loc\n{f}",
    "#b = \n{f}",
    "# = loc(unknown)\n{f}",
    '{f} loc "y"',
    "{f} loc",
    "{f} loc (unknown)",
    '{f} loc(#a\n)\n#a = loc("y")',
    'func.func @f(%a: i32 loc("x"), %b: i32 loc(#q)) {{\n  return\n}}',
    'func.func @f(%a: i32 loc("x"), %b: i32 loc(#q)) {{\n  return\n}}\n#q = loc("z")',
    'func.func @f(%a: i32 loc("x"), %b: i32 loc(#q)) {{\n  return\n}}\n#q = 1 : i64',
    "func.func @f(%a: i32 loc(#q)) {{\n  return loc(#q)\n}} loc(#q)",
    "func.func @f() {{\n  return loc(#a)\n}}\nfunc.func @g() {{\n  return loc(#b)\n}}",
    'func.func private @f(i32 loc("x"))',
    'func.func @f() -> (i32 loc("x")) {{\n  return\n}}',
    "func.func @f() {{\n  %0 = stablehlo.iota dim = 0 : {T} loc(#a)\n  return %1 : i32\n}}",
]  # fmt: skip
"""Definitions of aliases and their uses in every order."""


def nested(depth: int) -> list[str]:
    """Locations inside each other."""
    deep = [
        "callsite(" * depth + '"x":1:2' + ' at "y":3:4)' * depth,
        'callsite("x":1:2 at ' * depth + '"y":3:4' + ")" * depth,
        "fused[" * depth + '"x":1:2' + "]" * depth,
        '"n"(' * depth + '"x":1:2' + ")" * depth,
    ]
    return [AROUND[0].format(T=T, at=at) for at in deep]


def programs() -> list[str]:
    """All of them, in a fixed order."""
    at_places = [
        DEFINED + around.format(T=T, at=at) + LATER for at in PLACES for around in AROUND
    ]  # fmt: skip
    aliases = [text.format(f="func.func private @f()", T=T) for text in ALIASES]
    return [*at_places, *aliases, *nested(20)]
