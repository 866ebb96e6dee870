sdy.mesh @mesh = <["model"=3, "x"=2, "z"=2]>
func.func @main(%v1: tensor<f32>, %v3: tensor<8x2xi32>, %v7: tensor<8x4xf32>) -> (tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"z", "x", ?}, {"model"}]>}) {
%v2 = "stablehlo.create_token"() : () -> !stablehlo.token
%v4_r:1 = "stablehlo.count_leading_zeros"(%v3) : (tensor<8x2xi32>) -> (tensor<8x2xi32>)
%v5:2 = "stablehlo.custom_call"(%v1, %v2) <{call_target_name = "io", has_side_effect = true}> : (tensor<f32>, !stablehlo.token) -> (tensor<f32>, !stablehlo.token)
%v6 = "stablehlo.compare"(%v1, %v5#0) <{comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<f32>, tensor<f32>) -> tensor<i1>
sdy.sharding_group %v5#0 group_id=5 : tensor<f32>
%v8_r:1 = "stablehlo.all_to_all"(%v7) <{split_dimension = 0 : i64, concat_dimension = 0 : i64, split_count = 2 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<8x4xf32>) -> (tensor<8x4xf32>)
%v13:2 = "stablehlo.if"(%v6) ({
sdy.sharding_group %v7 group_id=10 : tensor<8x4xf32>
%v9 = stablehlo.reduce(%v7 init: %v5#0) applies stablehlo.add across dimensions = [0] : (tensor<8x4xf32>, tensor<f32>) -> tensor<4xf32>
%v10 = "stablehlo.constant"() <{value = dense<2.0> : tensor<8x4xf32>}> : () -> tensor<8x4xf32>
"stablehlo.return"(%v10, %v7) : (tensor<8x4xf32>, tensor<8x4xf32>) -> ()
}, {
%v11 = "stablehlo.create_token"() : () -> !stablehlo.token
%v12 = "stablehlo.slice"(%v8_r#0) <{start_indices = array<i64: 0, 0>, limit_indices = array<i64: 4, 4>, strides = array<i64: 1, 1>}> : (tensor<8x4xf32>) -> tensor<4x4xf32>
"stablehlo.return"(%v8_r#0, %v8_r#0) : (tensor<8x4xf32>, tensor<8x4xf32>) -> ()
}) : (tensor<i1>) -> (tensor<8x4xf32>, tensor<8x4xf32>)
%v14 = sdy.sharding_constraint %v13#1 <@mesh, [{"model", ?}, {"z", "x"}]> : tensor<8x4xf32>
func.return %v8_r#0 : tensor<8x4xf32>
}
