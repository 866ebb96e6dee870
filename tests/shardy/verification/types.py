"""Types, sound and broken, as types of values and as attributes."""

from __future__ import annotations

SCALARS = """
i0 i1 i16777215 i16777216 i99999999999 si0 ui0 si8 ui8 ui16777216 i01 i007 si i ui
f16 f32 f64 f80 f128 f8 f256 bf8 bf16 tf32 f4E2M1FN f4E2M1 f6E2M3FN f6E3M2FN f8E3M4
f8E4M3 f8E4M3B11FNUZ f8E4M3FN f8E4M3FNUZ f8E5M2 f8E5M2FNUZ f8E8M0FNU f8E5M3
index none token foo int float bool i32i I32 F32 double
"""

ELEMENTS = [
    "f32", "i0", "si7", "index", "none", "foo", "tensor<4xf32>", "tensor<*xf32>", "vector<4xf32>",
    "memref<4xf32>", "memref<*xf32>", "complex<f32>", "tuple<f32>", "tuple<>", "!stablehlo.token",
    "(f32) -> f32", "!stablehlo.future<tensor<f32>>", "!scalar", "!tensor", "!nope", "",
]  # fmt: skip

ENCODINGS = [
    "", "1", '"a"', '"a", "b"', "#nope", "#encoding", "#bounds", "[1]", "{a = 1}", "@a", "f32",
    "unit",
    "dense<1> : tensor<1xi32>", "#stablehlo.bounds<4>", "#stablehlo.bounds<?>",
    "#stablehlo.bounds<>",
    "#stablehlo.bounds<4, 4>", "#stablehlo.bounds<-1>", "#stablehlo.bounds<0>",
    "#stablehlo.bounds<x>",
    "#stablehlo.bounds", "#stablehlo.bounds<4", "#stablehlo.bounds<9223372036854775807>",
    "#stablehlo.bounds<9223372036854775808>", "#stablehlo<bounds<4>>", "#stablehlo<bounds[4]>",
    "#stablehlo.type_extensions<bounds = [4]>", "#stablehlo.type_extensions<bounds = [?, 4]>",
    "#stablehlo.precision<HIGH>", "#stablehlo<precision HIGH>",
]  # fmt: skip

SHAPES = [
    "", "4x", "?x", "0x", "4x?x", "?x?x", "4x?x3x", "*x", "-1x", "04x", "0x1Fx", "4x4", "x4x", "*",
    "4x*x", "*x4x", "[4]x", "4x[4]x", "[4x", "4]x", "4", "9223372036854775807x", "4 x ", "?x ",
    "9223372036854775808x", "4294967296x4294967296x", "99999999999999999999x",
]  # fmt: skip

LAYOUTS = [
    "1", '"gpu"', "-1", "1 : i64", "1 : i32", "[]", "{}", "foo", "", "1, 1",
    "affine_map<(d0) -> (d0)>",
    "affine_map<(d0) -> (d0)>, 1", "affine_map<(d0, d1) -> (d0)>", "strided<[1]>",
    "strided<[1, 2]>",
    "strided<[1], offset: ?>", "strided<[1], offset: -1>", "strided<[1], ofs: 1>", "strided<[?]>",
    "strided<[0]>", "strided<[]>", "strided<1>", "strided<[1]", "strided",
]  # fmt: skip

WITHOUT = [
    "builtin", "func", "chlo", "sdy", "arith", "math", "memref", "scf", "vector", "tensor", "cf",
    "nvvm", "affine", "complex", "ub",
]  # fmt: skip
"""Dialects without types."""

OTHERS = [
    "tensor", "tensor<>", "tensor<4,f32>", "tensor<4xf32", "tensor<4xf32>>", "tensor <4xf32>",
    "tensor< 4xf32>", "tensor<4xf32 >", "vector", "vector<>", "vector<4xf32", "vector <4xf32>",
    "vector<4xf32, 1>", "memref", "memref<>", "memref<4xf32", "memref <f32>", "complex",
    "complex<>",
    "complex<f32", "complex< f32 >", "complex <f32>", "complex<f32, f32>", "tuple", "tuple<>",
    "tuple < >", "tuple<f32", "tuple<f32, i32>", "tuple<f32,>", "tuple<,f32>", "tuple<f32;i32>",
    "tuple<tensor<4xf32>, tuple<!stablehlo.token>>", "(f32) -> f32", "(f32) -> (f32, i32)",
    "() -> ()", "(f32) -> f32 -> f32", "((f32) -> f32) -> f32", "f32 -> f32", "(f32)", "(f32) ->",
    "(f32,) -> f32", "(foo) -> f32", "() -> (() -> ())", "!stablehlo.token", "!stablehlo.token<1>",
    "!stablehlo<token>", "!stablehlo<token, 1>", "!stablehlo<nope>", "!stablehlo<>", "!stablehlo.",
    "!stablehlo", "!stablehlo.nope", "!stablehlo.nope<1>", "!stablehlo.future",
    "!stablehlo.future<>", "!stablehlo.future<tensor<4xf32>, tensor<4xi32>>",
    "!stablehlo<future<tensor<4xf32>>>", "!", "! stablehlo.token", "!scalar", "!tensor", "!buffer",
    "!mhlo.token", "!mhlo.nope", "!shape.shape", "!shape.nope", "!nowhere",
    *(f"!{dialect}{rest}" for dialect in WITHOUT for rest in (".nope", "<nope>", ".nope<1>")),
]  # fmt: skip

ALIASES = """!scalar = f32
!tensor = tensor<4xf32>
!buffer = memref<4xf32>
#encoding = "a"
#bounds = #stablehlo.bounds<9>
"""


def types() -> list[str]:
    """The types themselves."""
    made = [
        *SCALARS.split(), *OTHERS,
        *(f"{name}<{shape}f32>" for name in ("tensor", "vector", "memref") for shape in SHAPES),
        *(f"{name}<4x{of}>" for name in ("tensor", "vector", "memref") for of in ELEMENTS),
        *(f"memref<*x{of}>" for of in ELEMENTS),
        *(f"{name}<{of}>" for name in ("complex", "tuple", "!stablehlo.future") for of in ELEMENTS),
        *(f"tensor<{shape}f32, {of}>" for shape in ("?x", "4x", "?x?x", "",
    "*x") for of in ENCODINGS),
        *(f"memref<{shape}f32, {of}>" for shape in ("4x", "*x") for of in LAYOUTS),
    ]  # fmt: skip
    return list(dict.fromkeys(made))


def programs() -> list[str]:
    """All of them, in a fixed order."""
    return [
        ALIASES + around.format(ty)
        for ty in types()
        for around in (
            "func.func private @f(f32,\n  {})",
            "module attributes {{a.b =\n {}}} {{\n}}",
        )
    ]
