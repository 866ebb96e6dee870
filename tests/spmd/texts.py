"""Programs of ops that JAX does not lower to, by name, as StableHLO."""

from __future__ import annotations


def program(arguments: str, result: str, body: str, more: str = "") -> str:
    """The module whose function takes ``arguments`` and returns the ``%r`` that ``body`` defines.

    ``more`` are further functions.
    """
    given = ", ".join(
        f"%arg{index}: tensor<{type_}>" for index, type_ in enumerate(arguments.split())
    )
    return (
        f"module @texts {{\n  func.func public @main({given}) -> (tensor<{result}>) {{\n"
        f"{body.strip()}\n    return %r : tensor<{result}>\n  }}\n{more}}}\n"
    )


def windows(attributes: str, operand: str, result: str) -> str:
    """Sums of integers over windows."""
    return f"""
    %z = stablehlo.constant dense<0> : tensor<i32>
    %r = "stablehlo.reduce_window"(%arg0, %z) <{{{attributes}}}> ({{
    ^bb0(%p: tensor<i32>, %q: tensor<i32>):
      %s = stablehlo.add %p, %q : tensor<i32>
      stablehlo.return %s : tensor<i32>
    }}) : (tensor<{operand}>, tensor<i32>) -> tensor<{result}>"""


def einsum(config: str, left: str, right: str, result: str) -> str:
    """A product of two tensors by an equation."""
    return program(
        f"{left} {right}",
        result,
        f'%r = "stablehlo.einsum"(%arg0, %arg1) <{{einsum_config = "{config}"}}>'
        f" : (tensor<{left}>, tensor<{right}>) -> tensor<{result}>",
    )


def unary_einsum(config: str, operand: str, result: str) -> str:
    """Sums and transpositions by an equation."""
    return program(
        operand,
        result,
        f'%r = "stablehlo.unary_einsum"(%arg0) <{{einsum_config = "{config}"}}>'
        f" : (tensor<{operand}>) -> tensor<{result}>",
    )


def index_select(operand: str, indices: str, result: str, dim: int, batch: int) -> str:
    """Slices along one dim."""
    return program(
        f"{operand} {indices}",
        result,
        '%r = "stablehlo.torch_index_select"(%arg0, %arg1)'
        f" <{{dim = {dim} : i64, batch_dims = {batch} : i64}}>"
        f" : (tensor<{operand}>, tensor<{indices}>) -> tensor<{result}>",
    )


def constants(**values: str) -> str:
    """Constants of integers."""
    lines = []
    for name, value in values.items():
        count = value.count(",") + 1
        lines.append(f"%{name} = stablehlo.constant dense<[{value}]> : tensor<{count}xi32>\n")
    return "".join(lines)


def scan(operands: str, given: str, dim: int, results: str, body: str, more: str = "") -> str:
    """The module of a scan of ``operands``, which returns the first of ``results``.

    ``given`` are its operands in its own syntax, ``body`` the region's text.
    """
    types = [", ".join(f"tensor<{each}>" for each in each.split()) for each in (operands, results)]
    result = results.split()[0]
    return program(
        operands,
        result,
        f"%0:{len(results.split())} = chlo.scan{given} dimension={dim} attributes {{{more}}} {{\n"
        f"{body.strip()}\n    }} : ({types[0]}) -> ({types[1]})\n"
        f"    %r = stablehlo.add %0#0, %0#0 : tensor<{result}>",
    )


