// PIPELINE: builtin.module(func.func(sdy-pad-for-divisibility))
sdy.mesh @mesh = <["z"=2, "x"=4]>
func.func @main(%arg0: tensor<f32>, %arg1: tensor<i32>) -> tensor<f32> {
  %0 = stablehlo.broadcast_in_dim %arg0, dims = [] {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>]>} : (tensor<f32>) -> tensor<6x8xf32>
  %1 = stablehlo.broadcast_in_dim %arg0, dims = [] : (tensor<f32>) -> tensor<2x8xf32>
  %2 = stablehlo.dynamic_slice %0, %arg1, %arg1, sizes = [3, 8] : (tensor<6x8xf32>, tensor<i32>, tensor<i32>) -> tensor<3x8xf32>
  %3 = stablehlo.dynamic_update_slice %0, %1, %arg1, %arg1 : (tensor<6x8xf32>, tensor<2x8xf32>, tensor<i32>, tensor<i32>) -> tensor<6x8xf32>
  %4 = stablehlo.fft %0, type = RFFT, length = [8] : (tensor<6x8xf32>) -> tensor<6x5xcomplex<f32>>
  %5 = stablehlo.create_token : !stablehlo.token
  %6:2 = stablehlo.custom_call @io(%0, %5) {has_side_effect = true} : (tensor<6x8xf32>, !stablehlo.token) -> (tensor<6x8xf32>, !stablehlo.token)
  return %arg0 : tensor<f32>
}
