sdy.mesh @mesh = <["x"=8, "z"=4]>
func.func @main(%v1: tensor<8x12x3x8xf32>, %v2: tensor<5xf32>, %v3: tensor<i32>, %v6: tensor<5xi1> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}, %v8: tensor<16x16xf32>, %v10: tensor<f32> {sdy.sharding = #sdy.sharding<@mesh, []>}) -> (tensor<16x16xi32>) {
%v4_r:1 = "stablehlo.dynamic_slice"(%v2, %v3) <{slice_sizes = array<i64: 5>}> : (tensor<5xf32>, tensor<i32>) -> (tensor<5xf32>)
%v5:2 = "stablehlo.optimization_barrier"(%v4_r#0, %v4_r#0) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}]>, <@mesh, [{}]>]>} : (tensor<5xf32>, tensor<5xf32>) -> (tensor<5xf32>, tensor<5xf32>)
%v7 = "stablehlo.select"(%v6, %v5#1, %v4_r#0) : (tensor<5xi1>, tensor<5xf32>, tensor<5xf32>) -> tensor<5xf32>
%v9 = "stablehlo.constant"() <{value = dense<1> : tensor<16x16xi32>}> : () -> tensor<16x16xi32>
%v11_r:2 = "stablehlo.custom_call"(%v8, %v9, %v10, %v3) <{call_target_name = "PartialReduce"}> {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {"z"}p2]>, <@mesh, [{"z"}p3, {"x"}]>]>} : (tensor<16x16xf32>, tensor<16x16xi32>, tensor<f32>, tensor<i32>) -> (tensor<16x16xf32>, tensor<16x16xi32>)
%v12 = "stablehlo.iota"() <{iota_dimension = 0 : i64}> : () -> tensor<2x5xf32>
%v13_r:1 = "stablehlo.slice"(%v12) <{start_indices = array<i64: 0, 0>, limit_indices = array<i64: 2, 5>, strides = array<i64: 2, 1>}> : (tensor<2x5xf32>) -> (tensor<1x5xf32>)
"stablehlo.custom_call"(%v1) <{call_target_name = "keep", has_side_effect = true}> : (tensor<8x12x3x8xf32>) -> ()
"stablehlo.custom_call"(%v5#0) <{call_target_name = "keep", has_side_effect = true}> : (tensor<5xf32>) -> ()
"stablehlo.custom_call"(%v7) <{call_target_name = "keep", has_side_effect = true}> : (tensor<5xf32>) -> ()
"stablehlo.custom_call"(%v11_r#0) <{call_target_name = "keep", has_side_effect = true}> : (tensor<16x16xf32>) -> ()
"stablehlo.custom_call"(%v13_r#0) <{call_target_name = "keep", has_side_effect = true}> : (tensor<1x5xf32>) -> ()
func.return %v11_r#1 : tensor<16x16xi32>
}
