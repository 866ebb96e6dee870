// PIPELINE: builtin.module(sdy-constant-or-scalar-splitter,sdy-add-data-flow-edges,sdy-aggressive-propagate)
sdy.mesh @mesh = <["x"=2]>
func.func @main(%arg0: tensor<8xf32>, %arg1: tensor<i32>, %arg2: tensor<8x8xf32>) -> tensor<8xf32> {
  %0:2 = stablehlo.while(%iterArg = %arg0, %iterArg_0 = %arg1) : tensor<8xf32>, tensor<i32>
  cond {
    %3 = stablehlo.compare LT, %iterArg_0, %iterArg_0 : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %3 : tensor<i1>
  } do {
    %4 = stablehlo.custom_call @inner(%arg0, %arg2) {has_side_effect = true, sdy.sharding_rule = #sdy.op_sharding_rule<([i], [i, j])->([]) {i=8, j=8}, custom>} : (tensor<8xf32>, tensor<8x8xf32>) -> tensor<f32>
    stablehlo.return %iterArg, %iterArg_0 : tensor<8xf32>, tensor<i32>
  }
  %2 = stablehlo.custom_call @outer(%0#0, %arg2) {has_side_effect = true, sdy.sharding_rule = #sdy.op_sharding_rule<([j], [i, j])->([]) {i=8, j=8}, custom>} : (tensor<8xf32>, tensor<8x8xf32>) -> tensor<f32>
  %1 = sdy.sharding_constraint %arg0 <@mesh, [{"x"}]> : tensor<8xf32>
  return %1 : tensor<8xf32>
}