TEXTS = {
    "map": program(
        "8x9xf32 8x9xf32",
        "8x9xi1",
        """
    %r = "stablehlo.map"(%arg0, %arg1) <{dimensions = array<i64: 0, 1>}> ({
    ^bb0(%p: tensor<f32>, %q: tensor<f32>):
      %two = stablehlo.constant dense<2.0> : tensor<f32>
      %s = stablehlo.multiply %p, %two : tensor<f32>
      %t = stablehlo.compare LT, %s, %q : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %t : tensor<i1>
    }) : (tensor<8x9xf32>, tensor<8x9xf32>) -> tensor<8x9xi1>""",
    ),
    "einsum": einsum("ab,bc->ac", "8x13xf32", "13x6xf32", "8x6xf32"),
    "einsum_turned": einsum("abc,dbc->cda", "5x12x4xf32", "6x12x4xf32", "4x6x5xf32"),
    "einsum_outer": einsum("a,b->ba", "9xf32", "6xf32", "6x9xf32"),
    "einsum_alone": einsum("ab,bc->c", "4x6xf32", "6x5xf32", "5xf32"),
    # Diagonals, and sums along a dim that one operand alone has.
    "einsum_diagonal": einsum("aab,bcc->ac", "8x8x6xf32", "6x5x5xf32", "8x5xf32"),
    "unary_trace": unary_einsum("aba->b", "8x6x8xf32", "6xf32"),
    "unary_sum": unary_einsum("abc->ca", "6x13x5xf32", "5x6xf32"),
    "unary_turn": unary_einsum("ab->ba", "8x6xi32", "6x8xi32"),
    "unary_same": unary_einsum("ab->ab", "8x6xf32", "8x6xf32"),
    "chlo_broadcast": program(
        "8xi32 6x8xi32 1x8xi32",
        "6x8xi32",
        """
    %s = "chlo.broadcast_add"(%arg0, %arg1) {broadcast_dimensions = array<i64: 1>}
        : (tensor<8xi32>, tensor<6x8xi32>) -> tensor<6x8xi32>
    %t = chlo.broadcast_compare %s, %arg2 {comparison_direction = #chlo<comparison_direction LT>}
        : (tensor<6x8xi32>, tensor<1x8xi32>) -> tensor<6x8xi1>
    %u = "chlo.constant_like"(%s) {value = 3 : i32} : (tensor<6x8xi32>) -> tensor<6x8xi32>
    %r = chlo.broadcast_select %t, %arg2, %u
        : (tensor<6x8xi1>, tensor<1x8xi32>, tensor<6x8xi32>) -> tensor<6x8xi32>""",
    ),
    "scan": scan(
        "8x9x6xf32 8x6xf32",
        "(%arg0) inits (%arg1)",
        1,
        "8x9x6xf32 8x6xf32",
        """
    ^bb0(%p: tensor<8x6xf32>, %q: tensor<8x6xf32>):
      %half = stablehlo.constant dense<0.5> : tensor<8x6xf32>
      %two = stablehlo.constant dense<2.0> : tensor<f32>
      %twos = stablehlo.broadcast_in_dim %two, dims = [] : (tensor<f32>) -> tensor<8x6xf32>
      %s = stablehlo.multiply %q, %half : tensor<8x6xf32>
      %t = stablehlo.multiply %p, %twos : tensor<8x6xf32>
      %u = stablehlo.add %s, %t : tensor<8x6xf32>
      stablehlo.return %u, %u : tensor<8x6xf32>, tensor<8x6xf32>""",
    ),
    "scan_of_pairs": scan(
        "7x10xi32 7x10xi32 7xi32 7xi32",
        "(%arg0, %arg1) inits (%arg2, %arg3)",
        1,
        "7x10xi32 7x10xi32 7xi32 7xi32",
        """
    ^bb0(%p: tensor<7xi32>, %i: tensor<7xi32>, %q: tensor<7xi32>, %j: tensor<7xi32>):
      %c = stablehlo.compare GT, %p, %q : (tensor<7xi32>, tensor<7xi32>) -> tensor<7xi1>
      %m = stablehlo.select %c, %p, %q : tensor<7xi1>, tensor<7xi32>
      %k = stablehlo.select %c, %i, %j : tensor<7xi1>, tensor<7xi32>
      stablehlo.return %k, %m, %m, %k
          : tensor<7xi32>, tensor<7xi32>, tensor<7xi32>, tensor<7xi32>""",
        "is_reverse = true",
    ),
    # Its body mixes the elements of a slice.
    "scan_of_turns": scan(
        "10x6xi32 6xi32",
        "(%arg0) inits (%arg1)",
        0,
        "10x6xi32 6xi32",
        """
    ^bb0(%p: tensor<6xi32>, %q: tensor<6xi32>):
      %s = stablehlo.reverse %q, dims = [0] : tensor<6xi32>
      %t = stablehlo.add %p, %s : tensor<6xi32>
      stablehlo.return %t, %t : tensor<6xi32>, tensor<6xi32>""",
    ),
    "batch_norm": program(
        "6x12x8xf32 12xf32 12xf32",
        "12xf32",
        """
    %n, %m, %v = "stablehlo.batch_norm_training"(%arg0, %arg1, %arg2)
        <{epsilon = 1.0e-3 : f32, feature_index = 1 : i64}>
        : (tensor<6x12x8xf32>, tensor<12xf32>, tensor<12xf32>)
        -> (tensor<6x12x8xf32>, tensor<12xf32>, tensor<12xf32>)
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %s = stablehlo.abs %n : tensor<6x12x8xf32>
    %t = stablehlo.reduce(%s init: %zero) applies stablehlo.maximum across dimensions = [0, 2]
        : (tensor<6x12x8xf32>, tensor<f32>) -> tensor<12xf32>
    %u = stablehlo.add %t, %m : tensor<12xf32>
    %r = stablehlo.add %u, %v : tensor<12xf32>""",
    ),
    "batch_norm_grad": program(
        "6x12xf32 12xf32 12xf32 6x12xf32",
        "6x12xf32",
        """
    %w = stablehlo.multiply %arg2, %arg2 : tensor<12xf32>
    %g, %s, %o = "stablehlo.batch_norm_grad"(%arg0, %arg1, %arg2, %w, %arg3)
        <{epsilon = 1.0e-3 : f32, feature_index = 1 : i64}>
        : (tensor<6x12xf32>, tensor<12xf32>, tensor<12xf32>, tensor<12xf32>, tensor<6x12xf32>)
        -> (tensor<6x12xf32>, tensor<12xf32>, tensor<12xf32>)
    %t = stablehlo.subtract %s, %o : tensor<12xf32>
    %u = stablehlo.broadcast_in_dim %t, dims = [1] : (tensor<12xf32>) -> tensor<6x12xf32>
    %r = stablehlo.add %g, %u : tensor<6x12xf32>""",
    ),
    "index_select": index_select("12x6xf32", "5xi32", "5x6xf32", 0, 0),
    "index_select_batch": index_select("4x3x10x2xf32", "4x5xi32", "4x3x5x2xf32", 2, 1),
    "broadcast": program(
        "6xf32",
        "8x3x6xf32",
        "%r = stablehlo.broadcast %arg0, sizes = [8, 3] : (tensor<6xf32>) -> tensor<8x3x6xf32>",
    ),
    # Sizes are an operand that nobody knows.
    "dynamic_broadcast": program(
        "8xf32 2xi32",
        "8x12xf32",
        """
    %s = stablehlo.abs %arg1 : tensor<2xi32>
    %t = stablehlo.subtract %s, %s : tensor<2xi32>
    %u = stablehlo.constant dense<[8, 12]> : tensor<2xi32>
    %v = stablehlo.add %t, %u : tensor<2xi32>
    %r = stablehlo.dynamic_broadcast_in_dim %arg0, %v, dims = [0]
        : (tensor<8xf32>, tensor<2xi32>) -> tensor<8x12xf32>""",
    ),
    "dynamic_iota": program(
        "7x12xi32",
        "7x12xi32",
        constants(s="7, 12")
        + """
    %i = stablehlo.dynamic_iota %s, dim = 1 : (tensor<2xi32>) -> tensor<7x12xi32>
    %r = stablehlo.add %i, %arg0 : tensor<7x12xi32>""",
    ),
    "dynamic_reshape": program(
        "8x12xf32",
        "8x4x3xf32",
        constants(s="8, 4, 3")
        + """
    %r = stablehlo.dynamic_reshape %arg0, %s
        : (tensor<8x12xf32>, tensor<3xi32>) -> tensor<8x4x3xf32>""",
    ),
    "dynamic_pad": program(
        "8x5xf32",
        "11x8xf32",
        constants(low="2, -1", high="1, 0", inside="0, 1")
        + """
    %z = stablehlo.constant dense<3.0> : tensor<f32>
    %r = stablehlo.dynamic_pad %arg0, %z, %low, %high, %inside : (tensor<8x5xf32>, tensor<f32>,
        tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<11x8xf32>""",
    ),
    "dynamic_gather": program(
        "10x6xf32 5x1xi32",
        "5x2x6xf32",
        constants(s="2, 6")
        + """
    %r = "stablehlo.dynamic_gather"(%arg0, %arg1, %s) <{
        dimension_numbers = #stablehlo.gather<offset_dims = [1, 2], start_index_map = [0],
        index_vector_dim = 1>}>
        : (tensor<10x6xf32>, tensor<5x1xi32>, tensor<2xi32>) -> tensor<5x2x6xf32>""",
    ),
    "real_dynamic_slice": program(
        "12x8xf32",
        "4x7xf32",
        constants(low="2, 1", high="10, 8", step="2, 1")
        + """
    %r = stablehlo.real_dynamic_slice %arg0, %low, %high, %step : (tensor<12x8xf32>,
        tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<4x7xf32>""",
    ),
    "dynamic_conv": program(
        "2x9x4xf32 3x4x6xf32",
        "2x10x6xf32",
        """
    %s = stablehlo.constant dense<[[1, 2]]> : tensor<1x2xi32>
    %r = "stablehlo.dynamic_conv"(%arg0, %arg1, %s) <{batch_group_count = 1 : i64,
        dimension_numbers = #stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>,
        feature_group_count = 1 : i64}>
        : (tensor<2x9x4xf32>, tensor<3x4x6xf32>, tensor<1x2xi32>) -> tensor<2x10x6xf32>""",
    ),
    # The size of the whole tensor, not of a shard.
    "dimension_size": program(
        "8x13xi32",
        "8x13xi32",
        """
    %s = stablehlo.get_dimension_size %arg0, dim = 1 : (tensor<8x13xi32>) -> tensor<i32>
    %t = stablehlo.broadcast_in_dim %s, dims = [] : (tensor<i32>) -> tensor<8x13xi32>
    %u = stablehlo.add %arg0, %t : tensor<8x13xi32>
    %n = stablehlo.constant dense<13> : tensor<i32>
    %r = stablehlo.set_dimension_size %u, %n, dim = 1
        : (tensor<8x13xi32>, tensor<i32>) -> tensor<8x13xi32>""",
    ),
    # Windows that reach over a whole dim, but are no cumulative sums.
    "windows_along_two_dims": program(
        "8x6xi32",
        "8x2xi32",
        windows(
            "window_dimensions = array<i64: 8, 3>, window_strides = array<i64: 1, 2>, "
            "padding = dense<[[7, 0], [0, 0]]> : tensor<2x2xi64>",
            "8x6xi32",
            "8x2xi32",
        ),
    ),
    "dilated_windows": program(
        "9x6xi32",
        "9x6xi32",
        windows(
            "window_dimensions = array<i64: 5, 1>, window_dilations = array<i64: 2, 1>, "
            "padding = dense<[[8, 0], [0, 0]]> : tensor<2x2xi64>",
            "9x6xi32",
            "9x6xi32",
        ),
    ),
    # No index is for a dim that windows do not have: they are at its first element.
    "scatter_at_zero": program(
        "8x12xi32 5x1xi32 5xi32",
        "8x12xi32",
        """
    %r = "stablehlo.scatter"(%arg0, %arg1, %arg2) <{
        scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0, 1],
        scatter_dims_to_operand_dims = [1], index_vector_dim = 1>}> ({
    ^bb0(%p: tensor<i32>, %q: tensor<i32>):
      %s = stablehlo.add %p, %q : tensor<i32>
      stablehlo.return %s : tensor<i32>
    }) : (tensor<8x12xi32>, tensor<5x1xi32>, tensor<5xi32>) -> tensor<8x12xi32>""",
    ),
    "sum_of_parts": program(
        "3x8xi32 5x8xi32",
        "8xi32",
        """
    %c = stablehlo.constant dense<5> : tensor<i32>
    %0 = stablehlo.concatenate %arg0, %arg1, dim = 0
        : (tensor<3x8xi32>, tensor<5x8xi32>) -> tensor<8x8xi32>
    %r = stablehlo.reduce(%0 init: %c) applies stablehlo.add across dimensions = [0]
        : (tensor<8x8xi32>, tensor<i32>) -> tensor<8xi32>""",
    ),
    "composite": program(
        "8x6xf32",
        "6xf32",
        """
    %r = stablehlo.composite "my.sum" %arg0 {decomposition = @sum}
        : (tensor<8x6xf32>) -> tensor<6xf32>""",
        """  func.func private @sum(%a: tensor<8x6xf32>) -> tensor<6xf32> {
    %zero = stablehlo.constant dense<0.0> : tensor<f32>
    %0 = stablehlo.reduce(%a init: %zero) applies stablehlo.add across dimensions = [0]
        : (tensor<8x6xf32>, tensor<f32>) -> tensor<6xf32>
    return %0 : tensor<6xf32>
  }
""",
    ),
    # The function is sharded as its call is; the composite's operand lies otherwise.
    "composite_called": program(
        "8x6xi32",
        "8x6xi32",
        """
    %0 = stablehlo.composite "my.turn" %arg0 {decomposition = @turn}
        : (tensor<8x6xi32>) -> tensor<6x8xi32>
    %1 = func.call @turn(%arg0) : (tensor<8x6xi32>) -> tensor<6x8xi32>
    %2 = stablehlo.add %0, %1 : tensor<6x8xi32>
    %r = stablehlo.transpose %2, dims = [1, 0] : (tensor<6x8xi32>) -> tensor<8x6xi32>""",
        """  func.func private @turn(%a: tensor<8x6xi32>) -> tensor<6x8xi32> {
    %0 = stablehlo.transpose %a, dims = [1, 0] : (tensor<8x6xi32>) -> tensor<6x8xi32>
    return %0 : tensor<6x8xi32>
  }
""",
    ),
}

