"""Resource sections, sound and broken."""

from __future__ import annotations

F = "func.func private @f()"

BLOBS = [
    '"0x040000000100000002000000"', '"0x04000000"', '"0x0400000"', '"0x040000"', '"0x"', '""',
    '"04000000"', '"0X04000000"', '"0x0g000000"', '"0x03000000"', '"0x00000000"', '"0x00000080"',
    '"0x05000000010000"', '"0xFFFFFFFF"', '"0x04000000\\41"', '"0x04\\00"', "1", "true", "foo",
    "@foo", "-1", "[]", "{ }", "", '"0x04000000" "y"', '"0x04000000", y: "0x04000000"',
    '"0x04000000", x: "0x04000000"', '"0x04000000",', '"0x04000000" y: "0x04000000"',
]  # fmt: skip
"""What a resource may hold."""

DIALECTS = [
    "builtin", "stablehlo", "chlo", "sdy", "func", "arith", "math", "memref", "mhlo", "vhlo",
    "mpmd", "tensor", "shape", "vector", "llvm", "gpu", "scf", "cf", "complex", "ub", "affine",
    "nvgpu", "nvvm", "nope", "quant", '"builtin"', "1", "",
]  # fmt: skip

SECTIONS = [
    *(f"dialect_resources: {{ builtin: {{ x: {blob} }} }}" for blob in BLOBS),
    *(f"dialect_resources: {{ {name}: {{ }} }}" for name in DIALECTS),
    *(f'dialect_resources: {{ {name}: {{ x: "0x04000000" }} }}' for name in DIALECTS),
    *(
        f"dialect_resources: {{ builtin: {{ {key} }} }}"
        for key in (
            "x",
            'x "0x04000000"',
            'x = "0x04000000"',
            ': "0x04000000"',
            '1: "0x04000000"',
            '"x": "0x04000000"',
            'x.y$z: "0x04000000"',
            'i32: "0x04000000"',
            'tensor: "0x04000000", true: "0x04000000", loc: "0x04000000"',
        )
    ),
    *(
        f"external_resources: {{ nope: {{ {entry} }} }}"
        for entry in (
            "",
            'x: "abc", y: 1, z: true, w: foo, v: @a',
            "x: 1.5",
            "x: %a",
            "x: ",
            "x",
            "1: 1",
            '"x": "abc"',
            "x: -1",
            "x: []",
            "x: { }",
            "x: (1)",
            'x: loc("a")',
            "x: 1, x: 1",
            "x: 1,",
        )
    ),
    "", ",", "nope: {}", "1: {}", '"dialect_resources": {}', "dialect_resources",
    "dialect_resources {}", "dialect_resources:", "dialect_resources: []", "dialect_resources: {}",
    "dialect_resources: {},", "dialect_resources: {}, dialect_resources: {}",
    "dialect_resources: {} dialect_resources: {}", "dialect_resources: {}, external_resources: {}",
    "dialect_resources: { builtin: {}, }", "dialect_resources: { builtin: {}, builtin: {} }",
    "dialect_resources: { builtin: }", "dialect_resources: { builtin: x }",
    'dialect_resources: { builtin: { x: "0x04000000" }',
    'dialect_resources: { builtin: { x: "0x04000000" } } }',
    "dialect_resources: { // a comment\n builtin: {} }", "external_resources: []",
    'external_resources: { "nope": {} }', "external_resources: { 1: {} }",
    "external_resources: { nope: {} nope: {} }",
]  # fmt: skip

USES = [
    "dense_resource<x> : tensor<2xi32>", "dense_resource<x> : tensor<?xi32>",
    "dense_resource<x> : f32", "dense_resource<x> : vector<2xi32>", "dense_resource<x>",
    "dense_resource<x> : tensor<2xcomplex<f32>>", "dense_resource<x> : tensor<*xi32>",
    "dense_resource<>", 'dense_resource<"x y"> : tensor<2xi32>', "dense_resource<x, y> : f32",
    'dense_resource<""> : tensor<2xi32>', "dense_resource<1> : tensor<2xi32>",
    "dense_resource x : tensor<2xi32>",
]  # fmt: skip


def programs() -> list[str]:
    """All of them, in a fixed order."""
    sections = [f"{F}\n{{-#\n  {section}\n#-}}" for section in SECTIONS]
    held = 'dialect_resources: { builtin: { x: "0x040000000100000002000000" } }'
    uses = [f"{F} attributes {{a.b =\n {use}}}" for use in USES]
    return [
        *sections, *uses, *(f"{use}\n{{-# {held} #-}}" for use in uses),
        *(f"{{-# {held} #-}}\n{use}" for use in uses),
        f"{F}\n{{-# {held} #-}}\n{{-# {held} #-}}", f"{F}\n{{-#", f"{F}\n{{-# #-", f"{F}\n{{-##-}}",
        f"{F}\n{{-#-}}", f"module {{\n {F}\n}}\n{{-# #-}}",
    ]  # fmt: skip
