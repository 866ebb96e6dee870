// PIPELINE: builtin.module(canonicalize)
func.func @main(%arg0: tensor<f32>) -> (tensor<f32>, tensor<f32>, tensor<f32>) {
  %0 = stablehlo.constant dense<1.0> : tensor<f32> loc("a"("f.py":1:2))
  %1 = stablehlo.constant dense<1.0> : tensor<f32>
  %2 = stablehlo.constant dense<1.0> : tensor<f32>
  %3 = stablehlo.add %arg0, %0 : tensor<f32>
  %4 = stablehlo.add %3, %1 : tensor<f32>
  %5 = stablehlo.add %4, %2 : tensor<f32>
  return %3, %4, %5 : tensor<f32>, tensor<f32>, tensor<f32>
}
