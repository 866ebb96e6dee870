// PIPELINE: builtin.module(func.func(sdy-pad-for-divisibility))
sdy.mesh @mesh = <["z"=2, "x"=4]>
func.func @main(%arg0: tensor<f32>) -> tensor<f32> {
  %0 = stablehlo.broadcast_in_dim %arg0, dims = [] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}, {}]>]>} : (tensor<f32>) -> tensor<6x8x8xf32>
  %1 = "stablehlo.triangular_solve"(%0, %0) <{left_side = true, lower = true, transpose_a = #stablehlo<transpose NO_TRANSPOSE>, unit_diagonal = false}> : (tensor<6x8x8xf32>, tensor<6x8x8xf32>) -> tensor<6x8x8xf32>
  %2 = "stablehlo.cholesky"(%0) <{lower = true}> {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}, {}]>]>} : (tensor<6x8x8xf32>) -> tensor<6x8x8xf32>
  %3 = stablehlo.constant dense<1.0> : tensor<f32>
  %4 = chlo.broadcast_add %3, %arg0 : (tensor<f32>, tensor<f32>) -> tensor<f32>
  return %4 : tensor<f32>
}
