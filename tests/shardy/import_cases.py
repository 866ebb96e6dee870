"""Small programs for the import passes: for each a pipeline on a module, and the text."""

from __future__ import annotations

MESHES = """
sdy.mesh @mesh = <["x"=2, "y"=4]>
sdy.mesh @with_one = <["x"=2, "one"=1, "y"=4]>
sdy.mesh @on_five = <[], device_ids=[5]>
"""

CASES: dict[str, tuple[str, str]] = {}


def case(name: str, pipeline: str, text: str, meshes: str = MESHES) -> None:
    if name in CASES:
        raise ValueError(f"two cases are called {name}")
    CASES[name] = (pipeline, meshes + text)


def cases(pipeline: str, meshes: str = MESHES, **texts: str) -> None:
    """Cases of one pipeline, called after its first pass."""
    first = pipeline.removeprefix("builtin.module(").split("{")[0].split(",")[0].rstrip(")")
    for name, text in texts.items():
        case(f"{first}-{name.replace('_', '-')}", pipeline, text, meshes)


cases(
    "builtin.module(symbol-dce)",
    chain_of_dead_functions="""
func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = call @kept(%a) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @dead(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = call @dead_too(%a) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @dead_too(%a: tensor<4xf32>) -> tensor<4xf32> { return %a : tensor<4xf32> }
func.func private @kept(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = call @kept_too(%a) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
func.func private @kept_too(%a: tensor<4xf32>) -> tensor<4xf32> { return %a : tensor<4xf32> }
func.func @public_and_not_called() { return }
func.func nested @nested_and_not_called() { return }
""",
    references_in_attributes="""
func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.composite "my.op" %a {decomposition = @body} : (tensor<4xf32>) -> tensor<4xf32>
  %1 = stablehlo.custom_call @target(%0) {called_computations = [@called]}
      : (tensor<4xf32>) -> tensor<4xf32>
  %2 = stablehlo.add %1, %1 {deep = {inside = [@"odd name", 1 : i32]}} : tensor<4xf32>
  return %2 : tensor<4xf32>
}
func.func private @body(%a: tensor<4xf32>) -> tensor<4xf32> { return %a : tensor<4xf32> }
func.func private @called(%a: tensor<4xf32>) -> tensor<4xf32> { return %a : tensor<4xf32> }
func.func private @"odd name"(%a: tensor<4xf32>) -> tensor<4xf32> { return %a : tensor<4xf32> }
func.func private @target(%a: tensor<4xf32>) -> tensor<4xf32> { return %a : tensor<4xf32> }
""",
    declarations="""
func.func private @declared(tensor<4xf32>) -> tensor<4xf32>
func.func @main() { return }
""",
)

