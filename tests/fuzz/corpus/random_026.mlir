sdy.mesh @mesh = <["model"=2]>
func.func public @main(%v1: tensor<5x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"model"}, {?}p3]>}, %v3: tensor<2xf32>, %v9: tensor<6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"model"}p1]>}) -> (tensor<5x8xf32>, tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"model"}]>}, tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"model"}p7]>}) {
%v2 = "stablehlo.create_token"() : () -> !stablehlo.token
%v4_r:1 = "stablehlo.convert"(%v3) : (tensor<2xf32>) -> (tensor<2xi1>)
%v5 = "stablehlo.transpose"(%v1) <{permutation = array<i64: 0, 1>}> : (tensor<5x8xf32>) -> tensor<5x8xf32>
%v6:2 = "stablehlo.custom_call"(%v5, %v2) <{call_target_name = "io", has_side_effect = true}> : (tensor<5x8xf32>, !stablehlo.token) -> (tensor<5x8xf32>, !stablehlo.token)
%v8 = "stablehlo.constant"() <{value = dense<0.0> : tensor<f32>}> : () -> tensor<f32>
%v7 = "stablehlo.broadcast_in_dim"(%v8) <{broadcast_dimensions = array<i64>}> : (tensor<f32>) -> tensor<8xf32>
%v10_r:1 = "stablehlo.select_and_scatter"(%v7, %v9, %v8) <{window_dimensions = array<i64: 3>, window_strides = array<i64: 1>, padding = dense<[[0, 0]]> : tensor<1x2xi64>}> ({
  ^bb0(%v10_x: tensor<f32>, %v10_y: tensor<f32>):
    %v10_z = "stablehlo.compare"(%v10_x, %v10_y) <{comparison_direction = #stablehlo<comparison_direction GE>}> : (tensor<f32>, tensor<f32>) -> tensor<i1>
    "stablehlo.return"(%v10_z) : (tensor<i1>) -> ()
  }, {
  ^bb0(%v10_x0: tensor<f32>, %v10_x1: tensor<f32>):
    %v10_y0 = "stablehlo.add"(%v10_x0, %v10_x1) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    "stablehlo.return"(%v10_y0) : (tensor<f32>) -> ()
  }) : (tensor<8xf32>, tensor<6xf32>, tensor<f32>) -> (tensor<8xf32>)
%v11 = "stablehlo.slice"(%v5) <{start_indices = array<i64: 0, 0>, limit_indices = array<i64: 3, 8>, strides = array<i64: 1, 1>}> : (tensor<5x8xf32>) -> tensor<3x8xf32>
%v12:2 = "stablehlo.custom_call"(%v10_r#0, %v6#1) <{call_target_name = "io", has_side_effect = true}> : (tensor<8xf32>, !stablehlo.token) -> (tensor<8xf32>, !stablehlo.token)
"stablehlo.custom_call"(%v4_r#0) <{call_target_name = "keep", has_side_effect = true}> : (tensor<2xi1>) -> ()
"stablehlo.custom_call"(%v6#0) <{call_target_name = "keep", has_side_effect = true}> : (tensor<5x8xf32>) -> ()
"stablehlo.custom_call"(%v11) <{call_target_name = "keep", has_side_effect = true}> : (tensor<3x8xf32>) -> ()
"stablehlo.custom_call"(%v12#0) <{call_target_name = "keep", has_side_effect = true}> : (tensor<8xf32>) -> ()
func.return %v5, %v7, %v7 : tensor<5x8xf32>, tensor<8xf32>, tensor<8xf32>
}
