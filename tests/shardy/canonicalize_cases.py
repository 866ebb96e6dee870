"""Small programs for `canonicalize`, with every pattern of `sdy` and `stablehlo`."""

from __future__ import annotations

_MESHES = """
sdy.mesh @mesh = <["x"=2, "y"=4]>
sdy.mesh @ones = <["a"=2, "b"=1, "c"=1]>
"""

MANUAL = """
func.func @main(%a: tensor<8xf32>, %b: tensor<8xf32>, %c: tensor<8xf32>, %d: tensor<8xf32>)
    -> (tensor<8xf32>, tensor<8xf32>) {
  %dead = stablehlo.negate %c : tensor<8xf32>
  %0:2 = sdy.manual_computation(%dead, %a, %b, %c, %a)
      in_shardings=[<@mesh, [{}]>, <@mesh, [{"x"}]>, <@mesh, [{}]>, <@mesh, [{"x", ?}]>,
      <@mesh, [{}]>] out_shardings=[<@mesh, [{"x"}]>, <@mesh, [{"x"}]>] manual_axes={"x"}
      (%e: tensor<8xf32>, %f: tensor<4xf32>, %g: tensor<8xf32>, %h: tensor<4xf32>,
      %i: tensor<8xf32>) {
    %2 = sdy.manual_computation(%f, %h) in_shardings=[<@mesh, [{"y"}]>, <@mesh, [{"y"}]>]
        out_shardings=[<@mesh, [{"y"}]>] manual_axes={"y"} (%j: tensor<1xf32>, %k: tensor<1xf32>) {
      sdy.return %j : tensor<1xf32>
    } : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %3 = stablehlo.slice %i [0:4] : (tensor<8xf32>) -> tensor<4xf32>
    sdy.return %2, %3 : tensor<4xf32>, tensor<4xf32>
  } : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>)
    -> (tensor<8xf32>, tensor<8xf32>)
  sdy.manual_computation() in_shardings=[] out_shardings=[] manual_axes={} () {
    sdy.return
  } : () -> ()
  return %0#0, %0#1 : tensor<8xf32>, tensor<8xf32>
}
"""

INLINED = """
func.func @main(%a: tensor<8xf32>, %n: tensor<i32>)
    -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) {
  %0 = sdy.manual_computation(%a) in_shardings=[<@ones, [{"b"}]>] out_shardings=[<@ones, [{"b"}]>]
      manual_axes={"b"} (%b: tensor<8xf32>) {
    %1 = stablehlo.negate %b : tensor<8xf32>
    sdy.return %1 : tensor<8xf32>
  } : (tensor<8xf32>) -> tensor<8xf32>
  %2:2 = sdy.named_computation<"f">(%a, %n) (%p: tensor<8xf32>, %q: tensor<i32>) {
    %first = stablehlo.abs %p : tensor<8xf32>
    %inner:2 = sdy.manual_computation(%p, %q) in_shardings=[<@ones, [{"c", "a"}]>, <@ones, []>]
        out_shardings=[<@ones, [{}]>, <@ones, [{"b"}]>] manual_axes={"b", "c"}
        (%o: tensor<8xf32>, %r: tensor<i32>) {
      %3 = stablehlo.constant dense<1> : tensor<i32>
      %4 = stablehlo.constant dense<0.0> : tensor<f32>
      %5:2 = stablehlo.while(%i = %r, %v = %o) : tensor<i32>, tensor<8xf32>
      cond {
        %c = stablehlo.compare LT, %i, %r : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %c : tensor<i1>
      } do {
        %6 = stablehlo.add %v, %o : tensor<8xf32>
        %7 = stablehlo.add %i, %3 : tensor<i32>
        stablehlo.return %7, %6 : tensor<i32>, tensor<8xf32>
      }
      %8 = stablehlo.reduce(%5#1 init: %4) applies stablehlo.add across dimensions = [0]
        : (tensor<8xf32>, tensor<f32>) -> tensor<f32>
      %9 = stablehlo.reduce(%o init: %4) across dimensions = [0]
        : (tensor<8xf32>, tensor<f32>) -> tensor<f32>
        reducer(%s: tensor<f32>, %t: tensor<f32>) {
        %12 = stablehlo.maximum %s, %t : tensor<f32>
        stablehlo.return %12 : tensor<f32>
      }
      %10 = stablehlo.add %8, %9 : tensor<f32>
      %11 = stablehlo.broadcast_in_dim %10, dims = [] : (tensor<f32>) -> tensor<8xf32>
      sdy.return %5#1, %11 : tensor<8xf32>, tensor<8xf32>
    } : (tensor<8xf32>, tensor<i32>) -> (tensor<8xf32>, tensor<8xf32>)
    %3 = stablehlo.add %inner#0, %first : tensor<8xf32>
    %4 = stablehlo.add %3, %3 : tensor<8xf32>
    sdy.manual_computation() in_shardings=[] out_shardings=[] manual_axes={} () {
      %e = stablehlo.custom_call @f() {has_side_effect = true} : () -> tensor<8xf32>
      sdy.return
    } : () -> ()
    sdy.manual_computation() in_shardings=[] out_shardings=[] manual_axes={} () {
      func.call @g() : () -> ()
      sdy.return
    } : () -> ()
    sdy.return %4, %inner#1 : tensor<8xf32>, tensor<8xf32>
  } : (tensor<8xf32>, tensor<i32>) -> (tensor<8xf32>, tensor<8xf32>)
  return %0, %2#0, %2#1 : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}
func.func private @g() { return }
"""