cases(
    "builtin.module(sdy-lift-inlined-meshes)",
    meshes="""
sdy.mesh @first = <["x"=2, "y"=4]>
sdy.mesh @mesh_0 = <["z"=8], device_ids=[7, 6, 5, 4, 3, 2, 1, 0]> {note = 1 : i32}
sdy.mesh @same_as_first = <["x"=2, "y"=4]>
""",
    of_every_kind="""
func.func @mesh(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<mesh<["u"=8]>, [{"u"}]>},
                %b: tensor<8xf32> {sdy.sharding = #sdy.sharding<@same_as_first, [{"y"}]>})
    -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<mesh<["v"=8]>, [{?}]>}) {
  %0 = sdy.sharding_constraint %a <mesh<["x"=2, "y"=4]>, [{"x"}]> : tensor<8xf32>
  %1:2 = stablehlo.custom_call @pair(%0, %b) {sdy.sharding = #sdy.sharding_per_value<
      [<mesh<[], device_ids=[3]>, []>, <mesh<["v"=8]>, [{"v"}]>]>}
      : (tensor<8xf32>, tensor<8xf32>) -> (tensor<f32>, tensor<8xf32>)
  stablehlo.custom_call @silent(%b) {has_side_effect = true,
      sdy.sharding = #sdy.sharding_per_value<[<mesh<[], device_ids=[0]>, []>]>}
      : (tensor<8xf32>) -> ()
  %2 = stablehlo.add %1#1, %1#1
      {sdy.sharding = #sdy.sharding_per_value<[
        <mesh<["z"=8], device_ids=[7,6,5,4,3,2,1,0]>, [{}]>]>} : tensor<8xf32>
  %3 = stablehlo.add %2, %2
      {sdy.sharding = #sdy.sharding_per_value<[<mesh<[]>, [{}]>]>} : tensor<8xf32>
  return %3 : tensor<8xf32>
}
""",
    in_regions="""
func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> {
  %0 = sdy.manual_computation(%a) in_shardings=[<mesh<["m"=8]>, [{"m"}]>]
      out_shardings=[<mesh<["m"=8]>, [{"m"}]>] manual_axes={"m"} (%b: tensor<1xf32>) {
    sdy.return %b : tensor<1xf32>
  } : (tensor<8xf32>) -> tensor<8xf32>
  %1 = stablehlo.optimization_barrier
      {sdy.sharding = #sdy.sharding_per_value<[
        <mesh<["n"=8], device_ids=[1,0,2,3,4,5,6,7]>, [{}]>]>} %0 : tensor<8xf32>
  %2 = sdy.named_computation<"inner">(%1) in_shardings=[<mesh<["o"=8]>, [{}]>]
      out_shardings=[<mesh<["p"=8]>, [{}]>] (%b: tensor<8xf32>) {
    sdy.return %b : tensor<8xf32>
  } : (tensor<8xf32>) -> tensor<8xf32>
  return %2 : tensor<8xf32>
}
""",
)
case(
    "sdy-lift-inlined-meshes-of-replica-groups",
    "builtin.module(sdy-lift-inlined-meshes)",
    """
sdy.mesh @mesh = <["x"=2, "y"=4]>
sdy.mesh @again = <["x"=2, "y"=4]>
func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> {
  %0 = "stablehlo.all_reduce"(%a) <{replica_groups = #stablehlo.replica_group_mesh_axes<
      mesh = #stablehlo.mesh<axes = [#stablehlo.mesh_axis<name = "z", size = 8>]>,
      axes = [#stablehlo.axis_ref<name = "z">]>}> ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %s = stablehlo.add %x, %y : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<8xf32>) -> tensor<8xf32>
  %1 = "stablehlo.all_gather"(%0) <{all_gather_dim = 0 : i64,
      replica_groups = #stablehlo.replica_group_mesh_axes<mesh = @again,
      axes = [#stablehlo.axis_ref<name = "x">]>}> : (tensor<8xf32>) -> tensor<16xf32>
  %2 = "stablehlo.all_gather"(%0) <{all_gather_dim = 0 : i64,
      replica_groups = #stablehlo.replica_group_mesh_axes<
      mesh = #stablehlo.mesh<axes = [#stablehlo.mesh_axis<name = "x", size = 2>,
      #stablehlo.mesh_axis<name = "y", size = 4>]>,
      axes = [#stablehlo.axis_ref<name = "y">]>}> : (tensor<8xf32>) -> tensor<32xf32>
  %3 = stablehlo.add %0, %0
      {sdy.sharding = #sdy.sharding_per_value<[<mesh<["z"=8]>, [{"z"}]>]>} : tensor<8xf32>
  return %3 : tensor<8xf32>
}
""",
    meshes="",
)
case(
    "sdy-lift-inlined-meshes-without-any-mesh",
    "builtin.module(sdy-lift-inlined-meshes)",
    "func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> { return %a : tensor<8xf32> }",
    meshes="",
)
cases(
    "builtin.module(sdy-inline-meshes)",
    everywhere="""
func.func @main(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>})
    -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@on_five, []>}) {
  %0 = sdy.sharding_constraint %a <@mesh, [{"y"}]> : tensor<8xf32>
  %1 = sdy.reshard %0 <@with_one, [{"y", ?}]> : tensor<8xf32>
  return %1 : tensor<8xf32>
}
""",
)

cases(
    "builtin.module(sdy-remove-size-one-axes)",
    everywhere="""
func.func @main(
    %a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@with_one, [{"one"}p1, {"x", ?}p2]>},
    %b: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@with_one,
      [{}, {}], replicated={"one", "y"}>})
    -> (tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@with_one,
      [{"one", ?}p1, {}], unreduced={"y"}>}) {
  %0 = stablehlo.add %a, %b
      {sdy.sharding = #sdy.sharding_per_value<[<@with_one, [{"y":(2)2, "one"}, {?}]>]>}
      : tensor<8x8xf32>
  %1 = sdy.manual_computation(%0) in_shardings=[<@with_one, [{"one"}, {}]>]
      out_shardings=[<@with_one, [{}, {}], replicated={"one"}>] manual_axes={"one"}
      (%c: tensor<8x8xf32>) {
    sdy.return %c : tensor<8x8xf32>
  } : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}
""",
)

cases(
    "builtin.module(sdy-propagate-sharding-from-func-to-call)",
    where_calls_have_none="""
func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> {
  %0:2 = call @some(%a) : (tensor<8xf32>) -> (tensor<8xf32>, tensor<8x8xf32>)
  %1:2 = call @some(%a)
      {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}]>, <@mesh, [{}, {}]>]>}
      : (tensor<8xf32>) -> (tensor<8xf32>, tensor<8x8xf32>)
  %2 = call @one_device(%a) : (tensor<8xf32>) -> tensor<8xf32>
  call @nothing(%a) : (tensor<8xf32>) -> ()
  return %2 : tensor<8xf32>
}
func.func private @some(%a: tensor<8xf32>)
    -> (tensor<8xf32>, tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"y", ?}]>}) {
  %0 = stablehlo.broadcast_in_dim %a, dims = [0] : (tensor<8xf32>) -> tensor<8x8xf32>
  return %a, %0 : tensor<8xf32>, tensor<8x8xf32>
}
func.func private @one_device(%a: tensor<8xf32>)
    -> (tensor<8xf32> {sdy.sharding = #sdy.sharding<@on_five, []>}) { return %a : tensor<8xf32> }
func.func private @nothing(%a: tensor<8xf32>) { return }
""",
)