SIMULATED = (
    "batch_norm",
    "batch_norm_grad",
    "dynamic_conv",
    "einsum_alone",
    "einsum_diagonal",
    "sum_of_parts",
    "unary_same",
    "unary_sum",
    "unary_trace",
    "unary_turn",
)
"""Programs that XLA cannot read, or of which it adds up the initial value for each part; those of
one device are right there."""

SCANNED = """
sdy.mesh @mesh = <["x"=4]>
func.func @main(%w: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>},
                %a: tensor<4x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>})
    -> (tensor<4x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0:3 = stablehlo.while(%i = %zero, %k = %w, %c = %a)
      : tensor<i32>, tensor<8x8xf32>, tensor<4x8xf32>
  cond {
    %end = stablehlo.constant dense<3> : tensor<i32>
    %1 = stablehlo.compare LT, %i, %end : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %1 = stablehlo.add %i, %one : tensor<i32>
    %2 = sdy.sharding_constraint %k <@mesh, [{}, {}]> : tensor<8x8xf32>
    %3 = stablehlo.dot_general %c, %2, contracting_dims = [1] x [0]
        : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    stablehlo.return %1, %k, %3 : tensor<i32>, tensor<8x8xf32>, tensor<4x8xf32>
  }
  return %0#2 : tensor<4x8xf32>
}"""
"""A loop that gathers what it carries and does not change."""
