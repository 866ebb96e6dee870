// Every corner of the syntax that the parser knows, once.
#loc = loc(unknown)
#file = loc("model.py":12:3)
#fused = loc(fused<"meta">["layer"(#file), callsite("inner"("a b.py":1:2) at #file)])
!vec = tensor<4x2xf32>
#map = affine_map<(d0) -> (d0)>
module @corner attributes {mhlo.num_partitions = 8 : i32, test.list = [1, -2.5e-3, "s\22\n", @sym::@nested, unit]} {
  sdy.mesh @mesh = <["x"=2, "y"=4]> loc(#file)
  sdy.mesh @ids = <["x"=2, "y"=2], device_ids=[3, 2, 1, 0]>
  sdy.mesh @max = <[], device_ids=[5]>
  sdy.mesh @empty = <[]>
  func.func public @main(%arg0: !vec {sdy.sharding = #sdy.sharding<@mesh, [{"x", ?}p1, {"y":(1)2}]>} loc("arg"(#file)), %arg1: tensor<i32>) -> (tensor<4x2xf32> {jax.result_info = "r", sdy.sharding = #sdy.sharding<@mesh, [{}, {?}], replicated={"x"}>}, tensor<i32>) attributes {test.fn} {
    %cst = stablehlo.constant dense<[[1.0, 2.0], [0x7FC00000, -1.5], [3.0, 0.0], [4.0, 1.0e+2]]> : tensor<4x2xf32>
    %hex = stablehlo.constant dense<"0x0000803F0000004000004040000080400000A0400000C0400000E04000000041"> : tensor<4x2xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %idx = stablehlo.constant dense<0> : tensor<4x1xi32>
    %f = stablehlo.constant dense<0.0> : tensor<f32>
    %p0 = stablehlo.constant dense<true> : tensor<4x2xi1>
    %0:2 = stablehlo.while(%i = %c, %acc = %arg0) : tensor<i32>, tensor<4x2xf32> attributes {test.loop}
    cond {
      %p = stablehlo.compare LT, %i, %arg1, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    } do {
      %n = stablehlo.add %i, %c {test.attr = #map} : tensor<i32>
      %m = stablehlo.select %p0, %acc, %cst : tensor<4x2xi1>, tensor<4x2xf32>
      stablehlo.return %n, %m : tensor<i32>, tensor<4x2xf32>
    } loc(#fused)
    %1 = stablehlo.reduce(%0#1 init: %f) applies stablehlo.add across dimensions = [1] : (tensor<4x2xf32>, tensor<f32>) -> tensor<4xf32>
    %2 = stablehlo.dot_general %0#1, %cst, batching_dims = [0] x [0], contracting_dims = [1] x [1], precision = [DEFAULT, HIGHEST] : (tensor<4x2xf32>, tensor<4x2xf32>) -> tensor<4xf32>
    %3 = "stablehlo.gather"(%cst, %idx) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 2>}> : (tensor<4x2xf32>, tensor<4x1xi32>) -> tensor<4x2xf32>
    %4 = sdy.manual_computation(%3) in_shardings=[<@mesh, [{"x"}, {}]>] out_shardings=[<@mesh, [{"x"}, {}]>] manual_axes={"x"} (%b: tensor<2x2xf32>) {
      %t = stablehlo.tanh %b : tensor<2x2xf32>
      sdy.return %t : tensor<2x2xf32>
    } : (tensor<4x2xf32>) -> tensor<4x2xf32>
    %5 = sdy.sharding_constraint %4 <@mesh, [{"x"}, {?}]> : tensor<4x2xf32>
    sdy.sharding_group %5 group_id=3 : tensor<4x2xf32>
    %6 = sdy.propagation_barrier %5 allowed_direction=FORWARD : tensor<4x2xf32>
    %7 = stablehlo.custom_call @target(%6, %1) {backend_config = "", sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [i])->([i, j]) {i=4, j=2}, custom>, has_side_effect = true} : (tensor<4x2xf32>, tensor<4xf32>) -> tensor<4x2xf32>
    %8:2 = "other.op"(%7) ({
    ^bb0(%x: tensor<4x2xf32>):
      "other.branch"(%x)[^bb1] : (tensor<4x2xf32>) -> ()
    ^bb1:
      "other.end"() : () -> ()
    }) {dense = dense_resource<blob> : tensor<2xi8>} : (tensor<4x2xf32>) -> (tensor<4x2xf32>, !other.type<"a", [1]>)
    %9 = call @callee(%8#0) : (tensor<4x2xf32>) -> tensor<4x2xf32>
    return %9, %0#0 : tensor<4x2xf32>, tensor<i32>
  }
  func.func private @callee(%arg0: tensor<4x2xf32>) -> tensor<4x2xf32> {
    %0 = stablehlo.optimization_barrier %arg0 : tensor<4x2xf32>
    func.return %0 : tensor<4x2xf32>
  }
  func.func private @declared(tensor<4xf32> {sdy.sharding = #sdy.sharding<mesh<["z"=2]>, [{"z"}]>}) -> tensor<4xf32>
}
{-#
  dialect_resources: {
    builtin: { blob: "0x010000000001" }
  }
#-}
