"""At least one op of each kind, most of them sound."""

from __future__ import annotations

from tests.shardy.verification.case import Case, Region

F = "tensor<4x8xf32>"
V = "tensor<4xf32>"
S = "tensor<f32>"
B = "tensor<i1>"
I = "tensor<4x8xi32>"  # noqa: E741
C = "tensor<4x8xcomplex<f32>>"
TOKEN = "!stablehlo.token"

GROUPS = "dense<[[0, 1]]> : tensor<1x2xi64>"
CHANNEL = "#stablehlo.channel_handle<handle = 1, type = 1>"


def stablehlo(
    op: str, operands: str | tuple[str, ...], results: str | tuple[str, ...], /, **attributes: str
) -> Case:
    return Case(f"stablehlo.{op}", _tuple(operands), _tuple(results), attributes)


def chlo(
    op: str, operands: str | tuple[str, ...], results: str | tuple[str, ...], /, **attributes: str
) -> Case:
    return Case(f"chlo.{op}", _tuple(operands), _tuple(results), attributes)


def _tuple(types: str | tuple[str, ...]) -> tuple[str, ...]:
    return (types,) if isinstance(types, str) else types


def within(case: Case, *regions: Region) -> Case:
    return Case(case.name, case.operands, case.results, case.attributes, regions)


def known(case: Case, **constants: str) -> Case:
    """``case`` with operands of known value, by number: ``a1="dense<1>"``."""
    values = {int(name[1:]): value for name, value in constants.items()}
    return Case(case.name, case.operands, case.results, case.attributes, case.regions, values)


def reducer(ty: str = S, op: str = "add") -> Region:
    text = f"%y = stablehlo.{op} %x0, %x1 : {ty}"
    return Region((ty, ty), (text,), (("%y", ty),))


def compare(ty: str = S, pairs: int = 1) -> Region:
    text = f"%y = stablehlo.compare LT, %x0, %x1 : ({ty}, {ty}) -> {B}"
    return Region((ty,) * (2 * pairs), (text,), (("%y", B),))


def returns(*values: tuple[str, str], args: tuple[str, ...] = ()) -> Region:
    return Region(args, (), values)


UNARY_FLOAT = ["ceil", "floor", "round_nearest_afz", "round_nearest_even"]
ANALYTIC = [
    "cbrt", "cosine", "exponential", "exponential_minus_one", "log", "log_plus_one", "logistic",
    "rsqrt", "sine", "sqrt", "tan", "tanh",
]  # fmt: skip
BINARY = [
    "add", "atan2", "divide", "maximum", "minimum", "multiply", "power", "remainder", "subtract",
]  # fmt: skip
BITS = ["and", "or", "xor", "shift_left", "shift_right_arithmetic", "shift_right_logical"]


def elementwise() -> list[Case]:
    accuracy = (
        "#stablehlo.result_accuracy<atol = 1.0, rtol = 0.0, ulps = 1, "
        "mode = #stablehlo.result_accuracy_mode<TOLERANCE>>"
    )
    return [
        *(stablehlo(name, F, F) for name in [*UNARY_FLOAT, "abs", "negate", "sign", "convert"]),
        *(stablehlo(name, F, F, result_accuracy=accuracy) for name in ANALYTIC),
        *(stablehlo(name, (F, F), F) for name in BINARY),
        *(stablehlo(name, (I, I), I) for name in BITS),
        *(stablehlo(name, I, I) for name in ["count_leading_zeros", "popcnt", "not"]),
        stablehlo("abs", C, F),
        stablehlo("real", C, F),
        stablehlo("imag", C, F),
        stablehlo("is_finite", F, "tensor<4x8xi1>"),
        stablehlo("complex", (F, F), C),
        stablehlo(
            "compare", (F, F), "tensor<4x8xi1>",
            comparison_direction="#stablehlo<comparison_direction EQ>",
            compare_type="#stablehlo<comparison_type FLOAT>",
        ),
        stablehlo("select", (B, F, F), F),
        stablehlo("select", ("tensor<4x8xi1>", F, F), F),
        stablehlo("clamp", (S, F, F), F),
        stablehlo("reduce_precision", F, F, exponent_bits="5 : i32", mantissa_bits="10 : i32"),
    ]  # fmt: skip


