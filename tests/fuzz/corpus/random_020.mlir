sdy.mesh @mesh = <["x"=4, "data"=2, "z"=4, "y"=8]>
func.func public @main(%v1: tensor<f32>, %v2: tensor<1x3x4x1xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {?}, {"y":(4)2, ?}, {?}]>}, %v3: tensor<4xf32>, %v4: tensor<16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}]>}, %v8: tensor<2xui64> {sdy.sharding = #sdy.sharding<@mesh, [{?}]>}, %v10: tensor<16x5x3x8xf32>, %v15: tensor<6x8x8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"data", ?}, {"y":(2)4, ?}, {}]>}, %v17: tensor<8x1x1x1xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y":(1)2, "y":(4)2, ?}, {?}, {?}, {?}]>}, %v22: tensor<5xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}]>}, %v24: tensor<5x2x5x6xf32>) -> (tensor<5x6xf32>, tensor<8x1x1x1xf32>, tensor<5x3x16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {?}, {?}, {?}]>}) {
%v5_r:2 = "stablehlo.custom_call"(%v4) <{call_target_name = "mhlo.topk"}> : (tensor<16xf32>) -> (tensor<2xf32>, tensor<2xi32>)
%v6 = sdy.sharding_constraint %v5_r#0 <@mesh, [{"x":(1)2, ?}]> : tensor<2xf32>
%v7:3 = "stablehlo.optimization_barrier"(%v5_r#0, %v4, %v2) : (tensor<2xf32>, tensor<16xf32>, tensor<1x3x4x1xf32>) -> (tensor<2xf32>, tensor<16xf32>, tensor<1x3x4x1xf32>)
%v9_r:2 = "stablehlo.rng_bit_generator"(%v8) <{rng_algorithm = #stablehlo<rng_algorithm THREE_FRY>}> : (tensor<2xui64>) -> (tensor<2xui64>, tensor<4x3xui32>)
%v11_r:1 = "stablehlo.transpose"(%v10) <{permutation = array<i64: 1, 2, 0, 3>}> : (tensor<16x5x3x8xf32>) -> (tensor<5x3x16x8xf32>)
%v12 = "stablehlo.divide"(%v5_r#0, %v6) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
%v13 = "stablehlo.constant"() <{value = dense<true> : tensor<i1>}> : () -> tensor<i1>
%v14_r:1 = "stablehlo.select"(%v13, %v1, %v1) : (tensor<i1>, tensor<f32>, tensor<f32>) -> (tensor<f32>)
%v16_r:1 = "stablehlo.cholesky"(%v15) : (tensor<6x8x8x8xf32>) -> (tensor<6x8x8x8xf32>)
%v18_r:1 = "stablehlo.cholesky"(%v17) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}, {?}, {?}, {}]>]>} : (tensor<8x1x1x1xf32>) -> (tensor<8x1x1x1xf32>)
%v19 = "stablehlo.broadcast_in_dim"(%v7#2) <{broadcast_dimensions = array<i64: 0, 1, 2, 4>}> : (tensor<1x3x4x1xf32>) -> tensor<1x3x4x3x1xf32>
%v20 = "stablehlo.tanh"(%v11_r#0) : (tensor<5x3x16x8xf32>) -> tensor<5x3x16x8xf32>
%v21 = sdy.sharding_constraint %v7#1 <@mesh, [{"data", ?}]> : tensor<16xf32>
%v23_r:1 = "stablehlo.pad"(%v22, %v1) <{edge_padding_low = array<i64: 2>, edge_padding_high = array<i64: 0>, interior_padding = array<i64: 0>}> : (tensor<5xf32>, tensor<f32>) -> (tensor<7xf32>)
sdy.sharding_group %v17 group_id=5 : tensor<8x1x1x1xf32>
%v25_r:1 = "stablehlo.reduce"(%v24, %v14_r#0) <{dimensions = array<i64: 0, 1>}> ({
  ^bb0(%v25_x0: tensor<f32>, %v25_x1: tensor<f32>):
    %v25_y0 = "stablehlo.add"(%v25_x0, %v25_x1) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    "stablehlo.return"(%v25_y0) : (tensor<f32>) -> ()
  }) : (tensor<5x2x5x6xf32>, tensor<f32>) -> (tensor<5x6xf32>)
%v26 = "stablehlo.slice"(%v22) <{start_indices = array<i64: 0>, limit_indices = array<i64: 3>, strides = array<i64: 1>}> : (tensor<5xf32>) -> tensor<3xf32>
func.return %v25_r#0, %v18_r#0, %v20 : tensor<5x6xf32>, tensor<8x1x1x1xf32>, tensor<5x3x16x8xf32>
}
