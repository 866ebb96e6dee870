"""A module under a run, seen by its callbacks, by other threads and after failures.

The model is in `rust/src/module/mod.rs`: readers see the last state, a second run is refused, a run
that fails changes nothing, and nothing waits for a user's function.
"""

from __future__ import annotations

import copy
import gc
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import shardcore
from shardcore import BusyError, Module, PassManager, ShardcoreError, rule
from shardcore.rules import unregister

from tests.deep import IS_DEEP, sampled_pairs

PIPELINE = "sdy-propagation-pipeline"


def manager(passes: str) -> PassManager:
    return PassManager.parse(f"builtin.module({passes})")


BASIC = manager("sdy-basic-propagate")
DROP = manager("sdy-drop-sharding-and-mesh")
FULL = manager(PIPELINE)


def chain(ops: int, op: str = "stablehlo.abs") -> str:
    lines = "".join(
        f'  %{i} = "{op}"(%{i - 1 if i else "a"}) : (tensor<8xf32>) -> tensor<8xf32>\n'
        for i in range(ops)
    )
    return (
        'sdy.mesh @mesh = <["x"=2]>\nfunc.func @main(%a: tensor<8xf32> '
        '{sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}) -> tensor<8xf32> {\n'
        f"{lines}  return %{ops - 1} : tensor<8xf32>\n}}\n"
    )


@pytest.fixture(autouse=True)
def no_rules() -> Iterator[None]:
    yield
    for name in ("my.op", "my.other"):
        unregister(name)