def shapes() -> list[Case]:
    return [
        stablehlo("iota", (), I, iota_dimension="1 : i64"),
        stablehlo("constant", (), I, value="dense<1> : tensor<4x8xi32>"),
        stablehlo("reshape", F, "tensor<2x16xf32>"),
        stablehlo("reshape", "tensor<?x8xf32>", "tensor<2x16xf32>"),
        stablehlo("transpose", F, "tensor<8x4xf32>", permutation="array<i64: 1, 0>"),
        stablehlo("broadcast", V, "tensor<2x4xf32>", broadcast_sizes="array<i64: 2>"),
        stablehlo("broadcast_in_dim", V, F, broadcast_dimensions="array<i64: 0>"),
        stablehlo("broadcast_in_dim", "tensor<1x8xf32>", "tensor<2x4x8xf32>",
                  broadcast_dimensions="array<i64: 1, 2>"),
        stablehlo("bitcast_convert", F, I),
        stablehlo("bitcast_convert", F, "tensor<4x8x2xi16>"),
        stablehlo("get_dimension_size", F, "tensor<i32>", dimension="1 : i64"),
        stablehlo("set_dimension_size", (F, "tensor<i32>"),
                  "tensor<4x?xf32, #stablehlo.bounds<?, 8>>", dimension="1 : i64"),
        known(stablehlo("set_dimension_size", (F, "tensor<i32>"), F, dimension="1 : i64"),
              a1="dense<8>"),
        stablehlo("replica_id", (), "tensor<ui32>"),
        stablehlo("partition_id", (), "tensor<ui32>"),
        stablehlo("slice", F, "tensor<2x4xf32>", start_indices="array<i64: 1, 0>",
                  limit_indices="array<i64: 3, 8>", strides="array<i64: 1, 2>"),
        stablehlo("dynamic_slice", (F, "tensor<i32>", "tensor<i32>"), "tensor<2x4xf32>",
                  slice_sizes="array<i64: 2, 4>"),
        stablehlo("dynamic_update_slice", (F, "tensor<2x4xf32>", "tensor<i32>", "tensor<i32>"), F),
        stablehlo("pad", (F, S), "tensor<7x9xf32>", edge_padding_low="array<i64: 0, 1>",
                  edge_padding_high="array<i64: 0, 0>", interior_padding="array<i64: 1, 0>"),
        stablehlo("concatenate", (F, "tensor<4x2xf32>"), "tensor<4x10xf32>", dimension="1 : i64"),
        stablehlo("reverse", F, F, dimensions="array<i64: 0, 1>"),
    ]  # fmt: skip


