"""Programs with ops of StableHLO that ``sdy-convert-global-to-local`` lowers in its own way."""

from __future__ import annotations

from shardcore.shardy import default_shardy

KEPT_OF_CALLS = "no_inline, " if default_shardy() == "0.10" else ""
"""An attribute of calls that the pass keeps; newer versions of MLIR have no syntax for it."""

MESH = 'sdy.mesh @mesh = <["x"=2, "y"=4]>'


def sharding(dims: str) -> str:
    """The attribute of an argument or result."""
    return f"{{sdy.sharding = #sdy.sharding<@mesh, {dims}>}}"


def of_op(*dims: str) -> str:
    """The attribute of an op with results sharded like this."""
    listed = ", ".join(f"<@mesh, {each}>" for each in dims)
    return f"sdy.sharding = #sdy.sharding_per_value<[{listed}]>"


def program(
    arguments: list[tuple[str, str]], body: str, *results: tuple[str, str], meshes: str = MESH
) -> str:
    """A function with arguments and results of these types and shardings."""
    given = ", ".join(
        f"%a{number}: tensor<{shape}> {sharding(dims)}"
        for number, (shape, dims) in enumerate(arguments)
    )
    returned = ", ".join(f"tensor<{shape}> {sharding(dims)}" for shape, dims in results)
    types = ", ".join(f"tensor<{shape}>" for shape, _ in results)
    values = ", ".join(f"%r{number}" for number in range(len(results)))
    return (
        f"{meshes}\nfunc.func @main({given}) -> ({returned}) {{\n{body.strip()}\n"
        f"return {values} : {types}\n}}\n"
    )


def reduction(name: str, element: str, count: int = 1) -> str:
    """The region of a scatter of ``count`` tensors."""
    before = [f"%p{number}" for number in range(count)]
    after = [f"%q{number}" for number in range(count)]
    args = ", ".join(f"{name}: tensor<{element}>" for name in before + after)
    ops = "\n".join(
        f"%s{number} = stablehlo.{name} %p{number}, %q{number} : tensor<{element}>"
        for number in range(count)
    )
    values = ", ".join(f"%s{number}" for number in range(count))
    types = ", ".join([f"tensor<{element}>"] * count)
    return f"({{\n^bb0({args}):\n{ops}\nstablehlo.return {values} : {types}\n}})"


def all_reduce(axes: str, value: str, result: tuple[str, str]) -> str:
    """The sum of ``value`` along ``axes``."""
    shape, dims = result
    return (
        f"\n%r0 = sdy.all_reduce {{{axes}}} {value} out_sharding=<@mesh, {dims}> : tensor<{shape}>"
    )


def gather(
    operand: tuple[str, str],
    indices: tuple[str, str],
    result: tuple[str, str],
    numbers: str,
    sizes: str,
    reduced: str = "",
) -> str:
    """A gather, whose result is reduced along the axes ``reduced``, if there are any."""
    name = "%g" if reduced else "%r0"
    body = (
        f'{name} = "stablehlo.gather"(%a0, %a1) <{{dimension_numbers = '
        f"#stablehlo.gather<{numbers}>, slice_sizes = array<i64: {sizes}>}}> "
        f"{{{of_op(result[1])}}} : (tensor<{operand[0]}>, tensor<{indices[0]}>) -> "
        f"tensor<{result[0]}>"
    )
    if reduced:
        body += all_reduce(reduced, "%g", result)
    return program([operand, indices], body, result)


def scatter(
    operand: tuple[str, str],
    indices: tuple[str, str],
    updates: tuple[str, str],
    numbers: str,
    kind: str = "add",
    reduced: str = "",
) -> str:
    """A scatter, whose result is reduced along the axes ``reduced``, if there are any."""
    name = "%s" if reduced else "%r0"
    element = operand[0].rsplit("x", 1)[-1]
    body = (
        f'{name} = "stablehlo.scatter"(%a0, %a1, %a2) <{{scatter_dimension_numbers = '
        f"#stablehlo.scatter<{numbers}>}}> {reduction(kind, element)} {{{of_op(operand[1])}}} : "
        f"(tensor<{operand[0]}>, tensor<{indices[0]}>, tensor<{updates[0]}>) -> "
        f"tensor<{operand[0]}>"
    )
    if reduced:
        body += all_reduce(reduced, "%s", operand)
    return program([operand, indices, updates], body, operand)


