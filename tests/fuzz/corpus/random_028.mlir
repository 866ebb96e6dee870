sdy.mesh @mesh = <["w"=2]>
func.func public @main(%v1: tensor<f32>, %v2: tensor<24xf32>, %v3: tensor<12xf32>, %v8: tensor<6x2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"w"}p1, {}]>}, %v9: tensor<6x2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}]>}) -> (tensor<6x6xf32>, tensor<12xf32>, tensor<12xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"w"}p1]>}) {
%v7:1 = sdy.named_computation<"inner">(%v2, %v3, %v2) out_shardings=[<@mesh, [{}]>] (%v4: tensor<24xf32>, %v5: tensor<12xf32>, %v6: tensor<24xf32>) {
"stablehlo.custom_call"(%v4) <{call_target_name = "keep", has_side_effect = true}> : (tensor<24xf32>) -> ()
"stablehlo.custom_call"(%v5) <{call_target_name = "keep", has_side_effect = true}> : (tensor<12xf32>) -> ()
sdy.return %v6 : tensor<24xf32>
} : (tensor<24xf32>, tensor<12xf32>, tensor<24xf32>) -> (tensor<24xf32>)
%v10_s0 = stablehlo.slice %v8 [0:6, 0:2] : (tensor<6x2xf32>) -> tensor<6x2xf32>
  %v10_s1 = stablehlo.slice %v9 [0:6, 0:2] : (tensor<6x2xf32>) -> tensor<6x2xf32>
  %v10_s2 = stablehlo.slice %v8 [0:6, 0:2] : (tensor<6x2xf32>) -> tensor<6x2xf32>
%v10_r:1 = "stablehlo.concatenate"(%v10_s0, %v10_s1, %v10_s2) <{dimension = 1 : i64}> : (tensor<6x2xf32>, tensor<6x2xf32>, tensor<6x2xf32>) -> (tensor<6x6xf32>)
%v11:1 = "stablehlo.optimization_barrier"(%v3) : (tensor<12xf32>) -> (tensor<12xf32>)
"stablehlo.custom_call"(%v1) <{call_target_name = "keep", has_side_effect = true}> : (tensor<f32>) -> ()
"stablehlo.custom_call"(%v7#0) <{call_target_name = "keep", has_side_effect = true}> : (tensor<24xf32>) -> ()
func.return %v10_r#0, %v11#0, %v11#0 : tensor<6x6xf32>, tensor<12xf32>, tensor<12xf32>
}
