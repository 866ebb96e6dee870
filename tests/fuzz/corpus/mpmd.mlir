#mesh = #sdy.mesh<["x"=2, "y"=2]>
#topology = #mpmd.topology<<"left" : <["x"=2, "y"=2]>>, #mpmd.named_mesh<"right" : #mesh>>
!whole = tensor<4x6xf32>
!left = !mpmd.mesh_tensor<"left", !whole>
!right = !mpmd.mesh_tensor<"right", tensor<4x6xf32>, sharding=<@grid, [{"x"}, {?}], replicated={"y"}>, memory_kind="device">
sdy.mesh @grid = <["x"=2, "y"=2]>
func.func public @main(%a: !left {sdy.sharding = #sdy.sharding<@grid, [{"x"}, {?}]>}, %t: !whole, %s: !stablehlo.token) -> (!right, !whole)
    attributes {topology = #topology} {
  %0:2 = mpmd.fragment<mesh="left", origin=["f"(1), "g"], stage=2, in_shardings=[<@grid, [{"x", ?}, {?}]>], out_shardings=[<@grid, [{?}, {?}]>, <@grid, [{}, {"y"}p1]>]> (%a) {note = 1 : i8} (%x: !whole loc("x")) {
    %10 = stablehlo.negate %x : !whole
    mpmd.return {last} %10, %x : !whole, !whole
  } : (!left) -> (!left, !left)
  %1 = mpmd.transfer {sdy.sharding = #sdy.sharding_per_value<[<@grid, [{}, {}]>]>} %0#0 : (!left) -> !right
  %2 = "mpmd.fragment"(%0#1, %s) <{in_shardings = #sdy.sharding_per_value<[<@grid, [{"x"}, {}]>, <@grid, []>]>, mesh_name = "left", origin = [#mpmd.user_origin<"f">], stage_id = 1 : i64}> ({
  ^bb0(%x: tensor<4x6xf32>, %y: !stablehlo.token):
    "mpmd.return"(%x) : (tensor<4x6xf32>) -> ()
  }) {note} : (!left, !stablehlo.token) -> !left
  %3 = mpmd.unassign {origin = "there"} %2 : (!left) -> !whole
  %4 = mpmd.assign %3 : (!whole) -> !left
  %5 = mpmd.for (%t) {iterations = 6 : ui32, unroll_factor = 2 : ui32} (%x: !whole, %index: tensor<ui32>) {
    %11 = mpmd.call @whole(%x) {call_counter = 3 : ui32} : (!whole) -> !whole
    mpmd.return %11 : !whole
  } : !whole
  %6 = mpmd.named_computation<"f"(2)> (%5) {note} (%x: !whole) {
    %12 = mpmd.named_tensor %x name="weights" {note} : !whole
    %13 = mpmd.broadcast {note} %12 : !whole
    %14 = mpmd.reduce<max> {note} %12, %13 : (!whole, !whole) -> !whole
    mpmd.return %14 : !whole
  } : (!whole) -> !whole
  %7 = mpmd.fragment_call<mesh="left", origin=["f", "g"(1)]> @whole(%4) : (!left) -> !left
  %8 = stablehlo.negate %6 {a = #mpmd.meshes_with_origins<"left"["f", "g"], "right">, b = #mpmd<origin"f">, c = #mpmd<mesh_with_origins"m"["f"]>, d = #mpmd.reduction<or>} : !whole
  return %1, %8 : !right, !whole
}
func.func private @whole(%x: !whole) -> !whole attributes {mesh_shape = #mesh} {
  return %x : !whole
}
