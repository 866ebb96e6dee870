// PIPELINE: builtin.module(sdy-propagation-pipeline)
// The constraint moves out of the first loop, which is erased; its name is that of a value in the second.
sdy.mesh @mesh = <["x"=2, "y"=2]>
func.func @main(%arg0: tensor<8x2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}, %arg1: tensor<i32>) -> (tensor<8x2xf32>, tensor<8x2xf32>) {
  %0 = "stablehlo.case"(%arg1) ({
    stablehlo.return %arg0 : tensor<8x2xf32>
  }, {
    stablehlo.return %arg0 : tensor<8x2xf32>
  }) : (tensor<i32>) -> tensor<8x2xf32>
  %1 = stablehlo.while(%iterArg = %arg1) : tensor<i32>
  cond {
    %9 = stablehlo.compare LT, %iterArg, %iterArg : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %9 : tensor<i1>
  } do {
    %9 = sdy.sharding_constraint %0 <@mesh, [{"y"}, {}]> : tensor<8x2xf32>
    %10 = stablehlo.negate %9 : tensor<8x2xf32>
    stablehlo.return %iterArg : tensor<i32>
  }
  %2:2 = stablehlo.while(%iterArg = %arg1, %iterArg_0 = %arg0) : tensor<i32>, tensor<8x2xf32>
  cond {
    %9 = stablehlo.compare LT, %iterArg, %iterArg : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %9 : tensor<i1>
  } do {
    %9 = stablehlo.add %iterArg, %iterArg : tensor<i32>
    stablehlo.return %9, %iterArg_0 : tensor<i32>, tensor<8x2xf32>
  }
  return %0, %2#1 : tensor<8x2xf32>, tensor<8x2xf32>
}
