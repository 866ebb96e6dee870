// PIPELINE: builtin.module(sdy-constant-or-scalar-splitter)
func.func @main(%arg0: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  %0 = stablehlo.constant dense<1.0> : tensor<f32>
  %1 = chlo.broadcast_add %0, %arg0 : (tensor<f32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %2 = "chlo.broadcast_multiply"(%0, %1) : (tensor<f32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  return %1, %2 : tensor<4x8xf32>, tensor<4x8xf32>
}
