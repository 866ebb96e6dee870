// Bodies of functions with each op of the dialect.

// ----- transfer
  %0 = mpmd.transfer %a : (!a) -> !b

// ----- transfer of one mesh
  %0 = mpmd.transfer {note} %a : (!a) -> !split

// ----- transfer to host
  %0 = mpmd.transfer %s : (!split) -> !host

// ----- transfer to other axes
  %0 = mpmd.transfer %a : (!a) -> !odd

// ----- assign
  %0 = mpmd.assign {origin = "f"} %t : (!t) -> !a
  %1 = mpmd.assign %t : (!t) -> !host

// ----- unassign
  %0 = mpmd.unassign %a : (!a) -> !t
  %1 = mpmd.unassign {origin = ""} %b : (!b) -> !t

// ----- broadcast
  %0 = mpmd.broadcast {note = 1 : i8} %t : !t

// ----- reduce
  %0 = mpmd.reduce<none> %t : (!t) -> !t
  %1 = mpmd.reduce<add> {note} %t, %0 : (!t, !t) -> !t
  %2 = mpmd.reduce<max> %t : (!t) -> !t

// ----- named tensor
  %0 = mpmd.named_tensor %t name="weights" : !t
  %1 = mpmd.named_tensor %0 name = "a \"b\"" {note} : !t

// ----- named computation
  %0 = mpmd.named_computation<"f"> (%t) (%x: !t) {
    mpmd.return %x : !t
  } : (!t) -> !t
  %1 = mpmd.named_computation<"f"(2)> (%0) {note} (%x: !t) {
    mpmd.return %x : !t
  } : (!t) -> !t
  mpmd.named_computation<"none"> () () {
    mpmd.return
  } : () -> ()

// ----- token in a computation
  %0 = mpmd.named_computation<"f"> (%token) (%x: !stablehlo.token) {
    mpmd.return %x : !stablehlo.token
  } : (!stablehlo.token) -> !stablehlo.token

// ----- fragment
  %0 = mpmd.fragment<mesh="first", origin=["f", "g"(1)]> (%a) (%x: !t) {
    mpmd.return %x : !t
  } : (!a) -> !a
  %1 = mpmd.fragment<mesh="first", origin=[], stage=-3> (%s) {note} (%x: !t) {
    mpmd.return %x : !t
  } : (!split) -> !a

// ----- fragment with shardings
  %0 = mpmd.fragment<mesh="first", origin=["f"], stage=1, in_shardings=[<@mesh, [{"x"}, {?}]>], out_shardings=[<@mesh, [{}, {"y"}]>]> (%a) (%x: !t) {
    mpmd.return %x : !t
  } : (!a) -> !a
  %1 = mpmd.fragment<mesh="first", origin=[], in_shardings=[<@mesh, [{?}, {?}]>]> (%0) (%x: !t) {
    mpmd.return %x : !t
  } : (!a) -> !a
  %2 = mpmd.fragment<mesh="first", origin=[], out_shardings=[<@mesh, [{?}, {?}]>]> (%1) (%x: !t) {
    mpmd.return %x : !t
  } : (!a) -> !a

// ----- fragment over meshes that are not there
  %0 = mpmd.fragment<mesh="first", origin=[], in_shardings=[<@none, [{"q"}, {?}]>]> (%a) (%x: !t) {
    mpmd.return %x : !t
  } : (!a) -> !a

// ----- fragment of nothing
  mpmd.fragment<mesh="odd", origin=[], > () () {
    mpmd.return
  } : () -> ()

// ----- fragment of a token
  %0 = mpmd.fragment<mesh="odd", origin=[]> (%token) (%x: !stablehlo.token) {
    mpmd.return %x : !stablehlo.token
  } : (!stablehlo.token) -> !stablehlo.token

// ----- for
  %0 = mpmd.for (%t) {iterations = 6 : ui32, unroll_factor = 3 : ui32} (%x: !t, %index: tensor<ui32>) {
    %2 = stablehlo.negate %x : !t
    mpmd.return %2 : !t
  } : !t
  %1:2 = mpmd.for (%a, %a) {iterations = 1 : ui32} (%x: !a, %y: !a, %index: tensor<i32>) {
    %3 = mpmd.fragment<mesh="first", origin=[]> (%x) (%inner: !t) {
      mpmd.return %inner : !t
    } : (!a) -> !a
    mpmd.return %y, %3 : !a, !a
  } : !a, !a

// ----- in a loop
  %0 = mpmd.for (%t) {iterations = 2 : ui32} (%x: !t, %index: tensor<ui32>) {
    %1 = mpmd.assign %x : (!t) -> !a
    %2 = mpmd.unassign %1 : (!a) -> !t
    %3 = mpmd.call @spmd(%2) : (!t) -> !t
    mpmd.return %3 : !t
  } : !t

// ----- call
  %0 = mpmd.call @spmd(%t) {call_counter = 2 : ui32} : (!t) -> !t
  %1 = mpmd.call @pipeline(%a) : (!a) -> !a

// ----- fragment call
  %0 = mpmd.fragment_call<mesh="first", origin=["f"(1), "g"]> @spmd(%a) : (!a) -> !a
  %1 = mpmd.fragment_call<mesh="first", origin=[]> @spmd(%s) {note} : (!split) -> !a

// ----- origins
  %0 = stablehlo.negate %t {mpmd.use = #mpmd.meshes_with_origins<"first"["f", "g"], "last">} : !t
  %1 = stablehlo.negate %0 {mpmd.use = #mpmd.meshes_with_origins<>} : !t
  %2 = stablehlo.negate %1 {a = #mpmd.user_origin<"f"(3)>, b = #mpmd.user_origin<"f">, c = #mpmd.reduction<or>, d = #mpmd.named_mesh<"m" : <["x"=2]>>} : !t
  %3 = stablehlo.negate %2 {a = #mpmd<origin"f">, b = #mpmd<mesh_with_origins"m"["f"]>} : !t
