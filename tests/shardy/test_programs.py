"""Ours and the reference agree, byte for byte, on real programs lowered from JAX."""

from __future__ import annotations

from functools import cache

import pytest
import shardcore

from tests.deep import sampled
from tests.shardy import reference
from tests.shardy.diff import assert_same, ours
from tests.shardy.programs import registry

every_program = pytest.mark.parametrize("name", registry.names())
some_programs = pytest.mark.parametrize("name", sampled(registry.names(), 3))


@cache
def completed(name: str, locations: bool = False) -> str:
    """The reference's result for a program."""
    return reference.run(registry.text(name, locations), locations=locations)


def assert_round_trip(text: str, locations: bool = False) -> None:
    again = str(shardcore.Module.parse(text))
    assert_same(reference.canonical(text, locations), reference.canonical(again, locations))


@every_program
def test_pipeline(name: str) -> None:
    assert_same(completed(name), ours(registry.text(name)))


@some_programs
def test_pipeline_keeps_locations(name: str) -> None:
    text = registry.text(name, locations=True)
    assert_same(completed(name, locations=True), ours(text, locations=True))


@some_programs
def test_round_trip(name: str) -> None:
    assert_round_trip(registry.text(name))


@some_programs
def test_round_trip_of_result(name: str) -> None:
    assert_round_trip(completed(name))


@some_programs
def test_round_trip_of_generic_form(name: str) -> None:
    assert_round_trip(reference.generic(registry.text(name)))


@some_programs
def test_round_trip_with_locations(name: str) -> None:
    assert_round_trip(registry.text(name, locations=True), locations=True)