READERS: dict[str, Callable[[Module], Any]] = {
    "str": str,
    "repr": repr,
    "values": lambda module: [(value.name, str(value.sharding)) for value in module.values()],
    "getitem": lambda module: str(module["%0"].sharding),
    "arguments": lambda module: [str(port.sharding) for port in module.arguments()],
    "results": lambda module: [str(port.sharding) for port in module.results()],
    "meshes": lambda module: str(module.meshes),
    "num_ops": lambda module: module.num_ops,
    "totals": lambda module: module.totals(),
    "factor_table": lambda module: str(module.factor_table("%0")),
    "propagate": lambda module: str(module.propagate().module),
    "copy": lambda module: str(copy.copy(module)),
    "deepcopy": lambda module: str(copy.deepcopy(module)),
    "pickle": lambda module: str(pickle.loads(pickle.dumps(module))),
    "import": lambda module: str(shardcore.import_hlo_shardings(module)),
    "cost": lambda module: str(module.propagate().cost("tpu-v5p").record()),
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("pipeline", [BASIC, DROP, FULL], ids=["basic", "drop", "full"])
def test_callbacks_of_a_run_see_the_last_state(reader: str, pipeline: PassManager) -> None:
    read = READERS[reader]
    for steps in ([], [BASIC]):
        module = Module.parse(chain(20))
        for step in steps:
            step.run(module)
        before, seen = read(module), []
        pipeline.run(module, progress=lambda *_, m=module, s=seen: s.append(read(m)))
        assert seen
        assert all(state == before for state in seen)


@pytest.mark.parametrize("inner", [BASIC, DROP, FULL], ids=["basic", "drop", "full"])
def test_a_run_within_a_run_is_refused_and_harms_neither(inner: PassManager) -> None:
    module = Module.parse(chain(20))
    refused: list[str] = []

    def nested(*_: object) -> None:
        with pytest.raises(BusyError) as caught:
            inner.run(module)
        refused.append(caught.value.code)

    BASIC.run(module, progress=nested)
    assert set(refused) == {"busy"}
    other = Module.parse(chain(20))
    BASIC.run(other)
    assert str(module) == str(other)
    before = str(module)

    def boom(*_: object) -> None:
        raise KeyError("boom")

    with pytest.raises(KeyError, match="boom"):
        FULL.run(module, progress=boom)
    assert str(module) == before
    inner.run(module)
    inner.run(other)
    assert str(module) == str(other)


def test_a_refusal_that_is_not_caught_ends_the_run_and_changes_nothing() -> None:
    module = Module.parse(chain(20))
    before = str(module)
    with pytest.raises(BusyError):
        BASIC.run(module, progress=lambda *_: DROP.run(module))
    assert str(module) == before
    BASIC.run(module)
    assert str(module) != before


@pytest.mark.parametrize("failure", [KeyError, KeyboardInterrupt, SystemExit, GeneratorExit])
@pytest.mark.parametrize("after", [0, 1, 5])
def test_a_failure_at_any_time_changes_nothing(failure: type[BaseException], after: int) -> None:
    for steps in ([], [BASIC], [BASIC, FULL], [FULL] * 20):
        module = Module.parse(chain(20))
        for step in steps:
            step.run(module)
        before, held = str(module), module.values()
        calls = 0

        def fail(*_: object) -> None:
            nonlocal calls
            calls += 1
            if calls > after:
                raise failure("now")

        with pytest.raises(failure):
            FULL.run(module, progress=fail)
        assert str(module) == before
        assert [value.name for value in held] == [value.name for value in module.values()]
        del held
        with pytest.raises(failure):
            DROP.run(module, progress=lambda *_: (_ for _ in ()).throw(failure("again")))
        assert str(module) == before


def test_failed_runs_ask_rules_no_more_to_show_what_was() -> None:
    calls = []

    @rule("my.op")
    def once(signature: shardcore.rules.Signature) -> str:
        calls.append(signature.name)
        return "i -> i"

    module = Module.parse(chain(5, "my.op"))
    BASIC.run(module)
    before, asked = str(module), len(calls)
    unregister("my.op")
    shardcore.clear_caches()
    with pytest.raises(ZeroDivisionError):
        FULL.run(module, progress=lambda *_: 1 / 0)
    assert str(module) == before
    assert before.count('[{"x"}]') > 1 or before.count('{"x", ?}') > 1
    assert len(calls) == asked


def in_threads(count: int, work: Callable[[int], None]) -> None:
    """Do `work` in threads at once; what any of them raises is raised."""
    start = threading.Barrier(count)

    def begin(number: int) -> None:
        start.wait(30)
        work(number)

    with ThreadPoolExecutor(count) as pool:
        for done in [pool.submit(begin, number) for number in range(count)]:
            done.result(120)


@pytest.mark.parametrize("reader", READERS)
def test_runs_and_readers_in_many_threads(reader: str) -> None:
    read = READERS[reader]
    module = Module.parse(chain(200))
    first = read(module)
    after = Module.parse(chain(200))
    BASIC.run(after)
    states = [first, read(after)]
    runs: list[int] = []
    refusals: list[int] = []
    finished = threading.Event()

    def work(number: int) -> None:
        if number < 2:
            for _ in range(10):
                try:
                    BASIC.run(module)
                    runs.append(number)
                except BusyError:
                    refusals.append(number)
            finished.set()
            return
        while not finished.is_set():
            assert read(module) in states

    in_threads(5, work)
    assert runs
    assert len(runs) + len(refusals) == 20
    assert read(module) == states[1]


def test_runs_on_copies_do_not_hinder_each_other() -> None:
    module = Module.parse(chain(100))
    expected = str(module.propagate().module)

    def work(_: int) -> None:
        for _ in range(5):
            mine = copy.copy(module)
            FULL.run(mine)
            assert str(mine) == expected

    in_threads(6, work)
    assert "return %99" in str(module)
    assert str(module.propagate().module) == expected


def test_threads_that_only_fail_leave_the_module_as_it_was() -> None:
    module = Module.parse(chain(50))
    before = str(module)

    def work(_: int) -> None:
        for _ in range(10):
            with pytest.raises((BusyError, ZeroDivisionError)):
                FULL.run(module, progress=lambda *_: 1 / 0)
            assert str(module) == before

    in_threads(6, work)


ASKS: dict[str, Callable[[shardcore.Result], Any]] = {
    "with_collectives": lambda result: result.with_collectives,
    "cost": lambda result: result.cost("tpu-v5p", "shardy"),
    "check": lambda result: result.check(
        {"policy": "shardy", "collectives": {"forbid": ["all_gather"]}}
    ),
}


@pytest.mark.parametrize("name", ASKS)
def test_a_rule_that_asks_for_what_it_is_called_for_is_refused(name: str) -> None:
    result = Module.parse(chain(1, "my.op")).propagate()
    refused: list[str] = []

    @rule("my.op")
    def asking(signature: shardcore.rules.Signature) -> str:
        with pytest.raises(ShardcoreError) as caught:
            ASKS[name](result)
        refused.append(caught.value.code)
        return "i -> i"

    assert str(result.with_collectives)
    assert refused == ["busy"]


def test_a_rule_that_asks_in_a_thread_of_its_own_ends() -> None:
    result = Module.parse(chain(1, "my.op")).propagate()
    codes: list[str] = []

    @rule("my.op")
    def asking(signature: shardcore.rules.Signature) -> str:
        def ask() -> None:
            try:
                result.with_collectives  # noqa: B018
            except ShardcoreError as error:
                codes.append(error.code)

        thread = threading.Thread(target=ask)
        thread.start()
        thread.join()
        return "i -> i"

    assert str(result.with_collectives)
    assert "busy" in codes


def test_threads_that_ask_at_once_get_the_same_module() -> None:
    @rule("my.op")
    def slow(signature: shardcore.rules.Signature) -> str:
        time.sleep(0.002)
        return "i -> i"

    result = Module.parse(chain(50, "my.op")).propagate()
    shardcore.clear_caches()
    with ThreadPoolExecutor(24) as pool:
        modules = list(pool.map(lambda _: result.with_collectives, range(48)))
    assert all(module is modules[0] for module in modules)


def test_rules_that_run_without_end_are_refused() -> None:
    text = chain(1, "my.op")

    @rule("my.op")
    def asking(signature: shardcore.rules.Signature) -> str:
        Module.parse(text).propagate()
        return "i -> i"

    with pytest.raises(ShardcoreError, match="nested"):
        Module.parse(text).propagate()


def test_callbacks_that_run_without_end_are_refused() -> None:
    def nested(*_: object) -> None:
        BASIC.run(Module.parse(chain(1)), progress=nested)

    with pytest.raises(BusyError, match="nested"):
        nested()


def test_a_signal_handler_reads_a_module_under_a_run() -> None:
    module = Module.parse(chain(2_000))
    before = module.num_ops
    seen: list[int] = []
    is_reading = False

    def read(*_: object) -> None:
        # A handler that the next signal interrupts, and so on, would never return.
        nonlocal is_reading
        if not is_reading:
            is_reading = True
            seen.append(module.num_ops)
            is_reading = False

    old = signal.signal(signal.SIGALRM, read)
    signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
    try:
        until = time.monotonic() + 30
        while len(seen) < 5 and time.monotonic() < until:
            BASIC.run(module)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
    assert len(seen) >= 5
    assert set(seen) == {before}


def test_garbage_that_uses_the_engine_when_it_is_collected() -> None:
    module = Module.parse(chain(50))

    class Litter:
        def __init__(self) -> None:
            self.me = self

        def __del__(self) -> None:
            rule("my.other", "i -> i")
            shardcore.clear_caches()
            str(module["%3"].sharding)
            shardcore.rules.registered()

    threshold = gc.get_threshold()
    gc.set_threshold(5, 2, 2)
    try:
        for _ in range(20):
            Litter()
            shardcore.rules.registered()
            BASIC.run(module, progress=lambda *_: Litter() and None)
            module.values()
            shardcore.Mesh({"x": 2, "y": 4})
    finally:
        gc.set_threshold(*threshold)


@pytest.mark.parametrize("raised", [SystemExit(7), KeyboardInterrupt("stop"), GeneratorExit("end")])
def test_what_ends_the_program_gets_out_of_rules_as_it_is(raised: BaseException) -> None:
    @rule("my.op")
    def ending(signature: shardcore.rules.Signature) -> str:
        raise raised

    module = Module.parse(chain(1, "my.op"))
    for work in (
        module.propagate,
        lambda: BASIC.run(module),
        lambda: module.factor_table("%0"),
        lambda: shardcore._core.partition_program(module),
    ):
        with pytest.raises(type(raised)) as caught:
            work()
        assert caught.value is raised


DAEMONS = """
import itertools, sys, threading, time
import shardcore
from shardcore import *
TEXT = {text!r}
manager = PassManager.parse("builtin.module(sdy-basic-propagate)")
@rule("my.op")
def f(signature):
    time.sleep({pause})
    return "i -> i"
def items():
    for _ in range(3):
        time.sleep({pause})
        yield None
def progress(*_):
    time.sleep({pause})
result = Module.parse(TEXT).propagate()
simple = Module.parse({simple!r})
def work():
    while True:
        {work}
for _ in range(4):
    threading.Thread(target=work, daemon=True).start()
time.sleep(0.2)
"""

WORK = {
    "rule": "shardcore.clear_caches(); Module.parse(TEXT).propagate()",
    "rule of a run": "shardcore.clear_caches(); manager.run(Module.parse(TEXT))",
    "progress": "manager.run(Module.parse(TEXT), progress=progress)",
    "dims": 'TensorSharding("@m", items())',
    "axes": 'Mesh(((f"a{i}", 2) for i, _ in enumerate(items())))',
    "registering": 'rule("z.z", "i -> i"); Module.parse(TEXT).propagate()',
    "reading": "m = Module.parse(TEXT); str(m); m.values()",
    "a table": "str(result)",
    "a picture": 'result["%0"].sharding.visualize([8])',
    "another notation": 'TensorSharding.from_hlo("{devices=[2,2]<=[4]}")',
    "an explanation": 'result.why("%0"); result.steps()',
    "a check": "result.check({})",
    "the simulator": "simple.simulate([1.0] * 8)",
}


@pytest.mark.parametrize(("work", "pause"), sampled_pairs(WORK, [0.0001, 0.003], 2))
def test_daemon_threads_at_the_end_of_the_process(work: str, pause: float) -> None:
    texts = {"text": chain(3, "my.op"), "simple": chain(3)}
    code = DAEMONS.format(**texts, pause=pause, work=WORK[work])
    for _ in range(2 if IS_DEEP else 1):
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, timeout=60
        )
        assert (done.returncode, done.stderr) == (0, "")


