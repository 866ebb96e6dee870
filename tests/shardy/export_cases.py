"""Small programs for each pass after propagation: a pipeline, and a program it changes."""

from __future__ import annotations

MESHES = """
sdy.mesh @mesh = <["x"=2, "y"=4]>
sdy.mesh @odd = <["u"=3, "v"=2]>
sdy.mesh @turned = <["x"=2, "y"=4], device_ids=[7, 6, 5, 4, 3, 2, 1, 0]>
"""

CLOSE = """
func.func @main(
    %a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", ?}p1, {?}], replicated={"y"}>})
    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"y":(1)2, ?}],
        unreduced={"x"}>}) {
  %0:2 = stablehlo.optimization_barrier {sdy.sharding = #sdy.sharding_per_value<[
    <@mesh, [{?}, {?}]>, <@mesh, [{"y"}, {?}]>]>} %a, %a : tensor<8x8xf32>, tensor<8x8xf32>
  %1 = sdy.sharding_constraint %0#0 <@mesh, [{?}, {"x", ?}]> : tensor<8x8xf32>
  %2 = sdy.manual_computation(%1) in_shardings=[<@mesh, [{"x", ?}, {?}]>]
      out_shardings=[<@mesh, [{"x", "y", ?}, {?}]>] manual_axes={"x"} (%b: tensor<4x8xf32>) {
    %3 = stablehlo.negate %b {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}, {?}]>]>}
      : tensor<4x8xf32>
    sdy.return %3 : tensor<4x8xf32>
  } : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %2 : tensor<8x8xf32>
}
"""

UNEVEN_BEHIND_EDGES = """
func.func @main(%a: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %0 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{"y"}, {"x"}]>]
      out_shardings=[<@mesh, [{"y"}, {"x"}]>] manual_axes={"x"} (%b: tensor<2x2xf32>) {
    %1 = sdy.data_flow_edge %b sharding=<@mesh, [{"y"}, {}]> : tensor<2x2xf32>
    sdy.return %1 : tensor<2x2xf32>
  } : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %2 = sdy.data_flow_edge %0 sharding=<@mesh, [{"y"}, {"x"}]> : tensor<2x4xf32>
  return %2 : tensor<2x4xf32>
}
"""

SIBLINGS = """
func.func @main(%a: tensor<8xf32>, %b: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>})
    -> (tensor<8xf32>, tensor<8xf32>) {
  %0:2 = sdy.named_computation<"f">(%a, %b) (%c: tensor<8xf32>, %d: tensor<8xf32>) {
    %1 = stablehlo.abs %d : tensor<8xf32>
    %2 = stablehlo.abs %1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"y"}]>]>}
      : tensor<8xf32>
    sdy.return %2, %c : tensor<8xf32>, tensor<8xf32>
  } : (tensor<8xf32>, tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>)
  return %0#0, %0#1 : tensor<8xf32>, tensor<8xf32>
}
"""

MERGE = """
func.func @main(%p: tensor<i1>, %s: tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %0 = sdy.constant dense<1.0> : tensor<4xf32>
  %1 = sdy.constant {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} dense<1.0>
    : tensor<4xf32>
  %2 = sdy.constant dense<1.000000e+00> : tensor<4xf32>
  %3 = sdy.constant {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>} dense<1.0>
    : tensor<4xf32>
  %4 = sdy.constant {note = "a"} dense<1.0> : tensor<4xf32>
  %5 = sdy.constant {note = "a"} dense<1.0> : tensor<4xf32>
  %6 = stablehlo.constant dense<1.0> : tensor<4xf32>
  %7 = stablehlo.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  %8 = stablehlo.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  %9 = stablehlo.broadcast_in_dim %s, dims = [] : (tensor<f32>) -> tensor<4xf32>
  %10 = stablehlo.broadcast_in_dim %s, dims = [] : (tensor<f32>) -> tensor<4xf32>
  %11 = stablehlo.broadcast_in_dim %s, dims = []
    {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"y"}]>]>} : (tensor<f32>) -> tensor<4xf32>
  %12 = "stablehlo.if"(%p) ({
    %20 = sdy.constant dense<1.0> : tensor<4xf32>
    %21 = sdy.constant dense<1.0> : tensor<4xf32>
    %22 = stablehlo.add %20, %21 : tensor<4xf32>
    stablehlo.return %22 : tensor<4xf32>
  }, {
    stablehlo.return %5 : tensor<4xf32>
  }) : (tensor<i1>) -> tensor<4xf32>
  %13 = stablehlo.add %0, %1 : tensor<4xf32>
  %14 = stablehlo.add %2, %3 : tensor<4xf32>
  %15 = stablehlo.add %4, %6 : tensor<4xf32>
  %16 = stablehlo.add %7, %8 : tensor<4xf32>
  %17 = stablehlo.add %9, %10 : tensor<4xf32>
  %18 = stablehlo.add %15, %11 : tensor<4xf32>
  %19 = stablehlo.add %12, %16 : tensor<4xf32>
  %23 = stablehlo.add %13, %17 : tensor<4xf32>
  %24 = stablehlo.add %14, %23 : tensor<4xf32>
  return %24, %18, %19 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}
"""

