"""Work of each family of ops, by hand: the counts are those that XLA's cost analysis has."""

from __future__ import annotations

import pytest
import shardcore
from shardcore import Cost

F = "tensor<8x16xf32>"
"""128 elements."""
BODY = """({{
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    %s = stablehlo.{op} %x, %y : tensor<f32>
    stablehlo.return %s : tensor<f32>
}})"""


def cost_of(op: str, *types: str) -> Cost:
    """The cost of one op on arguments ``%0``, ``%1``, ... of ``types``; its result is last."""
    *operands, result = types
    args = ", ".join(f"%{index}: {ty}" for index, ty in enumerate(operands))
    text = f"func.func @main({args}) -> {result} {{\n  %r = {op}\n  return %r : {result}\n}}"
    return shardcore.cost(shardcore.Module.parse(text), compiler="none")


def conv(attributes: str, lhs: str, rhs: str, result: str) -> Cost:
    dims = "dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]"
    op = f"stablehlo.convolution(%0, %1) {dims}, {attributes} : ({lhs}, {rhs}) -> {result}"
    return cost_of(op, lhs, rhs, result)


def custom_call(target: str, *types: str) -> str:
    operands = ", ".join(f"%{index}" for index in range(len(types) - 1))
    return f"stablehlo.custom_call @{target}({operands}) : ({', '.join(types[:-1])}) -> {types[-1]}"


@pytest.mark.parametrize(
    ("op", "flops", "transcendentals"),
    [
        (f"stablehlo.add %0, %0 : {F}", 128, 0),
        (f"stablehlo.negate %0 : {F}", 128, 0),
        (f"stablehlo.clamp %0, %0, %0 : {F}", 128, 0),
        (f"stablehlo.reduce_precision %0, format = e5m10 : {F}", 128, 0),
        (f"stablehlo.exponential %0 : {F}", 0, 128),
        (f"stablehlo.power %0, %0 : {F}", 0, 128),
        (f"stablehlo.rsqrt %0 : {F}", 0, 128),
        (f"stablehlo.tanh %0 : {F}", 0, 128),
        (f"stablehlo.logistic %0 : {F}", 0, 128),
        (f"chlo.erf %0 : {F} -> {F}", 0, 128),
        (f"chlo.erf_inv %0 : {F} -> {F}", 37 * 128, 2 * 128),
        (f"stablehlo.reverse %0, dims = [0] : {F}", 0, 0),
    ],
)
def test_elementwise_ops_count_their_elements(op: str, flops: int, transcendentals: int) -> None:
    cost = cost_of(op, F, F)
    assert (cost.flops, cost.transcendentals, cost.uncounted) == (flops, transcendentals, ())


def test_quantized_elements_take_the_bytes_that_are_stored() -> None:
    quantized = "tensor<8x16x!quant.uniform<i8<-127:127>:f32, 2.000000e+00>>"
    cost = cost_of(f"stablehlo.add %0, %0 : {quantized}", quantized, quantized)
    assert (cost.argument_bytes, cost.output_bytes, cost.peak_bytes) == (128, 128, 256)
    assert (cost.flops, cost.hbm_bytes, cost.uncounted) == (128, 256, ())


def test_a_dot_is_two_flops_for_each_pair() -> None:
    lhs, rhs, result = "tensor<2x8x16xf32>", "tensor<2x16x4xf32>", "tensor<2x8x4xf32>"
    op = (
        "stablehlo.dot_general %0, %1, batching_dims = [0] x [0], contracting_dims = [2] x [1] "
        f": ({lhs}, {rhs}) -> {result}"
    )
    assert cost_of(op, lhs, rhs, result).flops == 2 * 2 * 8 * 4 * 16
    op = "stablehlo.dot %0, %1 : (tensor<8x16xf32>, tensor<16xf32>) -> tensor<8xf32>"
    assert cost_of(op, F, "tensor<16xf32>", "tensor<8xf32>").flops == 2 * 8 * 16


