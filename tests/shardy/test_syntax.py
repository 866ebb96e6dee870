"""Text that MLIR's parser refuses is refused, and text that it accepts is accepted."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest
import shardcore
from shardcore import Module

from tests.shardy import reference
from tests.shardy.verification.compare import compare
from tests.shardy.worker import Worker

CORPUS = Path(__file__).parents[1] / "fuzz" / "corpus"

# Attributes, in a dictionary that nobody reads.
VALUES = """
1 | -1 | - 1 | 0x1F | 1.5 | 1. | 1.e5 | 1e5 | 1.5e-3 | 1.5E+3 | -1.5 : f64 | 1 : i32 | 1 : ui8
1 : tensor<2xi32> | 1 : foo | 1 : index | 1.0 : bf16 | 1.0 : i32 | 1 : f32 | 0x1 : f32 | 1 2
300 : i8 | 255 : i8 | 128 : si8 | 127 : si8 | -128 : i8 | -129 : i8 | 18446744073709551615
18446744073709551616 | -9223372036854775808 | -9223372036854775809 | 9223372036854775808 : index
true | false | unit | true : i1 | "x" | "x" : i32 | "\\q" | "\\0A" | "\\n\\t\\"\\\\" | "\\0" | []
[1, 2] | [1, 2,] | [1 2] | [1, [2]] | [,] | {} | {a} | {a,} | {a = 1, b = 2} | {"a b" = 1} | {a, a}
{a = 1, a = 2} | {i32 = 1} | {1} | {a = } | {a 1} | @a | @a::@b | @a::b | @"x y" | @a-b | @ | @1
#foo.bar | #foo.bar<1 2 ]> | #foo.bar<[1 2]> | #foo<bar> | #undefined | # | #foo.bar : i32 | i32
si8 | ui8 | i0 | i16777215 | i16777216 | f16 | bf16 | tf32 | f99 | f8E4M3FN | f4E2M1FN | index
none | foo | ? | * | -> | tensor<2xf32> | tensor<2x3xf32> | tensor<2 x 3 x f32> | tensor<?x?xf32>
tensor<*xf32> | tensor<* x f32> | tensor<f32> | tensor<> | tensor<2x> | tensor<2xx3xf32>
tensor<f32 | tensor<-2xf32> | tensor<2xf32, "enc"> | tensor<2xf32,> | tensor<2xf32, ,>
tensor<2x!foo.bar> | tensor<2xcomplex<f32>> | tensor<0x4xf32> | complex<f32> | tuple<>
tuple<i32, f32> | tuple<i32,> | tuple<tuple<>> | vector<2xf32> | memref<2xf32> | !foo.bar
!foo<bar> | !undefined | () -> () | (i32) -> i32 | (i32, f32) -> (i32, f32) | (i32) | (i32) ->
() -> (() -> ()) | array<i32: 1, 2> | array<i32> | array<i32:> | array<i32: 1,> | array<f32: 1.0>
array<f32: 1> | array<i1: true, false> | array<i1: true, 0> | array<index: 1> | array<i8: 300>
array<i64: -1> | dense<1> : tensor<2xi32> | dense<> : tensor<0xi32> | dense<> : tensor<2xi32>
dense<1> | dense<[]> : tensor<0xi32> | dense<[1, 2]> : tensor<2xi32>
dense<[1, 2]> : tensor<3xi32> | dense<[[1], 2]> : tensor<2xi32>
dense<[[1], [2]]> : tensor<2x1xi32> | dense<1.0> : tensor<2xi32>
dense<[[1, 2], [3]]> : tensor<2x2xi32> | dense<[1, 2,]> : tensor<2xi32>
dense<[1 2]> : tensor<2xi32> | dense<1> : tensor<2xf32> | dense<true> : tensor<2xi1>
dense<true> : tensor<2xi32> | dense<1> : i32 | dense<1> : tensor<?xi32> | dense<-1> : tensor<2xi32>
dense<0x1F> : tensor<2xi32> | dense<0x7F800000> : tensor<2xf32> | dense<300> : tensor<2xi8>
dense<"0x00"> : tensor<1xi8> | dense<"x"> : tensor<1xi8>
dense<(1.0, 2.0)> : tensor<1xcomplex<f32>> | dense<1.0> : tensor<1xf32> x
dense<(1.0, 2.0)> : tensor<1xf32> | dense<(1, 2)> : tensor<1xcomplex<i32>>
dense<foo> : tensor<i32> | dense_resource<a> : tensor<2xf32> | dense_resource<> : tensor<2xf32>
sparse<0, 1> : tensor<2xi32> | loc("a") | loc(unknown) | loc("a":1:2) | loc("a":1:2 to 3:4)
loc("a":1:2 to :4) | loc("a"("b")) | loc(callsite("a" at "b")) | loc(callsite("a" "b"))
loc(fused["a", "b"]) | loc(fused<"x">["a"]) | loc(fused["a" "b"]) | loc(foo) | loc() | loc("a":x)
loc(callsite("a" at)) | distinct[0]<unit> | #stablehlo<precision DEFAULT>
#stablehlo<precision FOO> | #stablehlo<fft_type RFFT>
#stablehlo.dot<lhs_contracting_dimensions = [1]> | #stablehlo.dot<lhs = [1]> | #stablehlo.dot<>
#stablehlo.dot<lhs_contracting_dimensions = 1> | #stablehlo.gather<index_vector_dim = 1>
#stablehlo.gather<index_vector_dim = [1]> | #stablehlo.channel_handle<handle = 1, type = 0>
#stablehlo.channel_handle<handle = 1> | #stablehlo.conv<[b, 0, f]x[0, i, o]->[b, 0, f]>
#stablehlo.conv<[b, 1, f]x[0, i, o]->[b, 0, f]> | #stablehlo.conv<[b, 0]x[0, i, o]->[b, 0, f]>
"""

# Ops, with and without what their syntax needs.
OPS = """
stablehlo.abs %a : T | stablehlo.abs %a, : T | stablehlo.abs : T | stablehlo.abs %a T
stablehlo.abs %a %a : T | stablehlo.add %a, %a : T | stablehlo.add %a %a : T | stablehlo.add %a : T
stablehlo.add %a, %a, : T | stablehlo.abs(%a) : T | stablehlo.abs %a#0 : T
stablehlo.abs %a #0 : T | stablehlo.abs %a {b} : T | stablehlo.abs %a {b : T
stablehlo.abs %a {b} {c} : T | stablehlo.abs {b} %a : T | stablehlo.iota dim = 0 : T
stablehlo.iota dim 0 : T | stablehlo.iota : T | stablehlo.iota dim = x : T
stablehlo.transpose %a, dims = [1, 0] : (T) -> T | stablehlo.transpose %a dims = [1, 0] : (T) -> T
stablehlo.transpose %a, dims = [1 0] : (T) -> T | stablehlo.transpose %a, dims [1, 0] : (T) -> T
stablehlo.transpose %a, perm = [1, 0] : (T) -> T | stablehlo.transpose %a, dims = 1 : (T) -> T
stablehlo.dot_general %a, %a, contracting_dims = [1] x [0] : (T, T) -> T
stablehlo.dot_general %a, %a contracting_dims = [1] x [0] : (T, T) -> T
stablehlo.dot_general %a, %a, contracting_dims = [1] [0] : (T, T) -> T
stablehlo.dot_general %a, %a, contracting_dims = [1] x [0], precision = [HIGH, HIGH] : (T, T) -> T
stablehlo.dot_general %a, %a, contracting_dims = [1] x [0] precision = [HIGH, HIGH] : (T, T) -> T
stablehlo.dot_general %a, %a, contracting_dims = [1] x [0], precision = [FAST] : (T, T) -> T
stablehlo.dot_general %a, %a, batching_dims = [0] x [0], contracting_dims = [1] x [1] : (T, T) -> V
stablehlo.dot_general %a, %a, batching_dims = [0] x [0] contracting_dims = [1] x [1] : (T, T) -> V
stablehlo.slice %a [0:2, 0:4] : (T) -> tensor<2x4xf32>
stablehlo.slice %a [0:2:1, 0:4] : (T) -> tensor<2x4xf32>
stablehlo.slice %a [0:2 0:4] : (T) -> tensor<2x4xf32>
stablehlo.slice %a [0, 0:4] : (T) -> tensor<2x4xf32>
stablehlo.compare EQ, %a, %a : (T, T) -> tensor<4x4xi1>
stablehlo.compare EQ %a, %a : (T, T) -> tensor<4x4xi1>
stablehlo.compare EQ, %a, %a, FLOAT : (T, T) -> tensor<4x4xi1>
stablehlo.compare QE, %a, %a : (T, T) -> tensor<4x4xi1>
stablehlo.concatenate %a, %a, dim = 0 : (T, T) -> tensor<8x4xf32>
stablehlo.concatenate %a, %a dim = 0 : (T, T) -> tensor<8x4xf32>
stablehlo.custom_call @f(%a) : (T) -> T | stablehlo.custom_call f(%a) : (T) -> T
stablehlo.custom_call @f %a : (T) -> T | stablehlo.custom_call @f(%a,) : (T) -> T
stablehlo.custom_call @f() : () -> T | stablehlo.broadcast_in_dim %a, dims = [0, 1] : (T) -> T
stablehlo.broadcast_in_dim %a, dims = [0, 1], : (T) -> T | stablehlo.reverse %a, dims = [0] : T
stablehlo.reverse %a, dims = [] : T | stablehlo.cholesky %a, lower = true : T
stablehlo.cholesky %a : T | stablehlo.cholesky %a, lower = yes : T | stablehlo.cholesky %a, : T
stablehlo.reduce_precision %a, format = e5m10 : T | stablehlo.reduce_precision %a, format = e5 : T
stablehlo.convert %a : (T) -> tensor<4x4xbf16> | stablehlo.convert %a : (T) ->
stablehlo.convert %a (T) -> T | stablehlo.constant dense<0.0> : T | stablehlo.constant dense<0> : T
stablehlo.constant 0.0 : T | stablehlo.constant {a} dense<0.0> : T | stablehlo.constant dense<0.0>
stablehlo.constant : T | sdy.constant dense<0.0> : T | sdy.constant dense<0.0> : tensor<?xf32>
stablehlo.optimization_barrier %a : T | stablehlo.optimization_barrier %a, : T
sdy.reshard %a <@mesh, [{}, {}]> : T | sdy.reshard %a, <@mesh, [{}, {}]> : T | sdy.reshard %a : T
sdy.propagation_barrier %a allowed_direction=BOTH : T
sdy.propagation_barrier %a allowed_direction=2 : T | call @main(%a) : (T) -> T
call @main %a : (T) -> T | func.call @main(%a) : (T) -> T | chlo.square %a : T -> T
chlo.square %a : T | chlo.broadcast_add %a, %a : (T, T) -> T | "foo.bar"(%a) : (T) -> T
"foo.bar"(%a : (T) -> T | "foo.bar"(%a) <{a = 1}> : (T) -> T | "foo.bar"(%a) -> T
"foo.bar"(%a) <{a = }> : (T) -> T | "foo.bar"(%a) {a = 1,} : (T) -> T | "foo.bar"(%a) : (T,) -> T
"""


def split(table: str) -> list[str]:
    cells = [cell.strip() for line in table.strip().splitlines() for cell in line.split(" | ")]
    return [cell.replace("\\\\", "\\") for cell in cells]


def in_function(op: str) -> str:
    body = re.sub(r"\bT\b", "tensor<4x4xf32>", f"%0 = {op}")
    body = re.sub(r"\bV\b", "tensor<4xf32>", body)
    return (
        'sdy.mesh @mesh = <["x"=2]>\n'
        "func.func @main(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {\n"
        f"  {body}\n  return %a : tensor<4x4xf32>\n}}\n"
    )


def refusal(text: str) -> str | None:
    """What the reference says against ``text``, if it does."""
    try:
        reference.canonical(text)
    except reference.RejectedError as error:
        return str(error)
    return None


def ours(text: str) -> str | None:
    try:
        shardcore.Module.parse(text)
    except shardcore.ShardcoreError as error:
        return str(error)
    return None


@pytest.fixture(autouse=True)
def _unregistered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reference.context(), "allow_unregistered_dialects", True)


@pytest.mark.parametrize("value", split(VALUES))
def test_attributes(value: str) -> None:
    text = f'"a.b"() {{x = {value}}} : () -> ()'
    assert (refusal(text) is None) == (ours(text) is None), (refusal(text), ours(text))


@pytest.mark.parametrize("op", split(OPS))
def test_ops(op: str) -> None:
    text = in_function(op)
    assert (refusal(text) is None) == (ours(text) is None), (refusal(text), ours(text))


def test_manual_axes_and_nothing_else() -> None:
    text = """func.func private @f() attributes {sdy.func_manual_axes = #sdy<manual_axes{"x"}%s>}"""
    for junk in ("", " junk"):
        assert refusal(text % junk) is None
    assert ours(text % "") is None
    assert "expected '>', found 'junk'" in (ours(text % " junk") or "")


def test_a_precision_and_nothing_else() -> None:
    text = """func.func @f(%%x: tensor<2xf32>) -> tensor<f32> {
  %%0 = "stablehlo.dot_general"(%%x, %%x) <{dot_dimension_numbers = #stablehlo.dot<lhs_contracting_dimensions = [0], rhs_contracting_dimensions = [0]>, precision_config = [#stablehlo<precision DEFAULT%s>]}> : (tensor<2xf32>, tensor<2xf32>) -> tensor<f32>
  return %%0 : tensor<f32>
}"""  # noqa: E501
    for junk in ("", " junk"):
        assert refusal(text % junk) is None
    assert ours(text % "") is None
    assert "Precision Config attribute" in (ours(text % " junk") or "")


def test_words_are_no_integers() -> None:
    text = """func.func @f(%%x: tensor<2x1xf32>) -> tensor<2x1xf32> {
  %%0 = stablehlo.abs %%x {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, j]) {i=2, j=%s}>} : tensor<2x1xf32>
  return %%0 : tensor<2x1xf32>
}"""  # noqa: E501
    for number in ("1", "true"):
        assert refusal(text % number) is None
    assert ours(text % "1") is None
    assert "expected integer value, found 'true'" in (ours(text % "true") or "")


TOKEN = re.compile(r'\s+|//[^\n]*|"(?:[^"\\]|\\.)*"|[%@#!^]?[A-Za-z_][\w$.]*|[%@#!^]\d+|\d+|->|.')
VERIFIER = re.compile(r"'[a-z_]+\.[\w.-]+' op ")
"""Said of a program that makes no sense, which shardcore checks no further than it has to."""


def changed(draw: random.Random, text: str, others: list[str]) -> str:
    """``text`` with one token dropped, repeated, moved or replaced."""
    tokens = TOKEN.findall(text)
    at, to = (draw.choice([i for i, t in enumerate(tokens) if t.strip()]) for _ in range(2))
    change = draw.randrange(4)
    if change == 0:
        tokens[at] = ""
    elif change == 1:
        tokens[at] = f"{tokens[at]} {tokens[at]}"
    elif change == 2:
        tokens[at], tokens[to] = tokens[to], tokens[at]
    else:
        tokens[at] = draw.choice(others)
    return "".join(tokens)


def test_random_changes() -> None:
    """Of the texts with a token changed, what MLIR's parser accepts is accepted.

    The other way round the syntax of attributes of dialects is left open, and what StableHLO's
    verifier asks of shapes: a few in a thousand.
    """
    texts = [path.read_text(encoding="utf-8") for path in sorted(CORPUS.glob("*.mlir"))]
    texts = [text for text in texts if refusal(text) is None]
    others = [token for text in texts for token in TOKEN.findall(text) if token.strip()]
    draw = random.Random(7)
    worker = Worker()
    lenient = []
    for _ in range(600):
        text = changed(draw, draw.choice(texts), others)
        problem = ours(text)
        try:
            worker.run(text, "builtin.module()", verify=False)
        except reference.DiedError:
            continue
        except reference.RejectedError as error:
            said = str(error)
            if problem is None and not VERIFIER.search(said) and "unregistered" not in said:
                lenient.append((text, said))
            continue
        assert problem is None or "invalid-rule" in problem, text
    worker.close()
    assert len(lenient) <= 6, lenient[:3]


def test_cases_of_enumerations_in_quotes_with_escapes() -> None:
    square, pair = "tensor<2x2xf32>", "(tensor<2x2xf32>, tensor<2x2xf32>)"
    number, complexes = "tensor<2xi64>", "tensor<4xcomplex<f32>>"
    ops = [
        rf'stablehlo.compare "L\54", %a, %a : {pair} -> tensor<2x2xi1>',
        rf'stablehlo.compare "L\58", %a, %a : {pair} -> tensor<2x2xi1>',
        rf'stablehlo.compare LT, %a, %a, "\46LOAT" : {pair} -> tensor<2x2xi1>',
        r'stablehlo.compare #stablehlo<comparison_direction "L\54">, %a, %a'
        rf" : {pair} -> tensor<2x2xi1>",
        r'stablehlo.compare #stablehlo.comparison_direction<"\4cT">, %a, %a'
        rf" : {pair} -> tensor<2x2xi1>",
        rf'stablehlo.dot_general %a, %a, contracting_dims = [1] x [0], precision = ["D\45FAULT", '
        rf'"HIGHEST"] : {pair} -> {square}',
        rf'stablehlo.fft %c, type = "\46FT", length = [4] : ({complexes}) -> {complexes}',
        rf'stablehlo.rng_bit_generator %n, algorithm = "D\45FAULT" : ({number}) -> '
        rf"({number}, tensor<4xf32>)",
        '"stablehlo.triangular_solve"(%a, %a) <{left_side = true, lower = true, unit_diagonal = '
        rf'false, transpose_a = #stablehlo<transpose "NO_\54RANSPOSE">}}> : {pair} -> {square}',
        '"stablehlo.triangular_solve"(%a, %a) <{left_side = true, lower = true, unit_diagonal = '
        rf'false, transpose_a = #stablehlo<transpose "NO_\55RANSPOSE">}}> : {pair} -> {square}',
        rf'sdy.propagation_barrier %a allowed_direction="N\4fNE" : {square}',
        rf'sdy.propagation_barrier %a allowed_direction="N\50NE" : {square}',
    ]
    texts = [
        f"func.func @f(%a: {square}, %c: {complexes}, %n: {number}) {{\n"
        f"%r{':2' if 'rng' in op else ''} = {op}\nreturn\n}}"
        for op in ops
    ]
    answers = list(compare(texts))
    assert [answer.verdict for answer in answers].count("both accept") == 8, answers
    assert {answer.verdict for answer in answers} == {"both accept", "both refuse alike"}, answers


def test_escapes_say_what_an_op_does() -> None:
    """Of a triangular solve that is transposed, the other triangle is read."""
    op = (
        '"stablehlo.triangular_solve"(%a, %b) <{left_side = true, lower = true, unit_diagonal = '
        'false, transpose_a = #stablehlo<transpose "TRANS\\50OSE">}> : '
        "(tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>"
    )
    square = "tensor<2x2xf32>"
    head = f"func.func @f(%a: {square}, %b: {square}) -> {square}"
    text = f"{head} {{\n%r = {op}\nreturn %r : {square}\n}}"
    plain = text.replace("\\50", "P")
    given = [[[2, 0], [3, 4]], [[1, 2], [3, 4]]]
    (escaped,) = Module.parse(text).simulate(*given)
    (expected,) = Module.parse(plain).simulate(*given)
    assert (escaped == expected).all()


NULS = {
    "at the end": ("return\n}", "return\n}\0"),
    "at the start": ("sdy.mesh", "\0sdy.mesh"),
    "between tokens": (" = stablehlo.abs ", "\0=\0stablehlo.abs\0"),
    "in a type": ("tensor<8xf32>", "tensor<8\0xf32>"),
    "in a list": ("[1, 2]", "[1,\0 2]"),
    "in a mesh": ('"x"=2', '"x"=\0 2'),
    "in a sharding without a name": (' <@m, [{"x"}]', ' <@m, [{"x"\0}]'),
    "in a body": ("#stablehlo.bounds<?>", "#stablehlo.bounds<\0?>"),
    "in a body of a sharding": ("#sdy.sharding<@m", "#sdy.sharding<\0@m"),
    "in a name": ("%0", "%\0000"),
    "in a string": ('"text"', '"te\0xt"'),
    "in a comment": ("// comment", "// com\0ment"),
    "in a number": ("[1, 2]", "[1, 2\0002]"),
}


def test_nuls_between_tokens_are_white_space() -> None:
    text = """sdy.mesh @m = <["x"=2]>
func.func @f(%a: tensor<8xf32> {a.b = #stablehlo.bounds<?>,
  sdy.sharding = #sdy.sharding<@m, [{"x"}]>}) { // comment
  %0 = stablehlo.abs %a {a.d = [1, 2], a.e = "text"} : tensor<8xf32>
  %1 = sdy.sharding_constraint %0 <@m, [{"x"}]> : tensor<8xf32>
  return
}"""
    texts = [text.replace(*change, 1) for change in NULS.values()]
    assert all("\0" in changed for changed in texts)
    answers = dict(zip(NULS, compare(texts), strict=True))
    wrong = {name: a for name, a in answers.items() if a.verdict.startswith("only")}
    assert not wrong
    accepted = {name for name, answer in answers.items() if not answer.ours}
    assert {"at the end", "between tokens", "in a type", "in a comment"} <= accepted
    assert not {"in a body", "in a body of a sharding"} & accepted
    assert str(Module.parse(f"{text}\0")).strip() == text


@pytest.mark.parametrize(
    ("written", "type"),
    [
        ("tensor <8xf32>", "tensor<8xf32>"),
        ("tensor\n< 8 x f32 >", "tensor<8xf32>"),
        ('tensor<8xf32 ,// a > b\n"a , b">', 'tensor<8xf32, "a , b">'),
        ("tensor<8xcomplex < f32 >>", "tensor<8xcomplex<f32>>"),
        ("tuple <tensor<8xf32> ,tensor< 2xf32>>", "tuple<tensor<8xf32>, tensor<2xf32>>"),
    ],
)
def test_types_with_white_space_are_those_without(written: str, type: str) -> None:
    text = f"func.func @f(%a: {written}) -> {type} {{\n  return %a : {type}\n}}"
    assert type in reference.canonical(text)
    [argument] = Module.parse(text).arguments()
    assert argument.type == type