SINK = """
func.func @main(%a: tensor<8x4xf32>, %i: tensor<i32>) -> (tensor<8x4xf32>, tensor<8x4xf32>) {
  %0:2 = stablehlo.while(%c = %a, %d = %i) : tensor<8x4xf32>, tensor<i32>
  cond {
    %10 = stablehlo.compare LT, %d, %d : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %10 : tensor<i1>
  } do {
    %11 = stablehlo.negate %c : tensor<8x4xf32>
    stablehlo.return %11, %d : tensor<8x4xf32>, tensor<i32>
  }
  %1 = sdy.data_flow_edge %0#0 sharding=<@mesh, [{"x", ?}, {?}]>
    {sdy.sharding_origins = {x = "self"}} : tensor<8x4xf32>
  %2 = sdy.data_flow_edge %0#1 : tensor<i32>
  %3 = sdy.manual_computation(%1) in_shardings=[<@mesh, [{"x"}, {?}]>]
      out_shardings=[<@mesh, [{"x"}, {?}]>] manual_axes={"x"} (%b: tensor<4x4xf32>) {
    %12 = sdy.data_flow_edge %b sharding=<@mesh, [{"y":(1)2, ?}, {?}]> : tensor<4x4xf32>
    sdy.return %12 : tensor<4x4xf32>
  } : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %4 = sdy.data_flow_edge %3 sharding=<@mesh, [{"x", "y", ?}, {?}]> : tensor<8x4xf32>
  %5 = sdy.named_computation<"inner">(%4) (%b: tensor<8x4xf32>) {
    %13 = sdy.data_flow_edge %b sharding=<@mesh, [{?}, {"y", ?}]> : tensor<8x4xf32>
    sdy.return %13 : tensor<8x4xf32>
  } : (tensor<8x4xf32>) -> tensor<8x4xf32>
  %6 = stablehlo.optimization_barrier %5 : tensor<8x4xf32>
  %7 = sdy.data_flow_edge %6 : tensor<8x4xf32>
  %8 = stablehlo.add %7, %7 : tensor<8x4xf32>
  return %8, %4 : tensor<8x4xf32>, tensor<8x4xf32>
}
"""

CONSTRAINTS = """
func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> {
  %0 = sdy.sharding_constraint %a <@mesh, [{"x"}]> : tensor<8xf32>
  %1 = sdy.sharding_constraint %0 <@mesh, [{"y", ?}]> {note = 1 : i32} : tensor<8xf32>
  sdy.sharding_group %1 group_id=3 : tensor<8xf32>
  %2 = stablehlo.add %0, %1 : tensor<8xf32>
  %3 = sdy.sharding_constraint %2 <@mesh, [{?}]> : tensor<8xf32>
  return %2 : tensor<8xf32>
}
"""

