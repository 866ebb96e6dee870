"a.b"() {x = 1e5} : () -> ()
// -----
"a.b"() {x = 1 : tensor<2xi32>} : () -> ()
// -----
"a.b"() {x = 1 : foo} : () -> ()
// -----
"a.b"() {x = 1.0 : i32} : () -> ()
// -----
"a.b"() {x = 1 : f32} : () -> ()
// -----
"a.b"() {x = 1 2} : () -> ()
// -----
"a.b"() {x = 300 : i8} : () -> ()
// -----
"a.b"() {x = 128 : si8} : () -> ()
// -----
"a.b"() {x = -129 : i8} : () -> ()
// -----
"a.b"() {x = 18446744073709551616} : () -> ()
// -----
"a.b"() {x = -9223372036854775809} : () -> ()
// -----
"a.b"() {x = 9223372036854775808 : index} : () -> ()
// -----
"a.b"() {x = true : i1} : () -> ()
// -----
"a.b"() {x = "\q"} : () -> ()
// -----
"a.b"() {x = "\n\t\"\"} : () -> ()
// -----
"a.b"() {x = "\0"} : () -> ()
// -----
"a.b"() {x = [1, 2,]} : () -> ()
// -----
"a.b"() {x = [1 2]} : () -> ()
// -----
"a.b"() {x = [,]} : () -> ()
// -----
"a.b"() {x = {a,}} : () -> ()
// -----
"a.b"() {x = {a, a}} : () -> ()
// -----
"a.b"() {x = {a = 1, a = 2}} : () -> ()
// -----
"a.b"() {x = {1}} : () -> ()
// -----
"a.b"() {x = {a = }} : () -> ()
// -----
"a.b"() {x = {a 1}} : () -> ()
// -----
"a.b"() {x = @a::b} : () -> ()
// -----
"a.b"() {x = @a-b} : () -> ()
// -----
"a.b"() {x = @} : () -> ()
// -----
"a.b"() {x = @1} : () -> ()
// -----
"a.b"() {x = #foo.bar<1 2 ]>} : () -> ()
// -----
"a.b"() {x = #undefined} : () -> ()
// -----
"a.b"() {x = #} : () -> ()
// -----
"a.b"() {x = i16777216} : () -> ()
// -----
"a.b"() {x = f99} : () -> ()
// -----
"a.b"() {x = foo} : () -> ()
// -----
"a.b"() {x = ?} : () -> ()
// -----
"a.b"() {x = *} : () -> ()
// -----
"a.b"() {x = ->} : () -> ()
// -----
"a.b"() {x = tensor<>} : () -> ()
// -----
"a.b"() {x = tensor<2x>} : () -> ()
// -----
"a.b"() {x = tensor<2xx3xf32>} : () -> ()
// -----
"a.b"() {x = tensor<f32} : () -> ()
// -----
"a.b"() {x = tensor<-2xf32>} : () -> ()
// -----
"a.b"() {x = tensor<2xf32, ,>} : () -> ()
// -----
"a.b"() {x = tuple<i32,>} : () -> ()
// -----
"a.b"() {x = !undefined} : () -> ()
// -----
"a.b"() {x = (i32)} : () -> ()
// -----
"a.b"() {x = (i32) ->} : () -> ()
// -----
"a.b"() {x = array<i32:>} : () -> ()
// -----
"a.b"() {x = array<i32: 1,>} : () -> ()
// -----
"a.b"() {x = array<f32: 1>} : () -> ()
// -----
"a.b"() {x = array<i1: true, 0>} : () -> ()
// -----
"a.b"() {x = array<index: 1>} : () -> ()
// -----
"a.b"() {x = array<i8: 300>} : () -> ()
// -----
"a.b"() {x = dense<> : tensor<2xi32>} : () -> ()
// -----
"a.b"() {x = dense<1>} : () -> ()
// -----
"a.b"() {x = dense<[1, 2]> : tensor<3xi32>} : () -> ()
// -----
"a.b"() {x = dense<[[1], 2]> : tensor<2xi32>} : () -> ()
// -----
"a.b"() {x = dense<1.0> : tensor<2xi32>} : () -> ()
// -----
"a.b"() {x = dense<[[1, 2], [3]]> : tensor<2x2xi32>} : () -> ()
// -----
"a.b"() {x = dense<[1, 2,]> : tensor<2xi32>} : () -> ()
// -----
"a.b"() {x = dense<[1 2]> : tensor<2xi32>} : () -> ()
// -----
"a.b"() {x = dense<1> : tensor<2xf32>} : () -> ()
// -----
"a.b"() {x = dense<true> : tensor<2xi32>} : () -> ()
// -----
"a.b"() {x = dense<1> : i32} : () -> ()
// -----
"a.b"() {x = dense<1> : tensor<?xi32>} : () -> ()
// -----
"a.b"() {x = dense<300> : tensor<2xi8>} : () -> ()
// -----
"a.b"() {x = dense<"x"> : tensor<1xi8>} : () -> ()
// -----
"a.b"() {x = dense<1.0> : tensor<1xf32> x} : () -> ()
// -----
"a.b"() {x = dense<foo> : tensor<i32>} : () -> ()
// -----
"a.b"() {x = dense_resource<> : tensor<2xf32>} : () -> ()
// -----
"a.b"() {x = loc(callsite("a" "b"))} : () -> ()
// -----
"a.b"() {x = loc(fused["a" "b"])} : () -> ()
// -----
"a.b"() {x = loc(foo)} : () -> ()
// -----
"a.b"() {x = loc()} : () -> ()
// -----
"a.b"() {x = loc("a":x)} : () -> ()
// -----
"a.b"() {x = loc(callsite("a" at))} : () -> ()
// -----
"a.b"() {x = #stablehlo<precision FOO>} : () -> ()
// -----
"a.b"() {x = #stablehlo.dot<lhs = [1]>} : () -> ()
// -----
"a.b"() {x = #stablehlo.dot<lhs_contracting_dimensions = 1>} : () -> ()
// -----
"a.b"() {x = #stablehlo.gather<index_vector_dim = [1]>} : () -> ()
// -----
"a.b"() {x = #stablehlo.channel_handle<handle = 1>} : () -> ()
// -----
"a.b"() {x = #stablehlo.conv<[b, 1, f]x[0, i, o]->[b, 0, f]>} : () -> ()
// -----
"a.b"() {x = #stablehlo.conv<[b, 0]x[0, i, o]->[b, 0, f]>} : () -> ()
// -----
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = stablehlo.abs %a, : tensor<4x4xf32>
  return %a : tensor<4x4xf32>
}
// -----
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = stablehlo.abs : tensor<4x4xf32>
  return %a : tensor<4x4xf32>
}
// -----
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = stablehlo.abs %a tensor<4x4xf32>
  return %a : tensor<4x4xf32>
}
// -----
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = stablehlo.abs %a %a : tensor<4x4xf32>
  return %a : tensor<4x4xf32>
}
// -----
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = stablehlo.add %a %a : tensor<4x4xf32>
  return %a : tensor<4x4xf32>
}
// -----
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = stablehlo.add %a : tensor<4x4xf32>
  return %a : tensor<4x4xf32>
}
// -----
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = stablehlo.add %a, %a, : tensor<4x4xf32>
  return %a : tensor<4x4xf32>
}
// -----
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = stablehlo.abs(%a) : tensor<4x4xf32>
  return %a : tensor<4x4xf32>
}
// -----
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = stablehlo.abs %a {b : tensor<4x4xf32>
  return %a : tensor<4x4xf32>
}
// -----
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = stablehlo.abs %a {b} {c} : tensor<4x4xf32>
  return %a : tensor<4x4xf32>
}
// -----
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = stablehlo.abs {b} %a : tensor<4x4xf32>
  return %a : tensor<4x4xf32>
}
// -----
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = stablehlo.iota dim 0 : tensor<4x4xf32>
  return %a : tensor<4x4xf32>
}
// -----
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = stablehlo.iota : tensor<4x4xf32>
  return %a : tensor<4x4xf32>
}
// -----
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = stablehlo.iota dim = x : tensor<4x4xf32>
  return %a : tensor<4x4xf32>
}
// -----
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = stablehlo.transpose %a dims = [1, 0] : (tensor<4x4xf32>) -> tensor<4x4xf32>
  return %a : tensor<4x4xf32>
}
// -----
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = stablehlo.transpose %a, dims = [1 0] : (tensor<4x4xf32>) -> tensor<4x4xf32>
  return %a : tensor<4x4xf32>
}
// -----
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = stablehlo.transpose %a, dims [1, 0] : (tensor<4x4xf32>) -> tensor<4x4xf32>
  return %a : tensor<4x4xf32>
}
// -----
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = stablehlo.transpose %a, perm = [1, 0] : (tensor<4x4xf32>) -> tensor<4x4xf32>
  return %a : tensor<4x4xf32>
}
// -----
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = stablehlo.transpose %a, dims = 1 : (tensor<4x4xf32>) -> tensor<4x4xf32>
  return %a : tensor<4x4xf32>
}
// -----
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = stablehlo.dot_general %a, %a contracting_dims = [1] x [0] : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %a : tensor<4x4xf32>
}
// -----
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = stablehlo.dot_general %a, %a, contracting_dims = [1] [0] : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %a : tensor<4x4xf32>
}
// -----
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = stablehlo.dot_general %a, %a, contracting_dims = [1] x [0] precision = [HIGH, HIGH] : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %a : tensor<4x4xf32>
}
// -----
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = stablehlo.dot_general %a, %a, contracting_dims = [1] x [0], precision = [FAST] : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %a : tensor<4x4xf32>
}
// -----
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = stablehlo.dot_general %a, %a, batching_dims = [0] x [0] contracting_dims = [1] x [1] : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4xf32>
  return %a : tensor<4x4xf32>
}
// -----
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = stablehlo.slice %a [0:2 0:4] : (tensor<4x4xf32>) -> tensor<2x4xf32>
  return %a : tensor<4x4xf32>
}
// -----
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = stablehlo.slice %a [0, 0:4] : (tensor<4x4xf32>) -> tensor<2x4xf32>
  return %a : tensor<4x4xf32>
}
// -----
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = stablehlo.compare EQ %a, %a : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xi1>
  return %a : tensor<4x4xf32>
}
// -----
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = stablehlo.compare QE, %a, %a : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xi1>
  return %a : tensor<4x4xf32>
}
// -----
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = stablehlo.concatenate %a, %a dim = 0 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  return %a : tensor<4x4xf32>
}
// -----
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = stablehlo.custom_call f(%a) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  return %a : tensor<4x4xf32>
}
// -----
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = stablehlo.custom_call @f %a : (tensor<4x4xf32>) -> tensor<4x4xf32>
  return %a : tensor<4x4xf32>
}
// -----
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = stablehlo.custom_call @f(%a,) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  return %a : tensor<4x4xf32>
}
// -----
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = stablehlo.broadcast_in_dim %a, dims = [0, 1], : (tensor<4x4xf32>) -> tensor<4x4xf32>
  return %a : tensor<4x4xf32>
}
// -----
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = stablehlo.cholesky %a, lower = yes : tensor<4x4xf32>
  return %a : tensor<4x4xf32>
}
// -----
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = stablehlo.cholesky %a, : tensor<4x4xf32>
  return %a : tensor<4x4xf32>
}
// -----
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = stablehlo.reduce_precision %a, format = e5 : tensor<4x4xf32>
  return %a : tensor<4x4xf32>
}
// -----
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = stablehlo.convert %a : (tensor<4x4xf32>) ->
  return %a : tensor<4x4xf32>
}
// -----
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = stablehlo.convert %a (tensor<4x4xf32>) -> tensor<4x4xf32>
  return %a : tensor<4x4xf32>
}
// -----
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = stablehlo.constant dense<0> : tensor<4x4xf32>
  return %a : tensor<4x4xf32>
}
// -----
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = stablehlo.constant 0.0 : tensor<4x4xf32>
  return %a : tensor<4x4xf32>
}
// -----
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = stablehlo.constant dense<0.0>
  return %a : tensor<4x4xf32>
}
// -----
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = stablehlo.constant : tensor<4x4xf32>
  return %a : tensor<4x4xf32>
}
// -----
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = sdy.constant dense<0.0> : tensor<?xf32>
  return %a : tensor<4x4xf32>
}
// -----
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = stablehlo.optimization_barrier %a, : tensor<4x4xf32>
  return %a : tensor<4x4xf32>
}
// -----
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = sdy.reshard %a, <@mesh, [{}, {}]> : tensor<4x4xf32>
  return %a : tensor<4x4xf32>
}
// -----
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = sdy.reshard %a : tensor<4x4xf32>
  return %a : tensor<4x4xf32>
}
// -----
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = sdy.propagation_barrier %a allowed_direction=BOTH : tensor<4x4xf32>
  return %a : tensor<4x4xf32>
}
// -----
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = sdy.propagation_barrier %a allowed_direction=2 : tensor<4x4xf32>
  return %a : tensor<4x4xf32>
}
// -----
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = call @main %a : (tensor<4x4xf32>) -> tensor<4x4xf32>
  return %a : tensor<4x4xf32>
}
// -----
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = chlo.square %a : tensor<4x4xf32>
  return %a : tensor<4x4xf32>
}
// -----
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = "foo.bar"(%a : (tensor<4x4xf32>) -> tensor<4x4xf32>
  return %a : tensor<4x4xf32>
}
// -----
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = "foo.bar"(%a) -> tensor<4x4xf32>
  return %a : tensor<4x4xf32>
}
// -----
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = "foo.bar"(%a) <{a = }> : (tensor<4x4xf32>) -> tensor<4x4xf32>
  return %a : tensor<4x4xf32>
}
// -----
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = "foo.bar"(%a) {a = 1,} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  return %a : tensor<4x4xf32>
}
// -----
sdy.mesh @mesh = <["x"=2]>
func.func @main(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = "foo.bar"(%a) : (tensor<4x4xf32>,) -> tensor<4x4xf32>
  return %a : tensor<4x4xf32>
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {"x"}]>}) {
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"q"}, {}]>}) {
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@no, [{}, {}]>}) {
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}]>}) {
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x":(1)2, "x":(2)2}, {}]>}) {
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x":(0)2}, {}]>}) {
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x":(2)4}, {}]>}) {
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x":(1)4}, {}]>}) {
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}p1, {}]>}) {
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}px, {}]>}) {
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}p99999999999999999999, {}]>}) {
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?, "x"}, {}]>}) {
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x" "y"}, {}]>}) {
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"} {}]>}) {
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh [{}, {}]>}) {
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<mesh<["u"=2, "u"=2]>, [{}, {}]>}) {
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<mesh<["u"=0]>, [{}, {}]>}) {
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}], replicated={"y", "x"}>}) {
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}], replicated={"x"}>}) {
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}], unreduced={"x"}>}) {
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}], what={"x"}>}) {
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}], replicated={"x"}, replicated={"y"}>}) {
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}], unreduced={"q"}>}) {
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding@mesh}) {
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<}) {
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x]>}) {
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{x}, {}]>}) {
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x":2}, {}]>}) {
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x":(2}, {}]>}) {
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x":(a)2}, {}]>}) {
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, []> : i32}) {
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {}]>]>}) {
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32> {sdy.sharding = 1 : i32}) {
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32> {sdy.sharding = #nowhere}) {
  return
}
// -----
sdy.mesh @m = <["x"=2, "x"=2]>
func.func @main() {
  return
}
// -----
sdy.mesh @m = <["x"=0]>
func.func @main() {
  return
}
// -----
sdy.mesh @m = <["x"=-1]>
func.func @main() {
  return
}
// -----
sdy.mesh @m = <[x=2]>
func.func @main() {
  return
}
// -----
sdy.mesh @m = <["x"=2
func.func @main() {
  return
}
// -----
sdy.mesh @m = ["x"=2]
func.func @main() {
  return
}
// -----
sdy.mesh @m = <["x"=2], device_ids=[0]>
func.func @main() {
  return
}
// -----
sdy.mesh @m = <["x"=2], device_ids=[0, 0]>
func.func @main() {
  return
}
// -----
sdy.mesh @m = <["x"=2], device_ids=[0, 5]>
func.func @main() {
  return
}
// -----
sdy.mesh @m = <[], device_ids=[-1]>
func.func @main() {
  return
}
// -----
sdy.mesh @m = <[], device_ids=[1, 2]>
func.func @main() {
  return
}
// -----
sdy.mesh @m = <["x"=2], ids=[0]>
func.func @main() {
  return
}
// -----
sdy.mesh @m = <["x" 2]>
func.func @main() {
  return
}
// -----
sdy.mesh @m = <["x"=9223372036854775807, "y"=4]>
func.func @main() {
  return
}
// -----
sdy.mesh @m = <>
func.func @main() {
  return
}
// -----
sdy.mesh @m = <["x"=2],>
func.func @main() {
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>) {
  %0 = stablehlo.add %a, %b {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, j]) {i=8, j=8}>} : tensor<8x8xf32>
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>) {
  %0 = stablehlo.add %a, %b {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [i, j])->([i, j]) {i=8, j=4}>} : tensor<8x8xf32>
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>) {
  %0 = stablehlo.add %a, %b {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [i, j])->([i, j]) {i=8}>} : tensor<8x8xf32>
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>) {
  %0 = stablehlo.add %a, %b {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [i, j])->([i, j])>} : tensor<8x8xf32>
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>) {
  %0 = stablehlo.add %a, %b {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [i])->([i, j]) {i=8, j=8}>} : tensor<8x8xf32>
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>) {
  %0 = stablehlo.add %a, %b {sdy.sharding_rule = #sdy.op_sharding_rule<([i, i], [i, j])->([i, j]) {i=8, j=8}>} : tensor<8x8xf32>
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>) {
  %0 = stablehlo.add %a, %b {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [i, j])->([i, j]) {i=0, j=8}>} : tensor<8x8xf32>
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>) {
  %0 = stablehlo.add %a, %b {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [i, j])->([i, j]) {i=8, j=8, k=2}>} : tensor<8x8xf32>
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>) {
  %0 = stablehlo.add %a, %b {sdy.sharding_rule = #sdy.op_sharding_rule<([a, j], [i, j])->([i, j]) {i=8, j=8}>} : tensor<8x8xf32>
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>) {
  %0 = stablehlo.add %a, %b {sdy.sharding_rule = #sdy.op_sharding_rule<([z_x, j], [i, j])->([i, j]) {i=8, j=8}>} : tensor<8x8xf32>
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>) {
  %0 = stablehlo.add %a, %b {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [i, j])->([i, j]) {i=8, j=8} reduction={i}>} : tensor<8x8xf32>
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>) {
  %0 = stablehlo.add %a, %b {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [i, j])->([i, j]) {i=8, j=8} reduction={q}>} : tensor<8x8xf32>
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>) {
  %0 = stablehlo.add %a, %b {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [i, j])->([i, j]) {i=8, j=8} what={i}>} : tensor<8x8xf32>
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>) {
  %0 = stablehlo.add %a, %b {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [i, j]->([i, j]) {i=8, j=8}>} : tensor<8x8xf32>
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>) {
  %0 = stablehlo.add %a, %b {sdy.sharding_rule = #sdy.op_sharding_rule<([i j], [i, j])->([i, j]) {i=8, j=8}>} : tensor<8x8xf32>
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>) {
  %0 = stablehlo.add %a, %b {sdy.sharding_rule = #sdy.op_sharding_rule<([], [i, j])->([i, j]) {i=8, j=8}>} : tensor<8x8xf32>
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>) {
  %0 = stablehlo.add %a, %b {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j], [i, j])->([i, j]) {i=x, j=8}>} : tensor<8x8xf32>
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>) {
  %0 = stablehlo.add %a, %b {sdy.sharding_rule = #sdy.op_sharding_rule<([i, jk], [i, jk])->([i, jk]) {i=8, j=8, k=1}>} : tensor<8x8xf32>
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>) {
  %0 = sdy.all_gather [{}, {"x"}] %a out_sharding=<@mesh, [{}, {}]> : tensor<8x8xf32>
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>) {
  %0 = sdy.all_gather [{}] %a out_sharding=<@mesh, [{}, {}]> : tensor<8x8xf32>
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>) {
  %0 = sdy.all_slice [{}, {"q"}] %a out_sharding=<@mesh, [{}, {"x"}]> : tensor<8x8xf32>
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>) {
  %0 = sdy.all_to_all [{"x"}: 0->5] %a out_sharding=<@mesh, [{}, {"x"}]> : tensor<8x8xf32>
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>) {
  %0 = sdy.all_to_all [{"x"}: 0] %a out_sharding=<@mesh, [{}, {"x"}]> : tensor<8x8xf32>
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>) {
  %0 = sdy.all_reduce {"x", "x"} %a out_sharding=<@mesh, [{}, {}]> : tensor<8x8xf32>
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>) {
  %0 = sdy.collective_permute %a : tensor<8x8xf32>
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>) {
  %0 = sdy.reduce_scatter %a out_sharding=<@mesh, [{}, {}]> : tensor<8x8xf32>
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>) {
  sdy.sharding_group %a group_id=x : tensor<8x8xf32>
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>) {
  sdy.sharding_group %a : tensor<8x8xf32>
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>) {
  "sdy.sharding_group"(%a) : (tensor<8x8xf32>) -> ()
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>) {
  %0 = sdy.propagation_barrier %a allowed_direction=UP : tensor<8x8xf32>
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>) {
  %0 = sdy.data_flow_edge %a sharding : tensor<8x8xf32>
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>) {
  %0 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{"x"}, {}]>] out_shardings=[<@mesh, [{"x"}, {}]>] manual_axes={"x"} (%c: tensor<8x8xf32>) {
 sdy.return %c : tensor<8x8xf32>
 } : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>) {
  %0 = sdy.manual_computation(%a) in_shardings=[] out_shardings=[<@mesh, [{"x"}, {}]>] manual_axes={"x"} (%c: tensor<2x8xf32>) {
 sdy.return %c : tensor<2x8xf32>
 } : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>) {
  %0 = sdy.manual_computation(%a) in_shardings=[<@mesh, [{"x"}, {}]>] manual_axes={"x"} (%c: tensor<2x8xf32>) {
 sdy.return %c : tensor<2x8xf32>
 } : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>) {
  %0 = sdy.named_computation<name>(%a) (%c: tensor<8x8xf32>) {
 sdy.return %c : tensor<8x8xf32>
 } : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>) {
  %0 = stablehlo.while(%c = %a) : tensor<8x8xf32>, tensor<8x8xf32> cond {
 } do {
 }
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>) {
  %0 = stablehlo.while(%c = %a) : tensor<8x8xf32> cond {
 stablehlo.return %a : tensor<8x8xf32>
 } do {
 %1 = stablehlo.abs %c : tensor<8x8xf32>
 }
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>) {
  "my.op"(%a) ({
 ^bb0:
 ^bb0:
 }) : (tensor<8x8xf32>) -> ()
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>) {
  "my.op"()[bb0] : () -> ()
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>) {
  "my.op"()[^bb9] : () -> ()
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>) {
  %0:2 = stablehlo.abs %a : tensor<8x8xf32>
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>) {
  %0:x = stablehlo.abs %a : tensor<8x8xf32>
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>) {
  %0 = stablehlo.abs %a#x : tensor<8x8xf32>
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>) {
  % = stablehlo.abs %a : tensor<8x8xf32>
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>) {
  %0 = stablehlo.abs %a : tensor<8x8xf32> loc(
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>) {
  %0 = stablehlo.frobnicate %a : tensor<8x8xf32>
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>) {
  %0 = stablehlo.reduce(%a init %b) applies stablehlo.add across dimensions = [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8xf32>
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>) {
  %0 = stablehlo.tuple %a : i32
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>) {
  func.call @nobody(%a) : (tensor<8x8xf32>) -> ()
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>) {
  func.call @main(%a) : (tensor<8x8xf32>) -> ()
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>) {
  %0 = "sdy.reshard"(%a) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>) {
  %0 = "stablehlo.transpose"(%a, %b) : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>) {
  %0 = "my.op"(%zz) : (i32) -> i32
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>) {
  "my.op"() {a = 1, a = 2} : () -> ()
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>) {
  "my.op"() <{a = 1, a = 2}> : () -> ()
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>) {
  "my.op"() ({}, : () -> ()
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>) {
  %0 = stablehlo.reshape %a : tensor<8x8xf32> to tensor<64xf32>
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>) {
  %0 = builtin.unrealized_conversion_cast %a : tensor<8x8xf32> tensor<64xf32>
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>) {
  %0 = stablehlo.add %a, %b {sdy.propagation_edges = #sdy.propagation_edges<[{step-0 = [{"x" = operand-7 -> [result-0]}]}]>} : tensor<8x8xf32>
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>) {
  %0 = stablehlo.add %a, %b {sdy.propagation_edges = #sdy.propagation_edges<[{step-x = []}]>} : tensor<8x8xf32>
  return
}
// -----
func.func @f
// -----
func.func @f(
// -----
func.func @f(%a)
// -----
func.func @f(%a: tensor<8xf32>
// -----
func.func @f() -> (
// -----
func.func f() {
}
// -----
func.func private @f() {
}
func.func private @f()
// -----
module @m {
// -----
module attributes {a}
// -----
module {
}
}
// -----
#a = 1
#a.b = 2 x
// -----
!t =
// -----
#loc = loc(
// -----
{-# dialect_resources: {
// -----
"my.op
// -----
sdy.mesh mesh = <[]>
// -----
sdy.mesh @m <[]>
// -----
"func.func"() ({
}) : () -> ()
// -----
"sdy.mesh"() : () -> ()
// -----
func.func @f(%a: !no) {
  return
}
// -----
func.func @f(%a: tensor<99999999999999999999xf32>) {
  return
}
// -----
func.func @f(%a: tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<tuple<i32>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>>) {
  return
}
// -----
"my.op"() {a = [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]} : () -> ()
// -----
return
// -----
%0 =
// -----
^bb0:
// -----
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>) {
  "a.use"(%0) : (i32) -> ()
  "a.use"(%0) : (i64) -> ()
  %0 = "a.def"() : () -> i32
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>) {
  "a.use"(%0) : (i64) -> ()
  %0 = "a.def"() : () -> i32
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>) {
  "a.use"(%0#3) : (i64) -> ()
  %0 = "a.def"() : () -> i64
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>) {
  "a.use"(%late) : (i64) -> ()
  %lated = "a.def"() : () -> i64
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>) {
  "a.use"(%0) : (i64) -> ()
  %0 = "a.def"() : () -> i64
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>) {
  %0 = stablehlo.custom_call @f(%a) {sdy.sharding = #sdy.sharding_per_value<[]>} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>) {
  %0 = stablehlo.custom_call @f(%a) {sdy.sharding = #sdy.sharding_per_value<[<@mesh, [{}, {}]>, <@mesh, [{}, {}]>]>} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>) {
  %0 = stablehlo.custom_call @f(%a) {sdy.sharding = #sdy.sharding_per_value<<@mesh, [{}, {}]>>} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>) {
  "stablehlo.while"(%a) ({ ^bb0(%x: tensor<8x8xf32>): stablehlo.return %x : tensor<8x8xf32> }) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>) {
  %0:2 = "stablehlo.while"(%a) ({}, {}) : (tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>)
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>) {
  %0 = "stablehlo.case"(%a) ({
 ^bb0(%x: i32):
 stablehlo.return %a : tensor<8x8xf32>
 }) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>) {
  %0 = "stablehlo.if"(%a) ({}, {}) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>) {
  %0 = stablehlo.reduce(%a init: %b) across dimensions = [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8xf32>
 reducer(%x tensor<f32>
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>) {
  %0 = stablehlo.reduce(%a init: %b) applies stablehlo.subtract across dimensions = [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8xf32>
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>) {
  %0 = sdy.named_computation<"n">(%a) (%c: tensor<8x8xf32>) {
 sdy.return %a : tensor<8x8xf32>
 } : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>) {
  func.call @mai(%a) : (tensor<8x8xf32>) -> ()
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>) {
  %0 = stablehlo.reshape %a : (tensor<8x8xf32>) -> (tensor<64xf32>, tensor<64xf32>)
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>) {
  %0 = stablehlo.select %a, %a, %b : tensor<8x8xf32>
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>) {
  stablehlo.tuple %a : tuple<tensor<8x8xf32>, i32>
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>) {
  %0 = stablehlo.constant {a dense<0> : tensor<i32>
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>) {
  %0 = stablehlo.constant #nowhere
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>) {
  %0 = chlo.scan(%a) inits (%b) dimension=x
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>) {
  %0 = func.call_indirect %a(%b) : tensor<8x8xf32>
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>) {
  %0 = stablehlo.optimization_barrier(
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>) {
  %0 = "a.b"(%a) <"x> : () -> ()
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>) {
  %0 = "a.b"(%a)[] : (tensor<8x8xf32>) -> i32
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>) {
  %0 = "a.b"(%a) ({}) ({}) : (tensor<8x8xf32>) -> i32
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x":(1)2, "x":(2)2}, {}]>}) {
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x":(3)2}, {}]>}) {
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x":(1)1}, {}]>}) {
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y"}p0, {"x"}p-1]>}) {
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", ?} {?}]>}) {
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}p2, {}], replicated={"x":(2)2, "x":(1)2}>}) {
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<mesh<["u"=2], device_ids=[1, 1]>, [{}, {}]>}) {
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<mesh<[], device_ids=[1]>, [{"u"}, {}]>}) {
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x",}, {}]>}) {
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [,]>}) {
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<"mesh", [{}, {}]>}) {
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, {}>}) {
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {}], replicated=["x"]>}) {
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"\q"}, {}]>}) {
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x":(1)2:3}, {}]>}) {
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>) {
  %0 = stablehlo.custom_call @f(%a) {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, j]) {i=8, j=8} permutation={k}>} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>) {
  %0 = stablehlo.custom_call @f(%a) {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, j]) {i=8, j=8} need_replication={i, i}>} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>) {
  %0 = stablehlo.custom_call @f(%a) {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, j]) {i=8, j=8} blocked_propagation={j, i}>} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>) {
  %0 = stablehlo.custom_call @f(%a) {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, j]) {i=8, i=8}>} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>) {
  %0 = stablehlo.custom_call @f(%a) {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, j]) {j=8, i=8}>} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>) {
  %0 = stablehlo.custom_call @f(%a) {sdy.sharding_rule = #sdy.op_sharding_rule<([i, k])->([i, k]) {i=8, k=8}>} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>) {
  %0 = stablehlo.custom_call @f(%a) {sdy.sharding_rule = #sdy.op_sharding_rule<[i, j]->[i, j] {i=8}>} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>) {
  %0 = stablehlo.custom_call @f(%a) {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])=>([i, j]) {i=8, j=8}>} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>) {
  %0 = stablehlo.custom_call @f(%a) {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, j]) {i=8, j=8},>} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>) {
  %0 = stablehlo.custom_call @f(%a) {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, 1]) {i=8, j=8}>} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>) {
  %0 = stablehlo.custom_call @f(%a) {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, j]) i=8>} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return
}
// -----
sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<8x8xf32>, %b: tensor<8x8xf32>) {
  %0 = stablehlo.custom_call @f(%a) {sdy.sharding_rule = #sdy.op_sharding_rule<([i, jz_1])->([i, jz_1]) {i=8, j=8}>} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return
}
