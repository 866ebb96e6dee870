"""Small programs for what partitioning passes do since jaxlib 0.12: a pipeline, and functions."""

from __future__ import annotations

MESHES = """
sdy.mesh @first = <[], device_ids=[0]>
sdy.mesh @last = <[], device_ids=[3]>
sdy.mesh @mesh = <["a"=2, "b"=2, "c"=2, "e"=4]>
sdy.mesh @turned = <["a"=2, "b"=2, "c"=2, "e"=4],
    device_ids=[1, 0, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
                22, 23, 24, 25, 26, 27, 28, 29, 30, 31]>
"""


def _permuted(before: str, after: str, *moves: str, type: str = "tensor<16x16x16xf32>") -> str:
    """A permute of the axes of a value, and the all-to-alls after it."""
    lines = [f"%0 = sdy.collective_permute %a out_sharding=<@mesh, [{after}]> : {type}"]
    for at, move in enumerate(moves):
        parameters, sharding = move.split(" => ")
        op = f"sdy.all_to_all [{parameters}] %{at} out_sharding=<@mesh, [{sharding}]>"
        lines.append(f"%{at + 1} = {op} : {type}")
    body = "\n  ".join(lines)
    argument = f"%a: {type} {{sdy.sharding = #sdy.sharding<@mesh, [{before}]>}}"
    return (
        f"func.func @main({argument}) -> {type} {{\n  {body}\n  return %{len(moves)} : {type}\n}}\n"
    )


OPTIMIZE = "func.func(sdy-optimize-collectives)"
PERMUTES = {
    "one axis moves": _permuted(
        '{"a", "b"}, {}, {}', '{"b", "a"}, {}, {}', '{"a"}: 0->1 => {"b"}, {"a"}, {}'
    ),
    "a dim without a rest": _permuted(
        '{"a", "b"}, {}', '{"b", "a"}, {}', '{"a"}: 0->1 => {"b"}, {"a"}', type="tensor<4x4xf32>"
    ),
    "two axes move, the third to the front": _permuted(
        '{"a", "b", "c"}, {}, {}',
        '{"c", "b", "a"}, {}, {}',
        '{"a"}: 0->2 => {"c", "b"}, {}, {"a"}',
        '{"b"}: 0->1 => {"c"}, {"b"}, {"a"}',
    ),
    "places become free one after the other": _permuted(
        '{"a", "b", "c"}, {}, {}',
        '{"c", "a", "b"}, {}, {}',
        '{"b"}: 0->1 => {"c", "a"}, {"b"}, {}',
    ),
    "two axes would change places": _permuted(
        '{"a", "b", "c"}, {}, {}',
        '{"b", "a", "c"}, {}, {}',
        '{"c"}: 0->1 => {"b", "a"}, {"c"}, {}',
    ),
    "an axis larger than its place": _permuted(
        '{"a", "e"}, {}, {}', '{"e", "a"}, {}, {}', '{"a"}: 0->1 => {"e"}, {"a"}, {}'
    ),
    "an axis smaller than its place": _permuted(
        '{"e", "a"}, {}, {}', '{"a", "e"}, {}, {}', '{"e"}: 0->1 => {"a"}, {"e"}, {}'
    ),
    "parts of one axis": _permuted(
        '{"e"}, {}, {}',
        '{"e":(2)2, "e":(1)2}, {}, {}',
        '{"e":(1)2}: 0->1 => {"e":(2)2}, {"e":(1)2}, {}',
    ),
    "a target that is sharded": _permuted(
        '{"a", "b"}, {"c"}, {}', '{"b", "a"}, {"c"}, {}', '{"a"}: 0->1 => {"b"}, {"c", "a"}, {}'
    ),
    "an all-to-all of another dim behind": _permuted(
        '{"a", "b"}, {"c"}, {}',
        '{"b", "a"}, {"c"}, {}',
        '{"a"}: 0->2 => {"b"}, {"c"}, {"a"}',
        '{"c"}: 1->0 => {"b", "c"}, {}, {"a"}',
    ),
    "two dims change": _permuted(
        '{"a", "b"}, {"c"}, {}', '{"b", "c"}, {"a"}, {}', '{"c"}: 0->2 => {"b"}, {"a"}, {"c"}'
    ),
    "a permute alone": _permuted('{"a", "b"}, {}, {}', '{"b", "a"}, {}, {}'),
    "sizes that axes do not divide": _permuted(
        '{"a", "b"}, {}',
        '{"b", "a"}, {}',
        '{"a"}: 0->1 => {"b"}, {"a"}',
        type="tensor<10x4xf32>",
    ),
    "open dims": _permuted(
        '{"a", "b", ?}, {?}, {?}',
        '{"b", "a", ?}, {?}, {?}',
        '{"a"}: 0->1 => {"b", ?}, {"a", ?}, {?}',
    ),
}