UNEVEN = """
func.func private @callee(%a: tensor<6x9xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {"x"}]>})
    -> (tensor<6x9xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", "y", ?}p2, {?}]>}) {
  return %a : tensor<6x9xf32>
}
func.func @main(%a: tensor<6x9xf32> {sdy.sharding = #sdy.sharding<@odd, [{"u", "v"}, {?}]>},
                %b: tensor<6x9xf32> {sdy.sharding = #sdy.sharding<@odd, [{"v", ?}p1, {"u", ?}p1]>})
    -> (tensor<6x9xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y", "x", ?}, {?}]>},
        tensor<6x9xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"y"}], replicated={"x"}>}) {
  %0 = call @callee(%a) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"y"}, {"x"}]>]>}
    : (tensor<6x9xf32>) -> tensor<6x9xf32>
  %1 = sdy.manual_computation(%0) in_shardings=[<@mesh, [{"x", "y"}, {?}]>]
      out_shardings=[<@mesh, [{"x", "y":(1)2}, {"y":(2)2}]>] manual_axes={"x"}
          (%c: tensor<3x9xf32>) {
    sdy.return %c : tensor<3x9xf32>
  } : (tensor<6x9xf32>) -> tensor<6x9xf32>
  return %1, %b : tensor<6x9xf32>, tensor<6x9xf32>
}
"""

SUB_AXES = """
func.func private @other(%a: tensor<8x8xf32>
    {sdy.sharding = #sdy.sharding<@mesh, [{"y":(1)2, ?}, {?}]>})
    -> tensor<8x8xf32> {
  return %a : tensor<8x8xf32>
}
func.func @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", "y":(1)2, ?}, {}]>},
                %b: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", "y":(1)2}, {}]>})
    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y":(2)2, "x", ?}p4, {?}]>}) {
  %0 = call @other(%a) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}
"""

NAMED = """
func.func private @f(%a: tensor<8xf32>) -> tensor<8xf32> {
  return %a : tensor<8xf32>
}
func.func @main(%a: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %0 = sdy.named_computation<"f">(%a) (%b: tensor<8xf32>) {
    %10 = sdy.data_flow_edge %b sharding=<@mesh, [{"x", ?}]> : tensor<8xf32>
    %11 = sdy.named_computation<"g">(%10) out_shardings=[<@mesh, [{"y"}]>] (%c: tensor<8xf32>) {
      %20 = stablehlo.negate %c : tensor<8xf32>
      sdy.return %20 : tensor<8xf32>
    } {note = "inner"} : (tensor<8xf32>) -> tensor<8xf32>
    sdy.return %11 : tensor<8xf32>
  } {execution_thread = "t", mhlo.frontend_attributes = {k = "v"}} : (tensor<8xf32>)
      -> tensor<8xf32>
  %1 = sdy.data_flow_edge %0 sharding=<@mesh, [{"x", ?}]> : tensor<8xf32>
  %2 = sdy.named_computation<"f">(%1) in_shardings=[<@mesh, [{"y"}]>] (%b: tensor<8xf32>) {
    sdy.return %b : tensor<8xf32>
  } : (tensor<8xf32>) -> tensor<8xf32>
  %3 = func.call @f(%2) : (tensor<8xf32>) -> tensor<8xf32>
  return %3, %1 : tensor<8xf32>, tensor<8xf32>
}
"""

NAMED_TWICE = """
func.func @main(%a: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %0 = sdy.named_computation<"f">(%a) out_shardings=[<@mesh, [{"x"}]>] (%b: tensor<8xf32>) {
    sdy.return %b : tensor<8xf32>
  } {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"y"}]>]>} : (tensor<8xf32>)
      -> tensor<8xf32>
  %1 = sdy.named_computation<"f">(%a) (%b: tensor<8xf32>) {
    sdy.return %b : tensor<8xf32>
  } {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"y"}]>]>} : (tensor<8xf32>)
      -> tensor<8xf32>
  return %0, %1 : tensor<8xf32>, tensor<8xf32>
}
"""

CLONES = """
func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> {
  %0 = call @f(%a) : (tensor<8xf32>) -> tensor<8xf32>
  %1 = call @f_0(%0) : (tensor<8xf32>) -> tensor<8xf32>
  %2 = call @f_1(%1) : (tensor<8xf32>) -> tensor<8xf32>
  %3 = call @f_2(%2) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>}
    : (tensor<8xf32>) -> tensor<8xf32>
  %4 = call @f_3(%3) : (tensor<8xf32>) -> tensor<8xf32>
  return %4 : tensor<8xf32>
}
func.func private @f(%a: tensor<8xf32>) -> tensor<8xf32> {
  return %a : tensor<8xf32>
}
func.func private @f_0(%a: tensor<8xf32>) -> tensor<8xf32> attributes
    {sdy.original_func_name = "f"} {
  return %a : tensor<8xf32>
}
func.func private @f_1(%a: tensor<8xf32>)
    -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}]>})
    attributes {sdy.original_func_name = "f"} {
  return %a : tensor<8xf32>
}
func.func private @f_2(%a: tensor<8xf32>)
    -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}]>})
    attributes {sdy.original_func_name = "f"} {
  %0 = stablehlo.negate %a {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"y"}]>]>}
      : tensor<8xf32>
  return %0 : tensor<8xf32>
}
func.func private @f_3(%a: tensor<8xf32>)
    -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}]>})
    attributes {sdy.original_func_name = "f"} {
  return %a : tensor<8xf32>
}
"""