def contractions() -> list[Case]:
    dot = (
        "#stablehlo.dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], "
        "lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [1]>"
    )
    algorithm = (
        "#stablehlo.dot_algorithm<lhs_precision_type = tf32, rhs_precision_type = tf32, "
        "accumulation_type = f32, lhs_component_count = 1, rhs_component_count = 1, "
        "num_primitive_operations = 1, allow_imprecise_accumulation = false>"
    )
    precision = "[#stablehlo<precision DEFAULT>, #stablehlo<precision DEFAULT>]"
    batched = ("tensor<2x4x8xf32>", "tensor<2x8x3xf32>")
    ragged = (
        "#chlo.ragged_dot<lhs_batching_dimensions = [], rhs_batching_dimensions = [], "
        "lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1], "
        "lhs_ragged_dimensions = [0], rhs_group_dimensions = [0]>"
    )
    convolution = {
        "window_strides": "array<i64: 1, 2>", "padding": "dense<1> : tensor<2x2xi64>",
        "lhs_dilation": "array<i64: 1, 1>", "rhs_dilation": "array<i64: 1, 1>",
        "window_reversal": "array<i1: false, false>",
        "dimension_numbers": "#stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>",
        "feature_group_count": "1 : i64", "batch_group_count": "1 : i64",
        "precision_config": precision,
    }  # fmt: skip
    dynamic = {name: text for name, text in convolution.items() if name != "padding"}
    image, kernel = "tensor<2x8x8x4xf32>", "tensor<3x3x4x5xf32>"
    return [
        stablehlo("dot", (F, "tensor<8x3xf32>"), "tensor<4x3xf32>", precision_config=precision),
        stablehlo("dot_general", batched, "tensor<2x4x3xf32>", dot_dimension_numbers=dot,
                  precision_config=precision, algorithm=algorithm),
        stablehlo("einsum", (F, "tensor<8x3xf32>"), "tensor<4x3xf32>", einsum_config='"ab,bc->ac"'),
        stablehlo("unary_einsum", F, V, einsum_config='"ab->a"'),
        stablehlo("convolution", (image, kernel), "tensor<2x8x4x5xf32>", **convolution),
        known(stablehlo("dynamic_conv", (image, kernel, "tensor<2x2xi64>"), "tensor<2x8x4x5xf32>",
                        **dynamic), a2="dense<1>"),
        chlo("ragged_dot", ("tensor<11x5xf32>", "tensor<3x5x7xf32>", "tensor<3xi64>"),
             "tensor<11x7xf32>", ragged_dot_dimension_numbers=ragged,
             precision_config="[#chlo<precision DEFAULT>, #chlo<precision DEFAULT>]"),
    ]  # fmt: skip


def indexing() -> list[Case]:
    gather = (
        "#stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [1], "
        "operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1, 2], "
        "index_vector_dim = 2>"
    )
    scatter = (
        "#stablehlo.scatter<update_window_dims = [2], inserted_window_dims = [1], "
        "input_batching_dims = [0], scatter_indices_batching_dims = [0], "
        "scatter_dims_to_operand_dims = [1, 2], index_vector_dim = 2>"
    )
    data, indices, slices = "tensor<2x6x8xf32>", "tensor<2x5x2xi32>", "tensor<2x5x3xf32>"
    return [
        stablehlo("gather", (data, indices), slices, dimension_numbers=gather,
                  slice_sizes="array<i64: 1, 1, 3>", indices_are_sorted="true"),
        known(stablehlo("dynamic_gather", (data, indices, "tensor<3xi64>"), slices,
                        dimension_numbers=gather, indices_are_sorted="true"),
              a2="dense<[1, 1, 3]>"),
        within(stablehlo("scatter", (data, indices, slices), data,
                         scatter_dimension_numbers=scatter, indices_are_sorted="true",
                         unique_indices="false"), reducer()),
        stablehlo("torch_index_select", (F, "tensor<2xi32>"), "tensor<2x8xf32>", dim="0 : i64",
                  batch_dims="0 : i64"),
    ]  # fmt: skip


