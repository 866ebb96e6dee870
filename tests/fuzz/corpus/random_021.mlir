sdy.mesh @mesh = <["w"=8, "data"=2]>
func.func public @main(%v1: tensor<8xf32>, %v4: tensor<i32>, %v8: tensor<f32>) -> (tensor<1xf32>, tensor<1x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}p1, {?}]>}) {
%v2 = sdy.sharding_constraint %v1 <@mesh, [{"data", ?}p2]> : tensor<8xf32>
%v3:2 = "stablehlo.optimization_barrier"(%v2, %v2) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}p0]>, <@mesh, [{"data", ?}]>]>} : (tensor<8xf32>, tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>)
%v5 = "stablehlo.dynamic_slice"(%v3#1, %v4) <{slice_sizes = array<i64: 1>}> {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}p0]>]>} : (tensor<8xf32>, tensor<i32>) -> tensor<1xf32>
%v6:1 = "stablehlo.optimization_barrier"(%v5) : (tensor<1xf32>) -> (tensor<1xf32>)
%v7 = "stablehlo.broadcast_in_dim"(%v8) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<1x16xf32>
%v9 = "stablehlo.dot_general"(%v5, %v7) <{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [], rhs_batching_dimensions = [], lhs_contracting_dimensions = [0], rhs_contracting_dimensions = [0]>}> {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"w", "data", ?}]>]>} : (tensor<1xf32>, tensor<1x16xf32>) -> tensor<16xf32>
%v10 = sdy.sharding_constraint %v9 <@mesh, [{"data"}p1]> : tensor<16xf32>
"stablehlo.custom_call"(%v3#0) <{call_target_name = "keep", has_side_effect = true}> : (tensor<8xf32>) -> ()
"stablehlo.custom_call"(%v10) <{call_target_name = "keep", has_side_effect = true}> : (tensor<16xf32>) -> ()
func.return %v6#0, %v7 : tensor<1xf32>, tensor<1x16xf32>
}