TWO_AXES_AT_ONCE = _permuted(
    '{"a", "b", "c"}, {}, {}',
    '{"c", "a", "b"}, {}, {}',
    '{"a", "b"}: 0->1 => {"c"}, {"a", "b"}, {}',
)

ON_DEVICES = {
    "operands and results": """
func.func @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>},
    %b: tensor<8x8xf32>, %c: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@turned, [{}, {}]>})
    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"b"}]>}) {
  %0 = stablehlo.select %d, %a, %b
    {sdy.sharding = #sdy.sharding_per_value<[<@last, []>]>} : tensor<8x8xi1>, tensor<8x8xf32>
  %1 = stablehlo.add %0, %c
    {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"a"}, {"b"}]>]>} : tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}
""".replace("%c: tensor<8x8xf32>", "%d: tensor<8x8xi1>, %c: tensor<8x8xf32>"),
    "one device after the other": """
func.func @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>})
    -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %0 = stablehlo.add %a, %a
    {sdy.sharding = #sdy.sharding_per_value<[<@last, []>]>} : tensor<8x8xf32>
  %1 = stablehlo.negate %0
    {sdy.sharding = #sdy.sharding_per_value<[<@last, []>]>} : tensor<8x8xf32>
  %2 = stablehlo.add %1, %0
    {sdy.sharding = #sdy.sharding_per_value<[<@first, []>]>} : tensor<8x8xf32>
  return %2, %0 : tensor<8x8xf32>, tensor<8x8xf32>
}
""",
    "some results elsewhere, and tokens": """
func.func @main(%a: tensor<4xbf16>, %t: !stablehlo.token)
    -> (tensor<4xf32>, tensor<4xi1>, !stablehlo.token) {
  %0:3 = stablehlo.custom_call @f(%a, %t) {has_side_effect = true,
    sdy.sharding = #sdy.sharding_per_value<[<@last, []>, <@mesh, [{"a"}]>, <@mesh, []>]>}
    : (tensor<4xbf16>, !stablehlo.token) -> (tensor<4xf32>, tensor<4xi1>, !stablehlo.token)
  return %0#0, %0#1, %0#2 : tensor<4xf32>, tensor<4xi1>, !stablehlo.token
}
""",
    "branches": """
func.func @main(%i: tensor<i32>,
    %a: tensor<4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}]>}) -> tensor<4xf32> {
  %0 = "stablehlo.case"(%i) ({
    stablehlo.return %a : tensor<4xf32>
  }, {
    %1 = stablehlo.negate %a
      {sdy.sharding = #sdy.sharding_per_value<[<@last, []>]>} : tensor<4xf32>
    stablehlo.return %1 : tensor<4xf32>
  }) {sdy.sharding = #sdy.sharding_per_value<[<@last, []>]>} : (tensor<i32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
""",
    "a reshard": """
func.func @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>})
    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"b"}, {}]>}) {
  %0 = sdy.reshard %a <@last, []> : tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
""",
}
REFUSED_ON_DEVICES = {
    "an argument": """
func.func @main(%a: tensor<4xf32> {sdy.sharding = #sdy.sharding<@last, []>}) -> tensor<4xf32> {
  return %a : tensor<4xf32>
}
""",
    "a result": """
func.func @main(%a: tensor<4xf32>)
    -> (tensor<4xf32> {sdy.sharding = #sdy.sharding<@last, []>}) {
  return %a : tensor<4xf32>
}
""",
    "two devices": """
func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0:2 = stablehlo.custom_call @f(%a)
    {sdy.sharding = #sdy.sharding_per_value<[<@last, []>, <@first, []>]>}
    : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %0#0 : tensor<4xf32>
}
""",
}


