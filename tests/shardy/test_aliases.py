"""Aliases of attributes and types: defined once, before they are used, as MLIR's parser has it."""

from __future__ import annotations

import pytest

from tests.shardy.messages import missing
from tests.shardy.mutations import ask_reference, ask_shardcore

FUNCTION = "func.func private @f(tensor<4xf32>)"
WRONG = [
    "#a = 1 : i64\n#a = 2 : i64",
    "#a = 1 : i64\n#a = 1 : i64",
    "!a = f32\n!a = f64",
    "#a.b = 1 : i64",
    "!a.b = f32",
    "func.func private @f(!t)\n!t = tensor<4xf32>",
    "func.func private @f(tensor<4x!t>)\n!t = f32",
    "module attributes {a.b = #z} {}\n#z = 1 : i64",
    f"{FUNCTION} attributes {{a.b = #nowhere}}",
]
RIGHT = [
    "#a = 1 : i64\n!a = f32",
    "!t = tensor<4xf32>\nfunc.func private @f(!t)",
    "!e = f32\n!t = tensor<4x!e>\nfunc.func private @f(!t, tensor<2x!e>)",
    "#z = 1 : i64\n#y = [#z, #z]\nmodule attributes {a.b = #y} {}",
    f"{FUNCTION} loc(#later)\n#later = loc(unknown)",
]


@pytest.mark.parametrize("text", WRONG)
def test_what_mlir_refuses(text: str) -> None:
    [theirs] = ask_reference([text])
    assert theirs
    ours = ask_shardcore(text)
    assert {line for line, _ in theirs} <= {line for line, _ in ours}
    assert not missing(theirs, ours)


@pytest.mark.parametrize("text", RIGHT)
def test_what_mlir_accepts(text: str) -> None:
    assert list(ask_reference([text])) == [[]]
    assert ask_shardcore(text) == []
