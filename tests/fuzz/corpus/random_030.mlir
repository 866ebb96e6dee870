sdy.mesh @mesh = <["y"=1, "x"=2, "model"=3]>
func.func public @main(%v1: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y", ?}, {"x", "model"}]>}, %v2: tensor<12x6x5xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", ?}, {"y", ?}, {}]>}, %v5: tensor<i32> {sdy.sharding = #sdy.sharding<@mesh, []>}) -> (tensor<3xf32>, tensor<3xf32>, tensor<16xf32>) {
%v3:1 = "stablehlo.custom_call"(%v1) <{call_target_name = "foo"}> {sdy.sharding_rule = #sdy.op_sharding_rule<([ij, k])->([lm, n, o]) {i=4, j=2, k=16, l=4, m=3, n=6, o=5} blocked_propagation={n}, custom>} : (tensor<8x16xf32>) -> (tensor<12x6x5xf32>)
%v4 = "stablehlo.constant"() <{value = dense<1.0> : tensor<16xf32>}> : () -> tensor<16xf32>
%v6_r:1 = "stablehlo.dynamic_slice"(%v4, %v5) <{slice_sizes = array<i64: 3>}> {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x", ?}]>]>} : (tensor<16xf32>, tensor<i32>) -> (tensor<3xf32>)
%v14:2 = "stablehlo.case"(%v5) ({
%v7 = "stablehlo.constant"() <{value = dense<2.0> : tensor<2xf32>}> : () -> tensor<2xf32>
%v8_r:2 = "stablehlo.all_to_all"(%v7, %v7) <{split_dimension = 0 : i64, concat_dimension = 0 : i64, split_count = 2 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"y", ?}]>, <@mesh, [{"model", ?}]>]>} : (tensor<2xf32>, tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>)
"stablehlo.return"(%v6_r#0, %v4) : (tensor<3xf32>, tensor<16xf32>) -> ()
}, {
%v9 = sdy.propagation_barrier %v3#0 allowed_direction=BACKWARD : tensor<12x6x5xf32>
%v10 = "stablehlo.constant"() <{value = dense<1.0> : tensor<3xf32>}> : () -> tensor<3xf32>
"stablehlo.return"(%v10, %v4) : (tensor<3xf32>, tensor<16xf32>) -> ()
}, {
%v12 = "stablehlo.constant"() <{value = dense<0.0> : tensor<f32>}> : () -> tensor<f32>
%v11 = "stablehlo.broadcast_in_dim"(%v12) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<6x1x12xf32>
%v13_r:1 = "stablehlo.custom_call"(%v11, %v11) <{call_target_name = "InspectSharding", has_side_effect = true, api_version = 2 : i32}> : (tensor<6x1x12xf32>, tensor<6x1x12xf32>) -> (tensor<6x1x12xf32>)
"stablehlo.return"(%v6_r#0, %v4) : (tensor<3xf32>, tensor<16xf32>) -> ()
}) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"model", ?}]>, <@mesh, [{?}]>]>} : (tensor<i32>) -> (tensor<3xf32>, tensor<16xf32>)
%v15 = sdy.sharding_constraint %v14#0 <@mesh, [{"y", "x", "model", ?}]> : tensor<3xf32>
%v16 = sdy.sharding_constraint %v6_r#0 <@mesh, [{}]> : tensor<3xf32>
%v27 = "stablehlo.constant"() <{value = dense<true> : tensor<i1>}> : () -> tensor<i1>
%v28:2 = "stablehlo.if"(%v27) ({
%v18 = "stablehlo.constant"() <{value = dense<0.0> : tensor<f32>}> : () -> tensor<f32>
%v17 = "stablehlo.broadcast_in_dim"(%v18) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<2x4xf32>
%v19_r:1 = "stablehlo.dynamic_slice"(%v17, %v5, %v5) <{slice_sizes = array<i64: 2, 3>}> {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"model", "y", ?}, {?}]>]>} : (tensor<2x4xf32>, tensor<i32>, tensor<i32>) -> (tensor<2x3xf32>)
%v20 = "stablehlo.multiply"(%v19_r#0, %v19_r#0) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}, {"y", ?}]>]>} : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
%v21 = "stablehlo.constant"() <{value = dense<0.0> : tensor<4x8xf32>}> : () -> tensor<4x8xf32>
%v22_r:2 = "stablehlo.custom_call"(%v21) <{call_target_name = "mhlo.topk"}> : (tensor<4x8xf32>) -> (tensor<4x2xf32>, tensor<4x2xi32>)
"stablehlo.return"(%v15, %v14#0) : (tensor<3xf32>, tensor<3xf32>) -> ()
}, {
%v23 = "stablehlo.constant"() <{value = dense<1.0> : tensor<3x8xf32>}> : () -> tensor<3x8xf32>
%v24 = "stablehlo.dot_general"(%v6_r#0, %v23) <{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [], rhs_batching_dimensions = [], lhs_contracting_dimensions = [0], rhs_contracting_dimensions = [0]>}> : (tensor<3xf32>, tensor<3x8xf32>) -> tensor<8xf32>
%v25 = "stablehlo.iota"() <{iota_dimension = 0 : i64}> : () -> tensor<0x3xf32>
%v26_r:1 = "stablehlo.reshape"(%v25) : (tensor<0x3xf32>) -> (tensor<2x0xf32>)
"stablehlo.return"(%v16, %v15) : (tensor<3xf32>, tensor<3xf32>) -> ()
}) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"y", ?}]>, <@mesh, [{?}]>]>} : (tensor<i1>) -> (tensor<3xf32>, tensor<3xf32>)
func.return %v28#0, %v14#0, %v14#1 : tensor<3xf32>, tensor<3xf32>, tensor<16xf32>
}