def regions() -> list[Case]:
    window = {
        "window_dimensions": "array<i64: 2, 3>", "window_strides": "array<i64: 1, 2>",
        "base_dilations": "array<i64: 1, 1>", "window_dilations": "array<i64: 1, 1>",
        "padding": "dense<1> : tensor<2x2xi64>",
    }  # fmt: skip
    spread = {name: window[name] for name in ("window_dimensions", "window_strides", "padding")}
    two = Region(
        (S, "tensor<i32>", S, "tensor<i32>"),
        (f"%y = stablehlo.add %x0, %x2 : {S}", "%z = stablehlo.add %x1, %x3 : tensor<i32>"),
        (("%y", S), ("%z", "tensor<i32>")),
    )
    return [
        within(stablehlo("reduce", (F, S), V, dimensions="array<i64: 1>"), reducer()),
        within(stablehlo("reduce", (F, I, S, "tensor<i32>"), (V, "tensor<4xi32>"),
                         dimensions="array<i64: 1>"), two),
        within(stablehlo("map", (F, F), F, dimensions="array<i64: 0, 1>"), reducer()),
        within(stablehlo("reduce_window", (F, S), "tensor<5x4xf32>", **window), reducer()),
        within(stablehlo("select_and_scatter", (F, "tensor<5x4xf32>", S), F, **spread),
               compare(), reducer()),
        within(stablehlo("sort", (F, I), (F, I), dimension="1 : i64", is_stable="true"),
               Region((S, S, "tensor<i32>", "tensor<i32>"), compare().ops, (("%y", B),))),
        within(stablehlo("if", B, S),
               Region((), ("%c = stablehlo.constant dense<1.0> : tensor<f32>",), (("%c", S),)),
               Region((), ("%c = stablehlo.constant dense<2.0> : tensor<f32>",), (("%c", S),))),
        within(stablehlo("case", "tensor<i32>", S),
               Region((), ("%c = stablehlo.constant dense<1.0> : tensor<f32>",), (("%c", S),)),
               Region((), ("%c = stablehlo.constant dense<2.0> : tensor<f32>",), (("%c", S),)),
               Region((), ("%c = stablehlo.constant dense<3.0> : tensor<f32>",), (("%c", S),))),
        within(stablehlo("while", (F, B), (F, B)),
               returns(("%x1", B), args=(F, B)), returns(("%x0", F), ("%x1", B), args=(F, B))),
        stablehlo("optimization_barrier", (F, TOKEN), (F, TOKEN)),
    ]  # fmt: skip


def collectives() -> list[Case]:
    shared = {"replica_groups": GROUPS, "channel_handle": CHANNEL}
    more = {**shared, "use_global_device_ids": "unit"}
    permute = "dense<[[0, 1], [1, 0]]> : tensor<2x2xi64>"
    body = Region(
        (F,),
        (
            f'%y = "stablehlo.collective_permute"(%x0) {{source_target_pairs = {permute}}} '
            f": ({F}) -> {F}",
        ),
        (("%y", F),),
    )
    return [
        stablehlo("all_gather", F, "tensor<4x16xf32>", all_gather_dim="1 : i64", **more),
        within(stablehlo("all_reduce", (F, V), (F, V), **more), reducer()),
        within(stablehlo("reduce_scatter", F, "tensor<4x4xf32>", scatter_dimension="1 : i64",
                         **more), reducer()),
        stablehlo("all_to_all", F, "tensor<2x16xf32>", split_dimension="0 : i64",
                  concat_dimension="1 : i64", split_count="2 : i64", **shared),
        stablehlo("collective_broadcast", F, F, **shared),
        stablehlo("collective_permute", F, F, source_target_pairs=permute, channel_handle=CHANNEL),
        stablehlo("cross-replica-sum", F, F, replica_groups=GROUPS),
        within(stablehlo("async_start", F, f"!stablehlo.future<{F}>"), body),
        stablehlo("async_done", f"!stablehlo.future<{F}>", F),
    ]  # fmt: skip