UNREDUCED = """
func.func @main(
    %a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}], unreduced={"y"}>},
    %b: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>})
    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>},
        tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}], unreduced={"y"}>},
        tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}], unreduced={"x", "y"}>}) {
  %0 = stablehlo.negate %a {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>}
    : tensor<8x8xf32>
  %1 = sdy.reshard %b <@mesh, [{"x"}, {}], unreduced={"y"}> : tensor<8x8xf32>
  %2 = stablehlo.dot %a, %b {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>}
    : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0, %1, %2 : tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>
}
"""

DOTS = """
func.func @main(
    %a: tensor<4x32xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>},
    %b: tensor<32x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>},
    %c: tensor<64x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {}]>})
    -> (tensor<4x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>}, tensor<64x4xf32>,
        tensor<68x8xf32>) {
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
    {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"x"}]>]>}
    : (tensor<4x32xf32>, tensor<32x8xf32>) -> tensor<4x8xf32>
  %1 = stablehlo.dot_general %c, %0, contracting_dims = [1] x [1]
    {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>}
    : (tensor<64x8xf32>, tensor<4x8xf32>) -> tensor<64x4xf32>
  %2 = stablehlo.concatenate %c, %0, dim = 0
    {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {"y"}]>]>}
    : (tensor<64x8xf32>, tensor<4x8xf32>) -> tensor<68x8xf32>
  %3 = stablehlo.concatenate %0, %0, dim = 0
    {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"x"}]>]>}
    : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
  return %0, %1, %2 : tensor<4x8xf32>, tensor<64x4xf32>, tensor<68x8xf32>
}
"""

RESHARDS = """
func.func @main(%a: tensor<16x16x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", "y"}, {},
    {}]>})
    -> (tensor<16x16x16xf32>
        {sdy.sharding = #sdy.sharding<@mesh, [{"y":(1)2}, {"x"}, {"y":(2)2}]>}) {
  %0 = sdy.reshard %a <@mesh, [{"x"}, {"y"}, {}]> : tensor<16x16x16xf32>
  %1 = sdy.reshard %0 <@mesh, [{"y"}, {"x"}, {}]> : tensor<16x16x16xf32>
  %2 = sdy.reshard %1 <@mesh, [{}, {}, {"y", "x"}]> : tensor<16x16x16xf32>
  %3 = stablehlo.negate %2 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {}, {"y", "x"}]>]>}
    : tensor<16x16x16xf32>
  %4 = sdy.reshard %3 <@turned, [{}, {}, {"y", "x"}]> : tensor<16x16x16xf32>
  %5 = sdy.reshard %4 <@turned, [{}, {"y":(2)2}, {}]> : tensor<16x16x16xf32>
  %6 = sdy.reshard %3 <@mesh, [{}, {}, {}]> : tensor<16x16x16xf32>
  %7 = sdy.reshard %6 <@mesh, [{"y":(1)2}, {"x"}, {"y":(2)2}]> : tensor<16x16x16xf32>
  %8 = stablehlo.add %6, %5 : tensor<16x16x16xf32>
  return %7 : tensor<16x16x16xf32>
}
"""

UNEVEN_RESHARDS = """
sdy.mesh @six = <["a"=2, "b"=3, "c"=6]>
func.func @main(%a: tensor<36x36xf32> {sdy.sharding = #sdy.sharding<@six, [{"c"}, {"a"}]>})
    -> (tensor<36x36xf32> {sdy.sharding = #sdy.sharding<@six, [{"b", "a"}, {"c"}]>}) {
  %0 = sdy.reshard %a <@six, [{"a", "b"}, {"c":(1)2}]> : tensor<36x36xf32>
  %1 = sdy.reshard %0 <@six, [{"c":(2)3}, {"b"}]> : tensor<36x36xf32>
  %2 = sdy.reshard %1 <@six, [{"b", "a"}, {"c"}]> : tensor<36x36xf32>
  return %2 : tensor<36x36xf32>
}
"""

