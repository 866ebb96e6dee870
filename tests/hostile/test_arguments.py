"""Arguments that nobody would think of: an error of ours, a TypeError or a ValueError, at once."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import pytest
import shardcore
import shardcore.calculus
import shardcore.jax
from shardcore import (
    Diagnostic,
    HloSharding,
    Mesh,
    Module,
    PassManager,
    Result,
    Session,
    ShardcoreError,
    StrategyProblem,
    TensorSharding,
)
from shardcore.simulate import Simulator

from tests.fuzz.surfaces.arguments import PROGRAM

NODES = [([1.0, 2.0], [1, 2], (0, 2)), ([1.0, 2.0], [1, 2], (1, 3))]
ENDLESS = itertools.repeat("x")
NESTED: list[Any] = []
NESTED.append(NESTED)
MESH = Mesh({"x": 2})
DEEP: list[Any] = []
for _ in range(100_000):
    DEEP = [DEEP]


@cache
def result() -> Result:
    return Module.parse(PROGRAM).propagate()


LONG = "x" * 200_000


def plan(**options: Any) -> shardcore.Plan:
    return shardcore.plan(result().module, **{"mesh": {"x": 2}, "seconds": 1, **options})


def _raise(text: str) -> object:
    raise ShardcoreError(Diagnostic("x", text, text))


CALLS: dict[str, Callable[[], object]] = {
    "a limit beyond 64 bits": lambda: StrategyProblem(NODES, [], 2**64).evaluate([9, 9]),
    "a usage beyond 64 bits": lambda: StrategyProblem([([1.0], [2**64], (0, 1))], []),
    "a time beyond 64 bits": lambda: StrategyProblem([([1.0], [1], (0, 2**63))], []),
    "a node beyond 64 bits": lambda: StrategyProblem(NODES, [((0, 2**63), [0.0] * 4)]),
    "rounds below zero": lambda: StrategyProblem(NODES, []).solve(rounds=-1),
    "a seed beyond 64 bits": lambda: StrategyProblem(NODES, []).solve(rounds=1, seed=2**64),
    "threads below zero": lambda: StrategyProblem(NODES, []).solve(rounds=1, threads=-1),
    "a chip that is a number": lambda: plan(hardware=3),
    "no memory at all": lambda: plan(memory=DEEP),
    "endless meshes": lambda: plan(mesh=ENDLESS),
    "endless targets": lambda: plan(keep=ENDLESS),
    "no seconds": lambda: plan(seconds=math.nan),
    "seconds that are a text": lambda: plan(seconds="x"),
    "more devices than there are": lambda: plan(mesh=None, devices=2**40),
    "devices that are a text": lambda: plan(mesh=None, devices="4"),
    "seconds beyond all floats": lambda: plan(seconds=-(10**5000)),
    "a seed that holds itself": lambda: shardcore.prove(result().partition(), seed=NESTED),  # type: ignore[arg-type]
    "a seed that is a range": lambda: shardcore.prove(result().partition(), seed=range(2**40)),  # type: ignore[arg-type]
    "endless codes": lambda: result().diagnostics(ignore=ENDLESS),
    "an axis that is none": lambda: result().why_not("%0", 0, None),  # type: ignore[arg-type]
    "a dim that is a list": lambda: result().why("%0", dim=DEEP),  # type: ignore[arg-type]
    "a mapping that is a list": lambda: result().cost(mapping=[1]),  # type: ignore[arg-type]
    "endless physical axes": lambda: result().cost(mapping={"x": itertools.count()}),  # type: ignore[dict-item]
    "a chip with a long name": lambda: result().cost(LONG),
    "a long topology": lambda: result().cost(topology=LONG),
    "a long strategy": lambda: result().module.propagate(strategy=LONG),
    "a long value": lambda: result().why(LONG),
    "a long axis": lambda: result().why_not("%0", 0, LONG),
    "a long target": lambda: Session(result().module).set(LONG, ["x"]),
    "a long option": lambda: Session(result().module, **{LONG: 1}),  # type: ignore[arg-type]
    "a long element type": lambda: TensorSharding(MESH, ["x"]).bytes_per_device([4], LONG),
    "a long name of an op": lambda: shardcore.rules.rule(LONG, "i->i"),
    "a long axis of a sharding": lambda: TensorSharding(MESH, [LONG]),
    "a long pipeline": lambda: PassManager.parse(f"builtin.module({LONG})"),
    "a long notation of GSPMD": lambda: HloSharding.parse("{devices=[" + "1" * 200_000),
    "an order of long names": lambda: result().cost(combine={LONG: 1}),
    "bytes that are deep": lambda: result().cost(combine=DEEP),  # type: ignore[arg-type]
    "hops that are deep": lambda: result().graph(hops=DEEP),  # type: ignore[arg-type]
    "devices that are no devices": lambda: Mesh(devices=[0.5, 1.5], axis_names=["x"]),
    "an array of floats": lambda: Mesh(devices=np.ones((2, 2)), axis_names="xy"),
    "very many wrong devices": lambda: Mesh({"x": 2}, device_ids=range(1 << 20, 0, -1)),
    "a wide indent": lambda: result().cost().to_json(2**40),
    "a wide indent of a timeline": lambda: result().cost().memory_timeline().to_json(2**40),
    "a spec of lists": lambda: Session(result().module).set("%x", DEEP),
    "a dialect that is a list": lambda: result().partition().as_text(DEEP),  # type: ignore[arg-type]
    "endless devices": lambda: shardcore.jax.compile(result(), ENDLESS),  # type: ignore[arg-type]
    "devices that are none": lambda: shardcore.jax.compile(result(), "abcd"),
    "endless devices of a sharding": lambda: shardcore.jax.named_sharding(
        shardcore.HloSharding.parse("{devices=[2]<=[2]}"), ENDLESS
    ),
    "no sharding": lambda: shardcore.jax.partition_spec(3),  # type: ignore[arg-type]
    "a matrix of billions": lambda: shardcore.calculus.reduce_matrix(4, 2**31),
    "a matrix of lists": lambda: shardcore.calculus.broadcast_matrix(2**31, [[1]]),  # type: ignore[arg-type]
    "no module": lambda: Simulator(None),  # type: ignore[arg-type]
    "a path that is a number": lambda: result().report(2**40),  # type: ignore[arg-type]
    "a descriptor as a chip's file": lambda: result().cost(hardware_file=True),  # type: ignore[arg-type]
    "a collective that is a number": lambda: shardcore.calculus.Collective.of(1, "A[I]", "x"),  # type: ignore[arg-type]
    "an array of a text": lambda: shardcore.calculus.NamedArray.from_sharding("x"),  # type: ignore[arg-type]
    "a topology of a name": lambda: shardcore.calculus.Topology.of(MESH, "tpu-v5p"),  # type: ignore[arg-type]
    "billions of simulated devices": lambda: result().module.simulate(devices=2**40),
}

# Where a message, a hint, a name and a line of the source are all long, each is cut.
LONG_PARTS: dict[str, Callable[[], object]] = {
    "a long program": lambda: Module.parse(LONG),
    "a program with a long name": lambda: Module.parse("x", filename=LONG),
    "long errors of callers": lambda: _raise(LONG),
}


@pytest.mark.parametrize("call", LONG_PARTS.values(), ids=LONG_PARTS.keys())
def test_all_parts_of_an_error_are_bounded(call: Callable[[], object]) -> None:
    with pytest.raises(ShardcoreError) as caught:
        call()
    assert len(str(caught.value)) < 5000


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
def test_arguments_of_any_kind_are_refused(call: Callable[[], object]) -> None:
    with pytest.raises((ShardcoreError, TypeError, ValueError)) as caught:
        call()
    assert len(str(caught.value)) < 2000


STEERING = "f\x1b]0;title\x07\u202e\r\n\x9b"
STEERED: dict[str, Callable[[], object]] = {
    "an element type": lambda: TensorSharding(MESH, ["x"]).bytes_per_device([4], STEERING),
    "a strategy": lambda: result().module.propagate(strategy=STEERING),
    "an option": lambda: result().module.propagate(**{STEERING: 1}),  # type: ignore[arg-type]
    "an op": lambda: shardcore.rules.rule(STEERING, "i->i"),
    "an axis": lambda: result().why_not("%0", 0, STEERING),
    "a chip": lambda: result().cost(STEERING),
    "a pipeline": lambda: PassManager.parse(STEERING),
    "a target": lambda: Session(result().module).set(STEERING, ["x"]),
    "a collective": lambda: shardcore.calculus.Collective.of(STEERING, "A[I]", "x"),
    "an array": lambda: shardcore.calculus.NamedArray.parse(f"A[I_{STEERING}]"),
}


@pytest.mark.parametrize("call", STEERED.values(), ids=STEERED.keys())
def test_text_of_callers_does_not_steer_terminals(call: Callable[[], object]) -> None:
    with pytest.raises((ShardcoreError, TypeError, ValueError)) as caught:
        call()
    assert not set("\x1b\x07\u202e\r\x9b") & set(str(caught.value))


def test_a_limit_beyond_64_bits_is_no_limit() -> None:
    found = StrategyProblem(NODES, [], 2**64).solve(rounds=1)
    assert (found.status, found.cost) == ("feasible", 2.0)


def test_a_search_may_have_more_seconds_than_any_float() -> None:
    assert plan(seconds=10**5000).stopped == plan(seconds=1e6).stopped
