// PIPELINE: builtin.module(sdy-op-priority-propagate{propagation-strategy=basic})
sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func @main(%arg0: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0:2 = sdy.named_computation<"part">(%arg0, %arg0) (%arg1: tensor<8x8xf32>, %arg2: tensor<8x8xf32>) {
    %2 = stablehlo.tanh %arg1 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"y"}, {?}]>]>} : tensor<8x8xf32>
    sdy.return %2, %arg2 : tensor<8x8xf32>, tensor<8x8xf32>
  } : (tensor<8x8xf32>, tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>)
  %1 = stablehlo.negate %0#0 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x", ?}, {?}]>]>} : tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}
