// PIPELINE: builtin.module(sdy-user-priority-propagate{keep-sharding-rules=true},sdy-constant-or-scalar-splitter)
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<4x2xf32>) -> (tensor<4x2xf32>, tensor<4x2xf32>) {
  %0 = stablehlo.constant dense<[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]> : tensor<8xf32>
  %1 = stablehlo.reshape %0 : (tensor<8xf32>) -> tensor<4x2xf32>
  %2 = stablehlo.add %a, %1 : tensor<4x2xf32>
  %3 = stablehlo.multiply %a, %1 : tensor<4x2xf32>
  return %2, %3 : tensor<4x2xf32>, tensor<4x2xf32>
}