cases(
    "builtin.module(sdy-constant-or-scalar-splitter)",
    many_kinds_of_use="""
func.func @main(%a: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %s = stablehlo.constant {tag = "s"} dense<2.0> : tensor<f32>
  %c = stablehlo.constant dense<1.0> : tensor<8x8xf32>
  %i = stablehlo.iota dim = 0 : tensor<8xf32>
  %b = stablehlo.broadcast_in_dim %i, dims = [1] : (tensor<8xf32>) -> tensor<8x8xf32>
  %d = stablehlo.add %b, %c : tensor<8x8xf32>
  %e = stablehlo.slice %d [0:8, 0:4] : (tensor<8x8xf32>) -> tensor<8x4xf32>
  %f = stablehlo.reshape %e : (tensor<8x4xf32>) -> tensor<4x8xf32>
  %g = stablehlo.concatenate %f, %f, dim = 0 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
  %h = stablehlo.clamp %s, %d, %s : (tensor<f32>, tensor<8x8xf32>, tensor<f32>) -> tensor<8x8xf32>
  %j = stablehlo.add %h, %g : tensor<8x8xf32>
  %unused = stablehlo.constant dense<3.0> : tensor<8x8xf32>
  %p = stablehlo.constant dense<true> : tensor<i1>
  %k = stablehlo.select %p, %h, %a : tensor<i1>, tensor<8x8xf32>
  return %j, %c : tensor<8x8xf32>, tensor<8x8xf32>
}
""",
    scalar_expansions="""
func.func @main(%a: tensor<8xf32>, %s: tensor<f32>) -> tensor<8xf32> {
  %0 = stablehlo.add %s, %s : tensor<f32>
  %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<8xf32>
  %2 = stablehlo.add %a, %1 : tensor<8xf32>
  %3 = stablehlo.multiply %2, %1 : tensor<8xf32>
  %4 = stablehlo.broadcast_in_dim %1, dims = [0] : (tensor<8xf32>) -> tensor<8x2xf32>
  %5 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<2xf32>
  return %3 : tensor<8xf32>
}
""",
    sharding_groups="""
func.func @main(%a: tensor<8xf32>) -> (tensor<8xf32>, tensor<f32>) {
  %s = stablehlo.constant dense<2.0> : tensor<f32>
  sdy.sharding_group %s group_id=4 : tensor<f32>
  %c = stablehlo.constant dense<1.0> : tensor<8xf32>
  sdy.sharding_group %c group_id=1 : tensor<8xf32>
  sdy.sharding_group %c group_id=2 : tensor<8xf32>
  %d = stablehlo.negate %c : tensor<8xf32>
  sdy.sharding_group %d group_id=3 : tensor<8xf32>
  %0 = stablehlo.add %a, %d : tensor<8xf32>
  %1 = stablehlo.add %0, %c : tensor<8xf32>
  %2 = stablehlo.add %1, %d : tensor<8xf32>
  return %2, %s : tensor<8xf32>, tensor<f32>
}
""",
    uses_inside_regions="""
func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> {
  %c = stablehlo.constant dense<1.0> : tensor<8xf32>
  %n = stablehlo.constant dense<0> : tensor<i32>
  %0:2 = stablehlo.while(%b = %c, %i = %n) : tensor<8xf32>, tensor<i32>
   cond {
    %m = stablehlo.constant dense<9> : tensor<i32>
    %t = stablehlo.compare LT, %i, %m : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %t : tensor<i1>
  } do {
    %inner = stablehlo.constant dense<5.0> : tensor<8xf32>
    %1 = stablehlo.add %b, %c : tensor<8xf32>
    %2 = stablehlo.add %1, %inner : tensor<8xf32>
    %3 = stablehlo.subtract %2, %inner : tensor<8xf32>
    %4 = stablehlo.add %i, %n : tensor<i32>
    stablehlo.return %3, %4 : tensor<8xf32>, tensor<i32>
  }
  %5 = stablehlo.add %0#0, %c : tensor<8xf32>
  return %5 : tensor<8xf32>
}
""",
    constant_calls="""
func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> {
  %c = stablehlo.constant dense<1.0> : tensor<8xf32>
  %0:2 = call @fixed(%c) : (tensor<8xf32>) -> (tensor<8xf32>, tensor<f32>)
  %1 = call @outer(%0#0) : (tensor<8xf32>) -> tensor<8xf32>
  %2 = call @varies(%c) : (tensor<8xf32>) -> tensor<8xf32>
  %3 = stablehlo.add %a, %0#0 : tensor<8xf32>
  %4 = stablehlo.add %3, %1 : tensor<8xf32>
  %5 = stablehlo.add %4, %2 : tensor<8xf32>
  %6 = stablehlo.add %5, %2 : tensor<8xf32>
  %7 = stablehlo.add %6, %1 : tensor<8xf32>
  return %7 : tensor<8xf32>
}
func.func private @outer(%a: tensor<8xf32>) -> tensor<8xf32> {
  %0:2 = call @fixed(%a) : (tensor<8xf32>) -> (tensor<8xf32>, tensor<f32>)
  return %0#0 : tensor<8xf32>
}
func.func private @fixed(%a: tensor<8xf32>) -> (tensor<8xf32>, tensor<f32>) {
  %s = stablehlo.constant dense<1.0> : tensor<f32>
  %0 = stablehlo.negate %a : tensor<8xf32>
  return %0, %s : tensor<8xf32>, tensor<f32>
}
func.func private @varies(%a: tensor<8xf32>) -> tensor<8xf32> {
  %0 = "stablehlo.sort"(%a) ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %1 = stablehlo.compare LT, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  }) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
""",
    named_computations="""
func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> {
  %c = stablehlo.constant dense<1.0> : tensor<8xf32>
  %0 = sdy.named_computation<"fixed">(%c) (%b: tensor<8xf32>) {
    %k = stablehlo.constant dense<4.0> : tensor<8xf32>
    %1 = stablehlo.add %b, %k : tensor<8xf32>
    %2 = stablehlo.add %1, %k : tensor<8xf32>
    sdy.return %2 : tensor<8xf32>
  } : (tensor<8xf32>) -> tensor<8xf32>
  %3 = sdy.named_computation<"varies">(%c) (%b: tensor<8xf32>) {
    %4 = stablehlo.custom_call @unknown(%b) : (tensor<8xf32>) -> tensor<8xf32>
    sdy.return %4 : tensor<8xf32>
  } : (tensor<8xf32>) -> tensor<8xf32>
  %5 = stablehlo.add %0, %a : tensor<8xf32>
  %6 = stablehlo.add %5, %3 : tensor<8xf32>
  %7 = stablehlo.add %6, %0 : tensor<8xf32>
  %8 = stablehlo.add %7, %3 : tensor<8xf32>
  return %8 : tensor<8xf32>
}
""",
    shardings_and_barriers="""
func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> {
  %c = stablehlo.constant {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}]>]>}
      dense<1.0> : tensor<8xf32>
  %0 = sdy.propagation_barrier %c allowed_direction=FORWARD : tensor<8xf32>
  %1 = sdy.reshard %0 <@mesh, [{"y"}]> : tensor<8xf32>
  %2 = sdy.sharding_constraint %1 <@mesh, [{"y"}]> : tensor<8xf32>
  %3 = stablehlo.bitcast_convert %1 : (tensor<8xf32>) -> tensor<8xi32>
  %4 = stablehlo.bitcast_convert %3 : (tensor<8xi32>) -> tensor<8x2xi16>
  %5 = stablehlo.add %2, %1 : tensor<8xf32>
  %6 = stablehlo.add %3, %3 : tensor<8xi32>
  %7 = stablehlo.custom_call @use(%4, %6) {has_side_effect = true}
      : (tensor<8x2xi16>, tensor<8xi32>) -> tensor<8xf32>
  return %5 : tensor<8xf32>
}
""",
)

