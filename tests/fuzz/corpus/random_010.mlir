sdy.mesh @mesh = <["model"=4, "z"=6]>
func.func @main(%v1: tensor<8x6x4x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"model":(2)2, "z"}, {"model":(1)2}p1, {}]>}, %v5: tensor<4x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"model":(1)2, "z"}, {"model":(2)2}p0]>}, %v7: tensor<8xf32>, %v9: tensor<4x3xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"z"}, {"model"}p3]>}, %v10: tensor<4x5x4xf32>, %v21: tensor<4x4x6xf32>) -> (tensor<4x5x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"model":(1)2}p2, {"z"}p0, {?}p1]>}) {
%v2 = sdy.sharding_constraint %v1 <@mesh, [{"model", "z":(1)3}p0, {}, {"z":(3)2}p2, {}]> : tensor<8x6x4x6xf32>
%v3 = "stablehlo.iota"() <{iota_dimension = 1 : i64}> {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"model":(2)2, "z":(2)3}p0, {}]>]>} : () -> tensor<8x16xf32>
%v4 = "stablehlo.dot_general"(%v2, %v3) <{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [], rhs_batching_dimensions = [], lhs_contracting_dimensions = [0], rhs_contracting_dimensions = [0]>}> : (tensor<8x6x4x6xf32>, tensor<8x16xf32>) -> tensor<6x4x6x16xf32>
%v6 = "stablehlo.dot_general"(%v4, %v5) <{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [], rhs_batching_dimensions = [], lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [0]>}> : (tensor<6x4x6x16xf32>, tensor<4x6xf32>) -> tensor<6x6x16x6xf32>
%v8_r:1 = "stablehlo.all_gather"(%v7) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<8xf32>) -> (tensor<16xf32>)
%v11_r:1 = "stablehlo.dot_general"(%v9, %v10) <{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [], lhs_contracting_dimensions = [0], rhs_batching_dimensions = [], rhs_contracting_dimensions = [0]>}> : (tensor<4x3xf32>, tensor<4x5x4xf32>) -> (tensor<3x5x4xf32>)
%v15:2 = sdy.manual_computation(%v10) in_shardings=[<@mesh, [{"model", "z":(3)2, "z":(1)3}p1, {}, {}]>] out_shardings=[<@mesh, []>, <@mesh, []>] manual_axes={} (%v12: tensor<4x5x4xf32>) {
%v13 = "stablehlo.constant"() <{value = dense<2.0> : tensor<f32>}> : () -> tensor<f32>
%v14 = stablehlo.reduce(%v12 init: %v13) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<4x5x4xf32>, tensor<f32>) -> tensor<f32>
sdy.return %v14, %v14 : tensor<f32>, tensor<f32>
} : (tensor<4x5x4xf32>) -> (tensor<f32>, tensor<f32>)
%v20:1 = sdy.manual_computation(%v9, %v11_r#0) in_shardings=[<@mesh, [{"z":(2)3}p7, {}]>, <@mesh, [{"z"}p2, {}, {"model"}]>] out_shardings=[<@mesh, [{"z":(1)2}]>] manual_axes={"model"} (%v16: tensor<4x3xf32>, %v17: tensor<3x5x1xf32>) {
%v18 = "stablehlo.constant"() <{value = dense<2.0> : tensor<8xf32>}> : () -> tensor<8xf32>
%v19_r:1 = "stablehlo.collective_broadcast"(%v18) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<8xf32>) -> (tensor<8xf32>)
sdy.sharding_group %v19_r#0 group_id=5 : tensor<8xf32>
"stablehlo.custom_call"(%v16) <{call_target_name = "keep", has_side_effect = true}> : (tensor<4x3xf32>) -> ()
"stablehlo.custom_call"(%v17) <{call_target_name = "keep", has_side_effect = true}> : (tensor<3x5x1xf32>) -> ()
sdy.return %v19_r#0 : tensor<8xf32>
} : (tensor<4x3xf32>, tensor<3x5x4xf32>) -> (tensor<8xf32>)
%v22_s0 = stablehlo.slice %v21 [0:4, 0:4, 0:6] : (tensor<4x4x6xf32>) -> tensor<4x4x6xf32>
  %v22_s1 = stablehlo.slice %v21 [0:4, 0:4, 0:6] : (tensor<4x4x6xf32>) -> tensor<4x4x6xf32>
  %v22_s2 = stablehlo.slice %v21 [0:4, 0:4, 0:6] : (tensor<4x4x6xf32>) -> tensor<4x4x6xf32>
%v22_r:1 = "stablehlo.concatenate"(%v22_s0, %v22_s1, %v22_s2) <{dimension = 1 : i64}> : (tensor<4x4x6xf32>, tensor<4x4x6xf32>, tensor<4x4x6xf32>) -> (tensor<4x12x6xf32>)
sdy.sharding_group %v15#0 group_id=15 : tensor<f32>
%v23 = sdy.sharding_constraint %v5 <@mesh, [{"z"}, {"model":(2)2, "model":(1)2}]> : tensor<4x6xf32>
sdy.sharding_group %v6 group_id=4020 : tensor<6x6x16x6xf32>
"stablehlo.custom_call"(%v8_r#0) <{call_target_name = "keep", has_side_effect = true}> : (tensor<16xf32>) -> ()
"stablehlo.custom_call"(%v15#1) <{call_target_name = "keep", has_side_effect = true}> : (tensor<f32>) -> ()
"stablehlo.custom_call"(%v20#0) <{call_target_name = "keep", has_side_effect = true}> : (tensor<8xf32>) -> ()
"stablehlo.custom_call"(%v22_r#0) <{call_target_name = "keep", has_side_effect = true}> : (tensor<4x12x6xf32>) -> ()
"stablehlo.custom_call"(%v23) <{call_target_name = "keep", has_side_effect = true}> : (tensor<4x6xf32>) -> ()
func.return %v10 : tensor<4x5x4xf32>
}