CASE = """
func.func @main(%a: tensor<8xf32>, %n: tensor<i32>)
    -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) {
  %0 = stablehlo.constant dense<1> : tensor<i32>
  %1 = stablehlo.constant dense<2> : tensor<i32>
  %2:2 = "stablehlo.case"(%0) ({
    stablehlo.return %a, %a : tensor<8xf32>, tensor<8xf32>
  }, {
    %3 = sdy.reshard %a <@mesh, [{"x"}]> : tensor<8xf32>
    %4 = sdy.reshard %a <@mesh, [{"x"}]> : tensor<8xf32>
    %5 = "stablehlo.case"(%n) ({
      %e = stablehlo.constant dense<3.0> : tensor<8xf32>
      %6 = stablehlo.add %e, %4 : tensor<8xf32>
      stablehlo.return %6 : tensor<8xf32>
    }) : (tensor<i32>) -> tensor<8xf32>
    stablehlo.return %5, %3 : tensor<8xf32>, tensor<8xf32>
  }) : (tensor<i32>) -> (tensor<8xf32>, tensor<8xf32>)
  %3 = "stablehlo.case"(%1) ({
    %4 = stablehlo.negate %a : tensor<8xf32>
    stablehlo.return %4 : tensor<8xf32>
  }) : (tensor<i32>) -> tensor<8xf32>
  return %2#0, %2#1, %3 : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}
"""

RESHARDS = """
func.func @main(%a: tensor<4x8x2xf32>) -> (tensor<4x8x2xf32>, tensor<64xf32>, tensor<8x4x2xf32>,
    tensor<8x4x2xf32>, tensor<8x8xf32>, tensor<4x8x2xf32>, tensor<16x4xf32>) {
  %0 = sdy.reshard %a <@mesh, [{"x"}, {}, {}]> : tensor<4x8x2xf32>
  %1 = stablehlo.reshape %a : (tensor<4x8x2xf32>) -> tensor<64xf32>
  %2 = sdy.reshard %1 <@mesh, [{"x"}]> : tensor<64xf32>
  %3 = stablehlo.transpose %a, dims = [1, 0, 2] {mine = 1 : i32}
    : (tensor<4x8x2xf32>) -> tensor<8x4x2xf32>
  %4 = sdy.reshard %3 <@mesh, [{}, {"x"}, {}]> : tensor<8x4x2xf32>
  %5 = sdy.reshard %3 <@mesh, [{"x"}, {}, {}]> : tensor<8x4x2xf32>
  %6 = stablehlo.reshape %4 : (tensor<8x4x2xf32>) -> tensor<8x8xf32>
  %7 = sdy.reshard %6 <@mesh, [{"y"}, {}]> : tensor<8x8xf32>
  %8 = sdy.reshard %a <@mesh, [{"x", ?}, {}, {}], replicated={"y"}> : tensor<4x8x2xf32>
  %9 = stablehlo.reshape %1 : (tensor<64xf32>) -> tensor<16x4xf32>
  %10 = sdy.reshard %9 <@mesh, [{"x"}, {}]> : tensor<16x4xf32>
  return %0, %2, %4, %5, %7, %8, %10 : tensor<4x8x2xf32>, tensor<64xf32>, tensor<8x4x2xf32>,
    tensor<8x4x2xf32>, tensor<8x8xf32>, tensor<4x8x2xf32>, tensor<16x4xf32>
}
"""

DYNAMIC = """
func.func @main(%a: tensor<?x8xf32>) -> (tensor<?x8xf32>, tensor<?x8xf32>, tensor<8x?xf32>) {
  %0 = sdy.reshard %a <@mesh, [{"x"}, {"y"}]> : tensor<?x8xf32>
  %1 = sdy.reshard %a <@mesh, [{"x"}, {"y", ?}]> : tensor<?x8xf32>
  %2 = stablehlo.transpose %a, dims = [1, 0] : (tensor<?x8xf32>) -> tensor<8x?xf32>
  %3 = sdy.reshard %2 <@mesh, [{"y"}, {"x"}]> : tensor<8x?xf32>
  return %0, %1, %3 : tensor<?x8xf32>, tensor<?x8xf32>, tensor<8x?xf32>
}
"""

COLLECTIVES = """
func.func @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"y"}]>})
    -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %0 = sdy.all_slice [{"x"}, {}] %a out_sharding=<@mesh, [{"x"}, {"y"}]> : tensor<8x8xf32>
  %1 = sdy.all_gather [{}, {}] %0 out_sharding=<@mesh, [{"x"}, {"y"}]> : tensor<8x8xf32>
  %2 = sdy.all_gather [{"x"}, {}] %1 out_sharding=<@mesh, [{}, {"y"}]> : tensor<8x8xf32>
  %3 = sdy.all_slice [{"x"}, {}] %2 out_sharding=<@mesh, [{"x"}, {"y"}]> : tensor<8x8xf32>
  %4 = sdy.reshard %3 <@mesh, [{}, {}]> : tensor<8x8xf32>
  %5 = sdy.reshard %4 <@mesh, [{"x"}, {}]> : tensor<8x8xf32>
  %6 = sdy.reshard %3 <@mesh, [{"x"}, {}]> : tensor<8x8xf32>
  return %5, %6 : tensor<8x8xf32>, tensor<8x8xf32>
}
"""

TEXTS = {
    "manual": _MESHES + MANUAL,
    "inlined": _MESHES + INLINED,
    "case": _MESHES + CASE,
    "reshards": _MESHES + RESHARDS,
    "dynamic": _MESHES + DYNAMIC,
    "collectives": _MESHES + COLLECTIVES,
}