cases(
    "builtin.module(sdy-manual-axes-cleanup)",
    unsorted_and_unused="""
func.func @main(%a: tensor<8x8xf32>, %t: !stablehlo.token) -> tensor<8x8xf32> {
  %0:2 = sdy.manual_computation(%a, %t)
      in_shardings=[<@mesh, [{"y"}, {?}], replicated={"x"}>, <@mesh, []>]
      out_shardings=[<@mesh, [{"y", "x", ?}, {}]>, <@mesh, []>] manual_axes={"y", "x"}
      (%b: tensor<2x8xf32>, %u: !stablehlo.token) {
    %1 = stablehlo.slice %b [0:1, 0:8] : (tensor<2x8xf32>) -> tensor<1x8xf32>
    sdy.return %1, %u : tensor<1x8xf32>, !stablehlo.token
  } : (tensor<8x8xf32>, !stablehlo.token) -> (tensor<8x8xf32>, !stablehlo.token)
  %2 = sdy.manual_computation(%0#0) in_shardings=[<@mesh, [{}, {}]>]
      out_shardings=[<@mesh, [{}, {}], unreduced={"x"}>] manual_axes={"x"} (%b: tensor<8x8xf32>) {
    sdy.return %b : tensor<8x8xf32>
  } : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %2 : tensor<8x8xf32>
}
""",
    nothing_in_or_out="""
func.func @main() {
  sdy.manual_computation() in_shardings=[] out_shardings=[] manual_axes={"x"} () {
    sdy.return
  } : () -> ()
  return
}
""",
)

