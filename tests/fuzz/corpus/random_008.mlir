sdy.mesh @mesh = <["x"=2]>
sdy.mesh @other = <["a"=4, "x"=2]>
sdy.mesh @on_three = <[], device_ids=[3]>
sdy.mesh @turned = <["x"=2], device_ids=[1, 0]>
func.func @main(%v1: tensor<8x24x12x16xf32>, %v2: tensor<f32> {sdy.sharding = #sdy.sharding<@other, []>}, %v6: tensor<6x1xf32>, %v8: tensor<2x6x4xi32>, %v9: tensor<2x6x4xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}p2, {}, {}]>}, %v11: tensor<8x2x3x3x1xi32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}p2, {}, {}, {}, {}]>}, %v14: tensor<f32> {sdy.sharding = #sdy.sharding<@mesh, []>}) -> (tensor<2x6x4xi32>, tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}) {
%v3 = "stablehlo.constant"() <{value = dense<1.0> : tensor<2x8xf32>}> : () -> tensor<2x8xf32>
%v4_r:1 = "stablehlo.slice"(%v3) <{start_indices = array<i64: 0, 0>, limit_indices = array<i64: 2, 8>, strides = array<i64: 2, 2>}> : (tensor<2x8xf32>) -> (tensor<1x4xf32>)
%v5 = stablehlo.reduce(%v4_r#0 init: %v2) applies stablehlo.add across dimensions = [0, 1] : (tensor<1x4xf32>, tensor<f32>) -> tensor<f32>
%v7_r:1 = "stablehlo.broadcast_in_dim"(%v6) <{broadcast_dimensions = array<i64: 1, 0>}> : (tensor<6x1xf32>) -> (tensor<16x6xf32>)
%v10 = "stablehlo.iota"() <{iota_dimension = 1 : i64}> : () -> tensor<8x3xi32>
%v12_r:2 = "stablehlo.scatter"(%v8, %v9, %v10, %v11, %v11) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1, 2, 4], scatter_dims_to_operand_dims = [2], index_vector_dim = 2>, unique_indices = true}> ({
  ^bb0(%v12_x0: tensor<i32>, %v12_x1: tensor<i32>, %v12_x2: tensor<i32>, %v12_x3: tensor<i32>):
    %v12_y0 = "stablehlo.add"(%v12_x0, %v12_x2) : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %v12_y1 = "stablehlo.add"(%v12_x1, %v12_x3) : (tensor<i32>, tensor<i32>) -> tensor<i32>
    "stablehlo.return"(%v12_y0, %v12_y1) : (tensor<i32>, tensor<i32>) -> ()
  }) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"x"}, {}]>, <@mesh, [{"x"}p1, {}, {}]>]>} : (tensor<2x6x4xi32>, tensor<2x6x4xi32>, tensor<8x3xi32>, tensor<8x2x3x3x1xi32>, tensor<8x2x3x3x1xi32>) -> (tensor<2x6x4xi32>, tensor<2x6x4xi32>)
%v13 = "stablehlo.broadcast_in_dim"(%v14) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<2x12x4x4xf32>
%v15 = "stablehlo.constant"() <{value = dense<2.0> : tensor<2x12x4x3xf32>}> : () -> tensor<2x12x4x3xf32>
%v16_r:1 = "stablehlo.triangular_solve"(%v13, %v15) <{left_side = true, lower = true, unit_diagonal = false, transpose_a = #stablehlo<transpose TRANSPOSE>}> : (tensor<2x12x4x4xf32>, tensor<2x12x4x3xf32>) -> (tensor<2x12x4x3xf32>)
%v17 = "stablehlo.exponential"(%v13) : (tensor<2x12x4x4xf32>) -> tensor<2x12x4x4xf32>
%v18 = "stablehlo.constant"() <{value = dense<1.0> : tensor<4xf32>}> : () -> tensor<4xf32>
%v19_r:2 = "stablehlo.custom_call"(%v18) <{call_target_name = "mhlo.topk"}> : (tensor<4xf32>) -> (tensor<2xf32>, tensor<2xi32>)
%v20 = "stablehlo.broadcast_in_dim"(%v2) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<8xf32>
%v21_r:1 = "stablehlo.dot"(%v20, %v20) : (tensor<8xf32>, tensor<8xf32>) -> (tensor<f32>)
"stablehlo.custom_call"(%v1) <{call_target_name = "keep", has_side_effect = true}> : (tensor<8x24x12x16xf32>) -> ()
"stablehlo.custom_call"(%v5) <{call_target_name = "keep", has_side_effect = true}> : (tensor<f32>) -> ()
"stablehlo.custom_call"(%v7_r#0) <{call_target_name = "keep", has_side_effect = true}> : (tensor<16x6xf32>) -> ()
"stablehlo.custom_call"(%v12_r#1) <{call_target_name = "keep", has_side_effect = true}> : (tensor<2x6x4xi32>) -> ()
"stablehlo.custom_call"(%v16_r#0) <{call_target_name = "keep", has_side_effect = true}> : (tensor<2x12x4x3xf32>) -> ()
"stablehlo.custom_call"(%v17) <{call_target_name = "keep", has_side_effect = true}> : (tensor<2x12x4x4xf32>) -> ()
"stablehlo.custom_call"(%v19_r#0) <{call_target_name = "keep", has_side_effect = true}> : (tensor<2xf32>) -> ()
"stablehlo.custom_call"(%v19_r#1) <{call_target_name = "keep", has_side_effect = true}> : (tensor<2xi32>) -> ()
"stablehlo.custom_call"(%v21_r#0) <{call_target_name = "keep", has_side_effect = true}> : (tensor<f32>) -> ()
func.return %v12_r#0, %v20 : tensor<2x6x4xi32>, tensor<8xf32>
}
