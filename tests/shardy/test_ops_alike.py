"""Ops with the attributes of one op that was verified, and the types of another."""

from __future__ import annotations

import itertools

import pytest

from tests.shardy.verification.compare import compare


def tensor(*sizes: int, element: str = "f32") -> str:
    return f"tensor<{''.join(f'{size}x' for size in sizes)}{element}>"


A, B = tensor(4, 6), tensor(4, 6, 8)
OPS: dict[str, tuple[str, list[str], list[str]]] = {
    "transpose": (
        "stablehlo.transpose {0}, dims = [{a}] : ({0t}) -> {r}",
        ["1, 0", "2, 0, 1"],
        [f"{A} | {tensor(6, 4)}", f"{B} | {tensor(8, 4, 6)}"],
    ),
    "slice": (
        "stablehlo.slice {0} [{a}] : ({0t}) -> {r}",
        ["0:2, 1:3", "0:2, 1:3, 4:8"],
        [f"{A} | {tensor(2, 2)}", f"{B} | {tensor(2, 2, 4)}"],
    ),
    "broadcast_in_dim": (
        "stablehlo.broadcast_in_dim {0}, dims = [{a}] : ({0t}) -> {r}",
        ["0, 1", "1, 2, 3"],
        [f"{A} | {tensor(4, 6, 2)}", f"{B} | {tensor(3, 4, 6, 8)}"],
    ),
    "pad": (
        "stablehlo.pad {0}, %z, low = [{a}], high = [{a}], interior = [{a}] : "
        "({0t}, tensor<f32>) -> {r}",
        ["0, 0", "0, 0, 0"],
        [f"{A} | {A}", f"{B} | {B}"],
    ),
    "reverse": (
        "stablehlo.reverse {0}, dims = [{a}] : {0t}",
        ["0, 1", "0, 2"],
        [f"{A} | {A}", f"{B} | {B}"],
    ),
    "reduce": (
        "stablehlo.reduce({0} init: %z) applies stablehlo.add across dimensions = [{a}] : "
        "({0t}, tensor<f32>) -> {r}",
        ["1", "1, 2"],
        [f"{A} | {tensor(4)}", f"{B} | {tensor(4)}"],
    ),
    "dot_general": (
        "stablehlo.dot_general {0}, {0}, {a} : ({0t}, {0t}) -> {r}",
        ["contracting_dims = [1] x [1]", "batching_dims = [0] x [0], contracting_dims = [2] x [2]"],
        [f"{A} | {tensor(4, 4)}", f"{B} | {tensor(4, 6, 6)}"],
    ),
    "concatenate": (
        "stablehlo.concatenate {0}, {0}, dim = {a} : ({0t}, {0t}) -> {r}",
        ["1", "2"],
        [f"{A} | {tensor(4, 12)}", f"{B} | {tensor(4, 6, 16)}"],
    ),
    "convolution": (
        "stablehlo.convolution({0}, {0}) dim_numbers = {a} "
        "{{batch_group_count = 1 : i64, feature_group_count = 1 : i64}} : ({0t}, {0t}) -> {r}",
        [
            "[b, 0, f]x[o, 0, i]->[b, 0, f], window = {{}}",
            "[b, 0, 1, f]x[o, 0, 1, i]->[b, 0, 1, f], window = {{}}",
        ],
        [
            f"{tensor(2, 3, 4)} | {tensor(2, 1, 2)}",
            f"{tensor(2, 3, 3, 4)} | {tensor(2, 1, 1, 2)}",
        ],
    ),
    "iota": (
        "stablehlo.iota dim = {a} : {r}",
        ["0", "2"],
        [f"{tensor(4)} | {tensor(4)}", f"{B} | {B}"],
    ),
    "gather": (
        '"stablehlo.gather"({0}, %i) <{{dimension_numbers = #stablehlo.gather<'
        "collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1, "
        "offset_dims = [{a}>, indices_are_sorted = false}}> : ({0t}, tensor<3x1xi32>) -> {r}",
        ["1]>, slice_sizes = array<i64: 1, 6", "1, 2]>, slice_sizes = array<i64: 1, 6, 8"],
        [f"{A} | {tensor(3, 6)}", f"{B} | {tensor(3, 6, 8)}"],
    ),
}


def program(name: str, pairs: list[tuple[int, int]]) -> str:
    """Ops called ``name`` with the attributes and the types that ``pairs`` choose."""
    form, attributes, types = OPS[name]
    split = [each.split(" | ") for each in types]
    args = [f"%{at}: {operand}" for at, (operand, _) in enumerate(split)]
    lines = [f"func.func @f({', '.join(args)}, %z: tensor<f32>, %i: tensor<3x1xi32>) {{"]
    for number, (attribute, kind) in enumerate(pairs):
        operand, result = split[kind]
        op = form.replace("{a}", attributes[attribute]).replace("{0t}", operand)
        op = op.replace("{0}", f"%{kind}").replace("{r}", result)
        op = op.replace("{{", "{").replace("}}", "}")
        lines.append(f"  %r{number} = {op}")
    return "\n".join([*lines, "  return", "}"])


@pytest.mark.parametrize("name", OPS)
def test_attributes_of_one_and_types_of_another(name: str) -> None:
    fits = [(0, 0), (1, 1)]
    texts = [program(name, fits)]
    wrong = [(0, 1), (1, 0)]
    texts += [
        program(name, [*order, *more])
        for order in itertools.permutations(fits)
        for more in [*([pair] for pair in wrong), wrong]
    ]
    first, *others = compare(texts)
    assert first.verdict == "both accept", first
    # Sizes that happen to fit are right for both.
    verdicts = {answer.verdict for answer in others}
    assert verdicts <= {"both refuse alike", "both accept"}, others
    assert "both refuse alike" in verdicts
