!inner = f32
#loc = loc("file.py":3:4 to 5:6)
sdy.mesh @mesh = <["x"=4, "y"=2, "z"=8]> {stablehlo.mesh = {axes = []}}
sdy.mesh @maximal = <[], device_ids=[3]>
sdy.mesh @empty = <[]>
sdy.mesh @ordered = <["a"=2, "b"=2], device_ids=[3, 1, 2, 0]>
#sharding = #sdy.sharding<@mesh, [{"x", ?}p1, {"z":(2)4}], replicated={"y"}>
func.func public @main(%a: tensor<8x16xf32> {sdy.sharding = #sharding}, %b: tensor<16x8xf32> {jax.b = "b", sdy.sharding = #sdy.sharding<mesh<["u"=2]>, [{"u"}, {}]>} loc("b"),
    %c: tensor<?x8xf32>, %t: !stablehlo.token {sdy.sharding = #sdy.sharding<@maximal, []>}) -> (tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {}], unreduced={"x":(1)2}>}, tensor<16x8xf32>)
    attributes {sdy.func_manual_axes = #sdy<manual_axes{}>} {
  %0 = sdy.sharding_constraint %a <@mesh, [{"x"}p0, {?}p3], replicated={"z"}, unreduced={"y"}> : tensor<8x16xf32>
  %1 = sdy.reshard %0 <@mesh, [{"x"}, {"y"}]> {my.note} : tensor<8x16xf32>
  %2 = sdy.propagation_barrier %1 allowed_direction=FORWARD : tensor<8x16xf32>
  sdy.sharding_group %2 group_id=7 : tensor<8x16xf32>
  %edge = stablehlo.optimization_barrier %1 : tensor<8x16xf32>
  %3 = sdy.data_flow_edge %edge sharding=<@mesh, [{"x"}, {?}]> : tensor<8x16xf32>
  %4 = sdy.constant {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"y"}]>]>} dense<0.0> : tensor<8x16xf32>
  %5:2 = sdy.named_computation<"part">(%3, %b) in_shardings=[<@mesh, [{"x"}, {}]>, <@mesh, [{}, {?}]>] out_shardings=[<@mesh, [{}, {}]>, <@mesh, [{?}, {}]>] (%d: tensor<8x16xf32> loc("d"), %e: tensor<16x8xf32>) {
    sdy.return %d, %e : tensor<8x16xf32>, tensor<16x8xf32>
  } {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>, <@mesh, [{}, {}]>]>} : (tensor<8x16xf32>, tensor<16x8xf32>) -> (tensor<8x16xf32>, tensor<16x8xf32>)
  %6 = sdy.manual_computation(%5#0) in_shardings=[<@mesh, [{"x"}, {?}], replicated={"y"}>] out_shardings=[<@mesh, [{"x"}, {}], replicated={"y"}>] manual_axes={"x", "y"} (%f: tensor<2x16xf32>) {
    %7 = stablehlo.negate %f {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {"z"}]>]>} : tensor<2x16xf32>
    sdy.return %7 : tensor<2x16xf32>
  } : (tensor<8x16xf32>) -> tensor<8x16xf32>
  %8 = sdy.all_gather [{}, {"y"}] %1 out_sharding=<@mesh, [{"x"}, {}]> : tensor<8x16xf32>
  %9 = sdy.all_slice [{}, {"y"}] %8 out_sharding=<@mesh, [{"x"}, {"y"}]> : tensor<8x16xf32>
  %10 = sdy.all_to_all [{"y"}: 1->0] %9 out_sharding=<@mesh, [{"x", "y"}, {}]> : tensor<8x16xf32>
  %11 = sdy.collective_permute %10 out_sharding=<@mesh, [{"y", "x"}, {}]> : tensor<8x16xf32>
  %12 = sdy.all_reduce {"z"} %11 out_sharding=<@mesh, [{"y", "x"}, {}]> : tensor<8x16xf32>
  %13 = stablehlo.add %12, %6 {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"y", "x"}, {}], unreduced={"z"}>]>} : tensor<8x16xf32>
  %14 = sdy.reduce_scatter [{}, {"z"}] %13 out_sharding=<@mesh, [{"y", "x"}, {"z"}]> : tensor<8x16xf32>
  %15 = stablehlo.custom_call @f(%14) {sdy.sharding_rule = #sdy.op_sharding_rule<([i, jk])->([j, ik]) {i=8, j=8, k=2} need_replication={j} permutation={k} blocked_propagation={i}, custom>, has_side_effect = true} : (tensor<8x16xf32>) -> tensor<8x16xf32>
  %16 = "sdy.reshard"(%15) <{sharding = #sdy.sharding<@mesh, [{}, {}]>}> : (tensor<8x16xf32>) -> tensor<8x16xf32>
  %17 = "sdy.all_gather"(%14) <{gathering_axes = #sdy<list_of_axis_ref_lists[{}, {"z"}]>, out_sharding = #sdy.sharding<@mesh, [{"y", "x"}, {}]>}> : (tensor<8x16xf32>) -> tensor<8x16xf32>
  %18 = stablehlo.dot_general %16, %b, contracting_dims = [1] x [0] {sdy.propagation_edges = #sdy.propagation_edges<[{step-0 = [{"x" = operand-0 -> [result-0]}]}]>} : (tensor<8x16xf32>, tensor<16x8xf32>) -> tensor<8x8xf32>
  %19:2 = stablehlo.while(%g = %16, %h = %18) : tensor<8x16xf32>, tensor<8x8xf32> attributes {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>, <@mesh, [{?}, {?}]>]>} cond {
    %20 = stablehlo.constant dense<true> : tensor<i1>
    stablehlo.return %20 : tensor<i1>
  } do {
    %20:2 = func.call @callee(%g, %h) : (tensor<8x16xf32>, tensor<8x8xf32>) -> (tensor<8x16xf32>, tensor<8x8xf32>)
    stablehlo.return %20#0, %20#1 : tensor<8x16xf32>, tensor<8x8xf32>
  } loc(fused<"m">[#loc, callsite("a"("b") at unknown)])
  stablehlo.custom_call @sink(%19#1) {has_side_effect = true, sdy.sharding = #sdy.sharding_per_value<[<@maximal, []>]>} : (tensor<8x8xf32>) -> ()
  %21, %22 = stablehlo.optimization_barrier %19#0, %b : tensor<8x16xf32>, tensor<16x8xf32>
  return %21, %22 : tensor<8x16xf32>, tensor<16x8xf32>
}
func.func private @callee(%a: tensor<8x16xf32>, %b: tensor<8x8xf32>) -> (tensor<8x16xf32> {jax.r = 1 : i32}, tensor<8x8xf32>) {
  %0 = "my.region"(%a) ({
  ^bb0(%c: tensor<8x16xf32> loc("c")):
    "my.branch"(%c)[^bb1, ^bb2] : (tensor<8x16xf32>) -> ()
  ^bb1:
    "my.end"() : () -> ()
  ^bb2:
    "my.end"() : () -> ()
  }, {
  }) {values = [1, "two"]} : (tensor<8x16xf32>) -> tensor<8x16xf32>
  %1 = sdy.func_data_flow_edge %b : tensor<8x8xf32>
  return %0, %1 : tensor<8x16xf32>, tensor<8x8xf32>
}
"func.func"() <{function_type = (tensor<8xf32>) -> tensor<8xf32>, sym_name = "generic", sym_visibility = "private", arg_attrs = [{sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}], res_attrs = [{jax.r}]}> ({
^bb0(%a: tensor<8xf32>):
  "func.return"(%a) : (tensor<8xf32>) -> ()
}) : () -> ()
func.func private @declared(tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}]>})
!alias = tensor<8x!inner>
func.func private @aliased(!alias, tuple<!alias, tuple<>>) -> !alias
{-#
  dialect_resources: {
    builtin: { blob: "0x08000000010000" }
  }
#-}