def convolution(
    lhs: tuple[str, str],
    rhs: tuple[str, str],
    result: tuple[str, str],
    groups: tuple[int, int] = (1, 1),
    reduced: str = "",
    padding: int = 1,
) -> str:
    """A convolution with 3x3 kernels, padded to the size of its input."""
    name = "%c" if reduced else "%r0"
    body = (
        f"{name} = stablehlo.convolution(%a0, %a1) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->"
        f"[b, 0, 1, f], window = {{stride = [1, 1], pad = {[[padding] * 2] * 2}}} "
        f"{{feature_group_count = {groups[0]} : i64, batch_group_count = {groups[1]} : i64, "
        f"{of_op(result[1])}}} : (tensor<{lhs[0]}>, tensor<{rhs[0]}>) -> tensor<{result[0]}>"
    )
    if reduced:
        body += all_reduce(reduced, "%c", result)
    return program([lhs, rhs], body, result)


def pad(shape: str, result: str, dims: str, edges: str) -> str:
    """A pad between tensors that are sharded alike."""
    body = (
        "%f = stablehlo.constant dense<1.0> : tensor<f32>\n"
        f"%r0 = stablehlo.pad %a0, %f, {edges} {{{of_op(dims)}}} : "
        f"(tensor<{shape}>, tensor<f32>) -> tensor<{result}>"
    )
    return program([(shape, dims)], body, (result, dims))


ROWS = "offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1"
INTO = (
    "update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], "
    "index_vector_dim = 1"
)
BATCHES = (
    "{window}inserted_window_dims = [{collapsed}], input_batching_dims = [0], "
    "scatter_indices_batching_dims = [{at}], scatter_dims_to_operand_dims = [{collapsed}], "
    "index_vector_dim = 2"
)
TWO = (
    "offset_dims = [1], collapsed_slice_dims = [0, 1], start_index_map = [1, 0], "
    "index_vector_dim = 1"
)
PERMUTED = 'sdy.mesh @mesh = <["x"=4]>\nsdy.mesh @other = <["x"=4], device_ids=[2, 0, 3, 1]>'