def calls() -> list[Case]:
    host = "#stablehlo.channel_handle<handle = 1, type = 2>"
    alias = (
        "[#stablehlo.output_operand_alias<output_tuple_indices = [], operand_index = 0, "
        "operand_tuple_indices = []>]"
    )
    layouts = "[dense<[1, 0]> : tensor<2xindex>]"
    composite = stablehlo("composite", F, F, name='"my.op"', composite_attributes="{n = 1 : i64}",
                          decomposition="@g", version="1 : i32")  # fmt: skip
    function = f"func.func private @g({F}) -> {F}"
    return [
        stablehlo("custom_call", F, F, call_target_name='"target"', has_side_effect="true",
                  backend_config='"config"', api_version="2 : i32", called_computations="[@f]",
                  operand_layouts=layouts, result_layouts=layouts, output_operand_aliases=alias),
        stablehlo("custom_call", (F, TOKEN), (), call_target_name='"target"',
                  backend_config="{a = 1 : i64}", api_version="4 : i32"),
        Case(composite.name, composite.operands, composite.results, composite.attributes,
             more=function),
        stablehlo("tuple", (F, TOKEN), f"tuple<{F}, {TOKEN}>"),
        stablehlo("get_tuple_element", f"tuple<{F}, {TOKEN}>", F, index="0 : i32"),
        stablehlo("create_token", (), TOKEN),
        stablehlo("after_all", (TOKEN, TOKEN), TOKEN),
        stablehlo("infeed", TOKEN, (F, TOKEN), infeed_config='"c"', layout="[[0, 1]]"),
        stablehlo("outfeed", (F, TOKEN), TOKEN, outfeed_config='"c"'),
        stablehlo("send", (F, TOKEN), TOKEN, channel_handle=host, is_host_transfer="true",
                  source_target_pairs="dense<[[0, 1]]> : tensor<1x2xi64>"),
        stablehlo("recv", TOKEN, (F, TOKEN), channel_handle=CHANNEL, is_host_transfer="false",
                  source_target_pairs="dense<[[0, 1]]> : tensor<1x2xi64>"),
    ]  # fmt: skip


def algebra() -> list[Case]:
    square, norm = "tensor<2x4x4xf32>", {"epsilon": "0.001 : f32", "feature_index": "1 : i64"}
    features = "tensor<8xf32>"
    no = "#stablehlo<transpose NO_TRANSPOSE>"
    return [
        stablehlo("cholesky", square, square, lower="true"),
        stablehlo("triangular_solve", (square, "tensor<2x4x3xf32>"), "tensor<2x4x3xf32>",
                  left_side="true", lower="true", unit_diagonal="false", transpose_a=no),
        stablehlo("fft", F, "tensor<4x5xcomplex<f32>>", fft_type="#stablehlo<fft_type RFFT>",
                  fft_length="array<i64: 8>"),
        stablehlo("fft", C, C, fft_type="#stablehlo<fft_type IFFT>", fft_length="array<i64: 4, 8>"),
        stablehlo("fft", "tensor<4x5xcomplex<f32>>", F, fft_type="#stablehlo<fft_type IRFFT>",
                  fft_length="array<i64: 4, 8>"),
        known(stablehlo("rng", (S, S, "tensor<2xi64>"), F,
                        rng_distribution="#stablehlo<rng_distribution NORMAL>"),
              a2="dense<[4, 8]>"),
        stablehlo("rng", (S, S, "tensor<2xi64>"), "tensor<?x?xf32>",
                  rng_distribution="#stablehlo<rng_distribution UNIFORM>"),
        stablehlo("rng_bit_generator", "tensor<2xui64>", ("tensor<2xui64>", "tensor<4x8xui32>"),
                  rng_algorithm="#stablehlo<rng_algorithm THREE_FRY>"),
        stablehlo("batch_norm_grad", (F, features, features, features, F), (F, features, features),
                  **norm),
        stablehlo("batch_norm_inference", (F, *(features,) * 4), F, **norm),
        stablehlo("batch_norm_training", (F, features, features), (F, features, features), **norm),
    ]  # fmt: skip


