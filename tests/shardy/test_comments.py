"""Comments within attributes: MLIR takes them for white space."""

from __future__ import annotations

import pytest
from jax._src.interpreters import mlir as jax_mlir
from jax._src.lib.mlir import ir
from shardcore import Module

from tests.shardy.global_to_local_ops import PROGRAMS


def canonical(text: str) -> str:
    with jax_mlir.make_ir_context():
        return str(ir.Module.parse(text))


@pytest.mark.parametrize("name", PROGRAMS)
def test_comments_are_white_space(name: str) -> None:
    text = PROGRAMS[name]
    commented = text.replace(", ", ", // and so on\n ").replace(" = ", " = // it is\n ")
    commented = commented.replace(" : i64", " : // bits\n i64").replace("array<", "array< // of\n ")
    assert canonical(commented) == canonical(text)
    module = Module.parse(commented)
    assert canonical(str(module)) == canonical(text)
    expected = Module.parse(text).propagate().module
    assert canonical(str(module.propagate().module)) == canonical(str(expected))