EDGES = """
func.func @main(%a: tensor<8xf32>, %t: !stablehlo.token, %d: tensor<?xf32>, %i: tensor<i32>)
    -> tensor<8xf32> {
  %c = stablehlo.constant dense<0> : tensor<i32>
  %0:3 = stablehlo.while(%b = %a, %j = %i, %u = %t)
      : tensor<8xf32>, tensor<i32>, !stablehlo.token attributes
      {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x", ?}]>, <@mesh, []>, <@mesh, []>]>}
   cond {
    %1 = stablehlo.compare LT, %j, %c : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %2:2 = stablehlo.optimization_barrier %b, %b : tensor<8xf32>, tensor<8xf32>
    %3 = "stablehlo.case"(%j) ({
      stablehlo.return %2#0 : tensor<8xf32>
    }, {
      %4 = stablehlo.add %2#1, %b : tensor<8xf32>
      stablehlo.return %4 : tensor<8xf32>
    }) : (tensor<i32>) -> tensor<8xf32>
    stablehlo.return %3, %j, %u : tensor<8xf32>, tensor<i32>, !stablehlo.token
  }
  %5 = sdy.manual_computation(%0#0) in_shardings=[<@mesh, [{"x", "y"}]>]
      out_shardings=[<@mesh, [{"x", ?}]>] manual_axes={"x"} (%b: tensor<4xf32>) {
    %6 = stablehlo.add %b, %b : tensor<4xf32>
    sdy.return %6 : tensor<4xf32>
  } : (tensor<8xf32>) -> tensor<8xf32>
  %7 = sdy.named_computation<"some">(%5) out_shardings=[<@mesh, [{"y"}]>] (%b: tensor<8xf32>) {
    %8 = stablehlo.add %b, %b : tensor<8xf32>
    sdy.return %8 : tensor<8xf32>
  } : (tensor<8xf32>) -> tensor<8xf32>
  %9 = stablehlo.optimization_barrier %d : tensor<?xf32>
  %10 = stablehlo.add %7, %7 : tensor<8xf32>
  %11 = stablehlo.add %10, %7 : tensor<8xf32>
  return %11 : tensor<8xf32>
}
"""
cases("builtin.module(sdy-add-data-flow-edges)", on_every_op=EDGES)

CALLS = """
func.func @main(%a: tensor<8xf32>) -> tensor<8xf32> {
  %0 = call @twice(%a) : (tensor<8xf32>) -> tensor<8xf32>
  %1 = call @last(%0)
      {mhlo.note = "kept", sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"y"}]>]>}
      : (tensor<8xf32>) -> tensor<8xf32>
  %2 = call @twice(%1) : (tensor<8xf32>) -> tensor<8xf32>
  %3:2 = call @mixed(%2, %2, %1) : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>)
      -> (tensor<8xf32>, tensor<8xf32>)
  %4 = call @one_device(%3#1) : (tensor<8xf32>) -> tensor<8xf32>
  %5 = stablehlo.add %4, %3#0 : tensor<8xf32>
  %6 = stablehlo.add %5, %3#1 : tensor<8xf32>
  return %6 : tensor<8xf32>
}
func.func private @last(%a: tensor<8xf32>) -> tensor<8xf32>
    attributes {execution_thread = "host", other = 1 : i32} {
  return %a : tensor<8xf32>
}
func.func private @twice(%a: tensor<8xf32>) -> tensor<8xf32> {
  %0 = call @last(%a) : (tensor<8xf32>) -> tensor<8xf32>
  %1 = call @last(%0) : (tensor<8xf32>) -> tensor<8xf32>
  return %1 : tensor<8xf32>
}
func.func private @mixed(%a: tensor<8xf32>,
    %b: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}p2]>}, %c: tensor<8xf32>)
    -> (tensor<8xf32>, tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}]>}) {
  %0 = stablehlo.add %a, %c : tensor<8xf32>
  return %0, %0 : tensor<8xf32>, tensor<8xf32>
}
func.func private @one_device(%a: tensor<8xf32> {sdy.sharding = #sdy.sharding<@on_five, []>})
    -> tensor<8xf32> {
  return %a : tensor<8xf32>
}
func.func private @last_0() { return }
func.func @not_called(%a: tensor<8xf32>) -> tensor<8xf32> {
  %0 = call @twice(%a) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
"""
cases("builtin.module(sdy-flatten-call-graph)", calls=CALLS)
cases("builtin.module(sdy-flatten-call-graph,sdy-import-func-calls)", then_import=CALLS)
cases("builtin.module(sdy-add-func-data-flow-edges)", calls=CALLS, only_function=EDGES)
cases("builtin.module(sdy-pre-order-funcs)", calls=CALLS)
OPEN = "{sdy.sharding = #sdy.sharding<@mesh, [{?}]>}"
# The reference crashes on a function of which only some arguments have shardings, if it is called
# twice and not flattened.
FULLY_ANNOTATED = CALLS.replace(
    "@mixed(%a: tensor<8xf32>,", f"@mixed(%a: tensor<8xf32> {OPEN},"
).replace(", %c: tensor<8xf32>)", f", %c: tensor<8xf32> {OPEN})")
cases("builtin.module(sdy-import-func-calls)", not_flattened=FULLY_ANNOTATED)
cases(
    "builtin.module(sdy-import-func-calls{add-data-flow-edges-on-named-computations=false})",
    without_edges=FULLY_ANNOTATED,
)

