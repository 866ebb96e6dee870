"""Every elementwise op on numbers of every type, against XLA.

Bounds are in units in the last place; exact ops have none. Where one is above four, it is XLA's:
the simulator is within one of the exact result, but for digits that cancel.
"""

from __future__ import annotations

import numpy as np
import pytest
from shardcore import Module
from shardcore.simulate.dtypes import DTYPES, is_complex, is_float

from tests.deep import IS_DEEP
from tests.simulate import agree, xla
from tests.simulate.check import check_text, function
from tests.simulate.numbers import ALL, COMPLEX, FLOATS, INTEGERS, edges

EXACT = ("ceil", "floor", "round_nearest_afz", "round_nearest_even", "abs", "negate", "sign")
STANDARD = {
    **dict.fromkeys(("cosine", "sine", "exponential", "log", "rsqrt", "sqrt", "tan", "cbrt"), 2),
    **dict.fromkeys(("exponential_minus_one", "logistic", "tanh"), 8),
    "log_plus_one": 32,
}
"""Functions of StableHLO and their bounds."""
OF_CHLO = {
    **dict.fromkeys(("acos", "acosh", "asin", "asinh", "atan", "tan"), 8),
    "atanh": 128,
    **dict.fromkeys(("cosh", "sinh"), 512),
    "square": 0,
}
SPECIAL = {"bessel_i1e": 32, "erf": 4, "erf_inv": 40, "erfc": 512}
"""XLA's own bounds grow with what they are far from; that of the error function's inverse in narrow
types is that of the type."""
ABSOLUTE = {"digamma": 3e-6, "lgamma": 3e-6}
"""Near their zeros these are exact here, in XLA as good as a sum is: a bound on the difference."""


def unary(element: str, names: dict[str, float]) -> tuple[list[str], list[float], str]:
    """The ops as a program on a vector."""
    size = len(edges(element))
    kind = f"tensor<{size}x{element}>"
    body = [
        f"%r{at} = {name} %x : {kind}" + (f" -> {kind}" if name.startswith("chlo") else "")
        for at, name in enumerate(names)
    ]
    results = {f"r{at}": kind for at in range(len(names))}
    return list(names), list(names.values()), function(body, {"x": kind}, results)


def check_each(names: list[str], bounds: list[float], text: str, *arrays: np.ndarray) -> None:
    results = zip(Module.parse(text).simulate(*arrays), xla.run(text, *arrays), strict=True)
    for (got, want), name, bound in zip(results, names, bounds, strict=True):
        agree.assert_same(got, want, bound, name)


@pytest.mark.parametrize("element", FLOATS)
def test_functions_of_floats(element: str) -> None:
    names: dict[str, float] = {f"stablehlo.{name}": 0 for name in EXACT}
    names |= {f"stablehlo.{name}": bound for name, bound in STANDARD.items()}
    if not element.startswith("f8"):
        names |= {f"chlo.{name}": bound for name, bound in OF_CHLO.items()}
        names |= {f"chlo.{name}": bound for name, bound in SPECIAL.items()}
    check_each(*unary(element, names), edges(element))


@pytest.mark.parametrize("element", FLOATS[:4])
def test_functions_that_have_zeros(element: str) -> None:
    names = [f"chlo.{name}" for name in ABSOLUTE]
    x = edges(element)
    _, _, text = unary(element, dict.fromkeys(names, 0))
    results = zip(Module.parse(text).simulate(x), xla.run(text, x), strict=True)
    for got, want in results:
        wide = [np.where(np.isfinite(r := y.astype(float)), r, 0) for y in (got, want)]
        unit = 64 * float(np.finfo(np.float32).eps if element != "f64" else np.finfo(float).eps)
        unit = max(unit, 2 * float(agree.ml_dtypes.finfo(got.dtype).eps))
        assert np.array_equal(np.isnan(got.astype(float)), np.isnan(want.astype(float)))
        assert (np.abs(wide[0] - wide[1]) <= unit * np.maximum(np.abs(wide[1]), 1)).all()


@pytest.mark.parametrize("element", COMPLEX[: 2 if IS_DEEP else 1])
def test_functions_of_complex_numbers(element: str) -> None:
    without = ("cbrt", "ceil", "floor", "round_nearest_afz", "round_nearest_even", "abs", "sign")
    names = {f"stablehlo.{name}": 16 for name in STANDARD if name not in without}
    names |= {f"chlo.{name}": 16 for name in OF_CHLO} | {"stablehlo.negate": 0, "stablehlo.sign": 2}
    check_each(*unary(element, names), edges(element))


@pytest.mark.parametrize("element", INTEGERS)
def test_functions_of_integers(element: str) -> None:
    names = ["not", "count_leading_zeros"]
    # XLA counts the sign bits of a whole byte in four bits.
    names += [] if element == "i4" else ["popcnt"]
    names += [] if element.startswith("ui") else ["abs", "negate", "sign"]
    check_each(*unary(element, {f"stablehlo.{name}": 0 for name in names}), edges(element))


