// Bodies of functions that are refused.

// ----- transfer to an unknown mesh
  %0 = mpmd.transfer %a : (!a) -> !mpmd.mesh_tensor<"none", !t>

// ----- transfer to another shape
  %0 = mpmd.transfer %a : (!a) -> !mpmd.mesh_tensor<"last", tensor<4xf32>>

// ----- transfer of a tensor
  %0 = mpmd.transfer %t : (!t) -> !b

// ----- transfer to a tensor
  %0 = mpmd.transfer %a : (!a) -> !t

// ----- transfer of two
  %0 = mpmd.transfer %a : (!a, !a) -> !b

// ----- transfer of two in generic form
  %0 = "mpmd.transfer"(%a, %a) : (!a, !a) -> !b

// ----- transfer inside
  %0 = mpmd.named_computation<"f"> (%t) (%x: !t) {
    %1 = mpmd.assign %x : (!t) -> !a
    %2 = mpmd.transfer %1 : (!a) -> !b
    mpmd.return %x : !t
  } : (!t) -> !t

// ----- transfer in a loop
  %0 = mpmd.for (%a) {iterations = 2 : ui32} (%x: !a, %index: tensor<ui32>) {
    %1 = mpmd.transfer %x : (!a) -> !b
    mpmd.return %x : !a
  } : !a

// ----- unknown axis
  %0 = mpmd.transfer %a : (!a) -> !mpmd.mesh_tensor<"odd", !t, sharding=<@mesh, [{"x"}, {}]>>

// ----- wrong rank
  %0 = mpmd.transfer %a : (!a) -> !mpmd.mesh_tensor<"last", !t, sharding=<@mesh, [{"x"}]>>

// ----- axis twice
  %0 = mpmd.transfer %a : (!a) -> !mpmd.mesh_tensor<"last", !t, sharding=<@mesh, [{"x"}, {"x"}]>>

// ----- uneven
  %0 = mpmd.transfer %o : (!odd) -> !mpmd.mesh_tensor<"odd", !t, sharding=<@mesh, [{"z"}, {}]>>

// ----- unknown memory
  %0 = mpmd.transfer %a : (!a) -> !mpmd.mesh_tensor<"first", !t, memory_kind="disk">

// ----- to host by an attribute
  %0 = mpmd.transfer {mhlo.memory_kind = "pinned_host"} %a : (!a) -> !b

// ----- from host by an attribute
  %0:2 = mpmd.fragment<mesh="first", origin=[]> (%a) {res_attrs = [{}, {mhlo.memory_kind = "pinned_host"}]} (%x: !t) {
    mpmd.return %x, %x : !t, !t
  } : (!a) -> (!a, !a)
  %1 = mpmd.transfer %0#1 : (!a) -> !b

// ----- assign sharded
  %0 = mpmd.assign %t : (!t) -> !split

// ----- assign another shape
  %0 = mpmd.assign %t : (!t) -> !mpmd.mesh_tensor<"last", tensor<4xf32>>

// ----- assign from a number
  %0 = mpmd.assign {origin = 3} %t : (!t) -> !a

// ----- assign inside
  %0 = mpmd.fragment<mesh="first", origin=[]> (%a) (%x: !t) {
    %1 = mpmd.assign %x : (!t) -> !a
    mpmd.return %x : !t
  } : (!a) -> !a

// ----- unassign sharded
  %0 = mpmd.unassign %s : (!split) -> !t

// ----- unassign a tensor
  %0 = mpmd.unassign %t : (!t) -> !t

// ----- unassign another type
  %0 = mpmd.unassign %a : (!a) -> tensor<8x16xf64>

// ----- broadcast a token
  %0 = mpmd.broadcast %token : !stablehlo.token

// ----- broadcast to another type
  %0 = "mpmd.broadcast"(%t) : (!t) -> tensor<4xf32>

// ----- reduce nothing
  %0 = mpmd.reduce<add> : () -> !t

// ----- reduce two to none
  %0 = mpmd.reduce<none> %t, %t : (!t, !t) -> !t

// ----- reduce two to none in generic form
  %0 = "mpmd.reduce"(%t, %t) : (!t, !t) -> !t