CANONICAL = """
func.func @main(%a: tensor<8xf32>, %p: tensor<i1>)
    -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) {
  %0 = stablehlo.constant dense<1.0> : tensor<8xf32> loc("one")
  %1 = stablehlo.add %a, %0 : tensor<8xf32> loc("add")
  %2 = stablehlo.constant dense<2.0> : tensor<8xf32> loc("two")
  %3 = stablehlo.constant {note = 1 : i32} dense<1.000000e+00> : tensor<8xf32> loc("again")
  %4 = sdy.constant dense<1.0> : tensor<8xf32> loc("sdy")
  %5 = sdy.constant dense<1.0> : tensor<8xf32> loc("unused")
  %6 = stablehlo.add %3, %2 : tensor<8xf32> loc("add")
  %7 = "stablehlo.if"(%p) ({
    %20 = stablehlo.constant dense<3.0> : tensor<8xf32> loc("three")
    %21 = stablehlo.constant dense<2.0> : tensor<8xf32> loc("two")
    %22 = stablehlo.add %20, %21 : tensor<8xf32>
    stablehlo.return %22 : tensor<8xf32>
  }, {
    stablehlo.return %4 : tensor<8xf32>
  }) : (tensor<i1>) -> tensor<8xf32>
  %8 = stablehlo.constant dense<4.0> : tensor<8xf32>
  %9 = stablehlo.negate %8 : tensor<8xf32>
  %10 = stablehlo.custom_call @pure(%9) : (tensor<8xf32>) -> tensor<8xf32>
  %11 = stablehlo.custom_call @effect(%9) {has_side_effect = true} : (tensor<8xf32>)
      -> tensor<8xf32>
  %12 = sdy.manual_computation(%1) in_shardings=[<@mesh, [{"x"}]>] out_shardings=[<@mesh, [{"x"}]>]
      manual_axes={"x"} (%b: tensor<4xf32>) {
    %23 = stablehlo.constant dense<1.0> : tensor<4xf32> loc("inside")
    %24 = stablehlo.constant dense<1.0> : tensor<4xf32> loc("inside")
    %25 = stablehlo.add %23, %24 : tensor<4xf32>
    sdy.return %25 : tensor<4xf32>
  } : (tensor<8xf32>) -> tensor<8xf32>
  %13 = stablehlo.while(%c = %a) : tensor<8xf32>
  cond {
    %26 = stablehlo.constant dense<false> : tensor<i1>
    stablehlo.return %26 : tensor<i1>
  } do {
    stablehlo.return %c : tensor<8xf32>
  }
  %14 = sdy.sharding_constraint %a <@mesh, [{"x"}]> : tensor<8xf32>
  %15 = sdy.reshard %a <@mesh, [{"x"}]> : tensor<8xf32>
  %16 = stablehlo.after_all : !stablehlo.token
  return %6, %7, %12 : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}
"""