def test_a_convolution_counts_what_meets() -> None:
    image, kernel = "tensor<2x8x8x4xf32>", "tensor<3x3x4x8xf32>"
    plain = "window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}"
    # Each of 6 x 6 windows meets the whole kernel.
    valid = conv(plain, image, kernel, "tensor<2x6x6x8xf32>")
    assert valid.flops == 2 * (6 * 6) * (3 * 3) * 4 * 8 * 2
    # With padding the outer places of the kernel meet 7 of 8 positions: 8 + 7 + 7.
    padded = conv(
        plain.replace("{}", "{pad = [[1, 1], [1, 1]]}", 1), image, kernel, image[:-6] + "8xf32>"
    )
    assert padded.flops == 2 * 22 * 22 * 4 * 8 * 2 == 61952
    # Strides, holes in the image (8 rows become 15), holes in the kernel (3 columns reach 5).
    attributes = (
        "window = {pad = [[2, 2], [1, 1]], lhs_dilate = [2, 1], rhs_dilate = [1, 2]} "
        "{batch_group_count = 1 : i64, feature_group_count = 1 : i64}"
    )
    assert conv(attributes, image, kernel, "tensor<2x17x6x8xf32>").flops == 49152
    grouped = (
        "window = {pad = [[1, 1], [1, 1]]} "
        "{batch_group_count = 1 : i64, feature_group_count = 2 : i64}"
    )
    assert conv(grouped, image, "tensor<3x3x2x8xf32>", "tensor<2x8x8x8xf32>").flops == 30976
    batched = grouped.replace("batch_group_count = 1", "batch_group_count = 2").replace(
        "feature_group_count = 2", "feature_group_count = 1"
    )
    assert conv(batched, image, kernel, "tensor<1x8x8x8xf32>").flops == 30976


def test_functions_of_reductions_count_as_often_as_they_run() -> None:
    scalar = "tensor<f32>"
    reduce = (
        "stablehlo.reduce(%0 init: %1) applies stablehlo.add across dimensions = [1] "
        f": ({F}, {scalar}) -> tensor<8xf32>"
    )
    # 16 elements are added up 8 times, and then the initial value, which may be another than 0.
    assert cost_of(reduce, F, scalar, "tensor<8xf32>").flops == 128 - 8 + 8
    window = (
        f'"stablehlo.reduce_window"(%0, %1) <{{window_dimensions = array<i64: 2, 4>, '
        f"window_strides = array<i64: 2, 4>}}> {BODY.format(op='maximum')} "
        f": ({F}, {scalar}) -> tensor<4x4xf32>"
    )
    assert cost_of(window, F, scalar, "tensor<4x4xf32>").flops == (2 * 4 - 1) * 16
    scatter = (
        '"stablehlo.scatter"(%0, %1, %2) <{scatter_dimension_numbers = #stablehlo.scatter<'
        "update_window_dims = [1], inserted_window_dims = [0], "
        "scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> "
        f"{BODY.format(op='add')} : ({F}, tensor<5x1xi32>, tensor<5x16xf32>) -> {F}"
    )
    assert cost_of(scatter, F, "tensor<5x1xi32>", "tensor<5x16xf32>", F).flops == 5 * 16


def test_a_choice_by_windows_compares_and_sums() -> None:
    select = BODY.format(op="compare GE,").replace(
        ": tensor<f32>\n", ": (tensor<f32>, tensor<f32>) -> tensor<i1>\n", 1
    )
    select = select.replace("return %s : tensor<f32>", "return %s : tensor<i1>")
    scatter = BODY.format(op="add")
    op = (
        f'"stablehlo.select_and_scatter"(%0, %1, %2) <{{window_dimensions = array<i64: 2, 2>, '
        f"window_strides = array<i64: 2, 2>}}> ({select[1:-1]}, {scatter[1:-1]}) "
        f": ({F}, tensor<4x8xf32>, tensor<f32>) -> {F}"
    )
    assert cost_of(op, F, "tensor<4x8xf32>", "tensor<f32>", F).flops == 32 * 3 + 32


def test_sorting_takes_n_log_n_comparisons() -> None:
    less = BODY.format(op="compare LT,").replace(
        ": tensor<f32>\n", ": (tensor<f32>, tensor<f32>) -> tensor<i1>\n", 1
    )
    less = less.replace("return %s : tensor<f32>", "return %s : tensor<i1>")
    op = f'"stablehlo.sort"(%0) <{{dimension = 1 : i64, is_stable = true}}> {less} : ({F}) -> {F}'
    assert cost_of(op, F, F).flops == 128 * 7


