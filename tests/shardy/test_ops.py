"""A walk over a program sees what MLIR's own walk sees, in whichever form it is written."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from jaxlib.mlir import ir
from shardcore import Module, Op

from tests.deep import IS_DEEP
from tests.shardy import reference
from tests.shardy.programs import registry

NAMES = registry.names()[:: 1 if IS_DEEP else 6]
FLAT = ("padding",)
"""Attributes that ops' own syntax writes in other lists than the generic form."""
UNREAD = ("value", "function_type", "arg_attrs", "res_attrs")
"""Attributes that a function or a constant has elsewhere."""
DEFAULTS: set[str] = set()
"""Attributes that the generic form spells out although they are what they are by default."""


def theirs(module: ir.Module) -> Iterator[ir.Operation]:
    """Every op of every function, in order, parents first."""
    for op in module.body.operations:
        if op.operation.name == "func.func":
            yield from reference.walk(op.operation)


def flat(value: object) -> list[object]:
    return [leaf for item in value for leaf in flat(item)] if isinstance(value, list) else [value]


def attributes(op: Op) -> dict[str, object]:
    """What is to be the same in both forms, one of which leaves empty lists out."""
    found = {key: value for key, value in op.attributes.items() if key not in UNREAD}
    for name, value in found.items():
        if name in FLAT:
            found[name] = flat(value)
        elif isinstance(value, dict):
            found[name] = {key: item for key, item in value.items() if item != []}
    return found


@pytest.mark.parametrize("name", NAMES)
def test_both_forms_have_the_same_attributes(name: str) -> None:
    text = registry.text(name)
    own, generic = (Module.parse(t).ops() for t in (text, reference.generic(text)))
    assert [op.name for op in own] == [op.name for op in generic]
    for mine, plain in zip(own, generic, strict=True):
        wanted = attributes(plain)
        given = {key: (value, wanted.get(key)) for key, value in attributes(mine).items()}
        differing = {key: pair for key, pair in given.items() if pair[0] != pair[1]}
        assert not differing, (mine, differing)
        # The generic form may spell out defaults, no more.
        assert set(wanted) - set(given) <= DEFAULTS, mine


@pytest.mark.parametrize("name", NAMES)
def test_names_regions_and_constants_are_those_of_mlir(name: str) -> None:
    text = registry.text(name)
    with reference.context():
        module = ir.Module.parse(text)
        judge = list(theirs(module))
        ours = Module.parse(text).ops()
        assert [op.name for op in ours] == [op.name for op in judge]
        for mine, other in zip(ours, judge, strict=True):
            shape = [[len(list(block)) for block in region] for region in other.regions]
            assert [[len(block.ops) for block in region] for region in mine.regions] == shape
            types = [str(value.type) for value in (*other.operands, *other.results)]
            assert [value.type for value in (*mine.operands, *mine.results)] == types
            if mine.name == "stablehlo.constant":
                assert_same_elements(mine, other)


def assert_same_elements(op: Op, judge: ir.Operation) -> None:
    element, shape, data = op.elements()
    if element not in ("f32", "f64", "i1", "i8", "i32", "ui32", "i64", "ui64"):
        return  # jaxlib has no arrays of these: the simulator's tests compare them with XLA's.
    wanted = np.array(judge.attributes["value"])
    assert list(wanted.shape) == shape
    got = np.frombuffer(data, wanted.dtype)
    assert np.broadcast_to(got, wanted.size).tobytes() == wanted.tobytes()
