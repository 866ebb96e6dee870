sdy.mesh @mesh = <["x"=4, "w"=2, "z"=12, "model"=2]>
func.func public @main(%v6: tensor<16xf32>, %v7: tensor<16x8x12xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"model", "w", ?}, {"z", "x", ?}, {?}]>}, %v8: tensor<6x6xf32>, %v13: tensor<6x6xf32>, %v15: tensor<2xui64>) -> (tensor<6x6xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {}]>})
{
%v9 = "stablehlo.constant"() <{value = dense<0.0> : tensor<8x12xf32>}> {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"model", "w", ?}, {"z"}]>]>} : () -> tensor<8x12xf32>
%v10:3 = func.call @f0(%v7, %v8, %v9) : (tensor<16x8x12xf32>, tensor<6x6xf32>, tensor<8x12xf32>) -> (tensor<8x12xf32>, tensor<6x6xf32>, tensor<6x6xf32>)
%v11 = sdy.sharding_constraint %v10#2 <@mesh, [{"x", ?}, {"model"}]> : tensor<6x6xf32>
%v12:3 = func.call @f0(%v7, %v8, %v10#0) : (tensor<16x8x12xf32>, tensor<6x6xf32>, tensor<8x12xf32>) -> (tensor<8x12xf32>, tensor<6x6xf32>, tensor<6x6xf32>)
%v14:3 = func.call @f0(%v7, %v13, %v10#0) : (tensor<16x8x12xf32>, tensor<6x6xf32>, tensor<8x12xf32>) -> (tensor<8x12xf32>, tensor<6x6xf32>, tensor<6x6xf32>)
%v16_r:2 = "stablehlo.rng_bit_generator"(%v15) <{rng_algorithm = #stablehlo<rng_algorithm THREE_FRY>}> : (tensor<2xui64>) -> (tensor<2xui64>, tensor<8x2x1x1xui32>)
sdy.sharding_group %v14#2 group_id=-2 : tensor<6x6xf32>
%v17:3 = func.call @f0(%v7, %v13, %v9) : (tensor<16x8x12xf32>, tensor<6x6xf32>, tensor<8x12xf32>) -> (tensor<8x12xf32>, tensor<6x6xf32>, tensor<6x6xf32>)
%v18 = "stablehlo.constant"() <{value = dense<1.0> : tensor<16x3x6x5xf32>}> : () -> tensor<16x3x6x5xf32>
%v19_r:1 = "stablehlo.custom_call"(%v18) <{call_target_name = "tpu_custom_call"}> {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"model", "w", "x", ?}, {?}, {"z"}, {?}]>]>} : (tensor<16x3x6x5xf32>) -> (tensor<16x3x6x5xf32>)
func.return %v17#1 : tensor<6x6xf32>
}
func.func private @f0(%v1: tensor<16x8x12xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"w", "x", "z", ?}, {?}, {?}]>}, %v2: tensor<6x6xf32>, %v4: tensor<8x12xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {"w", ?}]>}) -> (tensor<8x12xf32>, tensor<6x6xf32>, tensor<6x6xf32>) {
%v3 = "stablehlo.sine"(%v2) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"z", "w", "model", ?}, {?}]>]>} : (tensor<6x6xf32>) -> tensor<6x6xf32>
%v5_r:1 = "stablehlo.reshape"(%v4) : (tensor<8x12xf32>) -> (tensor<4x2x12xf32>)
func.return %v4, %v2, %v3 : tensor<8x12xf32>, tensor<6x6xf32>, tensor<6x6xf32>
}
