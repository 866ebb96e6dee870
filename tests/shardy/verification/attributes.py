"""Attributes of dialects, sound and broken a token at a time."""

from __future__ import annotations

import re
from collections.abc import Iterator

REGISTERED = [
    "builtin", "func", "stablehlo", "chlo", "sdy", "math", "memref", "scf", "shape", "tensor", "cf",
    "affine",
]  # fmt: skip
"""Dialects all of whose attributes are known."""

ENUMERATIONS = {
    "stablehlo": {
        "precision": "HIGHEST", "comparison_direction": "EQ", "comparison_type": "FLOAT",
        "fft_type": "FFT", "transpose": "ADJOINT", "rng_algorithm": "PHILOX",
        "rng_distribution": "NORMAL", "result_accuracy_mode": "HIGHEST",
        "custom_call_schedule": "X",
    },
    "chlo": {
        "precision": "HIGH", "comparison_direction": "LT", "comparison_type": "SIGNED",
        "ragged_dot_precision": "HIGH",
    },
}  # fmt: skip

STRUCTURES = {
    "stablehlo.gather": [
        "offset_dims = [0], collapsed_slice_dims = [1], operand_batching_dims = [], "
        "start_indices_batching_dims = [], start_index_map = [0], index_vector_dim = 1",
    ],
    "stablehlo.scatter": [
        "update_window_dims = [0], inserted_window_dims = [1], input_batching_dims = [2], "
        "scatter_indices_batching_dims = [], scatter_dims_to_operand_dims = [0], "
        "index_vector_dim = 1",
    ],
    "stablehlo.dot": [
        "lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], "
        "lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1]",
    ],
    "stablehlo.channel_handle": ["handle = 1, type = 0"],
    "stablehlo.output_operand_alias": [
        "output_tuple_indices = [], operand_index = 0, operand_tuple_indices = []",
    ],
    "stablehlo.result_accuracy": [
        "atol = 1.0, rtol = 0.0, ulps = 1, mode = #stablehlo.result_accuracy_mode<TOLERANCE>",
        "mode = #stablehlo.result_accuracy_mode<DEFAULT>",
    ],
    "stablehlo.axis_ref": ['name = "a"', 'name = "a", sub_axis_info = (1)2'],
    "stablehlo.sub_axis_info": ["(1)2"],
    "stablehlo.mesh": ['axes = [#stablehlo.mesh_axis<name = "a", size = 2>]'],
    "stablehlo.mesh_axis": ['name = "a", size = 2'],
    "stablehlo.type_extensions": ["bounds = [4, ?]"],
    "stablehlo.bounds": ["4, ?", "?", "4"],
    "stablehlo.conv": [
        "[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]", "[b, f]x[i, o]->[b, f]",
        "[b, f, 0]x[o, i, 0]->[b, f, 0]",
        "raw input_batch_dimension = 0, input_feature_dimension = 3, "
        "input_spatial_dimensions = [1, 2]",
    ],
    "chlo.ragged_dot": [
        "lhs_batching_dimensions = [], rhs_batching_dimensions = [], "
        "lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1], "
        "lhs_ragged_dimensions = [0], rhs_group_dimensions = [0]",
    ],
}  # fmt: skip

TOKEN = re.compile(r'"[^"]*"|@\w+|#?\w+(?:\.\w+)*|->|\S')


def others(token: str) -> list[list[str]]:
    """What may stand in place of ``token``, but for nothing and itself twice."""
    if token.isdigit():
        return [[n] for n in ("-1", "?", "x", '"1"', "1.5", "9223372036854775808", "0x1")]
    if re.fullmatch(r"\w+", token):
        return [["nope"], ["1"], ['"a"']]
    replaced = {"[": "(", "]": ")", "=": ":", ",": ";"}
    if token.startswith('"'):
        return [["a"]]
    return [[replaced[token]]] if token in replaced else []


def changed(body: str) -> Iterator[str]:
    """``body``, and each of its tokens gone, doubled or replaced."""
    tokens = TOKEN.findall(body)
    yield body
    for at, token in enumerate(tokens):
        for new in [[], [token, token], *others(token)]:
            yield " ".join([*tokens[:at], *new, *tokens[at + 1 :]])
    yield body + ","
    yield body + ", nope = 1"
    yield ", ".join(body.split(", ")[::-1])
    yield ""


def attributes() -> list[str]:
    made = [
        f"#{dialect}{rest}"
        for dialect in REGISTERED
        for rest in (".nope", ".nope<1>", "<nope>", "<nope 1>", "<>", ".")
    ]
    for dialect, cases in ENUMERATIONS.items():
        for name, case in cases.items():
            made += [
                f"#{dialect}{rest}" for rest in (
                    f"<{name} {case}>", f".{name}<{case}>", f"<{name}<{case}>>", f"<{name} NOPE>",
                    f".{name}<NOPE>", f"<{name}>", f".{name}", f".{name}<>", f".{name}<1>",
                    f"<{name} {case} {case}>", f"<{name} {case}, 1>", f".{name}<{case} 1>",
                    f'<{name} "{case}">', f"<{name} {case.lower()}>",
                )
            ]  # fmt: skip
    for full, bodies in STRUCTURES.items():
        dialect, _, name = full.partition(".")
        for body in bodies:
            made += [f"#{full}<{other}>" for other in changed(body)]
            made += [f"#{dialect}<{name}<{body}>>", f"#{dialect}<{name} {body}>", f"#{full}<{body}"]
    return list(dict.fromkeys(made))


def programs() -> list[str]:
    """All of them, in a fixed order."""
    return [f"module attributes {{a.b =\n {attribute}}} {{\n}}" for attribute in attributes()]