// ----- reduce to another type
  %0 = mpmd.reduce<add> %t : (!t) -> tensor<4xf32>

// ----- reduce somehow
  %0 = mpmd.reduce<sub> %t : (!t) -> !t

// ----- reduce without a way
  %0 = mpmd.reduce %t : (!t) -> !t

// ----- reduction of another kind
  %0 = "mpmd.reduce"(%t) {reduction = 3} : (!t) -> !t

// ----- name of another kind
  %0 = "mpmd.named_tensor"(%t) {name = 3} : (!t) -> !t

// ----- without a name
  %0 = "mpmd.named_tensor"(%t) : (!t) -> !t

// ----- without name=
  %0 = mpmd.named_tensor %t : !t

// ----- computation of a number
  %0 = mpmd.named_computation<"f"> (%a) (%x: !a) {
    mpmd.return %x : !a
  } : (!a) -> !a

// ----- computation of fewer
  %0 = mpmd.named_computation<"f"> (%t) () {
    mpmd.return
  } : (!t) -> !t

// ----- computation with more arguments
  %0 = mpmd.named_computation<"f"> (%t) (%x: !t, %y: !t) {
    mpmd.return %x : !t
  } : (!t) -> !t

// ----- computation with other arguments
  %0 = mpmd.named_computation<"f"> (%t) (%x: tensor<i1>) {
    mpmd.return %x : tensor<i1>
  } : (!t) -> !t

// ----- computation that returns more
  %0 = mpmd.named_computation<"f"> (%t) (%x: !t) {
    mpmd.return %x, %x : !t, !t
  } : (!t) -> !t

// ----- computation that returns otherwise
  %0 = mpmd.named_computation<"f"> (%t) (%x: !t) {
    sdy.return %x : !t
  } : (!t) -> !t

// ----- computation that does not return
  %0 = mpmd.named_computation<"f"> (%t) (%x: !t) {
  } : (!t) -> !t

// ----- computation of what is outside
  %0 = mpmd.named_computation<"f"> (%t) (%x: !t) {
    mpmd.return %t : !t
  } : (!t) -> !t

// ----- computation without a name
  %0 = mpmd.named_computation<f> (%t) (%x: !t) {
    mpmd.return %x : !t
  } : (!t) -> !t

// ----- computation without origin
  %0 = "mpmd.named_computation"(%t) ({
  ^bb0(%x: !t):
    mpmd.return %x : !t
  }) : (!t) -> !t

// ----- computation with a string
  %0 = "mpmd.named_computation"(%t) <{origin = "f"}> ({
  ^bb0(%x: !t):
    mpmd.return %x : !t
  }) : (!t) -> !t

// ----- fragment on an unknown mesh
  %0 = mpmd.fragment<mesh="none", origin=[]> (%a) (%x: !t) {
    mpmd.return %x : !t
  } : (!a) -> !a

// ----- fragment on another mesh
  %0 = mpmd.fragment<mesh="last", origin=[]> (%a) (%x: !t) {
    mpmd.return %x : !t
  } : (!a) -> !a

// ----- fragment to another mesh
  %0 = mpmd.fragment<mesh="first", origin=[]> (%a) (%x: !t) {
    mpmd.return %x : !t
  } : (!a) -> !b

// ----- fragment of tensors
  %0 = mpmd.fragment<mesh="first", origin=[]> (%t) (%x: !t) {
    mpmd.return %x : !t
  } : (!t) -> !t

// ----- fragment of another shape
  %0 = mpmd.fragment<mesh="first", origin=[]> (%a) (%x: tensor<4xf32>) {
    mpmd.return %x : tensor<4xf32>
  } : (!a) -> !a

// ----- fragment of mesh tensors
  %0 = mpmd.fragment<mesh="first", origin=[]> (%a) (%x: !a) {
    mpmd.return %x : !a
  } : (!a) -> !a

// ----- fragment of another token
  %0 = mpmd.fragment<mesh="first", origin=[]> (%token) (%x: !t) {
    mpmd.return %x : !t
  } : (!stablehlo.token) -> !stablehlo.token