BINARY = ("add", "subtract", "multiply", "divide", "maximum", "minimum")
BITS = ("and", "or", "xor", "shift_left", "shift_right_logical", "shift_right_arithmetic")


def pairs(element: str) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of a type with others of it, many of them."""
    x = edges(element)
    return np.tile(x, 5), np.concatenate([np.roll(x, by) for by in (1, 2, 3, 5, 7)])


@pytest.mark.parametrize("element", [*FLOATS, *INTEGERS, *COMPLEX])
def test_functions_of_two_numbers(element: str) -> None:
    dtype = DTYPES[element]
    names: dict[str, float] = dict.fromkeys(BINARY, 0)
    if is_complex(dtype):
        names = dict.fromkeys(("add", "subtract"), 0) | {"multiply": 2, "divide": 4}
        names |= {"power": 64, "atan2": 128}
    elif is_float(dtype):
        names |= {} if element.startswith("f8") else {"remainder": 0, "power": 2, "atan2": 2}
    else:
        names |= dict.fromkeys(("remainder", *BITS), 0)
    a, b = pairs(element)
    kind = f"tensor<{len(a)}x{element}>"
    body = [f"%r{at} = stablehlo.{name} %a, %b : {kind}" for at, name in enumerate(names)]
    results = {f"r{at}": kind for at in range(len(names))}
    text = function(body, {"a": kind, "b": kind}, results)
    check_each(list(names), list(names.values()), text, a, b)


@pytest.mark.parametrize("element", ["i8", "i32", "ui32", "i64"])
def test_powers_of_integers(element: str) -> None:
    # XLA looks at the lowest six bits of a power, so larger ones are the simulator's alone.
    a, _ = pairs(element)
    b = (np.arange(len(a)) % 64 - (0 if element.startswith("ui") else 2)).astype(a.dtype)
    kind = f"tensor<{len(a)}x{element}>"
    check_text(
        function(["%r = stablehlo.power %a, %b : " + kind], {"a": kind, "b": kind}, {"r": kind}),
        a,
        b,
    )
    one = Module.parse(
        function(
            ["%r = stablehlo.power %a, %a : tensor<i8>"], {"a": "tensor<i8>"}, {"r": "tensor<i8>"}
        )
    ).simulate(np.int8(65))
    assert one[0] == pow(65, 65, 256) == 65


def test_booleans() -> None:
    a, b = np.array([False, False, True, True]), np.array([False, True, False, True])
    names = ("add", "multiply", "maximum", "minimum", "and", "or", "xor")
    body = [f"%r{at} = stablehlo.{name} %a, %b : tensor<4xi1>" for at, name in enumerate(names)]
    body.append("%n = stablehlo.not %a : tensor<4xi1>")
    results = {f"r{at}": "tensor<4xi1>" for at in range(len(names))} | {"n": "tensor<4xi1>"}
    check_text(function(body, {"a": "tensor<4xi1>", "b": "tensor<4xi1>"}, results), a, b)


@pytest.mark.parametrize("element", ALL)
def test_conversions(element: str) -> None:
    x = edges(element)
    targets = [each for each in ALL if not (element.startswith("complex") and each == "i1")]
    source = f"tensor<{len(x)}x{element}>"
    kinds = {f"r{at}": f"tensor<{len(x)}x{each}>" for at, each in enumerate(targets)}
    body = [
        f"%{name} = stablehlo.convert %x : ({source}) -> {kind}" for name, kind in kinds.items()
    ]
    text = function(body, {"x": source}, kinds)
    check_each(targets, [0.0] * len(targets), text, x)


@pytest.mark.parametrize("element", ALL)
def test_comparisons(element: str) -> None:
    a, b = pairs(element)
    b = np.where(np.arange(len(a)) % 4 == 0, a, b)
    kind, result = f"tensor<{len(a)}x{element}>", f"tensor<{len(a)}xi1>"
    ways = ["EQ", "NE"] + ([] if is_complex(a.dtype) else ["LT", "LE", "GT", "GE"])
    suffixes = ["", ", TOTALORDER"] if is_float(a.dtype) else [""]
    body = [
        f"%r{at} = stablehlo.compare {way}, %a, %b{suffix} : ({kind}, {kind}) -> {result}"
        for at, (way, suffix) in enumerate((way, suffix) for way in ways for suffix in suffixes)
    ]
    results = {f"r{at}": result for at in range(len(body))}
    check_each(body, [0.0] * len(body), function(body, {"a": kind, "b": kind}, results), a, b)


@pytest.mark.parametrize("element", [*INTEGERS, *FLOATS])
def test_selection_and_bounds(element: str) -> None:
    a, b = pairs(element)
    which, high = np.arange(len(a)) % 3 == 0, np.roll(b, 11)
    kind, one = f"tensor<{len(a)}x{element}>", f"tensor<{element}>"
    body = [
        f"%0 = stablehlo.select %w, %a, %b : tensor<{len(a)}xi1>, {kind}",
        f"%1 = stablehlo.clamp %a, %b, %h : {kind}",
        f"%2 = stablehlo.clamp %l, %a, %u : ({one}, {kind}, {one}) -> {kind}",
        f"%3 = stablehlo.select %p, %a, %b : tensor<i1>, {kind}",
    ]
    arguments = {"w": f"tensor<{len(a)}xi1>", "a": kind, "b": kind, "h": kind}
    arguments |= {"l": one, "u": one, "p": "tensor<i1>"}
    text = function(body, arguments, {str(at): kind for at in range(4)})
    check_text(text, which, a, b, high, a[5], a[6], np.array(False))


@pytest.mark.parametrize("element", ["f32", "f64", "bf16", "f16"])
def test_reduced_precision(element: str) -> None:
    x = edges(element)
    kind = f"tensor<{len(x)}x{element}>"
    formats = ("e5m10", "e8m7", "e4m3", "e5m2", "e2m1", "e8m3", "e3m0")
    body = [
        f"%{at} = stablehlo.reduce_precision %x, format = {each} : {kind}"
        for at, each in enumerate(formats)
    ]
    results = {str(at): kind for at in range(len(formats))}
    check_each(list(formats), [0.0] * len(formats), function(body, {"x": kind}, results), x)


def test_bit_casts() -> None:
    cases = [
        ("8xf32", "8xi32"), ("8xf32", "8x2xi16"), ("8xf32", "8x4xui8"), ("4x2xui16", "4xf32"),
        ("4x8xi8", "4xf64"), ("6xbf16", "6xi16"), ("5xf8E5M2", "5xui8"), ("3xi64", "3x2xf32"),
        ("3x2xi4", "3xi8"), ("3xui8", "3x2xui4"), ("4x2xf32", "4xi64"),
    ]  # fmt: skip
    rng = np.random.default_rng(0)
    for source, target in cases:
        *sizes, element = source.split("x")
        shape = tuple(int(size) for size in sizes)
        dtype = DTYPES[element]
        if element == "i4":
            x = rng.integers(-8, 8, shape).astype(dtype)
        else:
            x = rng.integers(0, 120, (*shape, dtype.itemsize), np.uint8).view(dtype).reshape(shape)
        one, other = f"tensor<{source}>", f"tensor<{target}>"
        body = [f"%r = stablehlo.bitcast_convert %x : ({one}) -> {other}"]
        check_text(function(body, {"x": one}, {"r": other}), x)


@pytest.mark.parametrize("element", FLOATS)
def test_parts_kinds_and_neighbours_of_floats(element: str) -> None:
    a, b = pairs(element)
    a, b = a[:300], np.where(np.arange(300) % 5 == 0, a[:300], b[:300])
    kind, boolean = f"tensor<300x{element}>", "tensor<300xi1>"
    body = [f"%f = stablehlo.is_finite %a : ({kind}) -> {boolean}"]
    results = {"f": boolean}
    if not element.startswith("f8"):
        body += [
            f"%i{k} = chlo.is_{k} %a : {kind} -> {boolean}" for k in ("inf", "neg_inf", "pos_inf")
        ]
        results |= {f"i{k}": boolean for k in ("inf", "neg_inf", "pos_inf")}
        body.append(f"%n = chlo.next_after %a, %b : {kind}, {kind} -> {kind}")
        results["n"] = kind
    check_text(function(body, {"a": kind, "b": kind}, results), a, b)


@pytest.mark.parametrize(("element", "part"), [("complex<f32>", "f32"), ("complex<f64>", "f64")])
def test_parts_of_complex_numbers(element: str, part: str) -> None:
    x = edges(element)
    kind, real = f"tensor<{len(x)}x{element}>", f"tensor<{len(x)}x{part}>"
    body = [
        f"%0 = stablehlo.real %x : ({kind}) -> {real}",
        f"%1 = stablehlo.imag %x : ({kind}) -> {real}",
        f"%2 = stablehlo.complex %1, %0 : {kind}",
        f"%3 = chlo.conj %x : {kind} -> {kind}",
        f"%4 = stablehlo.abs %x : ({kind}) -> {real}",
    ]
    results = {"0": real, "1": real, "2": kind, "3": kind, "4": real}
    check_text(function(body, {"x": kind}, results), x, bound=2)


@pytest.mark.parametrize("element", ["f32", "f64"])
def test_zeta_and_polygamma(element: str) -> None:
    dtype = DTYPES[element]
    order = np.repeat(np.arange(1, 6), 40).astype(dtype)
    x = np.tile(np.linspace(0.3, 12, 40), 5).astype(dtype)
    kind = f"tensor<200x{element}>"
    body = [
        f"%0 = chlo.polygamma %n, %x : {kind}, {kind} -> {kind}",
        f"%1 = chlo.zeta %s, %x : {kind}, {kind} -> {kind}",
    ]
    text = function(body, {"n": kind, "x": kind, "s": kind}, {"0": kind, "1": kind})
    check_text(text, order, x, order + dtype.type(0.5), bound=64)
