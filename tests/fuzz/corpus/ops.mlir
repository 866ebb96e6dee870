sdy.mesh @mesh = <["x"=2]>
func.func @f0(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = stablehlo.abs %a : tensor<4x4xf32>
  return %a : tensor<4x4xf32>
}
func.func @f5(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = stablehlo.add %a, %a : tensor<4x4xf32>
  return %a : tensor<4x4xf32>
}
func.func @f10(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = stablehlo.abs %a#0 : tensor<4x4xf32>
  return %a : tensor<4x4xf32>
}
func.func @f11(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = stablehlo.abs %a #0 : tensor<4x4xf32>
  return %a : tensor<4x4xf32>
}
func.func @f12(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = stablehlo.abs %a {b} : tensor<4x4xf32>
  return %a : tensor<4x4xf32>
}
func.func @f16(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = stablehlo.iota dim = 0 : tensor<4x4xf32>
  return %a : tensor<4x4xf32>
}
func.func @f20(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = stablehlo.transpose %a, dims = [1, 0] : (tensor<4x4xf32>) -> tensor<4x4xf32>
  return %a : tensor<4x4xf32>
}
func.func @f26(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = stablehlo.dot_general %a, %a, contracting_dims = [1] x [0] : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %a : tensor<4x4xf32>
}
func.func @f29(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = stablehlo.dot_general %a, %a, contracting_dims = [1] x [0], precision = [HIGH, HIGH] : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %a : tensor<4x4xf32>
}
func.func @f32(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = stablehlo.dot_general %a, %a, batching_dims = [0] x [0], contracting_dims = [1] x [1] : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4xf32>
  return %a : tensor<4x4xf32>
}
func.func @f34(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = stablehlo.slice %a [0:2, 0:4] : (tensor<4x4xf32>) -> tensor<2x4xf32>
  return %a : tensor<4x4xf32>
}
func.func @f35(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = stablehlo.slice %a [0:2:1, 0:4] : (tensor<4x4xf32>) -> tensor<2x4xf32>
  return %a : tensor<4x4xf32>
}
func.func @f38(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = stablehlo.compare EQ, %a, %a : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xi1>
  return %a : tensor<4x4xf32>
}
func.func @f40(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = stablehlo.compare EQ, %a, %a, FLOAT : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xi1>
  return %a : tensor<4x4xf32>
}
func.func @f42(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = stablehlo.concatenate %a, %a, dim = 0 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  return %a : tensor<4x4xf32>
}
func.func @f44(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = stablehlo.custom_call @f(%a) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  return %a : tensor<4x4xf32>
}
func.func @f48(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = stablehlo.custom_call @f() : () -> tensor<4x4xf32>
  return %a : tensor<4x4xf32>
}
func.func @f49(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = stablehlo.broadcast_in_dim %a, dims = [0, 1] : (tensor<4x4xf32>) -> tensor<4x4xf32>
  return %a : tensor<4x4xf32>
}
func.func @f51(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = stablehlo.reverse %a, dims = [0] : tensor<4x4xf32>
  return %a : tensor<4x4xf32>
}
func.func @f52(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = stablehlo.reverse %a, dims = [] : tensor<4x4xf32>
  return %a : tensor<4x4xf32>
}
func.func @f53(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = stablehlo.cholesky %a, lower = true : tensor<4x4xf32>
  return %a : tensor<4x4xf32>
}
func.func @f54(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = stablehlo.cholesky %a : tensor<4x4xf32>
  return %a : tensor<4x4xf32>
}
func.func @f57(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = stablehlo.reduce_precision %a, format = e5m10 : tensor<4x4xf32>
  return %a : tensor<4x4xf32>
}
func.func @f59(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = stablehlo.convert %a : (tensor<4x4xf32>) -> tensor<4x4xbf16>
  return %a : tensor<4x4xf32>
}
func.func @f62(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = stablehlo.constant dense<0.0> : tensor<4x4xf32>
  return %a : tensor<4x4xf32>
}
func.func @f65(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = stablehlo.constant {a} dense<0.0> : tensor<4x4xf32>
  return %a : tensor<4x4xf32>
}
func.func @f68(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = sdy.constant dense<0.0> : tensor<4x4xf32>
  return %a : tensor<4x4xf32>
}
func.func @f70(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = stablehlo.optimization_barrier %a : tensor<4x4xf32>
  return %a : tensor<4x4xf32>
}
func.func @f72(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = sdy.reshard %a <@mesh, [{}, {}]> : tensor<4x4xf32>
  return %a : tensor<4x4xf32>
}
func.func @f77(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = call @f0(%a) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  return %a : tensor<4x4xf32>
}
func.func @f79(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = func.call @f0(%a) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  return %a : tensor<4x4xf32>
}
func.func @f80(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = chlo.square %a : tensor<4x4xf32> -> tensor<4x4xf32>
  return %a : tensor<4x4xf32>
}
func.func @f82(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = chlo.broadcast_add %a, %a : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %a : tensor<4x4xf32>
}
func.func @f83(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = "foo.bar"(%a) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  return %a : tensor<4x4xf32>
}
func.func @f85(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = "foo.bar"(%a) <{a = 1}> : (tensor<4x4xf32>) -> tensor<4x4xf32>
  return %a : tensor<4x4xf32>
}
func.func @g0(%a: tensor<4x4xf32>, %s: tensor<f32>, %i: tensor<2xi32>, %j: tensor<i32>, %p: tensor<4x4xi1>, %q: tensor<i1>, %c: tensor<4x4xcomplex<f32>>, %k: tensor<2xi64>, %v: tensor<4x4x4xf32>) {
  %0 = stablehlo.dynamic_iota %i, dim = 0 : (tensor<2xi32>) -> tensor<?x?xf32>
  return
}
func.func @g1(%a: tensor<4x4xf32>, %s: tensor<f32>, %i: tensor<2xi32>, %j: tensor<i32>, %p: tensor<4x4xi1>, %q: tensor<i1>, %c: tensor<4x4xcomplex<f32>>, %k: tensor<2xi64>, %v: tensor<4x4x4xf32>) {
  %0 = stablehlo.compare LT, %a, %a, TOTALORDER : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xi1>
  return
}
func.func @g2(%a: tensor<4x4xf32>, %s: tensor<f32>, %i: tensor<2xi32>, %j: tensor<i32>, %p: tensor<4x4xi1>, %q: tensor<i1>, %c: tensor<4x4xcomplex<f32>>, %k: tensor<2xi64>, %v: tensor<4x4x4xf32>) {
  %0 = stablehlo.select %p, %a, %a : tensor<4x4xi1>, tensor<4x4xf32>
  return
}
func.func @g3(%a: tensor<4x4xf32>, %s: tensor<f32>, %i: tensor<2xi32>, %j: tensor<i32>, %p: tensor<4x4xi1>, %q: tensor<i1>, %c: tensor<4x4xcomplex<f32>>, %k: tensor<2xi64>, %v: tensor<4x4x4xf32>) {
  %0 = stablehlo.clamp %s, %a, %s : (tensor<f32>, tensor<4x4xf32>, tensor<f32>) -> tensor<4x4xf32>
  return
}
func.func @g4(%a: tensor<4x4xf32>, %s: tensor<f32>, %i: tensor<2xi32>, %j: tensor<i32>, %p: tensor<4x4xi1>, %q: tensor<i1>, %c: tensor<4x4xcomplex<f32>>, %k: tensor<2xi64>, %v: tensor<4x4x4xf32>) {
  %0 = stablehlo.dynamic_slice %a, %j, %j, sizes = [2, 2] : (tensor<4x4xf32>, tensor<i32>, tensor<i32>) -> tensor<2x2xf32>
  return
}
func.func @g5(%a: tensor<4x4xf32>, %s: tensor<f32>, %i: tensor<2xi32>, %j: tensor<i32>, %p: tensor<4x4xi1>, %q: tensor<i1>, %c: tensor<4x4xcomplex<f32>>, %k: tensor<2xi64>, %v: tensor<4x4x4xf32>) {
  %0 = stablehlo.dynamic_update_slice %a, %a, %j, %j : (tensor<4x4xf32>, tensor<4x4xf32>, tensor<i32>, tensor<i32>) -> tensor<4x4xf32>
  return
}
func.func @g6(%a: tensor<4x4xf32>, %s: tensor<f32>, %i: tensor<2xi32>, %j: tensor<i32>, %p: tensor<4x4xi1>, %q: tensor<i1>, %c: tensor<4x4xcomplex<f32>>, %k: tensor<2xi64>, %v: tensor<4x4x4xf32>) {
  %0 = stablehlo.broadcast %a, sizes = [2] : (tensor<4x4xf32>) -> tensor<2x4x4xf32>
  return
}
func.func @g7(%a: tensor<4x4xf32>, %s: tensor<f32>, %i: tensor<2xi32>, %j: tensor<i32>, %p: tensor<4x4xi1>, %q: tensor<i1>, %c: tensor<4x4xcomplex<f32>>, %k: tensor<2xi64>, %v: tensor<4x4x4xf32>) {
  %0 = stablehlo.dynamic_broadcast_in_dim %a, %i, dims = [0, 1] : (tensor<4x4xf32>, tensor<2xi32>) -> tensor<4x4xf32>
  return
}
func.func @g8(%a: tensor<4x4xf32>, %s: tensor<f32>, %i: tensor<2xi32>, %j: tensor<i32>, %p: tensor<4x4xi1>, %q: tensor<i1>, %c: tensor<4x4xcomplex<f32>>, %k: tensor<2xi64>, %v: tensor<4x4x4xf32>) {
  %0 = stablehlo.get_dimension_size %a, dim = 0 : (tensor<4x4xf32>) -> tensor<i32>
  return
}
func.func @g9(%a: tensor<4x4xf32>, %s: tensor<f32>, %i: tensor<2xi32>, %j: tensor<i32>, %p: tensor<4x4xi1>, %q: tensor<i1>, %c: tensor<4x4xcomplex<f32>>, %k: tensor<2xi64>, %v: tensor<4x4x4xf32>) {
  %0 = stablehlo.set_dimension_size %a, %j, dim = 0 : (tensor<4x4xf32>, tensor<i32>) -> tensor<4x4xf32>
  return
}
func.func private @dec(tensor<4x4xf32>) -> tensor<4x4xf32>
func.func @g10(%a: tensor<4x4xf32>, %s: tensor<f32>, %i: tensor<2xi32>, %j: tensor<i32>, %p: tensor<4x4xi1>, %q: tensor<i1>, %c: tensor<4x4xcomplex<f32>>, %k: tensor<2xi64>, %v: tensor<4x4x4xf32>) {
  %0 = stablehlo.composite "my.op" %a {decomposition = @dec} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  return
}
func.func @g11(%a: tensor<4x4xf32>, %s: tensor<f32>, %i: tensor<2xi32>, %j: tensor<i32>, %p: tensor<4x4xi1>, %q: tensor<i1>, %c: tensor<4x4xcomplex<f32>>, %k: tensor<2xi64>, %v: tensor<4x4x4xf32>) {
  %0 = stablehlo.dot %a, %a, precision = [DEFAULT, HIGHEST] : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return
}
func.func @g12(%a: tensor<4x4xf32>, %s: tensor<f32>, %i: tensor<2xi32>, %j: tensor<i32>, %p: tensor<4x4xi1>, %q: tensor<i1>, %c: tensor<4x4xcomplex<f32>>, %k: tensor<2xi64>, %v: tensor<4x4x4xf32>) {
  %0 = stablehlo.dot_general %a, %a, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT], algorithm = <lhs_precision_type = tf32, rhs_precision_type = tf32, accumulation_type = f32, lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = 1, allow_imprecise_accumulation = false> : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return
}
func.func @g13(%a: tensor<4x4xf32>, %s: tensor<f32>, %i: tensor<2xi32>, %j: tensor<i32>, %p: tensor<4x4xi1>, %q: tensor<i1>, %c: tensor<4x4xcomplex<f32>>, %k: tensor<2xi64>, %v: tensor<4x4x4xf32>) {
  %0 = stablehlo.einsum %a, %a, config = "ij,jk->ik" : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return
}
func.func @g14(%a: tensor<4x4xf32>, %s: tensor<f32>, %i: tensor<2xi32>, %j: tensor<i32>, %p: tensor<4x4xi1>, %q: tensor<i1>, %c: tensor<4x4xcomplex<f32>>, %k: tensor<2xi64>, %v: tensor<4x4x4xf32>) {
  %0 = stablehlo.unary_einsum %a, config = "ij->ji" : (tensor<4x4xf32>) -> tensor<4x4xf32>
  return
}
func.func @g15(%a: tensor<4x4xf32>, %s: tensor<f32>, %i: tensor<2xi32>, %j: tensor<i32>, %p: tensor<4x4xi1>, %q: tensor<i1>, %c: tensor<4x4xcomplex<f32>>, %k: tensor<2xi64>, %v: tensor<4x4x4xf32>) {
  %0 = stablehlo.fft %c, type = FFT, length = [4] : (tensor<4x4xcomplex<f32>>) -> tensor<4x4xcomplex<f32>>
  return
}
func.func @g16(%a: tensor<4x4xf32>, %s: tensor<f32>, %i: tensor<2xi32>, %j: tensor<i32>, %p: tensor<4x4xi1>, %q: tensor<i1>, %c: tensor<4x4xcomplex<f32>>, %k: tensor<2xi64>, %v: tensor<4x4x4xf32>) {
  %0 = stablehlo.pad %a, %s, low = [0, 1], high = [0, -1], interior = [0, 0] : (tensor<4x4xf32>, tensor<f32>) -> tensor<4x4xf32>
  return
}
func.func @g17(%a: tensor<4x4xf32>, %s: tensor<f32>, %i: tensor<2xi32>, %j: tensor<i32>, %p: tensor<4x4xi1>, %q: tensor<i1>, %c: tensor<4x4xcomplex<f32>>, %k: tensor<2xi64>, %v: tensor<4x4x4xf32>) {
  %0 = stablehlo.rng %s, %s, %k, distribution = UNIFORM : (tensor<f32>, tensor<f32>, tensor<2xi64>) -> tensor<4x4xf32>
  return
}
func.func @g18(%a: tensor<4x4xf32>, %s: tensor<f32>, %i: tensor<2xi32>, %j: tensor<i32>, %p: tensor<4x4xi1>, %q: tensor<i1>, %c: tensor<4x4xcomplex<f32>>, %k: tensor<2xi64>, %v: tensor<4x4x4xf32>) {
  %0 = stablehlo.reverse %a, dims = [0, 1] : tensor<4x4xf32>
  return
}
func.func @g19(%a: tensor<4x4xf32>, %s: tensor<f32>, %i: tensor<2xi32>, %j: tensor<i32>, %p: tensor<4x4xi1>, %q: tensor<i1>, %c: tensor<4x4xcomplex<f32>>, %k: tensor<2xi64>, %v: tensor<4x4x4xf32>) {
  %0 = stablehlo.reshape %a : (tensor<4x4xf32>) -> tensor<16xf32>
  return
}
func.func @g20(%a: tensor<4x4xf32>, %s: tensor<f32>, %i: tensor<2xi32>, %j: tensor<i32>, %p: tensor<4x4xi1>, %q: tensor<i1>, %c: tensor<4x4xcomplex<f32>>, %k: tensor<2xi64>, %v: tensor<4x4x4xf32>) {
  %0 = stablehlo.complex %a, %a : tensor<4x4xcomplex<f32>>
  return
}
func.func @g21(%a: tensor<4x4xf32>, %s: tensor<f32>, %i: tensor<2xi32>, %j: tensor<i32>, %p: tensor<4x4xi1>, %q: tensor<i1>, %c: tensor<4x4xcomplex<f32>>, %k: tensor<2xi64>, %v: tensor<4x4x4xf32>) {
  %0 = stablehlo.real %c : (tensor<4x4xcomplex<f32>>) -> tensor<4x4xf32>
  return
}
func.func @g22(%a: tensor<4x4xf32>, %s: tensor<f32>, %i: tensor<2xi32>, %j: tensor<i32>, %p: tensor<4x4xi1>, %q: tensor<i1>, %c: tensor<4x4xcomplex<f32>>, %k: tensor<2xi64>, %v: tensor<4x4x4xf32>) {
  %0 = stablehlo.is_finite %a : (tensor<4x4xf32>) -> tensor<4x4xi1>
  return
}
func.func @g23(%a: tensor<4x4xf32>, %s: tensor<f32>, %i: tensor<2xi32>, %j: tensor<i32>, %p: tensor<4x4xi1>, %q: tensor<i1>, %c: tensor<4x4xcomplex<f32>>, %k: tensor<2xi64>, %v: tensor<4x4x4xf32>) {
  %0 = stablehlo.tuple %a, %s : tuple<tensor<4x4xf32>, tensor<f32>>
  return
}
func.func @g24(%a: tensor<4x4xf32>, %s: tensor<f32>, %i: tensor<2xi32>, %j: tensor<i32>, %p: tensor<4x4xi1>, %q: tensor<i1>, %c: tensor<4x4xcomplex<f32>>, %k: tensor<2xi64>, %v: tensor<4x4x4xf32>) {
  %0 = stablehlo.create_token : !stablehlo.token
  return
}
func.func @g25(%a: tensor<4x4xf32>, %s: tensor<f32>, %i: tensor<2xi32>, %j: tensor<i32>, %p: tensor<4x4xi1>, %q: tensor<i1>, %c: tensor<4x4xcomplex<f32>>, %k: tensor<2xi64>, %v: tensor<4x4x4xf32>) {
  %0 = stablehlo.after_all : !stablehlo.token
  return
}
func.func @g26(%a: tensor<4x4xf32>, %s: tensor<f32>, %i: tensor<2xi32>, %j: tensor<i32>, %p: tensor<4x4xi1>, %q: tensor<i1>, %c: tensor<4x4xcomplex<f32>>, %k: tensor<2xi64>, %v: tensor<4x4x4xf32>) {
  %0 = stablehlo.replica_id : tensor<ui32>
  return
}
func.func @g27(%a: tensor<4x4xf32>, %s: tensor<f32>, %i: tensor<2xi32>, %j: tensor<i32>, %p: tensor<4x4xi1>, %q: tensor<i1>, %c: tensor<4x4xcomplex<f32>>, %k: tensor<2xi64>, %v: tensor<4x4x4xf32>) {
  %0 = stablehlo.convolution(%v, %v) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {stride = [1], pad = [[0, 0]], lhs_dilate = [1], rhs_dilate = [1], reverse = [false]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<4x4x4xf32>, tensor<4x4x4xf32>) -> tensor<4x1x4xf32>
  return
}
func.func @g28(%a: tensor<4x4xf32>, %s: tensor<f32>, %i: tensor<2xi32>, %j: tensor<i32>, %p: tensor<4x4xi1>, %q: tensor<i1>, %c: tensor<4x4xcomplex<f32>>, %k: tensor<2xi64>, %v: tensor<4x4x4xf32>) {
  %0 = stablehlo.reduce(%a init: %s) applies stablehlo.add across dimensions = [0] : (tensor<4x4xf32>, tensor<f32>) -> tensor<4xf32>
  return
}
func.func @g29(%a: tensor<4x4xf32>, %s: tensor<f32>, %i: tensor<2xi32>, %j: tensor<i32>, %p: tensor<4x4xi1>, %q: tensor<i1>, %c: tensor<4x4xcomplex<f32>>, %k: tensor<2xi64>, %v: tensor<4x4x4xf32>) {
  %0 = chlo.broadcast_select %p, %a, %a : (tensor<4x4xi1>, tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return
}
func.func @g30(%a: tensor<4x4xf32>, %s: tensor<f32>, %i: tensor<2xi32>, %j: tensor<i32>, %p: tensor<4x4xi1>, %q: tensor<i1>, %c: tensor<4x4xcomplex<f32>>, %k: tensor<2xi64>, %v: tensor<4x4x4xf32>) {
  %0 = chlo.next_after %a, %a : tensor<4x4xf32>, tensor<4x4xf32> -> tensor<4x4xf32>
  return
}
func.func @g32(%a: tensor<4x4xf32>, %s: tensor<f32>, %i: tensor<2xi32>, %j: tensor<i32>, %p: tensor<4x4xi1>, %q: tensor<i1>, %c: tensor<4x4xcomplex<f32>>, %k: tensor<2xi64>, %v: tensor<4x4x4xf32>) {
  %0 = arith.constant 1 : i32
  return
}
func.func @g33(%a: tensor<4x4xf32>, %s: tensor<f32>, %i: tensor<2xi32>, %j: tensor<i32>, %p: tensor<4x4xi1>, %q: tensor<i1>, %c: tensor<4x4xcomplex<f32>>, %k: tensor<2xi64>, %v: tensor<4x4x4xf32>) {
  %0 = arith.constant true
  return
}
func.func @g34(%a: tensor<4x4xf32>, %s: tensor<f32>, %i: tensor<2xi32>, %j: tensor<i32>, %p: tensor<4x4xi1>, %q: tensor<i1>, %c: tensor<4x4xcomplex<f32>>, %k: tensor<2xi64>, %v: tensor<4x4x4xf32>) {
  %0 = arith.constant dense<1.0> : tensor<4x4xf32>
  return
}
func.func @g35(%a: tensor<4x4xf32>, %s: tensor<f32>, %i: tensor<2xi32>, %j: tensor<i32>, %p: tensor<4x4xi1>, %q: tensor<i1>, %c: tensor<4x4xcomplex<f32>>, %k: tensor<2xi64>, %v: tensor<4x4x4xf32>) {
  %0 = arith.addf %a, %a : tensor<4x4xf32>
  return
}
func.func @g36(%a: tensor<4x4xf32>, %s: tensor<f32>, %i: tensor<2xi32>, %j: tensor<i32>, %p: tensor<4x4xi1>, %q: tensor<i1>, %c: tensor<4x4xcomplex<f32>>, %k: tensor<2xi64>, %v: tensor<4x4x4xf32>) {
  %0 = arith.extf %a : tensor<4x4xf32> to tensor<4x4xf64>
  return
}
func.func @g37(%a: tensor<4x4xf32>, %s: tensor<f32>, %i: tensor<2xi32>, %j: tensor<i32>, %p: tensor<4x4xi1>, %q: tensor<i1>, %c: tensor<4x4xcomplex<f32>>, %k: tensor<2xi64>, %v: tensor<4x4x4xf32>) {
  %0 = tensor.cast %a : tensor<4x4xf32> to tensor<?x?xf32>
  return
}
func.func @g38(%a: tensor<4x4xf32>, %s: tensor<f32>, %i: tensor<2xi32>, %j: tensor<i32>, %p: tensor<4x4xi1>, %q: tensor<i1>, %c: tensor<4x4xcomplex<f32>>, %k: tensor<2xi64>, %v: tensor<4x4x4xf32>) {
  %0 = stablehlo.constant dense<[[1.0, 2.0], [-3.0e-1, 0x7F800000]]> : tensor<2x2xf32>
  return
}
func.func @g39(%a: tensor<4x4xf32>, %s: tensor<f32>, %i: tensor<2xi32>, %j: tensor<i32>, %p: tensor<4x4xi1>, %q: tensor<i1>, %c: tensor<4x4xcomplex<f32>>, %k: tensor<2xi64>, %v: tensor<4x4x4xf32>) {
  %0 = stablehlo.constant dense<"0x0000803F"> : tensor<1xf32>
  return
}
func.func @g40(%a: tensor<4x4xf32>, %s: tensor<f32>, %i: tensor<2xi32>, %j: tensor<i32>, %p: tensor<4x4xi1>, %q: tensor<i1>, %c: tensor<4x4xcomplex<f32>>, %k: tensor<2xi64>, %v: tensor<4x4x4xf32>) {
  %0 = "stablehlo.while"(%a) ({ ^bb0(%x: tensor<4x4xf32>): "stablehlo.return"(%q) : (tensor<i1>) -> () }, { ^bb0(%x: tensor<4x4xf32>): "stablehlo.return"(%x) : (tensor<4x4xf32>) -> () }) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  return
}
func.func @g41(%a: tensor<4x4xf32>, %s: tensor<f32>, %i: tensor<2xi32>, %j: tensor<i32>, %p: tensor<4x4xi1>, %q: tensor<i1>, %c: tensor<4x4xcomplex<f32>>, %k: tensor<2xi64>, %v: tensor<4x4x4xf32>) {
  %0 = "stablehlo.case"(%j) ({ "stablehlo.return"(%a) : (tensor<4x4xf32>) -> () }, { "stablehlo.return"(%a) : (tensor<4x4xf32>) -> () }) : (tensor<i32>) -> tensor<4x4xf32>
  return
}
func.func @g42(%a: tensor<4x4xf32>, %s: tensor<f32>, %i: tensor<2xi32>, %j: tensor<i32>, %p: tensor<4x4xi1>, %q: tensor<i1>, %c: tensor<4x4xcomplex<f32>>, %k: tensor<2xi64>, %v: tensor<4x4x4xf32>) {
  %0 = "stablehlo.if"(%q) ({ "stablehlo.return"(%a) : (tensor<4x4xf32>) -> () }, { "stablehlo.return"(%a) : (tensor<4x4xf32>) -> () }) : (tensor<i1>) -> tensor<4x4xf32>
  return
}
func.func @g43(%a: tensor<4x4xf32>, %s: tensor<f32>, %i: tensor<2xi32>, %j: tensor<i32>, %p: tensor<4x4xi1>, %q: tensor<i1>, %c: tensor<4x4xcomplex<f32>>, %k: tensor<2xi64>, %v: tensor<4x4x4xf32>) {
  %0 = "stablehlo.gather"(%a, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [0], collapsed_slice_dims = [1], start_index_map = [1], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 4, 1>}> : (tensor<4x4xf32>, tensor<2xi32>) -> tensor<4x2xf32>
  return
}
func.func @g44(%a: tensor<4x4xf32>, %s: tensor<f32>, %i: tensor<2xi32>, %j: tensor<i32>, %p: tensor<4x4xi1>, %q: tensor<i1>, %c: tensor<4x4xcomplex<f32>>, %k: tensor<2xi64>, %v: tensor<4x4x4xf32>) {
  %0 = "stablehlo.sort"(%a) <{dimension = 0 : i64, is_stable = true}> ({ ^bb0(%x: tensor<f32>, %y: tensor<f32>): %1 = stablehlo.compare LT, %x, %y : (tensor<f32>, tensor<f32>) -> tensor<i1> stablehlo.return %1 : tensor<i1> }) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  return
}
func.func @g45(%a: tensor<4x4xf32>, %s: tensor<f32>, %i: tensor<2xi32>, %j: tensor<i32>, %p: tensor<4x4xi1>, %q: tensor<i1>, %c: tensor<4x4xcomplex<f32>>, %k: tensor<2xi64>, %v: tensor<4x4x4xf32>) {
  %0 = "stablehlo.all_reduce"(%a) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 0>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({ ^bb0(%x: tensor<f32>, %y: tensor<f32>): %1 = stablehlo.add %x, %y : tensor<f32> stablehlo.return %1 : tensor<f32> }) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  return
}