COLLECTIVES = """
func.func @main(%a: tensor<16x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>},
                %b: tensor<16x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}],
                    unreduced={"y"}>})
    -> (tensor<16x16xf32>, tensor<16x16xf32>, tensor<16x16xf32>, tensor<16x16xf32>) {
  %0 = sdy.all_gather [{"x"}, {}] %a out_sharding=<@mesh, [{}, {}]> : tensor<16x16xf32>
  %1 = sdy.all_slice [{"x"}, {}] %0 out_sharding=<@mesh, [{"x"}, {}]> : tensor<16x16xf32>
  %2 = sdy.all_gather [{}, {}] %1 out_sharding=<@mesh, [{"x"}, {}]> : tensor<16x16xf32>
  %3 = sdy.all_reduce {"y"} %b out_sharding=<@mesh, [{}, {}]> : tensor<16x16xf32>
  %4 = sdy.all_slice [{"y", "x"}, {}] %3 out_sharding=<@mesh, [{"y", "x"}, {}]> : tensor<16x16xf32>
  %5 = sdy.all_slice [{"y", "x"}, {}] %3 out_sharding=<@mesh, [{"y", "x"}, {}]> : tensor<16x16xf32>
  %6 = sdy.all_to_all [{"x"}: 0->1] %a out_sharding=<@mesh, [{}, {"x"}]> : tensor<16x16xf32>
  %7 = sdy.replicated_to_unreduced {"y"} %a out_sharding=<@mesh, [{"x"}, {}], unreduced={"y"}>
    : tensor<16x16xf32>
  %8 = sdy.all_reduce {"y"} %7 out_sharding=<@mesh, [{"x"}, {}]> : tensor<16x16xf32>
  %9 = sdy.sharded_to_unreduced [{"x"}, {}] %a out_sharding=<@mesh, [{}, {}], unreduced={"x"}>
    : tensor<16x16xf32>
  %10 = sdy.all_reduce {"x"} %9 out_sharding=<@mesh, [{}, {}]> : tensor<16x16xf32>
  %11 = sdy.collective_permute %a out_sharding=<@mesh, [{"x"}, {}]> : tensor<16x16xf32>
  %12 = stablehlo.add %8, %11 : tensor<16x16xf32>
  %13 = stablehlo.add %2, %12 : tensor<16x16xf32>
  return %13, %4, %5, %10
    : tensor<16x16xf32>, tensor<16x16xf32>, tensor<16x16xf32>, tensor<16x16xf32>
}
"""

REVERSES = """
func.func @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y"}]>})
    -> (tensor<8x8xf32>, tensor<7x8xf32>, tensor<8x3xf32>) {
  %0 = stablehlo.reverse %a, dims = [0, 1]
    {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {"y"}]>]>} : tensor<8x8xf32>
  %1 = stablehlo.slice %a [0:7, 0:8]
      {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {"y"}]>]>}
    : (tensor<8x8xf32>) -> tensor<7x8xf32>
  %2 = stablehlo.reverse %1, dims = [0]
    {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {"y"}]>]>} : tensor<7x8xf32>
  %3 = stablehlo.slice %a [0:8, 2:5]
      {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {"y"}]>]>}
    : (tensor<8x8xf32>) -> tensor<8x3xf32>
  %4 = stablehlo.reverse %3, dims = [1]
    {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {"y"}]>]>} : tensor<8x3xf32>
  return %0, %2, %4 : tensor<8x8xf32>, tensor<7x8xf32>, tensor<8x3xf32>
}
"""

MATMUL_AROUND = """
func.func @main(%a: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"y"}]>},
                %b: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"x"}]>})
    -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %0 = sdy.all_gather [{}, {"y"}] %a out_sharding=<@mesh, [{}, {}]> : tensor<8x16xf32>
  %1 = stablehlo.dot %0, %b {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"x"}]>]>}
    : (tensor<8x16xf32>, tensor<16x8xf32>) -> tensor<8x8xf32>
  %2 = stablehlo.dot %a, %b {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"x"}]>]>}
    : (tensor<8x16xf32>, tensor<16x8xf32>) -> tensor<8x8xf32>
  %3 = sdy.reduce_scatter [{"y"}, {}] %2 out_sharding=<@mesh, [{"y"}, {"x"}]> : tensor<8x8xf32>
  return %1, %3 : tensor<8x8xf32>, tensor<8x8xf32>
}
"""


def _on_module(*passes: str) -> str:
    return f"builtin.module({','.join(passes)})"


def _on_functions(name: str) -> str:
    return _on_module(f"func.func({name})")


_CANONICALIZE = "canonicalize{{enable-patterns={}}}"
_PARTITION = ",".join(
    [
        "func.func(sdy-insert-explicit-reshards{enable-full-version=true})",
        _CANONICALIZE.format("sdy-reshard"),
        "func.func(sdy-reshard-to-collectives)",
        _CANONICALIZE.format("sdy-collective"),
    ]
)

