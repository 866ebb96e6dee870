"""Ops of every kind that has a sharding rule, in seeded random shapes.

A case is a function around one op, in generic form. Each generator below makes cases of one
family; `cases` runs through all of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from random import Random

Shape = list[int]
FAMILIES: list[Callable[[Random], str]] = []

POINTWISE = {
    "abs": "f32", "cbrt": "f32", "ceil": "f32", "cosine": "f32", "count_leading_zeros": "i32",
    "exponential": "f32", "exponential_minus_one": "f32", "floor": "f32", "log": "f32",
    "log_plus_one": "f32", "logistic": "f32", "negate": "f32", "not": "i1", "popcnt": "i32",
    "round_nearest_afz": "f32", "round_nearest_even": "f32", "rsqrt": "f32", "sign": "f32",
    "sine": "f32", "sqrt": "f32", "tan": "f32", "tanh": "f32",
}  # fmt: skip
BINARY = {
    "add": "f32", "and": "i32", "atan2": "f32", "divide": "f32", "maximum": "f32",
    "minimum": "f32", "multiply": "f32", "or": "i1", "power": "f32", "remainder": "f32",
    "shift_left": "i32", "shift_right_arithmetic": "i32", "shift_right_logical": "i32",
    "subtract": "f32", "xor": "i32",
}  # fmt: skip
CALLS = [
    "annotate_device_placement", "Cholesky", "CompactWyHelper", "InspectSharding",
    "InvertDiagBlocksLowerTriangular", "InvertDiagBlocksUpperTriangular", "LayoutConstraint",
    "mhlo.erf", "MoveToDevice", "MoveToHost", "X64SplitHigh", "X64SplitLow",
    "xla.megascale.provide_metadata", "_SPMDInternalOp_MultiPad", "_SPMDInternalOp_RotateRight",
    "_SPMDInternalOp_MultiRotate", "_SPMDInternalOp_MultiSlice", "_SPMDInternalOp_Wrap",
    "X64Combine", "sdy_testonly", "tpu_custom_call", "xla_python_cpu_callback", "unheard_of",
    "Sharding", "na me",
]  # fmt: skip


def family(make: Callable[[Random], str]) -> Callable[[Random], str]:
    FAMILIES.append(make)
    return make


def tensor(shape: Shape, dtype: str = "f32") -> str:
    return f"tensor<{''.join(f'{size}x' for size in shape)}{dtype}>"


def ints(values: list[int]) -> str:
    return "array<i64" + (f": {', '.join(map(str, values))}>" if values else ">")


def pairs(values: list[tuple[int, int]]) -> str:
    rows = ", ".join(f"[{low}, {high}]" for low, high in values)
    return f"dense<[{rows}]> : tensor<{len(values)}x2xi64>"


def shape_of(rng: Random, low: int = 0, high: int = 4, sizes: str = "") -> Shape:
    choices = [int(size) for size in (sizes or "1 2 3 4 5 6 8 12 16").split()]
    return [rng.choice(choices) for _ in range(rng.randint(low, high))]


class Case(str):
    """The text of a function around one op, with what is needed to put that op elsewhere."""

    operands: list[str]
    results: list[str]
    before: str
    line: str


def op(
    name: str,
    operands: list[str],
    results: list[str],
    attributes: str = "",
    regions: str = "",
    before: str = "",
    after: str = "",
    names: list[str] | None = None,
) -> str:
    """A function with the op; its operands are arguments unless `before` defines `names`."""
    args = ", ".join(f"%a{at}: {ty}" for at, ty in enumerate(operands))
    used = ", ".join(names or [f"%a{at}" for at in range(len(operands))])
    left = f"%r:{len(results)} = " if results else ""
    properties = f" <{{{attributes}}}>" if attributes else ""
    regions = f" ({regions})" if regions else ""
    types = f"({', '.join(operands)}) -> ({', '.join(results)})"
    line = f'{left}"{name}"({used}){properties}{regions} : {types}'
    case = Case(f"({args}) {{\n  {before}\n  {line}\n  {after}\n  return\n}}")
    case.operands, case.results, case.before, case.line = operands, results, before, line
    return case


def region(dtype: str, count: int = 1, body: str = "add", order: str = "ba") -> str:
    """Combines `count` pairs of scalars by `body`, in reversed argument order for "ab"."""
    ty = f"tensor<{dtype}>"
    names = [f"%x{at}" for at in range(2 * count)]
    args = ", ".join(f"{name}: {ty}" for name in names)
    lines = []
    for at in range(count):
        two = [names[at], names[at + count]]
        if order == "ab":
            two.reverse()
        lines.append(f'%y{at} = "stablehlo.{body}"({two[0]}, {two[1]}) : ({ty}, {ty}) -> {ty}')
    returned = ", ".join(f"%y{at}" for at in range(count))
    types = ", ".join([ty] * count)
    lines.append(f'"stablehlo.return"({returned}) : ({types}) -> ()')
    return f"{{\n  ^bb0({args}):\n    " + "\n    ".join(lines) + "\n  }"


@family
def pointwise(rng: Random) -> str:
    ty = shape_of(rng)
    if rng.random() < 0.5:
        name, dtype = rng.choice(list(POINTWISE.items()))
        return op(f"stablehlo.{name}", [tensor(ty, dtype)], [tensor(ty, dtype)])
    name, dtype = rng.choice(list(BINARY.items()))
    return op(f"stablehlo.{name}", [tensor(ty, dtype)] * 2, [tensor(ty, dtype)])


@family
def pointwise_with_other_types(rng: Random) -> str:
    shape = shape_of(rng)
    f, c, p = (tensor(shape, ty) for ty in ("f32", "complex<f32>", "i1"))
    bits = "exponent_bits = 5 : i32, mantissa_bits = 2 : i32"
    groups = "replica_groups = dense<[[0]]> : tensor<1x1xi64>"
    direction = "comparison_direction = #stablehlo<comparison_direction GT>"
    return rng.choice([
        op("stablehlo.compare", [f, f], [p], direction),
        op("stablehlo.convert", [f], [p]),
        op("stablehlo.complex", [f, f], [c]),
        op("stablehlo.real", [c], [f]),
        op("stablehlo.imag", [c], [f]),
        op("stablehlo.is_finite", [f], [p]),
        op("stablehlo.reduce_precision", [f], [f], bits),
        op("stablehlo.cross-replica-sum", [f], [f], groups),
        op("chlo.tan", [f], [f]),
        op("chlo.erf_inv", [f], [f]),
    ])  # fmt: skip


@family
def clamp(rng: Random) -> str:
    ty = tensor(shape_of(rng))
    low, high = (rng.choice([ty, tensor([])]) for _ in range(2))
    return op("stablehlo.clamp", [low, ty, high], [ty])


@family
def select(rng: Random) -> str:
    shape = shape_of(rng)
    predicate = tensor(rng.choice([shape, []]), "i1")
    return op("stablehlo.select", [predicate, tensor(shape), tensor(shape)], [tensor(shape)])


@family
def transpose(rng: Random) -> str:
    shape = shape_of(rng)
    order = rng.sample(range(len(shape)), len(shape))
    result = tensor([shape[dim] for dim in order])
    return op("stablehlo.transpose", [tensor(shape)], [result], f"permutation = {ints(order)}")


@family
def broadcast_in_dim(rng: Random) -> str:
    result = shape_of(rng, 1, 5)
    dims = rng.sample(range(len(result)), rng.randint(0, len(result)))
    shape = [rng.choice([1, result[dim]]) for dim in dims]
    attributes = f"broadcast_dimensions = {ints(dims)}"
    return op("stablehlo.broadcast_in_dim", [tensor(shape)], [tensor(result)], attributes)


@family
def reverse(rng: Random) -> str:
    shape = shape_of(rng)
    dims = rng.sample(range(len(shape)), rng.randint(0, len(shape)))
    return op("stablehlo.reverse", [tensor(shape)], [tensor(shape)], f"dimensions = {ints(dims)}")


@family
def bitcast_convert(rng: Random) -> str:
    shape = shape_of(rng)
    wide, narrow, same = tensor(shape, "f32"), tensor([*shape, 4], "i8"), tensor(shape, "i32")
    operand, result = rng.choice([(wide, narrow), (narrow, wide), (wide, same)])
    return op("stablehlo.bitcast_convert", [operand], [result])


@family
def batch_norm_inference(rng: Random) -> str:
    shape = shape_of(rng, 1, 4)
    feature = rng.randrange(len(shape))
    vector = tensor([shape[feature]])
    attributes = f"epsilon = 1.0e-3 : f32, feature_index = {feature} : i64"
    operands = [tensor(shape), *[vector] * 4]
    return op("stablehlo.batch_norm_inference", operands, [tensor(shape)], attributes)


@family
def dot_general(rng: Random) -> str:
    batch, contracting = shape_of(rng, 0, 2), shape_of(rng, 0, 2)
    free = [shape_of(rng, 0, 2), shape_of(rng, 0, 2)]
    shapes, numbers = [], []
    for side, name in enumerate(("lhs", "rhs")):
        parts = [*batch, *contracting, *free[side]]
        order = rng.sample(range(len(parts)), len(parts))
        if rng.random() < 0.5:
            order.sort()
        place = [order.index(part) for part in range(len(parts))]
        # Free dims keep their order in the result.
        kept = iter(sorted(place[len(batch) + len(contracting) :]))
        place[len(batch) + len(contracting) :] = list(kept)
        shape = [0] * len(parts)
        for part, at in enumerate(place):
            shape[at] = parts[part]
        shapes.append(shape)
        lists = [place[: len(batch)], place[len(batch) : len(batch) + len(contracting)]]
        for what, dims in zip(("batching", "contracting"), lists, strict=True):
            numbers.append(f"{name}_{what}_dimensions = {dims}")
    result = tensor([*batch, *free[0], *free[1]])
    attributes = f"dot_dimension_numbers = #stablehlo.dot<{', '.join(numbers)}>"
    if rng.random() < 0.3:
        precision = ", ".join(["#stablehlo<precision HIGHEST>"] * 2)
        attributes += f", precision_config = [{precision}]"
    return op("stablehlo.dot_general", [tensor(shape) for shape in shapes], [result], attributes)


@family
def dot(rng: Random) -> str:
    m, k, n = (rng.choice([1, 2, 5, 8]) for _ in range(3))
    left, right = rng.choice([[m, k], [k]]), rng.choice([[k, n], [k]])
    result = left[:-1] + right[1:]
    return op("stablehlo.dot", [tensor(left), tensor(right)], [tensor(result)])


@family
def convolution(rng: Random) -> str:
    spatial = rng.randint(0, 3)
    groups = rng.choice([1, 1, 2, 4])
    batch_groups = rng.choice([1, 2, 4]) if groups == 1 else 1
    batch = rng.choice([1, 2, 3]) * batch_groups
    features = rng.choice([1, 2, 3])
    out_features = rng.choice([1, 2, 3]) * groups * batch_groups
    sizes = [rng.choice([1, 4, 6, 8, 9, 16]) for _ in range(spatial)]
    windows = [rng.choice([1, 2, 3, 5, 9, 16]) for _ in range(spatial)]
    strides = [rng.choice([1, 2]) for _ in range(spatial)]
    # Enough padding for at least one window.
    padding = [(w - 1 if w > s else rng.choice([0, 1]), rng.choice([0, 2]))
               for s, w in zip(sizes, windows, strict=True)]  # fmt: skip
    outs = [(s + sum(p) - w) // stride + 1
            for s, w, p, stride in zip(sizes, windows, padding, strides, strict=True)]  # fmt: skip
    letters = [["b", "f"], ["i", "o"], ["b", "f"]]
    values = [
        [batch, features * groups],
        [features, out_features],
        [batch // batch_groups, out_features],
    ]
    texts, shapes = [], []
    for names, numbers, extent in zip(letters, values, (sizes, windows, outs), strict=True):
        parts = [
            *zip(names, numbers, strict=True),
            *((str(at), size) for at, size in enumerate(extent)),
        ]
        rng.shuffle(parts)
        texts.append(f"[{', '.join(name for name, _ in parts)}]")
        shapes.append([size for _, size in parts])
    numbers = f"#stablehlo.conv<{texts[0]}x{texts[1]}->{texts[2]}>"
    attributes = (
        f"batch_group_count = {batch_groups} : i64, feature_group_count = {groups} : i64, "
        f"dimension_numbers = {numbers}, window_strides = {ints(strides)}"
    )
    if spatial:
        attributes += f", padding = {pairs(padding)}"
    operands = [tensor(shapes[0]), tensor(shapes[1])]
    return op("stablehlo.convolution", operands, [tensor(shapes[2])], attributes)


def _split(rng: Random, shape: Shape) -> Shape:
    """Another shape with as many elements."""
    primes = [p for size in shape for p in _primes(size)]
    if rng.random() < 0.4:
        rng.shuffle(primes)
    result: Shape = []
    while primes:
        take = rng.randint(1, 3)
        result.append(math.prod(primes[:take]))
        primes = primes[take:]
    for _ in range(rng.choice([0, 0, 1, 2])):
        result.insert(rng.randint(0, len(result)), 1)
    return result


def _primes(size: int) -> list[int]:
    for prime in (2, 3, 5, 7, 11, 13):
        if size % prime == 0 and size > 0:
            return [prime, *_primes(size // prime)]
    return []


@family
def reshape(rng: Random) -> str:
    shape = shape_of(rng, 0, 4, "1 2 3 4 6 8 12 24 30 7 35")
    return op("stablehlo.reshape", [tensor(shape)], [tensor(_split(rng, shape))])


@family
def reshape_of_nothing(rng: Random) -> str:
    return op("stablehlo.reshape", [tensor([0, rng.choice([2, 3])])], [tensor([2, 0])])


# The families with the most ways to differ come up more often.
FAMILIES += [reshape, reshape]


@family
def reduce(rng: Random) -> str:
    shape = shape_of(rng, 1, 4)
    dims = sorted(rng.sample(range(len(shape)), rng.randint(0, len(shape))))
    count = rng.choice([1, 1, 2, 3])
    result = tensor([size for dim, size in enumerate(shape) if dim not in dims])
    operands = [tensor(shape)] * count + [tensor([])] * count
    attributes = f"dimensions = {ints(dims)}"
    return op("stablehlo.reduce", operands, [result] * count, attributes, region("f32", count))


def _windows(rng: Random, rank: int) -> tuple[Shape, list[int], list[int], list[tuple[int, int]]]:
    """Input sizes, window sizes, strides and padding."""
    windows = [rng.choice([1, 1, 2, 3]) for _ in range(rank)]
    strides = [rng.choice([1, 1, 2]) for _ in range(rank)]
    padding = [rng.choice([(0, 0), (0, 0), (1, 0), (0, 1)]) for _ in range(rank)]
    return shape_of(rng, rank, rank, "3 4 6 8"), windows, strides, padding


def _outputs(
    shape: Shape, windows: list[int], strides: list[int], padding: list[tuple[int, int]]
) -> Shape:
    rows = zip(shape, windows, strides, padding, strict=True)
    return [(size + sum(pad) - window) // stride + 1 for size, window, stride, pad in rows]


@family
def reduce_window(rng: Random) -> str:
    rank, count = rng.randint(1, 4), rng.choice([1, 1, 2])
    shape, windows, strides, padding = _windows(rng, rank)
    attributes = f"window_dimensions = {ints(windows)}"
    if rng.random() < 0.3:
        strides = [1] * rank
    else:
        attributes += f", window_strides = {ints(strides)}"
    if rng.random() < 0.3:
        padding = [(0, 0)] * rank
    else:
        attributes += f", padding = {pairs(padding)}"
    result = tensor(_outputs(shape, windows, strides, padding))
    operands = [tensor(shape)] * count + [tensor([])] * count
    body = region("f32", count)
    return op("stablehlo.reduce_window", operands, [result] * count, attributes, body)


@family
def select_and_scatter(rng: Random) -> str:
    shape, windows, strides, padding = _windows(rng, rng.randint(1, 4))
    attributes = f"window_dimensions = {ints(windows)}, window_strides = {ints(strides)}"
    if rng.random() < 0.3:
        padding = [(0, 0)] * len(shape)
    else:
        attributes += f", padding = {pairs(padding)}"
    source = tensor(_outputs(shape, windows, strides, padding))
    s = "tensor<f32>"
    pick = (
        f"{{\n  ^bb0(%x: {s}, %y: {s}):\n"
        f'    %z = "stablehlo.compare"(%x, %y) <{{comparison_direction = '
        f"#stablehlo<comparison_direction GE>}}> : ({s}, {s}) -> tensor<i1>\n"
        '    "stablehlo.return"(%z) : (tensor<i1>) -> ()\n  }'
    )
    operands = [tensor(shape), source, tensor([])]
    regions = f"{pick}, {region('f32')}"
    return op("stablehlo.select_and_scatter", operands, [tensor(shape)], attributes, regions)


@family
def sort(rng: Random) -> str:
    shape, count = shape_of(rng, 1, 4, "1 1 2 4 8"), rng.choice([1, 1, 2])
    ty = "tensor<f32>"
    args = ", ".join(f"%x{at}: {ty}" for at in range(2 * count))
    body = (
        f"{{\n  ^bb0({args}):\n"
        f'    %z = "stablehlo.compare"(%x0, %x1) <{{comparison_direction = '
        f"#stablehlo<comparison_direction LT>}}> : ({ty}, {ty}) -> tensor<i1>\n"
        '    "stablehlo.return"(%z) : (tensor<i1>) -> ()\n  }'
    )
    attributes = "is_stable = true"
    if rng.random() < 0.9:
        attributes += f", dimension = {rng.randrange(len(shape))} : i64"
    types = [tensor(shape)] * count
    return op("stablehlo.sort", types, types, attributes, body)


@family
def slices(rng: Random) -> str:
    shape = shape_of(rng)
    start = [rng.randint(0, size - 1) for size in shape]
    start = [rng.choice([0, at]) for at in start]
    limit = [
        rng.choice([size, rng.randint(at + 1, size)]) for at, size in zip(start, shape, strict=True)
    ]
    strides = [rng.choice([1, 1, 2]) for _ in shape]
    result = [
        -(-(high - low) // step) for low, high, step in zip(start, limit, strides, strict=True)
    ]
    attributes = (
        f"start_indices = {ints(start)}, limit_indices = {ints(limit)}, strides = {ints(strides)}"
    )
    return op("stablehlo.slice", [tensor(shape)], [tensor(result)], attributes)


@family
def pad(rng: Random) -> str:
    shape = shape_of(rng)
    low, high = ([rng.choice([0, 0, 1, 2]) for _ in shape] for _ in range(2))
    interior = [rng.choice([0, 0, 1]) for _ in shape]
    if shape and rng.random() < 0.2:
        # A dim that keeps its size, but not its elements.
        moved = rng.randrange(len(shape))
        low[moved], high[moved], interior[moved] = rng.choice([(1, -1, 0), (-1, 1, 0)])
    rows = zip(shape, low, high, interior, strict=True)
    result = [size + lo + hi + inside * (size - 1) for size, lo, hi, inside in rows]
    attributes = (
        f"edge_padding_low = {ints(low)}, edge_padding_high = {ints(high)}, "
        f"interior_padding = {ints(interior)}"
    )
    return op("stablehlo.pad", [tensor(shape), tensor([])], [tensor(result)], attributes)


@family
def dynamic_slice(rng: Random) -> str:
    # MLIR does not read what it prints for a scalar.
    shape = shape_of(rng, 1)
    sizes = [rng.choice([size, rng.randint(1, size)]) for size in shape]
    operands = [tensor(shape), *[tensor([], "i32")] * len(shape)]
    return op("stablehlo.dynamic_slice", operands, [tensor(sizes)], f"slice_sizes = {ints(sizes)}")


@family
def dynamic_update_slice(rng: Random) -> str:
    shape = shape_of(rng)
    sizes = [rng.choice([size, rng.randint(1, size)]) for size in shape]
    operands = [tensor(shape), tensor(sizes), *[tensor([], "i32")] * len(shape)]
    constant = '%c = "stablehlo.constant"() <{value = dense<0> : tensor<i32>}> : () -> tensor<i32>'
    share = rng.choice([0, 0.5, 1])
    starts = ["%c" if rng.random() < share else f"%a{at + 2}" for at in range(len(shape))]
    names = ["%a0", "%a1", *starts]
    return op(
        "stablehlo.dynamic_update_slice", operands, [tensor(shape)], before=constant, names=names
    )


@family
def concatenate(rng: Random) -> str:
    shape, count = shape_of(rng, 1, 4, "2 4 6"), rng.randint(1, 3)
    dim = rng.randrange(len(shape))
    lines, names = [], []
    mode = rng.choice(["arguments", "slices", "mixed", "same"])
    for at in range(count):
        cut = ", ".join(f"0:{size}" for size in shape)
        source = "%a0" if mode == "same" else f"%a{at}"
        if mode == "slices" or (mode != "arguments" and rng.random() < 0.6):
            lines.append(
                f"%s{at} = stablehlo.slice {source} [{cut}] : ({tensor(shape)}) -> {tensor(shape)}"
            )
            names.append(f"%s{at}")
        else:
            names.append(source)
    result = [size * count if at == dim else size for at, size in enumerate(shape)]
    return op(
        "stablehlo.concatenate", [tensor(shape)] * count, [tensor(result)],
        f"dimension = {dim} : i64", before="\n  ".join(lines), names=names,
    )  # fmt: skip


def _indexed(rng: Random) -> tuple[Shape, Shape, Shape, list[list[int]], int, Shape]:
    """Shapes of input, indices and slices; dim lists; the index vector dim; slice sizes.

    The lists are offset, collapsed, input-batching, indices-batching and index-map dims.
    """
    rank = rng.randint(1, 4)
    shape = shape_of(rng, rank, rank, "1 2 4 6 8")
    roles = [rng.choice(["full", "cut", "one", "collapsed", "batch"]) for _ in shape]
    batching = [dim for dim, role in enumerate(roles) if role == "batch"]
    collapsed = [dim for dim, role in enumerate(roles) if role == "collapsed"]
    extra = shape_of(rng, 0, 2, "1 3 4 8")
    batch_dims = [(shape[dim], dim) for dim in batching] + [(size, None) for size in extra]
    rng.shuffle(batch_dims)
    indexed = [dim for dim, role in enumerate(roles) if role != "batch"]
    rng.shuffle(indexed)
    indexed = indexed[: rng.randint(0, len(indexed))]
    vector = rng.randint(0, len(batch_dims))
    indices = [size for size, _ in batch_dims]
    if len(indexed) == 1 and rng.random() < 0.4:
        vector = len(indices)
    else:
        indices.insert(vector, len(indexed))
    # Where each explicit batch dim stands in the indices.
    place = {dim: at + (at >= vector) for at, (_, dim) in enumerate(batch_dims) if dim is not None}
    sizes = {"full": None, "cut": 0, "one": 1}
    offsets = []
    slice_sizes = []
    for dim, role in enumerate(roles):
        size = shape[dim] if role == "full" else 1
        if role == "cut":
            size = rng.randint(1, shape[dim])
        slice_sizes.append(size)
        if role in sizes:
            offsets.append(size)
    total = len(batch_dims) + len(offsets)
    offset_dims = sorted(rng.sample(range(total), len(offsets)))
    slices, left, windows = [], [size for size, _ in batch_dims], list(offsets)
    for at in range(total):
        slices.append(windows.pop(0) if at in offset_dims else left.pop(0))
    lists = [offset_dims, collapsed, batching, [place[dim] for dim in batching], indexed]
    return shape, indices, slices, lists, vector, slice_sizes


def _numbers(name: str, fields: list[str], lists: list[list[int]], vector: int) -> str:
    written = [f"{field} = {dims}" for field, dims in zip(fields, lists, strict=True) if dims]
    return f"#stablehlo.{name}<{', '.join([*written, f'index_vector_dim = {vector}'])}>"


@family
def gather(rng: Random) -> str:
    shape, indices, slices, lists, vector, sizes = _indexed(rng)
    fields = ["offset_dims", "collapsed_slice_dims", "operand_batching_dims",
              "start_indices_batching_dims", "start_index_map"]  # fmt: skip
    attributes = (
        f"dimension_numbers = {_numbers('gather', fields, lists, vector)}, "
        f"slice_sizes = {ints(sizes)}, indices_are_sorted = false"
    )
    operands = [tensor(shape), tensor(indices, "i32")]
    return op("stablehlo.gather", operands, [tensor(slices)], attributes)


FAMILIES.append(gather)


@family
def scatter(rng: Random) -> str:
    shape, indices, slices, lists, vector, _ = _indexed(rng)
    fields = ["update_window_dims", "inserted_window_dims", "input_batching_dims",
              "scatter_indices_batching_dims", "scatter_dims_to_operand_dims"]  # fmt: skip
    numbers = _numbers("scatter", fields, lists, vector)
    attributes = f"scatter_dimension_numbers = {numbers}, unique_indices = true"
    count, dtype = rng.choice([1, 1, 2]), rng.choice(["f32", "i1", "i32"])
    names = ["add", "multiply", "maximum", "minimum"] + ["and", "or", "xor"] * (dtype != "f32")
    names += ["subtract"] * (dtype != "i1")
    body = region(dtype, count, rng.choice(names), rng.choice(["ab", "ba"]))
    if rng.random() < 0.2:
        head, _, tail = body.rpartition("%y")
        body = f"{head}%x{2 * count - 1}{tail[1:]}"
    if rng.random() < 0.1:
        body = body.replace("%y0)", "%x0)").replace("%y0,", "%x0,")
    operands = (
        [tensor(shape, dtype)] * count + [tensor(indices, "i32")] + [tensor(slices, dtype)] * count
    )
    return op("stablehlo.scatter", operands, [tensor(shape, dtype)] * count, attributes, body)


FAMILIES.append(scatter)


@family
def cholesky(rng: Random) -> str:
    size = rng.choice([1, 4, 8])
    ty = tensor([*shape_of(rng, 0, 2), size, size])
    return op("stablehlo.cholesky", [ty], [ty], rng.choice(["lower = true", ""]))


@family
def triangular_solve(rng: Random) -> str:
    batch, n, m = shape_of(rng, 0, 2), rng.choice([1, 4, 8]), rng.choice([1, 3, 8])
    left = rng.random() < 0.5
    b = tensor([*batch, n, m] if left else [*batch, m, n])
    transpose = rng.choice(["NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"])
    attributes = (
        f"left_side = {str(left).lower()}, lower = true, unit_diagonal = false, "
        f"transpose_a = #stablehlo<transpose {transpose}>"
    )
    return op("stablehlo.triangular_solve", [tensor([*batch, n, n]), b], [b], attributes)


@family
def fft(rng: Random) -> str:
    shape = shape_of(rng, 1, 4, "1 2 4 8")
    length = shape[-rng.randint(1, min(3, len(shape))) :]
    kind = rng.choice(["FFT", "IFFT", "RFFT", "IRFFT"])
    half = [*shape[:-1], shape[-1] // 2 + 1]
    types = {
        "FFT": (tensor(shape, "complex<f32>"), tensor(shape, "complex<f32>")),
        "IFFT": (tensor(shape, "complex<f32>"), tensor(shape, "complex<f32>")),
        "RFFT": (tensor(shape), tensor(half, "complex<f32>")),
        "IRFFT": (tensor(half, "complex<f32>"), tensor(shape)),
    }
    attributes = f"fft_type = #stablehlo<fft_type {kind}>, fft_length = {ints(length)}"
    return op("stablehlo.fft", [types[kind][0]], [types[kind][1]], attributes)


@family
def rng_bit_generator(rng: Random) -> str:
    result, state = tensor(shape_of(rng), "ui32"), tensor([2], "ui64")
    attributes = "rng_algorithm = #stablehlo<rng_algorithm THREE_FRY>"
    return op("stablehlo.rng_bit_generator", [state], [state, result], attributes)


@family
def collective(rng: Random) -> str:
    shape = shape_of(rng, 1, 3, "2 4 8")
    dim, other = rng.randrange(len(shape)), rng.randrange(len(shape))
    count = rng.choice([1, 2])
    ty = tensor(shape)
    groups = "replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>"
    grown = tensor([size * 2 if at == dim else size for at, size in enumerate(shape)])
    shrunk = tensor([size // 2 if at == dim else size for at, size in enumerate(shape)])
    exchanged = list(shape)
    exchanged[dim] //= 2
    exchanged[other] *= 2
    split = (
        f"split_dimension = {dim} : i64, concat_dimension = {other} : i64, split_count = 2 : i64"
    )
    gathered = f"all_gather_dim = {dim} : i64, {groups}"
    scattered = f"scatter_dimension = {dim} : i64, {groups}"
    pairs_text = "source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>"
    return rng.choice([
        op("stablehlo.all_reduce", [ty] * count, [ty] * count, groups, region("f32")),
        op("stablehlo.all_gather", [ty] * count, [grown] * count, gathered),
        op("stablehlo.reduce_scatter", [ty], [shrunk], scattered, region("f32")),
        op("stablehlo.all_to_all", [ty] * count, [tensor(exchanged)] * count, f"{split}, {groups}"),
        op("stablehlo.collective_broadcast", [ty], [ty], groups),
        op("stablehlo.collective_permute", [ty], [ty], pairs_text),
    ])  # fmt: skip


@family
def custom_call(rng: Random) -> str:
    ty = tensor(shape_of(rng))
    target = rng.choice(CALLS)
    count = rng.choice([1, 1, 2])
    attributes = f'call_target_name = "{target}"'
    if rng.random() < 0.3:
        attributes += ", has_side_effect = true, api_version = 2 : i32"
    return op("stablehlo.custom_call", [ty] * count, [ty], attributes)


@family
def custom_linalg(rng: Random) -> str:
    batch, n, m = shape_of(rng, 0, 2), rng.choice([2, 4]), rng.choice([2, 4, 6])
    square, matrix = tensor([*batch, n, n]), tensor([*batch, n, m])
    values, taus = tensor([*batch, n]), tensor([*batch, min(n, m)])
    target, operands, results = rng.choice([
        ("Eigh", [square], [square, values]),
        ("Qr", [matrix], [matrix, taus]),
        ("QrDecompositionBlock", [matrix], [matrix, taus]),
        ("ProductOfElementaryHouseholderReflectors", [matrix, taus], [matrix]),
    ])  # fmt: skip
    return op("stablehlo.custom_call", operands, results, f'call_target_name = "{target}"')


@family
def custom_top_k(rng: Random) -> str:
    shape = shape_of(rng, 1, 3, "4 8 16")
    cut = [*shape[:-1], rng.choice([2, shape[-1]])]
    results = [tensor(cut), tensor(cut, "i32")]
    if rng.random() < 0.4:
        return op(
            "stablehlo.custom_call", [tensor(shape)], results, 'call_target_name = "mhlo.topk"'
        )
    target = rng.choice(["ApproxTopK", "PartialReduce"])
    operands = [tensor(shape), tensor(shape, "i32"), tensor([]), tensor([], "i32")]
    return op("stablehlo.custom_call", operands, results, f'call_target_name = "{target}"')


@family
def custom_combine(rng: Random) -> str:
    half, whole = tensor([2], "ui32"), tensor([2], "ui64")
    used = "%s, %o = stablehlo.rng_bit_generator %r#0, algorithm = DEFAULT"
    after = rng.choice(["", f"{used} : ({whole}) -> ({whole}, tensor<4xui32>)"])
    attributes = 'call_target_name = "X64Combine"'
    return op("stablehlo.custom_call", [half] * 2, [whole], attributes, after=after)


@family
def own_rule(rng: Random) -> str:
    ty = tensor([4, 8])
    rule = rng.choice([
        "<([i, j])->([i, j]) {i=4, j=8}>",
        "<([i, j])->([i, j]) {i=4, j=8} permutation={j}>",
        "<([i, jk])->([i, jk]) {i=4, j=2, k=4} need_replication={j}, custom>",
        "<([i, j])->([i, k]) {i=4, j=8, k=8} reduction={j} blocked_propagation={k}, custom>",
    ])  # fmt: skip
    text = op("stablehlo.custom_call", [ty], [ty], 'call_target_name = "foo"')
    return text.replace("}> : ", f"}}> {{sdy.sharding_rule = #sdy.op_sharding_rule{rule}}} : ")


@family
def without_rule(rng: Random) -> str:
    shape = shape_of(rng, 1, 3, "2 4")
    ty, token = tensor(shape), "!stablehlo.token"
    slice_ = tensor(shape[1:])
    segments = "operandSegmentSizes = array<i32: 1, 1>, resultSegmentSizes = array<i32: 1, 1>"
    body = (
        f"{{\n  ^bb0(%x0: {slice_}, %x1: {slice_}):\n"
        f'    %y0 = "stablehlo.add"(%x0, %x1) : ({slice_}, {slice_}) -> {slice_}\n'
        f'    "stablehlo.return"(%y0, %y0) : ({slice_}, {slice_}) -> ()\n  }}'
    )
    return rng.choice([
        op("stablehlo.optimization_barrier", [ty, ty], [ty, ty]),
        op("stablehlo.iota", [], [ty], "iota_dimension = 0 : i64"),
        op("stablehlo.partition_id", [], ["tensor<ui32>"]),
        op("stablehlo.get_dimension_size", [ty], ["tensor<i32>"], "dimension = 0 : i64"),
        op("stablehlo.after_all", [token], [token]),
        op("stablehlo.custom_call", [token], [token], 'call_target_name = "LayoutConstraint"'),
        op("stablehlo.rng", ["tensor<f32>", "tensor<f32>", "tensor<1xi64>"], ["tensor<4xf32>"],
           "rng_distribution = #stablehlo<rng_distribution UNIFORM>"),
        op("chlo.top_k", [ty], [ty, tensor(shape, "i32")], f"k = {shape[-1]} : i64"),
        op("chlo.scan", [ty, slice_], [ty, slice_], f"dimension = 0 : i64, {segments}", body),
    ])  # fmt: skip


def module(functions: list[str]) -> str:
    return "\n".join(f"func.func @f{at}{text}" for at, text in enumerate(functions))


def cases(seed: int, rounds: int) -> Iterator[tuple[str, str]]:
    """Every family's name with a function, `rounds` times."""
    for number in range(rounds):
        for index, make in enumerate(FAMILIES):
            yield make.__name__, make(Random(f"{seed}/{number}/{index}"))
