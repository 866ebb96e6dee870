"""Small programs for `sdy-per-instruction-partitioning`."""

from __future__ import annotations


def _function(
    body: str,
    argument: str = '{"x"}, {}',
    result: str = '{"x"}, {}',
    type: str = "tensor<6x32xf32>",
    mesh: str = '"x"=2',
    unreduced: str = "",
) -> str:
    sharding = "{{sdy.sharding = #sdy.sharding<@mesh, [{}]{}>}}"
    suffix = f", unreduced={{{unreduced}}}" if unreduced else ""
    return (
        f"sdy.mesh @mesh = <[{mesh}]>\n"
        f"func.func @main(%a: {type} {sharding.format(argument, suffix)}, %p: tensor<i1>)"
        f" -> ({type} {sharding.format(result, '')}) {{\n{body}\n}}\n"
    )


ROWS = '{sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>}'
RETURN = "  return %r : tensor<6x32xf32>"
CALLEES = f"""
func.func private @g(%a: tensor<6x32xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}, {{}}]>}})
    -> (tensor<6x32xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}, {{}}]>}}) {{
  %s = call @h(%a) {ROWS} : (tensor<6x32xf32>) -> tensor<6x32xf32>
  %t = call @h(%s) {ROWS} : (tensor<6x32xf32>) -> tensor<6x32xf32>
  return %t : tensor<6x32xf32>
}}
func.func private @h(%a: tensor<6x32xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}, {{}}]>}})
    -> (tensor<6x32xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}, {{}}]>}}) {{
  %s = stablehlo.abs %a {ROWS} : tensor<6x32xf32>
  return %s : tensor<6x32xf32>
}}
"""
UNEVEN = """sdy.mesh @mesh = <["data"=2, "y"=12]>
func.func @main(%a: tensor<f32>) -> (tensor<5x2x16x16xf32>
    {sdy.sharding = #sdy.sharding<@mesh, [{}, {"data"}, {}, {"y":(6)2}]>}) {
  %v = sdy.constant {sdy.sharding = #sdy.sharding_per_value<[<@mesh,
    [{"y":(1)6}, {"data"}, {}, {"y":(6)2}]>]>} dense<2.0> : tensor<5x2x16x16xf32>
  %w = stablehlo.iota dim = 0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh,
    [{"y":(1)6}, {"data"}, {}, {"y":(6)2}]>]>} : tensor<5x2x16x16xf32>
  %0 = stablehlo.add %v, %w {sdy.sharding = #sdy.sharding_per_value<[<@mesh,
    [{"y":(1)6}, {"data"}, {}, {"y":(6)2}]>]>} : tensor<5x2x16x16xf32>
  %1 = sdy.reshard %0 <@mesh, [{}, {"data"}, {}, {"y":(6)2}]> : tensor<5x2x16x16xf32>
  %c = sdy.constant {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"data"}]>]>}
    dense<[1.0, 2.0, 3.0]> : tensor<3xf32>
  return %1 : tensor<5x2x16x16xf32>
}
"""
CASES = {
    "ops in a row": _function(
        f"  %0 = stablehlo.abs %a {ROWS} : tensor<6x32xf32>\n"
        f"  %r = stablehlo.add %0, %a {ROWS} : tensor<6x32xf32>\n{RETURN}"
    ),
    "a product of slices": _function(
        f"  %0 = stablehlo.slice %a [0:5, 0:32] {ROWS} : (tensor<6x32xf32>) -> tensor<5x32xf32>\n"
        "  %1 = stablehlo.transpose %0, dims = [1, 0] {sdy.sharding = "
        '#sdy.sharding_per_value<[<@mesh, [{}, {"x"}]>]>}'
        " : (tensor<5x32xf32>) -> tensor<32x5xf32>\n"
        "  %2 = sdy.reshard %1 <@mesh, [{}, {}]> : tensor<32x5xf32>\n"
        f"  %3 = stablehlo.dot %0, %2 {ROWS} : (tensor<5x32xf32>, tensor<32x5xf32>)"
        " -> tensor<5x5xf32>\n  return %a : tensor<6x32xf32>"
    ),
    "calls": _function(
        f"  %r = call @g(%a) {ROWS} : (tensor<6x32xf32>) -> tensor<6x32xf32>\n{RETURN}"
    )
    + CALLEES,
    "what loops use from outside": _function(
        "  %r:2 = stablehlo.while(%i = %a, %j = %p) : tensor<6x32xf32>, tensor<i1> attributes "
        '{sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>, <@mesh, []>]>}\n'
        "    cond { stablehlo.return %p : tensor<i1> } do {\n"
        f"      %1 = stablehlo.add %i, %a {ROWS} : tensor<6x32xf32>\n"
        "      stablehlo.return %1, %j : tensor<6x32xf32>, tensor<i1> }\n"
        "  return %r#0 : tensor<6x32xf32>"
    ),
    "calls of unknown targets": _function(
        f"  %r = stablehlo.custom_call @mine(%a) {ROWS} : (tensor<6x32xf32>) -> tensor<6x32xf32>\n"
        "  stablehlo.custom_call @log(%r) {has_side_effect = true} : (tensor<6x32xf32>) -> ()\n"
        + RETURN
    ),
    "collectives": _function(
        '  %1 = sdy.all_gather [{"x"}, {}] %a out_sharding=<@mesh, [{}, {}]> : tensor<6x32xf32>\n'
        '  %2 = sdy.all_slice [{"x"}, {}] %1 out_sharding=<@mesh, [{"x"}, {}]> : tensor<6x32xf32>\n'
        '  %3 = sdy.all_to_all [{"x"}: 0->1] %2 out_sharding=<@mesh, [{}, {"x"}]>'
        " : tensor<6x32xf32>\n"
        '  %4 = sdy.replicated_to_unreduced {"x"} %1 out_sharding=<@mesh, [{}, {}],'
        ' unreduced={"x"}> : tensor<6x32xf32>\n'
        '  %r = sdy.reduce_scatter [{"x"}, {}] %4 out_sharding=<@mesh, [{"x"}, {}]>'
        f" : tensor<6x32xf32>\n{RETURN}"
    ),
    "uneven collectives": _function(
        '  %1 = sdy.all_gather [{"y"}, {}] %a out_sharding=<@mesh, [{}, {}]> : tensor<7x8xf32>\n'
        '  %2 = sdy.all_slice [{"x", "y"}, {}] %1 out_sharding=<@mesh, [{"x", "y"}, {}]>'
        " : tensor<7x8xf32>\n"
        '  %3 = sdy.collective_permute %2 out_sharding=<@mesh, [{"y", "x"}, {}]>'
        " : tensor<7x8xf32>\n"
        '  %r = sdy.all_to_all [{"y"}: 0->1] %a out_sharding=<@mesh, [{}, {"y"}]>'
        " : tensor<7x8xf32>\n  return %r : tensor<7x8xf32>",
        argument='{"y"}, {}',
        result='{}, {"y"}',
        type="tensor<7x8xf32>",
        mesh='"y"=3, "x"=2',
    ),
    "an argument with unreduced axes": _function(
        '  %r = sdy.reduce_scatter [{"x"}, {}] %a out_sharding=<@mesh, [{"x"}, {}]>'
        f" : tensor<6x32xf32>\n{RETURN}",
        argument="{}, {}",
        unreduced='"x"',
    ),
    "a maximum": _function(
        "  %i = sdy.constant dense<0xFF800000> : tensor<f32>\n"
        "  %0 = stablehlo.reduce(%a init: %i) applies stablehlo.maximum across dimensions = [0] "
        "{sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}]>]>}"
        " : (tensor<6x32xf32>, tensor<f32>) -> tensor<32xf32>\n  return %a : tensor<6x32xf32>"
    ),
    "uneven dims": UNEVEN,
    # Padded to a multiple of the shards before and after.
    "an uneven reshard": """sdy.mesh @mesh = <["x"=2, "y"=3]>
func.func @main(%a: tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> (
    tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {}]>}) {
  %0 = sdy.reshard %a <@mesh, [{"y"}, {}]> : tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}""",
    "uneven values of a case in a case": """sdy.mesh @mesh = <["y"=3]>
func.func @main(%c: tensor<i32>, %a: tensor<1x16xf32>) -> (
    tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"y"}]>}) {
  %0 = "stablehlo.case"(%c) ({
    %1 = sdy.reshard %a <@mesh, [{"y"}, {}]> : tensor<1x16xf32>
    %2 = "stablehlo.case"(%c) ({
      stablehlo.return %1 : tensor<1x16xf32>
    }) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"y"}, {}]>]>}
      : (tensor<i32>) -> tensor<1x16xf32>
    %3 = sdy.reshard %2 <@mesh, [{}, {"y"}]> : tensor<1x16xf32>
    stablehlo.return %3 : tensor<1x16xf32>
  }) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"y"}]>]>}
    : (tensor<i32>) -> tensor<1x16xf32>
  return %0 : tensor<1x16xf32>
}""",
}
FILTERS = [
    "dot,reshard",
    "selectLow=1",
    "selectHigh=0",
    "selectLow=1,selectHigh=2",
    "'selectLow=x, abs'",
    "selectHigh=-2,add",
]
REFUSED = {
    "several meshes": """sdy.mesh @mesh = <["x"=2, "y"=2]>
sdy.mesh @other = <["x"=2, "z"=2]>
func.func @main(%a: tensor<6x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>},
    %b: tensor<6x32xf32> {sdy.sharding = #sdy.sharding<@other, [{"x"}, {}]>}) {
  %0 = stablehlo.add %a, %b : tensor<6x32xf32>
  return
}""",
}


def functions(*names: str) -> str:
    """Functions that take the absolute values of their arguments; `private f` is a private one."""
    texts = ['sdy.mesh @mesh = <["x"=2]>\n']
    for name in names:
        visibility, _, symbol = name.rpartition(" ")
        texts.append(
            f"func.func {visibility} @{symbol}(%a: tensor<6x32xf32> "
            f'{{sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}, {{}}]>}}) -> tensor<6x32xf32> {{\n'
            f"  %0 = stablehlo.abs %a {ROWS} : tensor<6x32xf32>\n"
            "  return %0 : tensor<6x32xf32>\n}\n"
        )
    return "".join(texts)
