sdy.mesh @mesh = <["model"=2, "x"=5], device_ids=[7, 4, 6, 2, 5, 1, 8, 3, 0, 9]>
func.func @main(%v1: tensor<8x16x2x6xf32>, %v16: tensor<f32>, %v18: tensor<3x3xf32>, %v19: tensor<f32>) -> (tensor<f32>, tensor<3x3xf32>) {
sdy.sharding_group %v1 group_id=4000 : tensor<8x16x2x6xf32>
%v12:2 = sdy.manual_computation(%v1, %v1, %v1) in_shardings=[<@mesh, [{"model"}, {}, {}, {}]>, <@mesh, [{"model"}, {?}, {}, {}]>, <@mesh, [{"model"}, {}, {}, {}]>] out_shardings=[<@mesh, [{"model"}, {}, {}, {}]>, <@mesh, [{"model"}, {}, {}, {}]>] manual_axes={} (%v2: tensor<8x16x2x6xf32>, %v3: tensor<8x16x2x6xf32>, %v4: tensor<8x16x2x6xf32>) {
%v5 = sdy.sharding_constraint %v4 <@mesh, [{"model"}, {}, {}, {}], replicated={"x"}> : tensor<8x16x2x6xf32>
%v11:1 = sdy.manual_computation(%v4, %v5) in_shardings=[<@mesh, [{"model"}, {}, {}, {}]>, <@mesh, [{"model", ?}, {}, {}, {}]>] out_shardings=[<@mesh, [{}, {"model"}, {}]>] manual_axes={} (%v6: tensor<8x16x2x6xf32>, %v7: tensor<8x16x2x6xf32>) {
%v8 = "stablehlo.broadcast_in_dim"(%v7) <{broadcast_dimensions = array<i64: 1, 2, 3, 4>}> {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"model"}, {}, {}, {?}]>]>} : (tensor<8x16x2x6xf32>) -> tensor<4x8x16x2x6xf32>
%v9 = "stablehlo.constant"() <{value = dense<0.0> : tensor<1x4x2xf32>}> : () -> tensor<1x4x2xf32>
%v10_r:1 = "stablehlo.sort"(%v9) <{is_stable = true, dimension = 1 : i64}> ({
  ^bb0(%v10_x0: tensor<f32>, %v10_x1: tensor<f32>):
    %v10_z = "stablehlo.compare"(%v10_x0, %v10_x1) <{comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<f32>, tensor<f32>) -> tensor<i1>
    "stablehlo.return"(%v10_z) : (tensor<i1>) -> ()
  }) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"model"}, {}]>]>} : (tensor<1x4x2xf32>) -> (tensor<1x4x2xf32>)
sdy.return %v10_r#0 : tensor<1x4x2xf32>
} : (tensor<8x16x2x6xf32>, tensor<8x16x2x6xf32>) -> (tensor<1x4x2xf32>)
sdy.return %v5, %v4 : tensor<8x16x2x6xf32>, tensor<8x16x2x6xf32>
} : (tensor<8x16x2x6xf32>, tensor<8x16x2x6xf32>, tensor<8x16x2x6xf32>) -> (tensor<8x16x2x6xf32>, tensor<8x16x2x6xf32>)
%v13 = "stablehlo.constant"() <{value = dense<2.0> : tensor<8x6xf32>}> : () -> tensor<8x6xf32>
%v14 = "stablehlo.constant"() <{value = dense<1> : tensor<i32>}> {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [], replicated={"model", "x"}>]>} : () -> tensor<i32>
%v15_r:1 = "stablehlo.dynamic_slice"(%v13, %v14, %v14) <{slice_sizes = array<i64: 2, 6>}> : (tensor<8x6xf32>, tensor<i32>, tensor<i32>) -> (tensor<2x6xf32>)
%v17 = "stablehlo.pad"(%v13, %v16) <{edge_padding_low = array<i64: 0, 0>, edge_padding_high = array<i64: 0, 0>, interior_padding = array<i64: 0, 0>}> : (tensor<8x6xf32>, tensor<f32>) -> tensor<8x6xf32>
%v20_r:2 = "stablehlo.reduce_window"(%v18, %v18, %v19, %v16) <{window_dimensions = array<i64: 3, 1>, window_strides = array<i64: 2, 1>, padding = dense<[[0, 0], [0, 1]]> : tensor<2x2xi64>}> ({
  ^bb0(%v20_x0: tensor<f32>, %v20_x1: tensor<f32>, %v20_x2: tensor<f32>, %v20_x3: tensor<f32>):
    %v20_y0 = "stablehlo.add"(%v20_x0, %v20_x2) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %v20_y1 = "stablehlo.add"(%v20_x1, %v20_x3) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    "stablehlo.return"(%v20_y0, %v20_y1) : (tensor<f32>, tensor<f32>) -> ()
  }) : (tensor<3x3xf32>, tensor<3x3xf32>, tensor<f32>, tensor<f32>) -> (tensor<1x4xf32>, tensor<1x4xf32>)
sdy.sharding_group %v17 group_id=4010 : tensor<8x6xf32>
%v21 = "stablehlo.create_token"() : () -> !stablehlo.token
sdy.sharding_group %v18 group_id=27 : tensor<3x3xf32>
%v22 = sdy.sharding_constraint %v18 <@mesh, [{}, {}]> : tensor<3x3xf32>
%v27:1 = sdy.manual_computation(%v20_r#1, %v18, %v18) in_shardings=[<@mesh, [{"model"}, {}], replicated={"x"}>, <@mesh, [{"model"}, {}], replicated={"x"}>, <@mesh, [{"model"}, {}]>] out_shardings=[<@mesh, [{"x", "model"}, {}]>] manual_axes={"x"} (%v23: tensor<1x4xf32>, %v24: tensor<3x3xf32>, %v25: tensor<3x3xf32>) {
%v26 = sdy.sharding_constraint %v25 <@mesh, [{}, {}]> : tensor<3x3xf32>
sdy.return %v26 : tensor<3x3xf32>
} : (tensor<1x4xf32>, tensor<3x3xf32>, tensor<3x3xf32>) -> (tensor<15x3xf32>)
%v28 = "stablehlo.constant"() <{value = dense<1.0> : tensor<2x4x4xf32>}> : () -> tensor<2x4x4xf32>
%v29_r:1 = "stablehlo.cholesky"(%v28) <{lower = true}> : (tensor<2x4x4xf32>) -> (tensor<2x4x4xf32>)
%v30:2 = "stablehlo.custom_call"(%v16, %v21) <{call_target_name = "io", has_side_effect = true}> : (tensor<f32>, !stablehlo.token) -> (tensor<f32>, !stablehlo.token)
%v31 = sdy.sharding_constraint %v29_r#0 <@mesh, [{"model"}, {}, {}], replicated={"x"}> : tensor<2x4x4xf32>
%v32 = sdy.sharding_constraint %v19 <@mesh, [], replicated={"model", "x"}> : tensor<f32>
sdy.sharding_group %v28 group_id=28 : tensor<2x4x4xf32>
%v33 = "stablehlo.transpose"(%v22) <{permutation = array<i64: 1, 0>}> : (tensor<3x3xf32>) -> tensor<3x3xf32>
func.return %v32, %v18 : tensor<f32>, tensor<3x3xf32>
}