ENDLESS = """
import sys, threading, time
import shardcore
from shardcore import *
TEXT = {text!r}
@rule("my.op")
def f(signature):
    threads.append(threading.get_ident())
    {wait}
threads = []
for _ in range(2):
    threading.Thread(target=lambda: Module.parse(TEXT).propagate(), daemon=True).start()
while len(threads) < 2:
    time.sleep(0.001)
"""


@pytest.mark.parametrize("wait", ["time.sleep(3600)", "while True: pass"])
def test_a_daemon_thread_in_a_rule_that_never_returns_does_not_keep_the_process(wait: str) -> None:
    code = ENDLESS.format(text=chain(3, "my.op"), wait=wait)
    start = time.monotonic()
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, b"")
    assert time.monotonic() - start < 30


FORKS = """
import contextlib, os, signal, sys, threading
import shardcore
from shardcore import *
TEXT = {text!r}
manager = PassManager.parse("builtin.module(sdy-basic-propagate)")
module = Module.parse(TEXT)
{body}
"""

FORKS_OF = {
    "threads at work": """
expected = str(module.propagate().module)
stop = threading.Event()
def busy():
    while not stop.is_set():
        with contextlib.suppress(BusyError):
            manager.run(module)
        rule("my.other", "i -> i")
        clear_caches()
        str(module)
threads = [threading.Thread(target=busy) for _ in range(3)]
for thread in threads:
    thread.start()
codes = []
for _ in range(20):
    child = os.fork()
    if child == 0:
        try:
            signal.alarm(20)
            text = str(module.propagate().module)
            manager.run(module)
            rule("my.other", "i -> i")
            clear_caches()
            cache_info()
            os._exit(0 if text == expected else 1)
        except BaseException:
            os._exit(2)
    codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
stop.set()
for thread in threads:
    thread.join()
print(set(codes))
""",
    "a run": """
before, codes = str(module), []
def fork(*_):
    if codes:
        return
    child = os.fork()
    if child == 0:
        # Nobody but this run is at work here, and it will not go on.
        signal.alarm(20)
        os._exit(0 if str(module) == before else 1)
    codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
manager.run(module, progress=fork)
assert str(module) != before
print(set(codes))
""",
    "a run, which goes on": """
before, codes, parent = str(module), [], os.getpid()
def fork(*_):
    if not codes:
        child = os.fork()
        if child == 0:
            signal.alarm(20)
            codes.append(-1)
        else:
            codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
manager.run(module, progress=fork)
assert str(module) != before
if os.getpid() != parent:
    os._exit(0)
print(set(codes))
""",
    "a run, with another one on the same module": """
before, codes = str(module), []
def fork(*_):
    if codes:
        return
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        codes.append(-1)
        # The run around this one belongs to the parent as far as this process can know.
        manager.run(module)
    else:
        codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
try:
    manager.run(module, progress=fork)
except BusyError:
    os._exit(0 if str(module) != before else 1)
assert str(module) != before
print(set(codes))
""",
}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.parametrize("kind", FORKS_OF)
def test_forks_during(kind: str) -> None:
    code = FORKS.format(text=chain(300 if "threads" in kind else 20), body=FORKS_OF[kind])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, "{0}\n"), done.stderr


IMPORTS = """
import importlib.machinery, os, signal, sys, threading, time
from shardcore import Module
started = threading.Event()
class Slow:
    def find_spec(name, path=None, target=None):
        if name != "shardcore.costs.build":
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        load = spec.loader.exec_module
        def slowly(module):
            started.set()
            time.sleep(0.5)
            load(module)
        spec.loader.exec_module = slowly
        return spec
sys.meta_path.insert(0, Slow)
result = Module.parse("func.func @main(%a: tensor<2xf32>) { return }").propagate()
threading.Thread(target=lambda: result.cost("tpu-v5e")).start()
started.wait()
child = os.fork()
if child == 0:
    signal.alarm(20)
    result.cost("tpu-v5e")
    os._exit(0)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_forks_during_an_import() -> None:
    command = [sys.executable, "-c", IMPORTS]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (0, "0\n"), done.stderr