cases(
    "builtin.module(sdy-apply-sharding-constraints)",
    alone_and_in_conflict="""
func.func @main(%a: tensor<8xf32>, %b: tensor<8xf32>, %c: tensor<8xf32>, %d: tensor<8xf32>,
    %e: tensor<8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}]>}) -> tensor<8xf32> {
  %0 = sdy.sharding_constraint %a <@mesh, [{"x"}]> : tensor<8xf32>
  %1 = sdy.sharding_constraint %b <@mesh, [{"x"}]> : tensor<8xf32>
  %2 = sdy.sharding_constraint %b <@mesh, [{"y"}]> : tensor<8xf32>
  %3 = sdy.sharding_constraint %c <@mesh, [{"x", ?}]> : tensor<8xf32>
  %4 = sdy.sharding_constraint %d <@mesh, [{"x"}]> : tensor<8xf32>
  %5 = sdy.sharding_constraint %d <@mesh, [{"x"}]> : tensor<8xf32>
  %6 = sdy.sharding_constraint %e <@mesh, [{"x"}]> : tensor<8xf32>
  %7:3 = stablehlo.custom_call @three(%a)
      : (tensor<8xf32>) -> (tensor<8xf32>, tensor<f32>, tensor<8x8xf32>)
  %8 = sdy.sharding_constraint %7#2 <@mesh, [{}, {"y"}]> : tensor<8x8xf32>
  %9 = sdy.sharding_constraint %7#0 <@mesh, [{"y"}]> : tensor<8xf32>
  return %0 : tensor<8xf32>
}
""",
    chains="""
func.func @main(%a: tensor<8xf32>, %z: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %0 = stablehlo.negate %a : tensor<8xf32>
  %1 = stablehlo.abs %0 : tensor<8xf32>
  %2 = sdy.sharding_constraint %0 <@mesh, [{"x"}]> : tensor<8xf32>
  %3 = stablehlo.add %0, %0 : tensor<8xf32>
  %4 = sdy.sharding_constraint %2 <@mesh, [{"y", ?}]> : tensor<8xf32>
  %5 = sdy.sharding_constraint %4 <@mesh, [{"y"}]> : tensor<8xf32>
  %6 = stablehlo.add %0, %5 : tensor<8xf32>
  %7 = stablehlo.add %0, %z : tensor<8xf32>
  %8 = stablehlo.optimization_barrier %0 : tensor<8xf32>
  %9 = sdy.sharding_constraint %7 <@mesh, [{"x"}]> : tensor<8xf32>
  %10 = sdy.sharding_constraint %9 <@mesh, [{}]> : tensor<8xf32>
  %11 = sdy.sharding_constraint %10 <@mesh, [{"y"}]> : tensor<8xf32>
  %12 = sdy.sharding_constraint %10 <@mesh, [{"x"}]> : tensor<8xf32>
  %13 = stablehlo.add %7, %7 : tensor<8xf32>
  return %0, %11 : tensor<8xf32>, tensor<8xf32>
}
""",
    manual_computations="""
func.func @main(%a: tensor<8xf32>, %b: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.negate %a : tensor<8xf32>
  %1:2 = sdy.manual_computation(%0, %b) in_shardings=[<@mesh, [{"x"}]>, <@mesh, [{"x", "y"}]>]
      out_shardings=[<@mesh, [{"x"}]>, <@mesh, [{"x"}]>] manual_axes={"x"}
      (%c: tensor<4xf32>, %d: tensor<4xf32>) {
    %2 = sdy.sharding_constraint %c <@mesh, [{"y"}]> : tensor<4xf32>
    sdy.return %2, %d : tensor<4xf32>, tensor<4xf32>
  } : (tensor<8xf32>, tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>)
  %3 = sdy.sharding_constraint %b <@mesh, [{"x"}]> : tensor<8xf32>
  %4 = stablehlo.add %0, %1#0 : tensor<8xf32>
  return %4 : tensor<8xf32>
}
""",
)
cases(
    "builtin.module(sdy-add-data-flow-edges,sdy-apply-sharding-constraints)",
    constraints_on_targets="""
func.func @main(%a: tensor<8xf32>, %b: tensor<8xf32>, %n: tensor<i32>) -> tensor<8xf32> {
  %0:3 = stablehlo.while(%x = %a, %y = %b, %i = %n) : tensor<8xf32>, tensor<8xf32>, tensor<i32>
   cond {
    %1 = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %2 = stablehlo.negate %x : tensor<8xf32>
    %3 = sdy.sharding_constraint %x <@mesh, [{"x"}]> : tensor<8xf32>
    %4 = stablehlo.add %x, %3 : tensor<8xf32>
    %5 = sdy.manual_computation(%y) in_shardings=[<@mesh, [{"x"}]>]
        out_shardings=[<@mesh, [{"x"}]>] manual_axes={"x"} (%c: tensor<4xf32>) {
      %6 = sdy.sharding_constraint %c <@mesh, [{"y"}]> : tensor<4xf32>
      sdy.return %6 : tensor<4xf32>
    } : (tensor<8xf32>) -> tensor<8xf32>
    %7 = stablehlo.add %y, %5 : tensor<8xf32>
    stablehlo.return %4, %7, %i : tensor<8xf32>, tensor<8xf32>, tensor<i32>
  }
  %8 = stablehlo.negate %0#1 : tensor<8xf32>
  %9 = sdy.sharding_constraint %0#1 <@mesh, [{}], unreduced={"y"}> : tensor<8xf32>
  %10 = stablehlo.add %8, %9 : tensor<8xf32>
  %11 = sdy.sharding_constraint %0#0 <@mesh, [{"y"}]> : tensor<8xf32>
  %12 = sdy.sharding_constraint %11 <@mesh, [{"x"}]> : tensor<8xf32>
  %13 = stablehlo.add %0#0, %0#0 : tensor<8xf32>
  return %10 : tensor<8xf32>
}
""",
)