// ----- fragment that returns less
  %0 = mpmd.fragment<mesh="first", origin=[]> (%a) (%x: !t) {
    mpmd.return
  } : (!a) -> !a

// ----- fragment in a fragment
  %0 = mpmd.fragment<mesh="first", origin=[]> (%a) (%x: !t) {
    mpmd.fragment<mesh="first", origin=[]> () () {
      mpmd.return
    } : () -> ()
    mpmd.return %x : !t
  } : (!a) -> !a

// ----- stage of 32 bits
  %0 = mpmd.fragment<mesh="first", origin=[], stage=1 : i32> (%a) (%x: !t) {
    mpmd.return %x : !t
  } : (!a) -> !a

// ----- stage in words
  %0 = mpmd.fragment<mesh="first", origin=[], stage="one"> (%a) (%x: !t) {
    mpmd.return %x : !t
  } : (!a) -> !a

// ----- origin in words
  %0 = mpmd.fragment<mesh="first", origin=[f]> (%a) (%x: !t) {
    mpmd.return %x : !t
  } : (!a) -> !a

// ----- without mesh
  %0 = mpmd.fragment<origin=[]> (%a) (%x: !t) {
    mpmd.return %x : !t
  } : (!a) -> !a

// ----- more in a fragment
  %0 = mpmd.fragment<mesh="first", origin=[], note> (%a) (%x: !t) {
    mpmd.return %x : !t
  } : (!a) -> !a

// ----- fragment without its mesh
  "mpmd.fragment"() <{origin = []}> ({
    mpmd.return
  }) : () -> ()

// ----- fragment with origins in words
  "mpmd.fragment"() <{mesh_name = "first", origin = ["f"]}> ({
    mpmd.return
  }) : () -> ()

// ----- loop over nothing
  %0 = mpmd.for (%t) {iterations = 0 : ui32} (%x: !t, %i: tensor<ui32>) {
    mpmd.return %x : !t
  } : !t

// ----- loop over 32 bits
  %0 = mpmd.for (%t) {iterations = 1 : i32} (%x: !t, %i: tensor<ui32>) {
    mpmd.return %x : !t
  } : !t

// ----- endless loop
  %0 = mpmd.for (%t) (%x: !t, %i: tensor<ui32>) {
    mpmd.return %x : !t
  } : !t

// ----- uneven loop
  %0 = mpmd.for (%t) {iterations = 3 : ui32, unroll_factor = 2 : ui32} (%x: !t, %i: tensor<ui32>) {
    mpmd.return %x : !t
  } : !t

// ----- loop without an index
  %0 = mpmd.for (%t) {iterations = 1 : ui32} (%x: !t) {
    mpmd.return %x : !t
  } : !t

// ----- long index
  %0 = mpmd.for (%t) {iterations = 1 : ui32} (%x: !t, %i: tensor<ui64>) {
    mpmd.return %x : !t
  } : !t

// ----- index of a rank
  %0 = mpmd.for (%t) {iterations = 1 : ui32} (%x: !t, %i: tensor<1xui32>) {
    mpmd.return %x : !t
  } : !t

// ----- loop over another type
  %0 = mpmd.for (%t) {iterations = 1 : ui32} (%x: !a, %i: tensor<ui32>) {
    mpmd.return %t : !t
  } : !t

// ----- loop that returns another type
  %0 = mpmd.for (%t) {iterations = 1 : ui32} (%x: !t, %i: tensor<ui32>) {
    mpmd.return %a : !a
  } : !t

// ----- loop over two kinds
  %0:2 = mpmd.for (%t, %a) {iterations = 1 : ui32} (%x: !t, %y: !a, %i: tensor<ui32>) {
    mpmd.return %x, %y : !t, !a
  } : !t, !a

// ----- call of another type
  %0 = mpmd.call @pipeline(%b) : (!b) -> !a

// ----- call for another type
  %0 = mpmd.call @pipeline(%a) : (!a) -> !b

// ----- call of a token
  %0 = mpmd.call @spmd(%token) : (!stablehlo.token) -> !t

// ----- call with a number
  %0 = mpmd.call @spmd(%t) {call_counter = 1} : (!t) -> !t

