"""Attributes and blocks of modules, functions and calls, and properties that no op has."""

from __future__ import annotations

_MODULES = (
    "module attributes {%s} { func.func @f() { return } }",
    "module { module @inner attributes {%s} { func.func @f() { return } } }",
    '"builtin.module"() ({ func.func @f() { return } }) {%s} : () -> ()',
    '"builtin.module"() <{%s}> ({ func.func @f() { return } }) : () -> ()',
)
_OF_MODULES = (
    "", "b.c = 1", "b", "c = 1, b.c = 2, a = 3", '"a b" = 1', 'sym_name = "n"',
    'sym_visibility = "private"', "sym_name", "sym_visibility = 1 : i64", "x.sym_name = 1",
)  # fmt: skip

_SYMBOLS = (
    'module %s attributes {sym_visibility = "%s"} { func.func @f() { return } }',
    'module { module %s attributes {sym_visibility = "%s"} { func.func @f() { return } } }',
)
_VISIBILITIES = ("public", "nested", "hidden", "")
_MESHES = 'module { sdy.mesh @m = <["a"=2]> {sym_visibility = "%s"} }'
_EMPTY = (
    '"builtin.module"() ({%s}) : () -> ()',
    'module { "builtin.module"() <{sym_name = "n", sym_visibility = "hidden"}> ({%s}) : () -> () }',
)

_FUNCTIONS = (
    "func.func @f()\n  attributes {%s} {\n  return\n}",
    "func.func private @f() attributes {%s}",
    "func.func public @f(%%a: i32 {x.y}) attributes {z.t, %s} { return }",
)
_OF_FUNCTIONS = (
    "b", "b.c = 1", 'sym_name = "g"', 'sym_visibility = "private"', "function_type = () -> ()",
    'function_type = () -> (), sym_name = "g"', "no_inline",
)  # fmt: skip

_PORTS = (
    "func.func @f(%a: i32 {x.y = 1 : i32}) attributes {arg_attrs = [{x.y = 2 : i32}]} { return }",
    "func.func @f(%a: i32 {}) attributes {arg_attrs = [{x.y = 2 : i32}]} { return }",
    "func.func private @f(i32) -> (i32 {x.y = 1 : i32}) attributes {res_attrs = [{}]}",
    "func.func private @f(i32 {x.y = 1 : i32}) -> i32 attributes {res_attrs = [{}]}",
)

_OPS = """sdy.mesh @m = <["a"=2]>
func.func @f(%%x: tensor<8xf32>) {
  %%0 = "stablehlo.abs"(%%x)%s : (tensor<8xf32>) -> tensor<8xf32>
  %%1 = "chlo.acos"(%%x)%s : (tensor<8xf32>) -> tensor<8xf32>
  %%2 = "stablehlo.iota"() <{iota_dimension = 0 : i64%s}> : () -> tensor<8xf32>
  %%3 = "func.call"(%%x) <{callee = @g%s}> : (tensor<8xf32>) -> tensor<8xf32>
  %%4 = "sdy.reshard"(%%x) <{sharding = #sdy.sharding<@m, [{}]>%s}> : (tensor<8xf32>) -> tensor<8xf32>
  "func.return"()%s : () -> ()
}
func.func @g(%%x: tensor<8xf32>) -> tensor<8xf32> { return %%x : tensor<8xf32> }
"""  # noqa: E501
_PROPERTIES = (
    "b = 3 : i64", "b.c = 3 : i64", "sdy.sharding = 3 : i64", "sdy.sharding_rule = 4 : i64",
    'sdy.sharding = #sdy.sharding_per_value<[<@m, [{"a"}]>]>', 'mhlo.sharding = "x"',
    "sdy.propagation_edges = 3 : i64",
)  # fmt: skip
_LIKE_PROPERTIES = ("<{}>", "<3 : i64>", "<unit>", '{sdy.sharding = "x"}', "{b = 3}")
_IOTA = """func.func @f() {
  %0 = "stablehlo.iota"() <unit> {iota_dimension = 0 : i64} : () -> tensor<2xf32>
  return
}"""

_MESH = """func.func @f() {
  sdy.mesh @m = <["a"=2]>
  return
}"""

_GROUP = """func.func @f(%x: tensor<8xf32>) {
  sdy.sharding_group %x group_id=0x10 : tensor<8xf32>
  return
}"""