PROGRAMS = {
    "two_exchanges": program(
        [("4x8x8x2xf32", '[{}, {"x"}, {"y"}, {}]')],
        '%r0 = sdy.all_to_all [{"x"}: 1->3, {"y"}: 2->0] %a0 '
        'out_sharding=<@mesh, [{"y"}, {}, {}, {"x"}]> : tensor<4x8x8x2xf32>',
        ("4x8x8x2xf32", '[{"y"}, {}, {}, {"x"}]'),
    ),
    "iotas": program(
        [],
        "%r0 = stablehlo.iota dim = 0 {" + of_op('[{"y"}, {"x"}]') + "} : tensor<8x4xf32>\n"
        "%r1 = stablehlo.iota dim = 1 {" + of_op('[{}, {"x", "y"}]') + "} : tensor<3x16xi64>",
        ("8x4xf32", '[{"y"}, {"x"}]'),
        ("3x16xi64", '[{}, {"x", "y"}]'),
    ),
    "slices_in_steps": program(
        [("16x6xf32", '[{"y"}, {}]')],
        "%r0 = stablehlo.slice %a0 [0:16:2, 1:5] {"
        + of_op('[{"y"}, {}]')
        + "} : (tensor<16x6xf32>) -> tensor<8x4xf32>",
        ("8x4xf32", '[{"y"}, {}]'),
    ),
    "pads_of_whole_dims": pad(
        "8x4xf32", "8x9xf32", '[{"x"}, {}]', "low = [0, 1], high = [0, 1], interior = [0, 1]"
    ),
    "pads_between_elements": pad(
        "8x4xf32", "16x4xf32", '[{"y"}, {}]', "low = [0, 0], high = [1, 0], interior = [1, 0]"
    ),
    "pads_at_the_edges": pad(
        "4x4xf32", "6x5xf32", '[{"x"}, {}]', "low = [1, 1], high = [1, 0], interior = [0, 0]"
    ),
    "cuts_at_the_edges": pad(
        "16x4xf32", "12x4xf32", '[{"x"}, {}]', "low = [-2, 0], high = [-2, 0], interior = [0, 0]"
    ),
    "batches_of_convolutions": convolution(
        ("4x6x6x2xf32", '[{"y"}, {}, {}, {}]'),
        ("3x3x2x4xf32", "[{}, {}, {}, {}]"),
        ("4x6x6x4xf32", '[{"y"}, {}, {}, {}]'),
    ),
    "rows_of_convolutions": convolution(
        ("4x8x6x2xf32", '[{"y"}, {"x"}, {}, {}]'),
        ("1x1x2x4xf32", "[{}, {}, {}, {}]"),
        ("4x8x6x4xf32", '[{"y"}, {"x"}, {}, {}]'),
        padding=0,
    ),
    "features_of_convolutions": convolution(
        ("4x6x6x2xf32", '[{"x"}, {}, {}, {}]'),
        ("3x3x2x4xf32", '[{}, {}, {}, {"y"}]'),
        ("4x6x6x4xf32", '[{"x"}, {}, {}, {"y"}]'),
    ),
    "groups_of_features": convolution(
        ("2x6x6x8xf32", '[{}, {}, {}, {"x"}]'),
        ("3x3x2x8xf32", '[{}, {}, {}, {"x"}]'),
        ("2x6x6x8xf32", '[{}, {}, {}, {"x"}]'),
        groups=(4, 1),
    ),
    "groups_of_batches": convolution(
        ("8x6x6x2xf32", '[{"y"}, {}, {}, {}]'),
        ("3x3x2x8xf32", '[{}, {}, {}, {"y"}]'),
        ("2x6x6x8xf32", '[{}, {}, {}, {"y"}]'),
        groups=(1, 4),
    ),
    "convolutions_in_terms": convolution(
        ("2x6x6x4xf32", '[{}, {}, {}, {"y"}]'),
        ("3x3x4x3xf32", '[{}, {}, {"y"}, {}]'),
        ("2x6x6x3xf32", "[{}, {}, {}, {}]"),
        reduced='"y"',
    ),
    "lookups": gather(
        ("8x10xf32", '[{"y"}, {}]'),
        ("5xi64", "[{}]"),
        ("5x10xf32", "[{}, {}]"),
        ROWS,
        "1, 10",
        '"y"',
    ),
    "lookups_with_lists_of_one": gather(
        ("8x10xf32", '[{"x"}, {}]'),
        ("4x1xi64", '[{"y"}, {}]'),
        ("4x10xf32", '[{"y"}, {}]'),
        ROWS,
        "1, 10",
        '"x"',
    ),
    "lookups_in_two_dims": gather(
        ("8x4x6xi32", '[{"x"}, {"y"}, {}]'),
        ("5x2xi64", "[{}, {}]"),
        ("5x6xi32", "[{}, {}]"),
        TWO,
        "1, 1, 6",
        '"x", "y"',
    ),
    "slices_of_a_dim_without_index": gather(
        ("8x10xf32", '[{"y"}, {}]'),
        ("5xi64", "[{}]"),
        ("5x3xf32", "[{}, {}]"),
        "offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [1], "
        "index_vector_dim = 1",
        "1, 3",
        '"y"',
    ),
    "features_of_lookups": gather(
        ("8x16xf32", '[{}, {"y"}]'),
        ("4xi64", '[{"x"}]'),
        ("4x16xf32", '[{"x"}, {"y"}]'),
        ROWS,
        "1, 16",
    ),
    "updates_of_rows": scatter(
        ("8x6xf32", '[{"y"}, {}]'), ("5x1xi64", "[{}, {}]"), ("5x6xf32", "[{}, {}]"), INTO
    ),
    "updates_of_rows_by_a_number": scatter(
        ("8x6xi32", '[{"x"}, {"y":(1)2}]'),
        ("i32", "[]"),
        ("6xi32", '[{"y":(1)2}]'),
        "update_window_dims = [0], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0]",
        "maximum",
    ),
    "terms_of_updates": scatter(
        ("8x6xi32", "[{}, {}]"),
        ("8x1xi64", '[{"y"}, {}]'),
        ("8x6xi32", '[{"y"}, {}]'),
        INTO,
        "minimum",
        '"y"',
    ),
    "terms_of_updates_of_rows": scatter(
        ("8x6xf32", '[{"x"}, {}]'),
        ("8x1xi64", '[{"y"}, {}]'),
        ("8x6xf32", '[{"y"}, {}]'),
        INTO,
        "add",
        '"y"',
    ),
    "updates_of_batches": scatter(
        ("8x16x6xf32", '[{"x"}, {"y"}, {}]'),
        ("4x8x1xi32", '[{}, {"x"}, {}]'),
        ("4x8x6xf32", '[{}, {"x"}, {}]'),
        BATCHES.format(window="update_window_dims = [2], ", collapsed=1, at=1),
    ),
    "updates_of_batches_by_two_numbers": scatter(
        ("8x16x8xf32", '[{"x"}, {"y"}, {}]'),
        ("8x4x2xi32", '[{"x"}, {}, {}]'),
        ("8x4xf32", '[{"x"}, {}]'),
        BATCHES.format(window="", collapsed="1, 2", at=0),
    ),
    "terms_of_batches": scatter(
        ("8x16x6xf32", '[{"x"}, {}, {}]'),
        ("8x4x1xi32", '[{"x"}, {"y"}, {}]'),
        ("8x4x6xf32", '[{"x"}, {"y"}, {}]'),
        BATCHES.format(window="update_window_dims = [2], ", collapsed=1, at=0),
        reduced='"y"',
    ),
    "slices_of_all_of_a_dim": program(
        [("8x16xf32", "[{}, {}]")],
        "%r0 = stablehlo.slice %a0 [0:8, 0:16] {"
        + of_op("[{}, {}]")
        + "} : (tensor<8x16xf32>) -> tensor<8x16xf32>",
        ("8x16xf32", "[{}, {}]"),
    ),
    "slices_that_start_anywhere": program(
        [("8x16xf32", "[{}, {}]"), ("i32", "[]")],
        """%c = sdy.constant dense<0> : tensor<i32>
        %r0 = stablehlo.dynamic_slice %a0, %c, %a1, sizes = [8, 4] {"""
        + of_op("[{}, {}]")
        + """} : (tensor<8x16xf32>, tensor<i32>, tensor<i32>) -> tensor<8x4xf32>""",
        ("8x4xf32", "[{}, {}]"),
    ),
    "named_computations": program(
        [("8x4xf32", '[{"x"}, {}]')],
        """%r0 = sdy.named_computation<"outer">(%a0) in_shardings=[<@mesh, [{"x"}, {}]>]
          out_shardings=[<@mesh, [{"x"}, {}]>] (%b: tensor<8x4xf32>) {
          %1 = stablehlo.negate %b {"""
        + of_op('[{"x"}, {}]')
        + """} : tensor<8x4xf32>
          sdy.return %1 : tensor<8x4xf32>
        } : (tensor<8x4xf32>) -> tensor<8x4xf32>""",
        ("8x4xf32", '[{"x"}, {}]'),
    ),
    "device_ids": program(
        [("8xf32", '[{"x"}]')],
        """%0 = stablehlo.partition_id : tensor<ui32>
        %1 = stablehlo.convert %0 : (tensor<ui32>) -> tensor<i32>
        %r0 = stablehlo.negate %a0 {"""
        + of_op('[{"x"}]')
        + "} : tensor<8xf32>",
        ("8xf32", '[{"x"}]'),
    ),
    "whole_constants": program(
        [],
        "%r0 = sdy.constant {" + of_op("[{}]") + "} dense<[1, 2, 4]> : tensor<3xi32>",
        ("3xi32", "[{}]"),
    ),
}

