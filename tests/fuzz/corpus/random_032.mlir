sdy.mesh @mesh = <["model"=12, "x"=4, "w"=2]>
func.func @main(%v1: tensor<6x4xf32>, %v2: tensor<12xf32>, %v6: tensor<5xf32>, %v8: tensor<f32>, %v12: tensor<2x1x1xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"w"}p0, {"x", ?}p1, {?}]>}) -> (tensor<5x5xf32>, tensor<2x1x1xf32>) {
%v3 = "stablehlo.create_token"() : () -> !stablehlo.token
%v4 = "stablehlo.after_all"(%v3) : (!stablehlo.token) -> !stablehlo.token
%v5:2 = "stablehlo.optimization_barrier"(%v1, %v2) : (tensor<6x4xf32>, tensor<12xf32>) -> (tensor<6x4xf32>, tensor<12xf32>)
%v7 = "stablehlo.broadcast_in_dim"(%v8) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<5x5xf32>
%v9_r:1 = "stablehlo.dot"(%v6, %v7) : (tensor<5xf32>, tensor<5x5xf32>) -> (tensor<5xf32>)
%v10:2 = "stablehlo.custom_call"(%v8, %v3) <{call_target_name = "io", has_side_effect = true}> : (tensor<f32>, !stablehlo.token) -> (tensor<f32>, !stablehlo.token)
%v11 = "stablehlo.maximum"(%v8, %v10#0) : (tensor<f32>, tensor<f32>) -> tensor<f32>
%v13_r:1 = "stablehlo.cholesky"(%v12) <{lower = true}> : (tensor<2x1x1xf32>) -> (tensor<2x1x1xf32>)
%v14 = "stablehlo.sine"(%v12) : (tensor<2x1x1xf32>) -> tensor<2x1x1xf32>
%v15 = "stablehlo.after_all"(%v4) : (!stablehlo.token) -> !stablehlo.token
%v16:1 = "stablehlo.optimization_barrier"(%v9_r#0) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"model":(4)3, "w", ?}]>]>} : (tensor<5xf32>) -> (tensor<5xf32>)
"stablehlo.custom_call"(%v5#0) <{call_target_name = "keep", has_side_effect = true}> : (tensor<6x4xf32>) -> ()
"stablehlo.custom_call"(%v5#1) <{call_target_name = "keep", has_side_effect = true}> : (tensor<12xf32>) -> ()
"stablehlo.custom_call"(%v11) <{call_target_name = "keep", has_side_effect = true}> : (tensor<f32>) -> ()
"stablehlo.custom_call"(%v14) <{call_target_name = "keep", has_side_effect = true}> : (tensor<2x1x1xf32>) -> ()
"stablehlo.custom_call"(%v16#0) <{call_target_name = "keep", has_side_effect = true}> : (tensor<5xf32>) -> ()
func.return %v7, %v13_r#0 : tensor<5x5xf32>, tensor<2x1x1xf32>
}
