"""Values that no function expects, and texts that are nearly what one expects."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from random import Random
from typing import Any


class FellError(Exception):
    """What hostile objects raise; it belongs to the caller."""


class Long(list[Any]):
    """Says that it is longer than any list."""

    def __len__(self) -> int:
        return 2**62


class Falling:
    """Falls over at each touch."""

    def __iter__(self) -> Iterator[Any]:
        raise FellError

    def __index__(self) -> int:
        raise FellError

    def __eq__(self, other: object) -> bool:
        raise FellError

    def __hash__(self) -> int:
        raise FellError

    def __str__(self) -> str:
        raise FellError

    __repr__ = __str__

    def __call__(self, *arguments: object, **named: object) -> object:
        raise FellError


INTEGERS = [
    0,
    1,
    -1,
    2,
    3,
    8,
    127,
    2**31,
    2**32,
    2**53 + 1,
    2**63 - 1,
    2**63,
    2**64,
    -(2**63),
    10**40,
]
FLOATS = [0.0, -0.0, 0.5, -1.5, 1e-320, 1e308, math.inf, -math.inf, math.nan]
TEXTS = [
    *["", " ", "x", "y", "data", "0", "-1", "\0", "\ud800", "é", "\x1b[2J", "²", "None", "x=2,y=2"],
    *[
        "%0",
        "%x",
        "%arg0",
        "result 0",
        "@main %0",
        "@mesh",
        "f32",
        "bf16",
        "f4E2M1FN",
        "i1",
        "8x16",
    ],
    *["**", "*", "params['w']", "[{?}, {}]", '[{"x"}, {"y"}]', '<@mesh, [{"x":(2)4, ?}p1, {}]>'],
    *["{devices=[2,2]<=[4]}", "{replicated}", "{devices=[2,1,2]0,1,2,3 last_tile_dim_replicate}"],
    *[
        "A[I_X, J_Y]",
        "A[I_X, J_Y] {U_Z}",
        "bf16[B=1024_X, D=4096_Y]",
        "A[I, J_X] * B[J_X, K] -> C[I, K]",
    ],
    *["tpu-v5p", "h100", "all", "least", "shardy", "xla", "all_gather", "sdy-propagation-pipeline"],
    *[
        "([i, k], [k, j])->([i, j]) {i=8, j=16, k=8} reduction={k}",
        "x" * 70_000,
        "[" * 5_000,
        "9" * 5_000,
    ],
]


def value(random: Random, samples: list[Any], depth: int = 0) -> Any:
    """Any value: of the samples, hostile, or made of others."""
    makers: list[Callable[[], Any]] = [
        lambda: random.choice(INTEGERS),
        lambda: random.choice(TEXTS),
        lambda: random.choice(samples),
        lambda: random.choice(FLOATS),
        lambda: random.choice([None, True, False, b"", b"\xff\0", object(), int, Falling(), ...]),
        lambda: mutated(random, random.choice(TEXTS)),
    ]
    if depth < 3:
        parts = [value(random, samples, depth + 1) for _ in range(random.randrange(4))]
        makers += [
            lambda: parts,
            lambda: tuple(parts),
            lambda: Long(parts),
            lambda: iter(parts),
            lambda: dict(zip(TEXTS[3:], parts, strict=False)),
            lambda: itertools.repeat(random.choice(TEXTS[:9])),
            lambda: lambda *_: parts[0] if parts else None,
        ]
    return random.choice(makers)()


def mutated(random: Random, text: str) -> str:
    """A text with some characters dropped, repeated or replaced."""
    characters = list(text[:400])
    for _ in range(random.randint(1, 4)):
        at = random.randrange(len(characters) + 1)
        match random.randrange(4):
            case 0:
                del characters[at : at + random.randint(1, 5)]
            case 1:
                characters[at:at] = characters[at : at + random.randint(1, 8)]
            case 2:
                characters[at : at + 1] = [random.choice('0129-"{}[]<>(),=_xX?p:@%\0\n\u00b2')]
            case _:
                characters[at:at] = [random.choice(["9" * 30, "-1", '""', "{", "x", "null", "inf"])]
    return "".join(characters)
