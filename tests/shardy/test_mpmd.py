"""Shardy's dialect of pipelines, `mpmd`: the reference and shardcore agree on its programs."""

from __future__ import annotations

import pytest
import shardcore
from shardcore import Module

from tests.shardy import mpmd, reference
from tests.shardy.diff import explain, ours
from tests.shardy.messages import Message, missing, of_error
from tests.shardy.mutations import ask_shardcore
from tests.shardy.verification.compare import CPP, FOLLOWS

RESHARDS = (
    "builtin.module(sdy-propagation-pipeline,"
    "func.func(sdy-insert-explicit-reshards{enable-full-version=true}))"
)
SOUND = mpmd.sound()
WRONG = mpmd.wrong()
PROGRAMS = mpmd.to_propagate()


@pytest.mark.parametrize("name", SOUND)
def test_what_mlir_prints_is_printed_byte_for_byte(name: str) -> None:
    for print_ in (reference.canonical, reference.generic):
        text = print_(SOUND[name])
        assert str(Module.parse(text)) == text


@pytest.mark.parametrize("name", SOUND)
def test_what_is_written_means_the_same(name: str) -> None:
    text = SOUND[name]
    assert reference.canonical(str(Module.parse(text))) == reference.canonical(text)


def said(text: str) -> list[Message]:
    """The mistakes that the reference finds in ``text``."""
    try:
        reference.canonical(text)
    except reference.RejectedError as error:
        found = [(line, CPP.sub("", message)) for line, message in error.errors]
        return [it for it in found if len(found) == 1 or not FOLLOWS.match(it[1])]
    return []


@pytest.mark.parametrize("name", WRONG)
def test_what_mlir_refuses_is_refused_alike(name: str) -> None:
    theirs, mine = said(WRONG[name]), ask_shardcore(WRONG[name])
    assert theirs
    assert not missing(theirs, mine), mine


@pytest.mark.parametrize("name", PROGRAMS)
def test_propagation_is_the_references(name: str) -> None:
    text = PROGRAMS[name]
    assert not (difference := explain(reference.run(text), ours(text))), difference


@pytest.mark.parametrize("name", PROGRAMS)
def test_reshards_are_the_references(name: str) -> None:
    text = PROGRAMS[name]
    theirs = reference.run(text, RESHARDS)
    assert not (difference := explain(theirs, ours(text, RESHARDS))), difference


@pytest.mark.parametrize("name", PROGRAMS)
def test_propagated_programs_are_read_again(name: str) -> None:
    propagated = reference.run(PROGRAMS[name])
    assert str(Module.parse(propagated)) == propagated


def refused(text: str) -> tuple[int | None, str, str | None]:
    """Where propagation refuses ``text``, why, and what may help."""
    with pytest.raises(shardcore.ShardcoreError) as caught:
        Module.parse(text).propagate()
    [(line, message)] = of_error(caught.value)
    return line, message, caught.value.diagnostics[0].hint


def test_shardings_over_a_mesh_that_is_not_there_are_refused_by_propagation() -> None:
    text = SOUND["fragment over meshes that are not there"]
    with pytest.raises(reference.RejectedError, match="unknown mesh: @none"):
        reference.run(text)
    line, message, hint = refused(text)
    assert line == 1 + text[: text.index("mpmd.fragment")].count("\n")
    assert "name a mesh or axes that the module does not have" in message
    assert "sdy.mesh" in str(hint)


def test_parts_of_pipelines_are_not_partitioned() -> None:
    with pytest.raises(shardcore.ShardcoreError, match="part of a pipeline") as caught:
        Module.parse(PROGRAMS["to host"]).propagate().partition()
    assert caught.value.diagnostics[0].hint == "partition the computation of one mesh"


def test_what_the_reference_dies_of() -> None:
    # The reference dies of both.
    bodies = {
        "  %0 = mpmd.transfer %a : (!a) -> !b": "Function does not have a topology attribute: main",
        "  %0 = mpmd.call @none(%t) : (!t) -> !t": "'none' does not reference a valid function",
    }
    for body, message in bodies.items():
        text = mpmd.in_function(body, topology="3")
        with pytest.raises(shardcore.ShardcoreError) as caught:
            Module.parse(text)
        assert message in [said for _, said in of_error(caught.value)]


def test_shapes_are_those_of_the_tensors() -> None:
    module = Module.parse(SOUND["transfer"])
    [op] = [op for op in module.ops() if op.name == "mpmd.transfer"]
    assert op.results[0].shape == (8, 16)
    assert op.results[0].type == '!mpmd.mesh_tensor<"last", tensor<8x16xf32>>'
