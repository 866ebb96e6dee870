sdy.mesh @mesh = <["data"=2, "model"=2]>
func.func @main(%v7: tensor<f32> {sdy.sharding = #sdy.sharding<@mesh, []>}, %v8: tensor<4x6x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {?}, {}]>}, %v9: tensor<4x6x16xf32>, %v14: tensor<4x6xf32>, %v16: tensor<4x4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {?}, {?}]>}, %v17: tensor<4x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {}]>}) -> (tensor<4x24x16xf32>) {
%v10 = "stablehlo.concatenate"(%v8, %v8, %v9, %v8) <{dimension = 1 : i64}> : (tensor<4x6x16xf32>, tensor<4x6x16xf32>, tensor<4x6x16xf32>, tensor<4x6x16xf32>) -> tensor<4x24x16xf32>
%v11 = sdy.sharding_constraint %v10 <@mesh, [{?}, {"model", ?}, {}]> : tensor<4x24x16xf32>
%v12 = "stablehlo.constant"() <{value = dense<1.0> : tensor<16x16xf32>}> : () -> tensor<16x16xf32>
%v13 = "stablehlo.dot_general"(%v8, %v12) <{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [], rhs_batching_dimensions = [], lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [0]>}> : (tensor<4x6x16xf32>, tensor<16x16xf32>) -> tensor<4x6x16xf32>
%v15:1 = func.call @f0(%v14, %v7) : (tensor<4x6xf32>, tensor<f32>) -> (tensor<4x6xf32>)
%v18_r:1 = "stablehlo.custom_call"(%v16, %v17) <{call_target_name = "ProductOfElementaryHouseholderReflectors"}> {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"data"}, {"model", ?}]>]>} : (tensor<4x4x4xf32>, tensor<4x4xf32>) -> (tensor<4x4x4xf32>)
%v19:1 = func.call @f0(%v14, %v7) : (tensor<4x6xf32>, tensor<f32>) -> (tensor<4x6xf32>)
func.return %v11 : tensor<4x24x16xf32>
}
func.func private @f1(%v4: tensor<2x4x3xf32>, %v5: tensor<2x12xf32>) -> (tensor<2x4x3xf32>, tensor<2x12xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}, {}]>}) {
%v6:2 = "stablehlo.optimization_barrier"(%v5, %v4) : (tensor<2x12xf32>, tensor<2x4x3xf32>) -> (tensor<2x12xf32>, tensor<2x4x3xf32>)
func.return %v6#1, %v5 : tensor<2x4x3xf32>, tensor<2x12xf32>
}
func.func private @f0(%v1: tensor<4x6xf32>, %v2: tensor<f32>) -> (tensor<4x6xf32>) {
%v3 = "stablehlo.reshape"(%v1) : (tensor<4x6xf32>) -> tensor<1x4x6xf32>
func.return %v1 : tensor<4x6xf32>
}
