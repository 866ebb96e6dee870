// PIPELINE: builtin.module(func.func(sdy-constant-or-scalar-merger))
func.func @main() -> (tensor<1xi32>, tensor<1xi32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) {
  %0 = sdy.constant dense<2> : tensor<1xi32>
  %1 = sdy.constant dense<[2]> : tensor<1xi32>
  %2 = sdy.constant dense<[1.0, 1.0]> : tensor<2xf32>
  %3 = sdy.constant dense<1.000000e+00> : tensor<2xf32>
  %4 = sdy.constant dense<[1.0, 2.0]> : tensor<2xf32>
  return %0, %1, %2, %3, %4 : tensor<1xi32>, tensor<1xi32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
}