@pytest.mark.parametrize(
    ("operand", "kind", "lengths", "result", "flops"),
    [
        ("8x16xcomplex<f32>", "FFT", "16", "8x16xcomplex<f32>", 8 * 128 * 4),
        ("8x16xf32", "RFFT", "16", "8x9xcomplex<f32>", 8 * 128 * 4),
        ("8x9xcomplex<f32>", "IRFFT", "16", "8x16xf32", 8 * 72 * 4),
        ("8x16xcomplex<f32>", "FFT", "8, 16", "8x16xcomplex<f32>", 8 * 128 * 3 * 4),
        ("8x12xcomplex<f32>", "FFT", "12", "8x12xcomplex<f32>", 8 * 96 * 3),
    ],
)
def test_fourier_transforms(operand: str, kind: str, lengths: str, result: str, flops: int) -> None:
    types = f"tensor<{operand}>", f"tensor<{result}>"
    op = f"stablehlo.fft %0, type = {kind}, length = [{lengths}] : ({types[0]}) -> {types[1]}"
    assert cost_of(op, *types).flops == flops


def test_linear_algebra() -> None:
    square, b = "tensor<3x6x6xf32>", "tensor<3x6x4xf32>"
    assert (
        cost_of(f"stablehlo.cholesky %0, lower = true : {square}", square, square).flops == 3 * 72
    )
    solve = (
        '"stablehlo.triangular_solve"(%0, %1) <{left_side = true, lower = true, '
        "transpose_a = #stablehlo<transpose NO_TRANSPOSE>, unit_diagonal = false}> "
        f": ({square}, {b}) -> {b}"
    )
    assert cost_of(solve, square, b, b).flops == 2 * 3 * 6 * 6 * 4


@pytest.mark.parametrize(
    ("target", "flops"),
    [
        ("lapack_spotrf_ffi", 72),
        ("Cholesky", 72),
        ("cusolver_potrf_ffi", 72),
        ("lapack_dsyevd_ffi", 9 * 216),
        ("Eigh", 9 * 216),
        ("lapack_sgesdd_ffi", (4 + 22) * 216),
        ("lapack_cgeev_ffi", 25 * 216),
        ("hipsolver_geqrf_ffi", 288),
        ("Qr", 288),
        ("lapack_sgetrf_ffi", 144),
        ("Sharding", 0),
    ],
)
def test_custom_calls_of_linear_algebra(target: str, flops: int) -> None:
    square = "tensor<6x6xf32>"
    cost = cost_of(custom_call(target, square, square), square, square)
    assert (cost.flops, cost.uncounted) == (flops, ())


def test_random_numbers_are_transcendental() -> None:
    state, bits = "tensor<2xui64>", "tensor<8x16xui32>"
    text = f"""func.func @main(%0: {state}) -> {bits} {{
      %s, %r = stablehlo.rng_bit_generator %0, algorithm = THREE_FRY
        : ({state}) -> ({state}, {bits})
      return %r : {bits}
    }}"""
    assert shardcore.cost(shardcore.Module.parse(text)).transcendentals == 128


def test_ops_without_a_cost_are_listed() -> None:
    cost = cost_of(f'"my.op"(%0) : ({F}) -> {F}', F, F)
    [row] = cost.uncounted
    assert (row.name, row.reason, row.count) == ("my.op", "its cost is not known", 1)
    assert cost.flops == 0
    assert "not counted: 1 x my.op, its cost is not known" in str(cost)
    [row] = cost_of(custom_call("my_kernel", F, F), F, F).uncounted
    assert (row.name, row.reason) == ("stablehlo.custom_call @my_kernel", "its target is not known")


def test_sums_do_not_overflow() -> None:
    huge = f"tensor<{2**40}x{2**40}xf32>"
    cost = cost_of(f"stablehlo.add %0, %0 : {huge}", huge, huge)
    assert cost.flops == 2**80
    assert cost.argument_bytes == 2**82
    rows, columns = f"tensor<{2**40}x{2**20}xf32>", f"tensor<{2**20}x{2**40}xf32>"
    dims = "contracting_dims = [1] x [0]"
    op = f"stablehlo.dot_general %0, %1, {dims} : ({rows}, {columns}) -> {huge}"
    assert cost_of(op, rows, columns, huge).flops == 2 * 2**100


def test_types_without_a_known_size_count_no_bytes() -> None:
    odd = "tensor<8x!quant.calibrated<f32<-1.0:1.0>>>"
    cost = cost_of(f"stablehlo.add %0, %0 : {odd}", odd, odd)
    assert (cost.flops, cost.argument_bytes, cost.peak_bytes) == (8, 0, 0)
