// PIPELINE: builtin.module(sdy-propagation-pipeline,func.func(sdy-insert-explicit-reshards{enable-full-version=true}))
sdy.mesh @mesh = <["data"=4, "w"=6, "z"=2]>
func.func public @main(%arg2: tensor<2x2xf32>, %arg3: tensor<2xf32>) -> (tensor<2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"data"}]>}) {
    %0 = stablehlo.dot %arg2, %arg3 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}]>]>} : (tensor<2x2xf32>, tensor<2xf32>) -> tensor<2xf32>
    %1 = sdy.sharding_constraint %0 <@mesh, [{"z"}]> : tensor<2xf32>
    return %1 : tensor<2xf32>
}
