"""Aliases in the places that custom syntax has for attributes of one kind."""

from __future__ import annotations

_WRONG = ('loc("a")', "1 : i32", "array<i32: 1, 0>", "f32", "unit", "{a = 1}", "[1, 0]")
_NUMBERS = ("1", "0 : i64", "1 : i64", "0x1", "2.0")
_ORDERS = ("array<i64: 1, 0>", "array<i64: 0, 1>", "array<i64: 0, 0>")

_OPS = {
    "stablehlo.compare #x, %a, %a : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xi1>": (
        "#stablehlo<comparison_direction LT>", "#stablehlo.comparison_direction<GE>",
        "#stablehlo<comparison_type FLOAT>",
    ),
    "stablehlo.compare LT, %a, %a, #x : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xi1>": (
        "#stablehlo<comparison_type FLOAT>", "#stablehlo.comparison_type<TOTALORDER>",
        "#stablehlo<comparison_direction LT>",
    ),
    "stablehlo.transpose %a, dims = #x : (tensor<8x8xf32>) -> tensor<8x8xf32>": _ORDERS,
    "stablehlo.reverse %a, dims = #x : tensor<8x8xf32>": _ORDERS,
    "stablehlo.broadcast_in_dim %a, dims = #x : (tensor<8x8xf32>) -> tensor<8x8xf32>": _ORDERS,
    "stablehlo.iota dim = #x : tensor<8x8xf32>": _NUMBERS,
    "stablehlo.concatenate %a, %a, dim = #x"
    " : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x16xf32>": _NUMBERS,
    "stablehlo.get_dimension_size %a, dim = #x : (tensor<8x8xf32>) -> tensor<i32>": _NUMBERS,
    "stablehlo.cholesky %a, lower = #x : tensor<8x8xf32>": ("true", "false", "1 : i1", "1"),
    "stablehlo.fft %c, type = #x, length = [8]"
    " : (tensor<8xcomplex<f32>>) -> tensor<8xcomplex<f32>>": (
        "#stablehlo<fft_type FFT>", "#stablehlo.fft_type<IFFT>",
        "#stablehlo<rng_distribution UNIFORM>",
    ),
    "stablehlo.rng %s, %s, %i, distribution = #x"
    " : (tensor<f32>, tensor<f32>, tensor<1xi64>) -> tensor<8xf32>": (
        "#stablehlo<rng_distribution UNIFORM>", "#stablehlo.rng_distribution<NORMAL>",
        "#stablehlo<fft_type FFT>",
    ),
}  # fmt: skip

_CASES = (
    'stablehlo.compare "%s", %%a, %%a : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xi1>',
    'stablehlo.compare LT, %%a, %%a, "%s" : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xi1>',
    'stablehlo.fft %%c, type = "%s", length = [8]'
    " : (tensor<8xcomplex<f32>>) -> tensor<8xcomplex<f32>>",
    'stablehlo.dot_general %%a, %%a, contracting_dims = [1] x [0], precision = ["%s", HIGH]'
    " : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>",
)
_WORDS = ("LT", "FLOAT", "FFT", "HIGHEST", "lt", "")
_BITS = ("true", "false", "0", "1", "-1", "2", "-2", "01", "0x1", "0x2", '"true"', "[true]", "unit")
_BIT = "stablehlo.cholesky %%a, lower = %s : tensor<8x8xf32>"
_TOP = (
    "%v, k = 3)", "%v, k = 3, is_stable = true)", "%v, k = 3) {is_stable = true}",
    "%v, k = 3) {is_stable}", "%v, k = 9)", '%v, k = "3")',
)  # fmt: skip

_PROGRAM = """#x = %s
func.func @f(%%a: tensor<8x8xf32>, %%c: tensor<8xcomplex<f32>>, %%s: tensor<f32>, %%i: tensor<1xi64>) {
  %%0 = %s
  return
}
"""  # noqa: E501
_TOP_PROGRAM = """func.func @f(%%v: tensor<8xf32>) {
  %%0, %%1 = chlo.top_k(%s : tensor<8xf32> -> (tensor<3xf32>, tensor<3xi32>)
  return
}
"""


def programs() -> list[str]:
    """Each definition in each place; cases in quotes, bits, and attributes that an op has not."""
    found = [_PROGRAM % (given, op) for op, near in _OPS.items() for given in (*near, *_WRONG)]
    ops = [case % word for case in _CASES for word in _WORDS]
    ops += [_BIT % bit for bit in _BITS]
    found += [_PROGRAM % ("unit", op.replace("%%", "%")) for op in ops]
    return [*found, *(_TOP_PROGRAM % top for top in _TOP)]