cases(
    "builtin.module(sdy-sharding-group-import)",
    merged_and_renumbered="""
func.func @main(%a: tensor<8xf32>, %b: tensor<8xf32>, %c: tensor<8xf32>, %d: tensor<4xf32>) {
  sdy.sharding_group %a group_id=900 : tensor<8xf32>
  sdy.sharding_group %b group_id=-3 : tensor<8xf32>
  sdy.sharding_group %d group_id=50 : tensor<4xf32>
  sdy.sharding_group %c group_id=7 : tensor<8xf32>
  sdy.sharding_group %a group_id=900 : tensor<8xf32>
  sdy.sharding_group %c group_id=-3 : tensor<8xf32>
  sdy.sharding_group %d group_id=51 : tensor<4xf32>
  sdy.sharding_group %d group_id=52 : tensor<4xf32>
  return
}
""",
    leaders_that_join_later="""
func.func @main(%a: tensor<8xf32>, %b: tensor<8xf32>, %c: tensor<8xf32>, %d: tensor<8xf32>) {
  sdy.sharding_group %a group_id=5 : tensor<8xf32>
  sdy.sharding_group %b group_id=4 : tensor<8xf32>
  sdy.sharding_group %c group_id=3 : tensor<8xf32>
  sdy.sharding_group %c group_id=2 : tensor<8xf32>
  sdy.sharding_group %d group_id=2 : tensor<8xf32>
  sdy.sharding_group %d group_id=5 : tensor<8xf32>
  sdy.sharding_group %b group_id=6 : tensor<8xf32>
  return
}
""",
)

