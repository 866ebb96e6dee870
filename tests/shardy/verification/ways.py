"""Ways to change an op, each of which may break it. The order of changes is always the same."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from tests.shardy.verification.case import Case, Region

ELEMENTS = [
    "f32", "f64", "bf16", "f8E4M3FN", "tf32", "i1", "i32", "i64", "i3", "ui8", "si32", "index",
    "complex<f32>", "complex<bf16>",
]  # fmt: skip
OTHERS = [
    "!stablehlo.token", "tuple<tensor<f32>>", "tuple<>", "index", "f32", "memref<4xf32>", "none",
    "!stablehlo.future<tensor<4x8xf32>>", "tensor<*xf32>", "vector<4xf32>", "() -> ()",
]  # fmt: skip
VALUES = [
    '"text"', "42 : i8", "-1 : i64", "0 : i64", "7 : i64", "1 : i32", "true", "unit", "1.5 : f32",
    "[]", "[1]", "{}", "array<i64>", "array<i64: 0, 0, 0>", "array<i64: 0, 1>", "array<i32: 0, 1>",
    "dense<0> : tensor<2xi64>", "dense<0> : tensor<1x2xi32>", "dense<[[0, 2]]> : tensor<1x2xi64>",
    "@symbol", "f32", "tensor<2xf32>", "#stablehlo<precision HIGHEST>",
]  # fmt: skip
NUMBERS = ["-1", "0", "1", "2", "3", "9"]

TENSOR = re.compile(r"tensor<((?:(?:\d+|\?)x)*)([^,]*(?:<.*>)?)>")


def types(ty: str) -> Iterator[str]:
    """Types like ``ty``, and others."""
    match = TENSOR.fullmatch(ty)
    if match is not None:
        sizes, element = match[1].split("x")[:-1], match[2]
        for other in shapes(sizes):
            yield f"tensor<{''.join(f'{size}x' for size in other)}{element}>"
        for other_element in ELEMENTS:
            yield f"tensor<{match[1]}{other_element}>"
        if sizes:
            bounds = ", ".join(["?"] * (len(sizes) - 1) + ["9"])
            dynamic = "".join(f"{size}x" for size in [*sizes[:-1], "?"])
            yield f"tensor<{dynamic}{element}, #stablehlo.bounds<{bounds}>>"
    yield from OTHERS


def shapes(sizes: list[str]) -> Iterator[list[str]]:
    """Shapes that are nearly ``sizes``."""
    yield [*sizes, "1"]
    yield ["2", *sizes]
    for at in range(len(sizes)):
        yield sizes[:at] + sizes[at + 1 :]
        for other in ("?", "0", "1", "2", "9"):
            yield [*sizes[:at], other, *sizes[at + 1 :]]
    yield sizes[::-1]


def numbers(text: str) -> Iterator[str]:
    """``text`` with one number changed, or one element of a list gone, doubled or added."""
    for match in re.finditer(r"(?<![\w.#-])-?\d+(?![\w.])", text):
        for number in NUMBERS:
            if number != match[0]:
                yield text[: match.start()] + number + text[match.end() :]
    for match in re.finditer(r"(\[|: )((?:-?\d+)(?:, -?\d+)*)(\]|>)", text):
        items = match[2].split(", ")
        for other in (items[1:], [*items, "0"], [*items, items[-1]], items[::-1]):
            inner = ", ".join(other)
            open_ = match[1] if other or match[1] == "[" else ""
            yield text[: match.start()] + open_ + inner + match[3] + text[match.end() :]
    for match in re.finditer(r"\[\]", text):
        for inner in ("0", "1", "7", "0, 0"):
            yield f"{text[: match.start()]}[{inner}]{text[match.end() :]}"


def words(text: str) -> Iterator[str]:
    """``text`` with another case of an enumeration, or another boolean."""
    cases = [
        ["EQ", "LT"], ["FLOAT", "SIGNED", "TOTALORDER"], ["DEFAULT", "HIGHEST"],
        ["FFT", "IFFT", "RFFT", "IRFFT"], ["UNIFORM", "NORMAL"], ["DEFAULT", "THREE_FRY"],
        ["NO_TRANSPOSE", "TRANSPOSE_INVALID", "ADJOINT"], ["TOLERANCE", "DEFAULT", "HIGHEST"],
        ["true", "false"], ["tf32", "f32", "f16"],
    ]  # fmt: skip
    for group in cases:
        for word in group:
            for match in re.finditer(rf"\b{word}\b", text):
                for other in group:
                    if other != word:
                        yield text[: match.start()] + other + text[match.end() :]


def changed_attributes(case: Case) -> Iterator[Case]:
    given = case.attributes
    for name, text in given.items():
        yield replace(case, attributes={key: given[key] for key in given if key != name})
        for value in [*VALUES, *numbers(text), *words(text)]:
            yield replace(case, attributes={**given, name: value})
    for name, value in [("foo", "1 : i64"), ("a.foo", "1 : i64"), ("stablehlo.foo", "unit")]:
        yield replace(case, attributes={**given, name: value})
    yield replace(case, as_properties=True, attributes={**given, "foo": "1 : i64"})
    if given:
        yield replace(case, as_properties=True)
        for name in given:
            for value in ('"text"', "1 : i8", "array<i64: 1>"):
                yield replace(case, as_properties=True, attributes={**given, name: value})


def changed_list(items: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """One type gone, doubled, changed or added; two exchanged."""
    for at, ty in enumerate(items):
        yield items[:at] + items[at + 1 :]
        yield (*items[: at + 1], ty, *items[at + 1 :])
        for other in types(ty):
            yield (*items[:at], other, *items[at + 1 :])
    yield (*items, "tensor<4xf32>")
    yield (*items, "!stablehlo.token")
    if not items:
        for other in [*OTHERS, *(f"tensor<{element}>" for element in ELEMENTS)]:
            yield (other,)
    if len(items) > 1:
        yield (items[1], items[0], *items[2:])


def changed_types(case: Case) -> Iterator[Case]:
    for operands in changed_list(case.operands):
        yield replace(case, operands=operands)
    for results in changed_list(case.results):
        yield replace(case, results=results)
    # All types in the same way: mostly sound.
    for old in sorted(set(case.operands)):
        for new in types(old):
            both = [tuple(new if ty == old else ty for ty in side)
                    for side in (case.operands, case.results)]  # fmt: skip
            yield replace(case, operands=both[0], results=both[1])


def changed_constants(case: Case) -> Iterator[Case]:
    for at, value in case.constants.items():
        for other in numbers(value.replace("<[", "<[").replace("dense<", "dense< ")):
            yield replace(case, constants={**case.constants, at: other})
        rest = {key: case.constants[key] for key in case.constants if key != at}
        yield replace(case, constants=rest)


def changed_region(region: Region) -> Iterator[Region]:
    yield Region(is_empty=True)
    yield replace(region, terminator="func.return")
    yield replace(region, terminator="sdy.return")
    yield replace(region, returned=())
    yield replace(region, more='  ^bb1:\n    "stablehlo.return"() : () -> ()')
    for at, value in enumerate(region.returned):
        rest = region.returned[:at] + region.returned[at + 1 :]
        yield replace(region, returned=rest)
        yield replace(region, returned=(*region.returned, value))
        for arg, ty in enumerate(region.args):
            other = (f"%x{arg}", ty)
            yield replace(
                region, returned=(*region.returned[:at], other, *region.returned[at + 1 :])
            )
    yield replace(region, args=(*region.args, "tensor<f32>"))
    if region.args:
        used = " ".join(region.ops) + " ".join(name for name, _ in region.returned)
        if f"%x{len(region.args) - 1}" not in used:
            yield replace(region, args=region.args[:-1])
    for old in sorted(set(region.args)):
        for new in types(old):
            # The types of arguments, of ops and of what is returned, so that they go together.
            yield Region(
                tuple(new if ty == old else ty for ty in region.args),
                tuple(op.replace(old, new) for op in region.ops),
                tuple((name, new if ty == old else ty) for name, ty in region.returned),
            )
            for at, ty in enumerate(region.args):
                if ty == old and f"%x{at}" not in " ".join(region.ops):
                    args = (*region.args[:at], new, *region.args[at + 1 :])
                    yield replace(region, args=args)


def changed_regions(case: Case) -> Iterator[Case]:
    yield replace(case, regions=(*case.regions, Region()))
    for at, region in enumerate(case.regions):
        yield replace(case, regions=case.regions[:at] + case.regions[at + 1 :])
        for other in changed_region(region):
            yield replace(case, regions=(*case.regions[:at], other, *case.regions[at + 1 :]))


def variants(case: Case) -> list[Case]:
    """All changes of ``case``, each once."""
    made = [
        *changed_types(case), *changed_attributes(case), *changed_constants(case),
        *changed_regions(case),
    ]  # fmt: skip
    return list({other.text(): other for other in made}.values())