TO_OTHER_DEVICES = f"""{PERMUTED}
func.func @main(%a: tensor<8xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}]>}}) -> (tensor<8xf32> {{sdy.sharding = #sdy.sharding<@other, [{{"x"}}]>}}) {{
  %0 = sdy.collective_permute %a out_sharding=<@other, [{{"x"}}]> : tensor<8xf32>
  return %0 : tensor<8xf32>
}}
"""  # noqa: E501
PROGRAMS["to_other_devices"] = TO_OTHER_DEVICES

PROGRAMS["calls"] = f"""{MESH}
func.func @main(%a: tensor<8xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}]>}}, %b: tensor<f32>) -> (tensor<8xf32> {{sdy.sharding = #sdy.sharding<@mesh, [{{"x"}}]>}}, tensor<f32>) {{
  %0 = call @g(%b) {{mhlo.frontend_attributes = {{a = "b"}}, {KEPT_OF_CALLS}sdy.sharding = #sdy.sharding_per_value<[<@mesh, []>]>}} : (tensor<f32>) -> tensor<f32>
  %1 = stablehlo.negate %0 {{kept, sdy.sharding = #sdy.sharding_per_value<[<@mesh, []>]>}} : tensor<f32>
  return {{dropped}} %a, %1 : tensor<8xf32>, tensor<f32>
}}
func.func private @g(%a: tensor<f32>) -> tensor<f32> attributes {{kept}} {{
  return {{dropped}} %a : tensor<f32>
}}
"""  # noqa: E501

# The reference adds the terms of a minimum.
WRONG_IN_REFERENCE = {"terms_of_updates"}
