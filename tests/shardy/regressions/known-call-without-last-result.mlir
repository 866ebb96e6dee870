// PIPELINE: builtin.module(func.func(sdy-populate-op-sharding-rules))
func.func @main(%arg0: tensor<2x8x8xf32>) -> tensor<2x8x8xf32> {
  %0 = stablehlo.custom_call @Eigh(%arg0) : (tensor<2x8x8xf32>) -> tensor<2x8x8xf32>
  return %0 : tensor<2x8x8xf32>
}