CASES: dict[str, tuple[str, str]] = {
    "close-shardings": (_on_module("sdy-close-shardings"), CLOSE),
    "constant-or-scalar-merger": (_on_functions("sdy-constant-or-scalar-merger"), MERGE),
    "sink-data-flow-edges": (_on_functions("sdy-sink-data-flow-edges"), SINK),
    "sink-data-flow-edges-with-origins": (
        _on_functions(
            "sdy-sink-data-flow-edges"
            "{sink-debug-sharding-origins=true sink-debug-propagation-edge-sharding=true}"
        ),
        SINK,
    ),
    "remove-propagation-debug-info": (_on_module("sdy-remove-propagation-debug-info"), SINK),
    "remove-sharding-groups": (_on_module("sdy-remove-sharding-groups"), CONSTRAINTS),
    "sharding-constraint-to-reshard": (
        _on_functions("sdy-sharding-constraint-to-reshard"),
        CONSTRAINTS,
    ),
    "update-non-divisible": (
        _on_module("sdy-update-non-divisible-input-output-shardings"),
        UNEVEN,
    ),
    "update-non-divisible-behind-edges": (
        _on_module("sdy-update-non-divisible-input-output-shardings"),
        UNEVEN_BEHIND_EDGES,
    ),
    "edges-of-siblings": (
        _on_module("sdy-basic-propagate, sdy-add-data-flow-edges"),
        SIBLINGS,
    ),
    "remove-sub-axes": (_on_module("sdy-remove-sub-axes-in-input-output-shardings"), SUB_AXES),
    "export-named-computations": (_on_module("sdy-export-named-computations"), NAMED),
    "export-named-computations-annotated-twice": (
        _on_module("sdy-export-named-computations"),
        NAMED_TWICE,
    ),
    "propagate-to-func-results": (_on_module("sdy-propagate-to-func-results"), CLONES),
    "unflatten-call-graph": (_on_module("sdy-unflatten-call-graph"), CLONES),
    "unflatten-call-graph-fully": (
        _on_module("sdy-unflatten-call-graph{dedup-functions-fully=true}"),
        CLONES,
    ),
    "insert-func-call-reshards": (_on_module("sdy-insert-func-call-reshards"), CLONES),
    "insert-explicit-reshards": (_on_functions("sdy-insert-explicit-reshards"), DOTS),
    "insert-explicit-reshards-fully": (
        _on_functions("sdy-insert-explicit-reshards{enable-full-version=true}"),
        DOTS,
    ),
    "insert-explicit-reshards-on-calls": (_on_functions("sdy-insert-explicit-reshards"), CLONES),
    "unreduced-axes": (_on_functions("sdy-insert-explicit-reshards"), UNREDUCED),
    "unreduced-axes-fully": (
        _on_functions("sdy-insert-explicit-reshards{enable-full-version=true}"),
        UNREDUCED,
    ),
    "reshard-to-collectives": (_on_functions("sdy-reshard-to-collectives"), RESHARDS),
    "reshard-to-collectives-keeping-redundant": (
        _on_functions("sdy-reshard-to-collectives{keep-redundant-reshards=true}"),
        RESHARDS,
    ),
    "reshard-to-collectives-uneven": (
        _on_functions("sdy-reshard-to-collectives"),
        UNEVEN_RESHARDS,
    ),
    "canonicalize-reshards": (_on_module(_CANONICALIZE.format("sdy-reshard")), RESHARDS),
    "canonicalize-constants": (_on_module(_CANONICALIZE.format("sdy-collective")), CANONICAL),
    "canonicalize-collectives": (_on_module(_CANONICALIZE.format("sdy-collective")), COLLECTIVES),
    "resolve-permutation-factors": (_on_module("sdy-resolve-permutation-factors"), REVERSES),
    "resolve-permutation-factors-without-halo": (
        _on_module("sdy-resolve-permutation-factors{enable-halo-exchange=false}"),
        REVERSES,
    ),
    "remove-all-gather-reduce-scatter": (
        _on_functions("sdy-remove-all-gather-reduce-scatter-for-cmv1"),
        MATMUL_AROUND,
    ),
    "drop-sharding-rules": (_on_functions("sdy-drop-sharding-rules"), DOTS),
    "partition": (_on_module(_PARTITION), DOTS),
    "partition-unreduced": (_on_module(_PARTITION), UNREDUCED),
    "export-pipeline": (_on_module("sdy-export-pipeline"), UNEVEN),
    "export-pipeline-to-collectives": (
        _on_module("sdy-export-pipeline{enable-insert-explicit-collectives=true}"),
        DOTS,
    ),
}
