// PIPELINE: builtin.module(sdy-user-priority-propagate)
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func public @main(%v1: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %v25 = sdy.manual_computation(%v1) in_shardings=[<@mesh, [{?}p0, {"y", ?}p0]>] out_shardings=[<@mesh, [{?}, {"y", ?}]>] manual_axes={"y"} (%v22: tensor<8x8xf32>) {
    %0 = stablehlo.add %v22, %v22 : tensor<8x8xf32>
    sdy.return %0 : tensor<8x8xf32>
  } : (tensor<8x16xf32>) -> (tensor<8x16xf32>)
  return %v25 : tensor<8x16xf32>
}
