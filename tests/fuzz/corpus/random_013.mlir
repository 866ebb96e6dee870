sdy.mesh @mesh = <["model"=2]>
func.func @main(%v1: tensor<4x24xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}p2, {"model"}p3]>}, %v2: tensor<f32> {sdy.sharding = #sdy.sharding<@mesh, []>}, %v3: tensor<7x6xf32>, %v4: tensor<8x16x1x4x4xi8>, %v7: tensor<6xi1> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}, %v8: tensor<6x0xi32>) -> (tensor<6x0xi32>, tensor<6xi1>) {
%v5_r:1 = "stablehlo.bitcast_convert"(%v4) : (tensor<8x16x1x4x4xi8>) -> (tensor<8x16x1x4xf32>)
%v6 = "stablehlo.create_token"() : () -> !stablehlo.token
%v9_r:2 = "stablehlo.scatter"(%v7, %v7, %v8, %v7, %v7) <{scatter_dimension_numbers = #stablehlo.scatter<input_batching_dims = [0], scatter_indices_batching_dims = [0], index_vector_dim = 1>, unique_indices = true}> ({
  ^bb0(%v9_x0: tensor<i1>, %v9_x1: tensor<i1>, %v9_x2: tensor<i1>, %v9_x3: tensor<i1>):
    %v9_y0 = "stablehlo.xor"(%v9_x0, %v9_x2) : (tensor<i1>, tensor<i1>) -> tensor<i1>
    %v9_y1 = "stablehlo.xor"(%v9_x1, %v9_x3) : (tensor<i1>, tensor<i1>) -> tensor<i1>
    "stablehlo.return"(%v9_x0, %v9_y1) : (tensor<i1>, tensor<i1>) -> ()
  }) : (tensor<6xi1>, tensor<6xi1>, tensor<6x0xi32>, tensor<6xi1>, tensor<6xi1>) -> (tensor<6xi1>, tensor<6xi1>)
%v10 = sdy.sharding_constraint %v5_r#0 <@mesh, [{}, {"model"}, {}, {}]> : tensor<8x16x1x4xf32>
"stablehlo.custom_call"(%v1) <{call_target_name = "keep", has_side_effect = true}> : (tensor<4x24xf32>) -> ()
"stablehlo.custom_call"(%v2) <{call_target_name = "keep", has_side_effect = true}> : (tensor<f32>) -> ()
"stablehlo.custom_call"(%v3) <{call_target_name = "keep", has_side_effect = true}> : (tensor<7x6xf32>) -> ()
"stablehlo.custom_call"(%v9_r#1) <{call_target_name = "keep", has_side_effect = true}> : (tensor<6xi1>) -> ()
"stablehlo.custom_call"(%v10) <{call_target_name = "keep", has_side_effect = true}> : (tensor<8x16x1x4xf32>) -> ()
func.return %v8, %v9_r#0 : tensor<6x0xi32>, tensor<6xi1>
}