def _reduced(*bodies: str, op: str = "reduce") -> str:
    """A reduction or scatter of an operand for each of `bodies`, which make %r of %p and %q."""
    count = len(bodies)
    pairs = [(f"%p{at}", f"%q{at}") for at in range(count)]
    lines, returned = [], []
    for at, body in enumerate(bodies):
        first, second = pairs[at]
        lines.append(body.replace("%p", first).replace("%q", second).replace("%r", f"%r{at}"))
        returned.append(f"%r{at}" if "%r" in body else first)
    scalars = ", ".join(["tensor<f32>"] * count)
    end = f"stablehlo.return {', '.join(returned)} : {scalars}"
    if op == "scatter":
        first = [f"{p}: tensor<f32>" for p, _ in pairs] + [f"{q}: tensor<f32>" for _, q in pairs]
        operands, results = ", ".join(["%a"] * count), ", ".join(["tensor<8x8xf32>"] * count)
        updates = ", ".join(["%u"] * count)
        update_types = ", ".join(["tensor<4x8xf32>"] * count)
        return f"""
func.func @main(%a: tensor<8x8xf32>,
    %i: tensor<4x1xi32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"b"}}, {{}}]>}},
    %u: tensor<4x8xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"b"}}, {{}}]>}})
    -> tensor<8x8xf32> {{
  %0:{count} = "stablehlo.scatter"({operands}, %i, {updates}) <{{scatter_dimension_numbers =
      #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0],
      scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}}> ({{
  ^bb0({", ".join(first)}):
    {" ".join(lines)}
    {end}
  }}) : ({results}, tensor<4x1xi32>, {update_types}) -> ({results})
  return %0#0 : tensor<8x8xf32>
}}
"""
    operands = ", ".join(["(%a init: %c)"] * count)
    results = ", ".join(["tensor<8xf32>"] * count)
    reducers = " ".join(f"({p}: tensor<f32>, {q}: tensor<f32>)" for p, q in pairs)
    sharding = ", ".join(['<@mesh, [{"a"}]>'] * count)
    wide = ", ".join(["tensor<8x8xf32>"] * count)
    return f"""
func.func @main(%a: tensor<8x8xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"a"}}, {{"b"}}]>}},
    %c: tensor<f32>) -> tensor<8xf32> {{
  %0:{count} = stablehlo.reduce{operands} across dimensions = [1]
      {{sdy.sharding = #sdy.sharding_per_value<[{sharding}]>}}
      : ({wide}, {scalars}) -> ({results})
    reducer{reducers} {{
      {" ".join(lines)}
      {end}
    }}
  return %0#0 : tensor<8xf32>
}}
"""


_ADD = "%r = stablehlo.add %p, %q : tensor<f32>"
_MAX = "%r = stablehlo.maximum %p, %q : tensor<f32>"
_MIN = "%r = stablehlo.minimum %q, %p : tensor<f32>"
_MUL = "%r = stablehlo.multiply %p, %q : tensor<f32>"
REDUCTIONS = {
    "a maximum": _reduced(_MAX),
    "a minimum": _reduced(_MIN),
    "a product": _reduced(_MUL),
    "an argument": _reduced(""),
    "two maxima": _reduced(_MAX, _MAX),
    "two products": _reduced(_MUL, _MUL),
    "a sum and a maximum": _reduced(_ADD, _MAX),
    "a scattered maximum": _reduced(_MAX, op="scatter"),
    "a scattered product": _reduced(_MUL, op="scatter"),
    "a scattered sum and maximum": _reduced(_ADD, _MAX, op="scatter"),
    "unreduced over another axis": """
func.func @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"a", "b"}]>},
    %b: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a", "b"}, {}]>})
    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}], unreduced={"a"}>}) {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
    {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {}], unreduced={"a"}>]>}
    : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
""",
}
