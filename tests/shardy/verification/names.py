"""Names of values, blocks and aliases: one that starts with a digit is a number."""

from __future__ import annotations

GOOD = ("0", "12", "007", "a", "_a", "$a", "-a", "a0", "a.0", "a-b")
BAD = ("0_raw", "0a", "0$", "3-a", "12e")

_ARGUMENT = """func.func @main(%NAME: tensor<2xf32>) -> tensor<2xf32> {
  %x = stablehlo.add %NAME, %NAME : tensor<2xf32>
  return %x : tensor<2xf32>
}
"""
_RESULT = """func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %NAME = stablehlo.add %x, %x : tensor<2xf32>
  return %NAME : tensor<2xf32>
}
"""
_GENERIC = """func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %NAME = "stablehlo.add"(%x, %x) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  "func.return"(%NAME) : (tensor<2xf32>) -> ()
}
"""
_BLOCK = """"func.func"() <{function_type = (i32) -> (), sym_name = "main"}> ({
^NAME(%a: i32):
  "func.return"() : () -> ()
}) : () -> ()
"""
_ATTRIBUTE = """#NAME = dense<1> : tensor<2xi32>
func.func @main() -> tensor<2xi32> {
  %0 = "stablehlo.constant"() <{value = #NAME}> : () -> tensor<2xi32>
  return %0 : tensor<2xi32>
}
"""
_TYPE = """!NAME = i32
func.func @main(%a: !NAME) {
  return
}
"""
_NUMBER = """func.func @main(%%x: tensor<2xf32>) -> tensor<2xf32> {
  %%y:2 = stablehlo.optimization_barrier %%x, %%x : tensor<2xf32>, tensor<2xf32>
  %%z = stablehlo.add %%x, %%y%s : tensor<2xf32>
  %%w = "stablehlo.abs"(%%y%s) : (tensor<2xf32>) -> tensor<2xf32>
  return %%z : tensor<2xf32>
}
"""
_NUMBERS = (
    ("#1", "#1"), (" #1", "#0"), ("\n#1", "\n  #1"), (" // c\n #1", "#1"), ("#01", "#1"),
    ("#2", ""), ("#x", ""), ("#-1", ""), ("#99999999999999999999", ""), ("#", ""),
    (" # 1", ""), ("", " #x"),
)  # fmt: skip
_ALIAS = """sdy.mesh @mesh = <["a"=2]>
#s = #sdy.sharding<@mesh, [{"a"}]>
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %y = sdy.sharding_constraint %x #s : tensor<2xf32>
  return %y : tensor<2xf32>
}
"""


def programs() -> list[str]:
    """Programs with each name in each place; MLIR says something of its own of one with a dot."""
    places = (_ARGUMENT, _RESULT, _GENERIC, _BLOCK, _ATTRIBUTE, _TYPE)
    found = [place.replace("NAME", name) for place in places for name in (*GOOD, *BAD)]
    found += [_NUMBER % numbers for numbers in _NUMBERS]
    return [*found, _ALIAS, _RESULT.replace("NAME", "1.5")]
