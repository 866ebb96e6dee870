sdy.mesh @mesh = <["z"=4]>
sdy.mesh @on_three = <[], device_ids=[3]>
sdy.mesh @reversed = <["z"=4]>
sdy.mesh @same = <["z"=4]>
func.func public @main(%v1: tensor<f32>, %v2: tensor<8x8x4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"z", ?}p2, {?}, {}]>}, %v3: tensor<12x1xf32>, %v4: tensor<4x1x2x3xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {?}, {"z":(1)2, ?}p7, {?}]>}, %v5: tensor<16x3x5x2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {?}p7, {"z", ?}, {?}p1]>}, %v8: tensor<2x6xf32>, %v11: tensor<8xf32>, %v13: tensor<16x12x6x8xf32>, %v16: tensor<4x2x9x9x1xf32>, %v21: tensor<5x12x1x2xf32>) -> (tensor<4x2x9x9x1xf32>, tensor<16x12x6x8xf32>) {
%v6_r:1 = "stablehlo.convolution"(%v4, %v5) <{batch_group_count = 2 : i64, feature_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<[0, 1, b, f]x[0, i, 1, o]->[1, f, b, 0]>, window_strides = array<i64: 1, 1>, padding = dense<[[15, 0], [4, 0]]> : tensor<2x2xi64>}> : (tensor<4x1x2x3xf32>, tensor<16x3x5x2xf32>) -> (tensor<1x2x1x4xf32>)
%v7 = "stablehlo.transpose"(%v4) <{permutation = array<i64: 0, 1, 3, 2>}> : (tensor<4x1x2x3xf32>) -> tensor<4x1x3x2xf32>
%v9_r:1 = "stablehlo.reshape"(%v8) : (tensor<2x6xf32>) -> (tensor<12xf32>)
%v10 = "stablehlo.transpose"(%v7) <{permutation = array<i64: 0, 1, 2, 3>}> : (tensor<4x1x3x2xf32>) -> tensor<4x1x3x2xf32>
%v12_r:1 = "stablehlo.bitcast_convert"(%v11) : (tensor<8xf32>) -> (tensor<8xi32>)
%v14_r:1 = "stablehlo.pad"(%v13, %v1) <{edge_padding_low = array<i64: 2, 0, 1, 0>, edge_padding_high = array<i64: 2, 1, 0, 0>, interior_padding = array<i64: 1, 1, 0, 0>}> : (tensor<16x12x6x8xf32>, tensor<f32>) -> (tensor<35x24x7x8xf32>)
%v15 = "stablehlo.constant"() <{value = dense<0.0> : tensor<16x1x9x12x16xf32>}> : () -> tensor<16x1x9x12x16xf32>
%v17_r:1 = "stablehlo.convolution"(%v15, %v16) <{batch_group_count = 4 : i64, feature_group_count = 1 : i64, dimension_numbers = #stablehlo.conv<[2, f, 1, b, 0]x[o, 1, 2, 0, i]->[0, 1, b, f, 2]>, window_strides = array<i64: 2, 2, 1>, padding = dense<[[1, 2], [1, 0], [0, 0]]> : tensor<3x2xi64>}> : (tensor<16x1x9x12x16xf32>, tensor<4x2x9x9x1xf32>) -> (tensor<6x5x3x4x8xf32>)
%v18 = "stablehlo.reshape"(%v5) : (tensor<16x3x5x2xf32>) -> tensor<16x3x1x5x2xf32>
%v19 = sdy.reshard %v9_r#0 <@mesh, [{"z":(1)2, ?}]> : tensor<12xf32>
%v20 = sdy.sharding_constraint %v19 <@mesh, [{?}], replicated={"z":(1)2}> : tensor<12xf32>
%v22_r:1 = "stablehlo.transpose"(%v21) <{permutation = array<i64: 0, 2, 1, 3>}> : (tensor<5x12x1x2xf32>) -> (tensor<5x1x12x2xf32>)
"stablehlo.custom_call"(%v2) <{call_target_name = "keep", has_side_effect = true}> : (tensor<8x8x4x4xf32>) -> ()
"stablehlo.custom_call"(%v3) <{call_target_name = "keep", has_side_effect = true}> : (tensor<12x1xf32>) -> ()
"stablehlo.custom_call"(%v6_r#0) <{call_target_name = "keep", has_side_effect = true}> : (tensor<1x2x1x4xf32>) -> ()
"stablehlo.custom_call"(%v10) <{call_target_name = "keep", has_side_effect = true}> : (tensor<4x1x3x2xf32>) -> ()
"stablehlo.custom_call"(%v12_r#0) <{call_target_name = "keep", has_side_effect = true}> : (tensor<8xi32>) -> ()
"stablehlo.custom_call"(%v14_r#0) <{call_target_name = "keep", has_side_effect = true}> : (tensor<35x24x7x8xf32>) -> ()
"stablehlo.custom_call"(%v17_r#0) <{call_target_name = "keep", has_side_effect = true}> : (tensor<6x5x3x4x8xf32>) -> ()
"stablehlo.custom_call"(%v18) <{call_target_name = "keep", has_side_effect = true}> : (tensor<16x3x1x5x2xf32>) -> ()
"stablehlo.custom_call"(%v20) <{call_target_name = "keep", has_side_effect = true}> : (tensor<12xf32>) -> ()
"stablehlo.custom_call"(%v22_r#0) <{call_target_name = "keep", has_side_effect = true}> : (tensor<5x1x12x2xf32>) -> ()
func.return %v16, %v13 : tensor<4x2x9x9x1xf32>, tensor<16x12x6x8xf32>
}
