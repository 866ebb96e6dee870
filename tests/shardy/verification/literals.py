"""Numbers, words and strings as attributes and as elements, of types that have them or not."""

from __future__ import annotations

NUMBERS = [
    "0", "-0", "1", "-1", "-2", "127", "128", "-128", "-129", "255", "256", "1.5", "-1.5", "1e3",
    "1.0e400", "1.", "0x7F", "0x1FF", "0x7E00", "0x7FC0000000", "-0x1", "0xFFFFFFFFFFFFFFFFFF",
    "true", "-true", "false", '"0x00"', "(1.0, 2.0)", "(1, 2)", "(0x7FC00000, 1.0)",
    "18446744073709551615", "18446744073709551616", "-9223372036854775808", "-9223372036854775809",
    "inf", "+1",
]  # fmt: skip
TYPES = [
    "i0", "i1", "i2", "i8", "ui8", "si8", "i32", "i64", "ui64", "i65", "i128", "f16", "bf16", "f32",
    "f64", "f8E4M3FN", "f4E2M1FN", "tf32", "f80", "f128", "index", "complex<f32>", "complex<i32>",
    "none", "!stablehlo.token",
]  # fmt: skip
FORMS = [
    "{0} : {1}", "dense<{0}> : tensor<2x{1}>", "dense<[{0}, {0}]> : tensor<2x{1}>",
    "array<{1}: {0}>", "dense<{0}> : vector<2x{1}>",
    "sparse<[[0], [1]], [{0}, {0}]> : tensor<4x{1}>",
]  # fmt: skip
SPARSE = [
    "sparse<[0, 1], [1.0, 2.0]> : tensor<2xf32>", "sparse<[[0], [5]], [1.0, 2.0]> : tensor<2xf32>",
    "sparse<0, 1.0> : tensor<2xf32>", "sparse<> : tensor<2xf32>", "sparse<> : f32",
    "sparse<[[0, 0], [1, 1]], [1.0, 2.0]> : tensor<2xf32>", "sparse<[], []> : tensor<2xf32>",
    "sparse<[[0, 0], [1, 1]], [1.0, 2.0]> : tensor<2x2xf32>",
    "sparse<[[-1]], [1.0]> : tensor<2xf32>",
    "sparse<[[0, 2], [1, 1]], [1.0, 2.0]> : tensor<2x2xf32>", "sparse<[[0]], 1.0> : tensor<2xf32>",
    "sparse<[[0], [1]], 1.0> : tensor<2xf32>", "sparse<[[1.0]], [1.0]> : tensor<2xf32>",
    "sparse<[[0]], [1.0]> : tensor<?xf32>", "sparse<[[0]], [1.0]> : tensor<*xf32>",
    'sparse<"0x00", [1.0]> : tensor<2xf32>', 'sparse<[[0]], "0x0000803F"> : tensor<2xf32>',
    "sparse<[[0]], [[1.0]]> : tensor<2xf32>", "sparse<[[]], [1.0]> : tensor<2xf32>",
    "sparse<0, [1.0]> : tensor<f32>", "sparse<3, [1.0]> : tensor<4x2xf32>",
    "sparse<[[[0]]], [1.0]> : tensor<2xf32>",
]  # fmt: skip
DENSE = [
    "dense<1> : tensor<?xi64, #stablehlo.bounds<2>>", "dense<[1, 2]> : tensor<?xi64>",
    "dense<1> : tensor<2xi64, #stablehlo.bounds<?>>", "dense<1> : tensor<*xi64>",
    "dense<[1, 2, 3]> : tensor<2xi64, #stablehlo.bounds<?>>", "dense<1> : memref<?xi64>",
    "dense<1> : !stablehlo.token", "dense<1> : !stablehlo.future<tensor<2xi64>>",
    "dense<1> : tuple<tensor<2xi64>>", "dense<1> : memref<2xi64>", "dense<1> : i64",
]  # fmt: skip
ALGORITHM = (
    "#stablehlo.dot_algorithm<lhs_precision_type = {}, rhs_precision_type = {}, "
    "accumulation_type = {}, lhs_component_count = {}, rhs_component_count = {}, "
    "num_primitive_operations = {}, allow_imprecise_accumulation = {}>"
)
ALGORITHMS = [
    "tf32 tf32 f32 1 1 1 false", "tf32 tf32 f32 1 1 3 false", "tf32 tf32 f32 1 1 9 false",
    "tf32 tf32 f32 0 1 1 false", "tf32 tf32 f32 1 -1 1 false", "tf32 tf32 f32 1 1 0 false",
    "i8 tf32 f32 1 1 1 false", "bf16 bf16 f32 1 1 6 false", "bf16 bf16 f32 3 3 6 false",
    "f8E5M2 f8E4M3FN f32 1 1 1 true", "f64 f64 f64 1 1 1 true", "f64 f64 f64 1 1 1 0",
]  # fmt: skip


def programs() -> list[str]:
    """Modules with such attributes."""
    values = [form.format(n, ty) for form in FORMS for ty in TYPES for n in NUMBERS]
    algorithms = [ALGORITHM.format(*fields.split()) for fields in ALGORITHMS]
    return in_modules([*values, *SPARSE, *DENSE, *algorithms])


def in_modules(attributes: list[str]) -> list[str]:
    """Modules with these attributes."""
    return [f"module attributes {{a.b = {attribute}}} {{\n}}" for attribute in attributes]
