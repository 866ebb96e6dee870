"""What the process remembers across programs: bounded, cleared on demand, never seen in results."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest
import shardcore
from shardcore import CacheInfo, Module, PassManager, cache_info, clear_caches, rule
from shardcore.rules import unregister

NAMES = ["rules", "answers", "visits", "kernels"]


def program(ops: int = 3, op: str = "stablehlo.abs", attribute: str = "") -> str:
    lines = "".join(
        f'  %{i} = "{op}"(%{i - 1 if i else "a"}) {attribute}: (tensor<8xf32>) -> tensor<8xf32>\n'
        for i in range(ops)
    )
    return (
        'sdy.mesh @mesh = <["x"=2]>\nfunc.func @main(%a: tensor<8xf32> '
        '{sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {\n'
        f"{lines}  return %{ops - 1} : tensor<8xf32>\n}}\n"
    )


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    clear_caches()
    yield
    unregister("my.op")
    clear_caches()


def entries() -> dict[str, int]:
    return {name: info.entries for name, info in cache_info().items()}


def test_what_is_remembered_is_counted_and_cleared() -> None:
    assert list(cache_info()) == NAMES
    assert entries() == dict.fromkeys(NAMES, 0)
    rule("my.op")(lambda signature: "i -> i")
    Module.parse(program()).propagate().cost("h100")
    Module.parse(program(op="my.op")).propagate()
    assert all(count > 0 for count in entries().values())
    for info in cache_info().values():
        assert isinstance(info, CacheInfo)
        assert info.entries <= info.max_entries
    clear_caches()
    assert entries() == dict.fromkeys(NAMES, 0)


def test_results_do_not_depend_on_it() -> None:
    rule("my.op")(lambda signature: "i -> i")
    for text in (program(), program(op="my.op")):
        first = Module.parse(text).propagate()
        again = Module.parse(text).propagate()
        clear_caches()
        cleared = Module.parse(text).propagate()
        assert str(first.module) == str(again.module) == str(cleared.module)
        assert str(first.with_collectives) == str(cleared.with_collectives)


def test_functions_are_asked_once_and_again_after_clearing() -> None:
    calls = []

    @rule("my.op")
    def counted(signature: shardcore.rules.Signature) -> str:
        calls.append(signature.name)
        return "i -> i"

    for _ in range(3):
        Module.parse(program(op="my.op")).propagate()
    assert len(calls) == 1
    rule("my.unrelated", "i -> i")
    Module.parse(program(op="my.op")).propagate()
    assert len(calls) == 1
    unregister("my.unrelated")
    clear_caches()
    Module.parse(program(op="my.op")).propagate()
    assert len(calls) == 2


def test_another_function_for_the_same_op_is_asked_itself() -> None:
    rule("my.op")(lambda signature: "i -> i")
    sharded = str(Module.parse(program(op="my.op")).propagate()["%0"].sharding)
    rule("my.op")(lambda signature: None)
    assert Module.parse(program(op="my.op")).propagate()["%0"].sharding is None
    assert sharded == '<@mesh, [{"x"}]>'


def test_a_run_under_way_does_not_bring_back_what_was_cleared() -> None:
    def clear(*_: object) -> None:
        clear_caches()

    Module.parse(program(50)).propagate(progress=clear)
    Module.parse(program(50)).propagate()
    PassManager.parse("builtin.module(sdy-propagation-pipeline)").run(Module.parse(program(50)))
    before = entries()
    assert before["visits"] > 0

    @rule("my.op")
    def clearing(signature: shardcore.rules.Signature) -> str:
        clear_caches()
        return "i -> i"

    Module.parse(program(op="my.op")).propagate()
    assert entries()["rules"] == 0


MEMORY = """
import resource, shardcore
from shardcore import Module, rule
from tests.unit.test_caches import program
def resident():
    return int(open("/proc/self/statm").read().split()[1]) * resource.getpagesize() >> 20
if {function}:
    rule("my.op")(lambda signature: "i -> i")
    name = "my.op"
else:
    name = "stablehlo.custom_call"
def run(number):
    text = '{{call_target_name = "f", k = "' + str(number) + "x" * 10**6 + '"}} '
    Module.parse(program(1, name, text)).propagate()
for number in range(20):
    run(number)
before = resident()
for number in range(20, 220):
    run(number)
print(resident() - before)
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="no /proc here")
@pytest.mark.parametrize("function", [True, False])
def test_memory_is_bounded_where_signatures_are_large(function: bool) -> None:
    done = subprocess.run(
        [sys.executable, "-c", MEMORY.format(function=function)],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    # 200 MB of signatures went through.
    assert int(done.stdout) < 100


def test_answers_are_forgotten_oldest_first() -> None:
    asked: list[object] = []

    @rule("my.op")
    def counted(signature: shardcore.rules.Signature) -> str:
        asked.append(signature.attributes["k"])
        return "i -> i"

    limit = cache_info()["answers"].max_entries
    lines = "".join(
        f'%{i} = "my.op"(%a) {{k = {i}}} : (tensor<8xf32>) -> tensor<8xf32>\n'
        for i in range(limit + 1)
    )
    text = f"func.func @main(%a: tensor<8xf32>) {{\n{lines}return\n}}"
    Module.parse(text).propagate()
    assert cache_info()["answers"].entries == limit
    assert len(asked) == limit + 1

    def ask(number: int) -> None:
        line = f'%0 = "my.op"(%a) {{k = {number}}} : (tensor<8xf32>) -> tensor<8xf32>'
        Module.parse(f"func.func @main(%a: tensor<8xf32>) {{\n{line}\nreturn\n}}").propagate()

    ask(limit)
    assert len(asked) == limit + 1
    ask(0)
    assert asked[-1] == 0
    assert len(asked) == limit + 2


def test_clearing_in_many_threads() -> None:
    expected = str(Module.parse(program(100)).propagate().module)
    stop = threading.Event()
    wrong: list[str] = []

    def clear() -> None:
        while not stop.is_set():
            clear_caches()
            cache_info()

    def work() -> None:
        for _ in range(20):
            found = str(Module.parse(program(100)).propagate().module)
            if found != expected:
                wrong.append(found)

    clearing = threading.Thread(target=clear)
    workers = [threading.Thread(target=work) for _ in range(4)]
    for thread in (clearing, *workers):
        thread.start()
    for thread in workers:
        thread.join()
    stop.set()
    clearing.join()
    assert not wrong
