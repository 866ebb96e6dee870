sdy.mesh @mesh = <["z"=6, "w"=3, "x"=1]>
sdy.mesh @other = <["a"=8, "x"=3]>
sdy.mesh @turned = <["z"=6, "w"=3, "x"=1], device_ids=[7, 10, 3, 5, 1, 0, 17, 16, 14, 9, 6, 2, 15, 11, 12, 4, 13, 8]>
sdy.mesh @empty = <[]>
func.func @main(%v1: tensor<5x16xf32>, %v2: tensor<16x24xf32>, %v3: tensor<8x8xf32>, %v4: tensor<2xui64>, %v6: tensor<2xui32> {sdy.sharding = #sdy.sharding<@mesh, [{?}]>}, %v33: tensor<16x16xf32>, %v35: tensor<0x3xf32>) -> (tensor<0xf32>, tensor<24x16xf32>) {
%v5_r:2 = "stablehlo.rng_bit_generator"(%v4) <{rng_algorithm = #stablehlo<rng_algorithm THREE_FRY>}> : (tensor<2xui64>) -> (tensor<2xui64>, tensor<16x4x16xui32>)
%v7_r:1 = "stablehlo.custom_call"(%v6, %v6) <{call_target_name = "X64Combine"}> : (tensor<2xui32>, tensor<2xui32>) -> (tensor<2xui64>)
%v13:2 = sdy.manual_computation(%v3, %v3, %v1) in_shardings=[<@mesh, [{"x", ?}, {?}]>, <@mesh, [{"x", ?}, {?}], replicated={"z", "w"}>, <@mesh, [{"x", ?}, {?}]>] out_shardings=[<@mesh, [{"z"}, {"x", ?}]>, <@mesh, [{"z", ?}, {"w", "x", ?}]>] manual_axes={"z", "w"} (%v8: tensor<8x8xf32>, %v9: tensor<8x8xf32>, %v10: tensor<5x16xf32>) {
%v11 = "stablehlo.constant"() <{value = dense<0.0> : tensor<f32>}> : () -> tensor<f32>
%v12_r:1 = "stablehlo.reduce_window"(%v9, %v11) <{window_dimensions = array<i64: 3, 3>, window_strides = array<i64: 1, 2>}> ({
  ^bb0(%v12_x0: tensor<f32>, %v12_x1: tensor<f32>):
    %v12_y0 = "stablehlo.add"(%v12_x0, %v12_x1) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    "stablehlo.return"(%v12_y0) : (tensor<f32>) -> ()
  }) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x", ?}, {?}]>]>} : (tensor<8x8xf32>, tensor<f32>) -> (tensor<6x3xf32>)
sdy.return %v12_r#0, %v12_r#0 : tensor<6x3xf32>, tensor<6x3xf32>
} : (tensor<8x8xf32>, tensor<8x8xf32>, tensor<5x16xf32>) -> (tensor<36x3xf32>, tensor<36x9xf32>)
%v32:1 = sdy.manual_computation(%v13#1) in_shardings=[<@mesh, [{"x", ?}, {?}]>] out_shardings=[<@mesh, [{"x", ?}]>] manual_axes={} (%v14: tensor<36x9xf32>) {
%v18:1 = sdy.manual_computation(%v14, %v14, %v14) in_shardings=[<@mesh, [{"x"}, {?}]>, <@mesh, [{"z":(1)2, "x"}, {?}]>, <@mesh, [{"x", ?}, {?}]>] out_shardings=[<@mesh, [{"x"}, {?}]>] manual_axes={} (%v15: tensor<36x9xf32>, %v16: tensor<36x9xf32>, %v17: tensor<36x9xf32>) {
sdy.return %v17 : tensor<36x9xf32>
} : (tensor<36x9xf32>, tensor<36x9xf32>, tensor<36x9xf32>) -> (tensor<36x9xf32>)
%v28:2 = sdy.manual_computation(%v18#0, %v18#0, %v14) in_shardings=[<@mesh, [{"x", ?}, {?}], replicated={"z", "w"}>, <@mesh, [{"x", "w", "z", ?}, {?}]>, <@mesh, [{"w", "x", ?}, {?}], replicated={"z"}>] out_shardings=[<@mesh, [{"w", ?}, {?}, {"x", "z", ?}, {?}]>, <@mesh, [{"z", "x", "w", ?}, {?}, {?}, {?}]>] manual_axes={"z", "w", "x"} (%v19: tensor<36x9xf32>, %v20: tensor<2x9xf32>, %v21: tensor<12x9xf32>) {
%v22 = "stablehlo.constant"() <{value = dense<true> : tensor<8x3x6x5xi1>}> : () -> tensor<8x3x6x5xi1>
%v23 = "stablehlo.iota"() <{iota_dimension = 2 : i64}> : () -> tensor<8x3x6x5xf32>
%v24_r:1 = "stablehlo.select"(%v22, %v23, %v23) : (tensor<8x3x6x5xi1>, tensor<8x3x6x5xf32>, tensor<8x3x6x5xf32>) -> (tensor<8x3x6x5xf32>)
%v25 = "stablehlo.constant"() <{value = dense<true> : tensor<i1>}> : () -> tensor<i1>
%v26 = "stablehlo.select"(%v25, %v21, %v21) : (tensor<i1>, tensor<12x9xf32>, tensor<12x9xf32>) -> tensor<12x9xf32>
%v27 = sdy.sharding_constraint %v23 <@mesh, [{?}, {?}, {}, {?}]> : tensor<8x3x6x5xf32>
sdy.return %v27, %v24_r#0 : tensor<8x3x6x5xf32>, tensor<8x3x6x5xf32>
} : (tensor<36x9xf32>, tensor<36x9xf32>, tensor<36x9xf32>) -> (tensor<24x3x36x5xf32>, tensor<144x3x6x5xf32>)
%v29 = sdy.propagation_barrier %v18#0 allowed_direction=BACKWARD : tensor<36x9xf32>
%v30 = sdy.sharding_constraint %v29 <@mesh, [{"x", ?}, {"w"}]> : tensor<36x9xf32>
%v31 = "stablehlo.reshape"(%v29) : (tensor<36x9xf32>) -> tensor<324xf32>
sdy.return %v31 : tensor<324xf32>
} : (tensor<36x9xf32>) -> (tensor<324xf32>)
%v34 = "stablehlo.dot_general"(%v2, %v33) <{dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [], rhs_batching_dimensions = [], lhs_contracting_dimensions = [0], rhs_contracting_dimensions = [0]>}> : (tensor<16x24xf32>, tensor<16x16xf32>) -> tensor<24x16xf32>
%v36_r:1 = "stablehlo.reshape"(%v35) : (tensor<0x3xf32>) -> (tensor<2x0xf32>)
%v37 = "stablehlo.reshape"(%v35) : (tensor<0x3xf32>) -> tensor<0xf32>
func.return %v37, %v34 : tensor<0xf32>, tensor<24x16xf32>
}