cases(
    "builtin.module(func.func(sdy-explicit-gather-scatter-batching))",
    indices_of_every_origin="""
func.func @main(%a: tensor<4x8x6xf32>, %i: tensor<4x1xi32>, %j: tensor<4x1xi32>, %p: tensor<4x1xi1>)
    -> (tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>) {
  %dead = stablehlo.constant dense<3> : tensor<4xi32>
  %0 = stablehlo.iota dim = 0 : tensor<4x1xi32>
  %1 = stablehlo.iota dim = 0 : tensor<4xi32>
  %2 = stablehlo.reshape %1 : (tensor<4xi32>) -> tensor<4x1xi32>
  %c = stablehlo.constant dense<4> : tensor<4x1xi32>
  %3 = stablehlo.clamp %c, %2, %c : tensor<4x1xi32>
  %4 = stablehlo.select %p, %i, %0 : tensor<4x1xi1>, tensor<4x1xi32>
  %5 = stablehlo.select %p, %3, %i : tensor<4x1xi1>, tensor<4x1xi32>
  %6 = stablehlo.concatenate %4, %i, dim = 1 : (tensor<4x1xi32>, tensor<4x1xi32>) -> tensor<4x2xi32>
  %7 = stablehlo.concatenate %j, %5, dim = 1 : (tensor<4x1xi32>, tensor<4x1xi32>) -> tensor<4x2xi32>
  %8 = stablehlo.iota dim = 0 : tensor<4x2xi32>
  %9 = stablehlo.iota dim = 1 : tensor<4x2xi32>
  %10 = "stablehlo.gather"(%a, %6) <{dimension_numbers = #stablehlo.gather<offset_dims = [1],
    collapsed_slice_dims = [0, 1], start_index_map = [0, 1], index_vector_dim = 1>,
    slice_sizes = array<i64: 1, 1, 6>}> {mine = 3 : i64, sdy.sharding =
    #sdy.sharding_per_value<[<@mesh, [{"x"}, {?}]>]>}
    : (tensor<4x8x6xf32>, tensor<4x2xi32>) -> tensor<4x6xf32>
  %11 = "stablehlo.gather"(%a, %7) <{dimension_numbers = #stablehlo.gather<offset_dims = [1],
    collapsed_slice_dims = [0, 1], start_index_map = [1, 0], index_vector_dim = 1>,
    indices_are_sorted = true, slice_sizes = array<i64: 1, 1, 6>}>
    : (tensor<4x8x6xf32>, tensor<4x2xi32>) -> tensor<4x6xf32>
  %12 = "stablehlo.gather"(%a, %8) <{dimension_numbers = #stablehlo.gather<offset_dims = [1],
    collapsed_slice_dims = [0, 1], start_index_map = [1, 0], index_vector_dim = 1>,
    slice_sizes = array<i64: 1, 1, 6>}> : (tensor<4x8x6xf32>, tensor<4x2xi32>) -> tensor<4x6xf32>
  %13 = "stablehlo.gather"(%a, %9) <{dimension_numbers = #stablehlo.gather<offset_dims = [1],
    collapsed_slice_dims = [0, 1], start_index_map = [1, 0], index_vector_dim = 1>,
    slice_sizes = array<i64: 1, 1, 6>}> : (tensor<4x8x6xf32>, tensor<4x2xi32>) -> tensor<4x6xf32>
  return %10, %11, %12, %13 : tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>, tensor<4x6xf32>
}
""",
    indices_of_three_numbers="""
func.func @main(%a: tensor<4x8x6xf32>, %i: tensor<4x2xi32>, %j: tensor<4x1xi32>)
    -> (tensor<4x1xf32>, tensor<4x1xf32>, tensor<4x1xf32>, tensor<4x1xf32>) {
  %0 = stablehlo.iota dim = 0 : tensor<4x1xi32>
  %1 = stablehlo.concatenate %0, %i, dim = 1 : (tensor<4x1xi32>, tensor<4x2xi32>) -> tensor<4x3xi32>
  %2 = stablehlo.concatenate %j, %0, %j, dim = 1
    : (tensor<4x1xi32>, tensor<4x1xi32>, tensor<4x1xi32>) -> tensor<4x3xi32>
  %3 = stablehlo.iota dim = 0 : tensor<4x3xi32>
  %4 = stablehlo.iota dim = 0 : tensor<4x2xi32>
  %5 = stablehlo.concatenate %j, %4, dim = 1 : (tensor<4x1xi32>, tensor<4x2xi32>) -> tensor<4x3xi32>
  %6 = "stablehlo.gather"(%a, %1) <{dimension_numbers = #stablehlo.gather<offset_dims = [1],
    collapsed_slice_dims = [0, 1], start_index_map = [0, 1, 2], index_vector_dim = 1>,
    slice_sizes = array<i64: 1, 1, 1>}> : (tensor<4x8x6xf32>, tensor<4x3xi32>) -> tensor<4x1xf32>
  %7 = "stablehlo.gather"(%a, %2) <{dimension_numbers = #stablehlo.gather<offset_dims = [1],
    collapsed_slice_dims = [0, 1], start_index_map = [2, 0, 1], index_vector_dim = 1>,
    slice_sizes = array<i64: 1, 1, 1>}> : (tensor<4x8x6xf32>, tensor<4x3xi32>) -> tensor<4x1xf32>
  %8 = "stablehlo.gather"(%a, %3) <{dimension_numbers = #stablehlo.gather<offset_dims = [1],
    collapsed_slice_dims = [0, 1], start_index_map = [2, 0, 1], index_vector_dim = 1>,
    slice_sizes = array<i64: 1, 1, 1>}> : (tensor<4x8x6xf32>, tensor<4x3xi32>) -> tensor<4x1xf32>
  %9 = "stablehlo.gather"(%a, %5) <{dimension_numbers = #stablehlo.gather<offset_dims = [1],
    collapsed_slice_dims = [0, 1], start_index_map = [2, 0, 1], index_vector_dim = 1>,
    slice_sizes = array<i64: 1, 1, 1>}> : (tensor<4x8x6xf32>, tensor<4x3xi32>) -> tensor<4x1xf32>
  return %6, %7, %8, %9 : tensor<4x1xf32>, tensor<4x1xf32>, tensor<4x1xf32>, tensor<4x1xf32>
}
""",
    scatters="""
func.func @main(%a: tensor<4x8xf32>, %b: tensor<4x8xf32>, %j: tensor<4x1xi32>, %u: tensor<4xf32>)
    -> (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>) {
  %0 = stablehlo.iota dim = 0 : tensor<4x1xi32>
  %1 = stablehlo.concatenate %0, %j, dim = 1 : (tensor<4x1xi32>, tensor<4x1xi32>) -> tensor<4x2xi32>
  %2:2 = "stablehlo.scatter"(%a, %b, %1, %u, %u) <{
    scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0, 1],
    scatter_dims_to_operand_dims = [0, 1], index_vector_dim = 1>, unique_indices = true}> ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>, %z: tensor<f32>, %w: tensor<f32>):
    %c = stablehlo.constant dense<1.0> : tensor<f32>
    %4 = stablehlo.add %x, %c : tensor<f32>
    stablehlo.return %4, %y : tensor<f32>, tensor<f32>
  }) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{"x"}, {}]>, <@mesh, [{}, {?}]>]>}
    : (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x2xi32>, tensor<4xf32>, tensor<4xf32>)
    -> (tensor<4x8xf32>, tensor<4x8xf32>)
  %3 = "stablehlo.scatter"(%a, %1, %u) <{
    scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0, 1],
    scatter_dims_to_operand_dims = [1, 0], index_vector_dim = 1>}> ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    stablehlo.return %y : tensor<f32>
  }) : (tensor<4x8xf32>, tensor<4x2xi32>, tensor<4xf32>) -> tensor<4x8xf32>
  return %2#0, %2#1, %3 : tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>
}
""",
)
