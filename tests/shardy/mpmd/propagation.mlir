// Programs to propagate.

// ----- through fragments
sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func public @main(%a: !a {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {?}]>}, %w: !b) -> !a
    attributes {topology = TOPOLOGY} {
  %0 = mpmd.fragment<mesh="first", origin=["f"], stage=0> (%a) (%x: !t) {
    %5 = stablehlo.tanh %x : !t
    mpmd.return %5 : !t
  } : (!a) -> !a
  %1 = mpmd.transfer %0 : (!a) -> !b
  %2 = mpmd.fragment<mesh="last", origin=["g"], stage=1> (%1, %w) (%x: !t, %y: !t) {
    %5 = stablehlo.add %x, %y : !t
    mpmd.return %5 : !t
  } : (!b, !b) -> !b
  %3 = mpmd.transfer %2 : (!b) -> !a
  return %3 : !a
}

// ----- written in a fragment
sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func public @main(%a: !a, %b: !a) -> (!a, !a) attributes {topology = TOPOLOGY} {
  %0:2 = mpmd.fragment<mesh="first", origin=[], in_shardings=[<@mesh, [{?}, {"y", ?}]>, <@mesh, [{?}, {?}]>]>
      (%a, %b) {note} (%x: !t, %y: !t) {
    %5 = stablehlo.add %x, %y : !t
    mpmd.return %5, %x : !t, !t
  } : (!a, !a) -> (!a, !a)
  %1 = mpmd.fragment<mesh="first", origin=["g"], out_shardings=[<@mesh, [{"x"}p1, {?}]>]> (%0#0) (%x: !t) {
    mpmd.return %x : !t
  } : (!a) -> !a
  return %1, %0#1 : !a, !a
}

// ----- fragments in generic form
sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func public @main(%a: !a {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {?}]>}) -> !a
    attributes {topology = TOPOLOGY} {
  %0 = "mpmd.fragment"(%a) <{mesh_name = "first", origin = [#mpmd.user_origin<"f"(1)>, #mpmd.user_origin<"g">],
      stage_id = 4 : i64}> ({
  ^bb0(%x: !t):
    %5 = stablehlo.tanh %x : !t
    mpmd.return %5 : !t
  }) {note} : (!a) -> !a
  return %0 : !a
}

// ----- through a loop
sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func public @main(%a: !t, %b: !t) -> (!t, !t) {
  %0:2 = mpmd.for (%a, %b) {iterations = 4 : ui32} (%x: !t, %y: !t, %index: tensor<ui32>) {
    %1 = stablehlo.add %x, %y {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{?}, {"y", ?}]>]>} : !t
    mpmd.return %y, %1 : !t, !t
  } : !t, !t
  return %0#0, %0#1 : !t, !t
}

// ----- uneven
sdy.mesh @mesh = <["x"=2, "y"=4]>
!u = tensor<6x10xf32>
!c = !mpmd.mesh_tensor<"first", tensor<6x10xf32>>
!d = !mpmd.mesh_tensor<"last", tensor<6x10xf32>>
func.func public @main(%a: !c {sdy.sharding = #sdy.sharding<@mesh, [{"y"}, {"x"}]>}) -> !d
    attributes {topology = TOPOLOGY} {
  %0 = mpmd.fragment<mesh="first", origin=[]> (%a) (%x: !u) {
    %5 = stablehlo.tanh %x : !u
    mpmd.return %5 : !u
  } : (!c) -> !c
  %1 = mpmd.transfer %0 : (!c) -> !d
  return %1 : !d
}

// ----- not to other axes
sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func public @main(%a: !a {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> !odd
    attributes {topology = TOPOLOGY} {
  %0 = mpmd.transfer %a : (!a) -> !odd
  return %0 : !odd
}

// ----- to host
sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func public @main(%a: !a {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> !host
    attributes {topology = TOPOLOGY} {
  %0 = mpmd.transfer %a : (!a) -> !host
  return %0 : !host
}

// ----- not through names
sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func public @main(%a: !t {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> !t {
  %0 = mpmd.named_tensor %a name="f" : !t
  %1 = mpmd.broadcast %0 : !t
  %2 = mpmd.reduce<add> %1, %a : (!t, !t) -> !t
  %3 = mpmd.named_computation<"f"> (%2) (%x: !t) {
    %4 = stablehlo.tanh %x : !t
    mpmd.return %4 : !t
  } : (!t) -> !t
  %5 = stablehlo.add %a, %3 : !t
  return %5 : !t
}

// ----- assigned
sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func public @main(%a: !t {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> !t
    attributes {topology = TOPOLOGY} {
  %0 = mpmd.assign %a : (!t) -> !a
  %1 = mpmd.unassign %0 : (!a) -> !t
  %2 = stablehlo.add %1, %a : !t
  return %2 : !t
}

// ----- calls
sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func private @last(%x: !t) -> !t {
  %0 = stablehlo.tanh %x : !t
  return %0 : !t
}
func.func private @unused(%x: !t) -> !t {
  return %x : !t
}
func.func private @first(%x: !t) -> !t {
  %0 = mpmd.call @last(%x) : (!t) -> !t
  return %0 : !t
}
func.func public @main(%a: !t {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> !t {
  %0 = mpmd.call @first(%a) : (!t) -> !t
  %1 = mpmd.call @last(%0) : (!t) -> !t
  return %1 : !t
}

// ----- dead
sdy.mesh @mesh = <["x"=2, "y"=4]>
func.func public @main(%a: !a {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {?}]>}) -> !a
    attributes {topology = TOPOLOGY} {
  %0 = mpmd.transfer %a : (!a) -> !b
  %1 = mpmd.fragment<mesh="first", origin=[]> (%a) (%x: !t) {
    %5 = stablehlo.tanh %x : !t
    mpmd.return %5 : !t
  } : (!a) -> !a
  return %a : !a
}