def dynamic() -> list[Case]:
    two = "tensor<2xi64>"
    return [
        known(stablehlo("dynamic_iota", two, I, iota_dimension="1 : i64"), a0="dense<[4, 8]>"),
        stablehlo("dynamic_iota", two, "tensor<?x8xi32>", iota_dimension="1 : i64"),
        known(stablehlo("dynamic_reshape", (F, two), "tensor<2x16xf32>"), a1="dense<[2, 16]>"),
        stablehlo("dynamic_reshape", (F, two), "tensor<?x16xf32>"),
        known(stablehlo("dynamic_broadcast_in_dim", (V, two), F,
                        broadcast_dimensions="array<i64: 0>",
                        known_expanding_dimensions="array<i64>",
                        known_nonexpanding_dimensions="array<i64: 0>"), a1="dense<[4, 8]>"),
        known(stablehlo("dynamic_pad", (F, S, two, two, two), "tensor<7x9xf32>"),
              a2="dense<[0, 1]>", a3="dense<0>", a4="dense<[1, 0]>"),
        stablehlo("dynamic_pad", (F, S, two, two, two), "tensor<?x?xf32>"),
        stablehlo("real_dynamic_slice", (F, two, two, two), "tensor<?x?xf32>"),
    ]  # fmt: skip


CHLO_ANALYTIC = [
    "acos", "acosh", "asin", "asinh", "atan", "atanh", "bessel_i1e", "conj", "cosh", "digamma",
    "erf", "erf_inv", "erfc", "lgamma", "sinh", "square", "tan",
]  # fmt: skip
CHLO_BROADCAST = [
    "add", "atan2", "divide", "maximum", "minimum", "multiply", "next_after", "polygamma", "power",
    "remainder", "shift_left", "shift_right_arithmetic", "shift_right_logical", "subtract", "zeta",
]  # fmt: skip


def functions() -> list[Case]:
    dims = {"broadcast_dimensions": "array<i64: 0>"}
    one = "tensor<1x8xf32>"
    scan = Region(
        ("tensor<8xf32>", "tensor<8xf32>"),
        ("%y = stablehlo.add %x0, %x1 : tensor<8xf32>",),
        (("%y", "tensor<8xf32>"), ("%y", "tensor<8xf32>")),
    )
    segments = {"operandSegmentSizes": "array<i32: 1, 1>", "resultSegmentSizes": "array<i32: 1, 1>"}
    return [
        *(chlo(name, F, F) for name in CHLO_ANALYTIC),
        chlo("_asin_acos_kernel", C, C),
        *(chlo(name, F, "tensor<4x8xi1>") for name in ["is_inf", "is_neg_inf", "is_pos_inf"]),
        *(chlo(name, (F, F), F) for name in ["next_after", "polygamma", "zeta"]),
        chlo("mulhi", (I, I), I),
        chlo("constant", (), I, value="dense<1> : tensor<4x8xi32>"),
        chlo("constant_like", F, F, value="1.0 : f32"),
        chlo("top_k", F, ("tensor<4x3xf32>", "tensor<4x3xi32>"), k="3 : i64"),
        *(chlo(f"broadcast_{name}", (F, one), F) for name in CHLO_BROADCAST),
        chlo("broadcast_add", (V, F), F, **dims),
        *(chlo(f"broadcast_{name}", (I, "tensor<8xi32>"), I) for name in ["and", "or", "xor"]),
        chlo("broadcast_complex", (F, one), C),
        chlo("broadcast_compare", (F, one), "tensor<4x8xi1>",
             comparison_direction="#chlo<comparison_direction EQ>",
             compare_type="#chlo<comparison_type FLOAT>"),
        chlo("broadcast_select", ("tensor<8xi1>", F, one), F),
        within(chlo("scan", (F, "tensor<8xf32>"), (F, "tensor<8xf32>"), dimension="0 : i64",
                    is_reverse="false", is_associative="true", **segments), scan),
    ]  # fmt: skip


def quantized() -> list[Case]:
    """Ops of types that the reference does not have: no case of these is sound."""
    return [stablehlo(name, F, F) for name in ("uniform_quantize", "uniform_dequantize")]


def sound() -> list[Case]:
    """All that are sound."""
    families = [
        elementwise, shapes, contractions, indexing, regions, collectives, calls, algebra, dynamic,
        functions,
    ]  # fmt: skip
    return [case for family in families for case in family()]