// ----- call of the entry
  mpmd.call @main(%a, %b) : (!a, !b) -> ()

// ----- call inside
  %0 = mpmd.named_computation<"f"> (%t) (%x: !t) {
    %1 = mpmd.call @spmd(%x) : (!t) -> !t
    mpmd.return %1 : !t
  } : (!t) -> !t

// ----- call without parentheses
  %0 = mpmd.call @spmd %t : (!t) -> !t

// ----- fragment call of nothing
  %0 = mpmd.fragment_call<mesh="first", origin=[]> @none(%a) : (!a) -> !a

// ----- fragment call on another mesh
  %0 = mpmd.fragment_call<mesh="last", origin=[]> @spmd(%a) : (!a) -> !a

// ----- fragment call on other axes
  %0 = mpmd.fragment_call<mesh="odd", origin=[]> @spmd(%o) : (!odd) -> !odd

// ----- fragment call of a pipeline
  %0 = mpmd.fragment_call<mesh="first", origin=[]> @pipeline(%a) : (!a) -> !a

// ----- fragment call of tensors
  %0 = mpmd.fragment_call<mesh="first", origin=[]> @spmd(%t) : (!t) -> !t

// ----- fragment call of more
  %0 = mpmd.fragment_call<mesh="first", origin=[]> @spmd(%a, %a) : (!a, !a) -> !a

// ----- unknown op
  mpmd.none %t : !t

// ----- unknown op in generic form
  "mpmd.none"(%t) : (!t) -> ()

// ----- unknown attribute
  %0 = stablehlo.negate %t {a = #mpmd.none<3>} : !t

// ----- unknown type
  %0 = builtin.unrealized_conversion_cast %t : !t to !mpmd.none

// ----- empty topology
  %0 = stablehlo.negate %t {a = #mpmd.topology<>} : !t

// ----- mesh twice
  %0 = stablehlo.negate %t {a = #mpmd.topology<<"m" : <["x"=2, "x"=2]>>>} : !t

// ----- mesh without a name
  %0 = stablehlo.negate %t {a = #mpmd.topology<<["x"=2]>>} : !t

// ----- mesh without brackets
  %0 = stablehlo.negate %t {a = #mpmd.named_mesh<"m" : ["x"=2]>} : !t

// ----- mesh without a colon
  %0 = stablehlo.negate %t {a = #mpmd.named_mesh<"m" <["x"=2]>>} : !t

// ----- transposed in words
  %0 = stablehlo.negate %t {a = #mpmd.user_origin<"f"(x)>} : !t

// ----- origin without quotes
  %0 = stablehlo.negate %t {a = #mpmd.user_origin<f>} : !t

// ----- origins without quotes
  %0 = stablehlo.negate %t {a = #mpmd.meshes_with_origins<"m"[f]>} : !t

// ----- mesh tensor of a number
  %0 = mpmd.assign %t : (!t) -> !mpmd.mesh_tensor<"first", f32>

// ----- mesh tensor of no rank
  %0 = mpmd.assign %t : (!t) -> !mpmd.mesh_tensor<"first", tensor<*xf32>>

// ----- mesh tensor without quotes
  %0 = mpmd.assign %t : (!t) -> !mpmd.mesh_tensor<first, !t>

// ----- mesh tensor on a number
  %0 = mpmd.assign %t : (!t) -> !mpmd.mesh_tensor<3, !t>

// ----- mesh tensor without a comma
  %0 = mpmd.assign %t : (!t) -> !mpmd.mesh_tensor<"first" !t>

// ----- mesh tensor with more
  %0 = mpmd.assign %t : (!t) -> !mpmd.mesh_tensor<"first", !t, note=3>

// ----- mesh tensor in a number
  %0 = mpmd.assign %t : (!t) -> !mpmd.mesh_tensor<"first", !t, memory_kind=3>

// ----- mesh tensor sharded by a string
  %0 = mpmd.assign %t : (!t) -> !mpmd.mesh_tensor<"first", !t, sharding="x">

// ----- mesh tensor without a body
  %0 = mpmd.assign %t : (!t) -> !mpmd.mesh_tensor