_CALL = """func.func @f() {
  "func.call"() <{callee = %s}> : () -> ()
  return
}"""
_SHORT = """func.func @f(%%a: tensor<f32>, %%i: tensor<i32>) -> tensor<f32> {
  %%0 = "stablehlo.case"(%%i) ({
    %%1 = %s @g(%%a) : (tensor<f32>) -> tensor<f32>
    "stablehlo.return"(%%1) : (tensor<f32>) -> ()
  }) : (tensor<i32>) -> tensor<f32>
  return %%0 : tensor<f32>
}
func.func @g(%%a: tensor<f32>) -> tensor<f32> { return %%a : tensor<f32> }
"""
_BLOCKS = (
    '"builtin.module"() ({\n^bb0:\n  func.func @f() { return }\n}) : () -> ()',
    '"builtin.module"() ({\n^bb0:\n  func.func @f() { return }\n^bb1:\n}) : () -> ()',
    '"builtin.module"() ({\n^bb0(%a: i32):\n  func.func @f() { return }\n}) : () -> ()',
    "module {\n  func.func @f() { return }\n^bb1:\n  func.func @g() { return }\n}",
    "module {\n^bb1:\n  func.func @g() { return }\n}",
    "module {\n^bb1(%a: i32):\n  func.func @g() { return }\n}",
    'func.func @f() {\n  ""() : () -> ()\n  return\n}',
)
_COMPUTATIONS = (
    """sdy.mesh @m = <["a"=2]>
func.func @f(%%x: tensor<8xf32>) -> tensor<8xf32> {
  %%0 = sdy.manual_computation(%%x) in_shardings=[<@m, [{"a"}]>] out_shardings=[<@m, [{"a"}]>]
      manual_axes={"a"} (%%y: tensor<4xf32>) {
    %s
  } : (tensor<8xf32>) -> tensor<8xf32>
  return %%0 : tensor<8xf32>
}""",
    """func.func @f(%%x: tensor<4xf32>) -> tensor<4xf32> {
  %%0 = sdy.named_computation<"n">(%%x) (%%y: tensor<4xf32>) {
    %s
  } : (tensor<4xf32>) -> tensor<4xf32>
  return %%0 : tensor<4xf32>
}""",
)
_ENDS = (
    "sdy.return %y : tensor<4xf32>", "stablehlo.return %y : tensor<4xf32>",
    '"sdy.return"(%y) : (tensor<4xf32>) -> ()', '"stablehlo.return"(%y) : (tensor<4xf32>) -> ()',
)  # fmt: skip
_DIRECTION = """func.func @f(%%x: tensor<8xf32>) {
  %%0 = sdy.propagation_barrier %%x allowed_direction=%s : tensor<8xf32>
  return
}"""
_DIRECTIONS = ("NONE", '"NONE"', '"FORWARD"', '"BACKWARD"', '"UP"', '"1"')
_DECLARATION = "func.func private @f(%s)"
_PARTS = ("%a: i32, %b: i32", "i32, i32", "%a: i32, i32", "i32, %a: i32", "%a: i32, i32 {x.y}")
_IN_FUNCTION = """func.func @f(%%x: tensor<8xf32>) {
  %s
  return
}"""
_SHORT_NAMES = (
    "module { }", "builtin.module { }",
    "%0 = unrealized_conversion_cast %x : tensor<8xf32> to tensor<4xf32>",
    "%0 = builtin.unrealized_conversion_cast %x : tensor<8xf32> to tensor<4xf32>",
)  # fmt: skip


def programs() -> list[str]:
    """Programs of all kinds, sound and not."""
    found = [module % given for module in _MODULES for given in _OF_MODULES]
    found += [function % given for function in _FUNCTIONS for given in _OF_FUNCTIONS]
    places = _OPS.count("%s")
    for at in range(places):
        for given in _PROPERTIES:
            is_first = at in (0, 1, places - 1)
            parts = ["" for _ in range(places)]
            parts[at] = f" <{{{given}}}>" if is_first else f", {given}"
            found.append(_OPS % tuple(parts))
    for at in (0, 1, places - 1):
        for given in _LIKE_PROPERTIES:
            parts = ["" for _ in range(places)]
            parts[at] = f" {given}"
            found.append(_OPS % tuple(parts))
    found += [_CALL % callee for callee in ("@f", '"f"', "3 : i64")]
    found += [_SHORT % call for call in ("call", "func.call")]
    found += [
        symbol % (name, visibility)
        for symbol in _SYMBOLS
        for name in ("", "@n")
        for visibility in _VISIBILITIES
    ]
    found += [_MESHES % visibility for visibility in _VISIBILITIES]
    found += [module % block for module in _EMPTY for block in ("", "\n^bb0:\n")]
    found += [computation % end for computation in _COMPUTATIONS for end in _ENDS]
    found += [_DIRECTION % direction for direction in _DIRECTIONS]
    found += [_IN_FUNCTION % op for op in _SHORT_NAMES]
    found += [_DECLARATION % parts for parts in _PARTS]
    return [*found, *_PORTS, _IOTA, _MESH, _GROUP, *_BLOCKS]
