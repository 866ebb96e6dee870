"""Many edits at a time: in threads, in processes, on a cluster, on workers that fail."""

from __future__ import annotations

import json
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count, islice
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
import shardcore
from shardcore import Evaluation, Module, ParseError
from shardcore.rules.given import registered_here
from shardcore.session import evaluate
from shardcore.session.evaluate import figures

from tests.session.test_session import TEXT

ROOT = Path(__file__).resolve().parents[2]
EDITS: list[dict[str, object]] = [
    {"params/**/w": f"P({first}, {second})", "x": x}
    for first in (None, "'data'", "'model'")
    for second in (None, "'model'")
    if first != second or first is None
    for x in ("P('data')", "P('data', 'model')", None, '[{"model":(1)2, ?}, {?}]', "P('q')")
]


def expected(hardware: str | None) -> list[dict[str, Any]]:
    rows = []
    for edit in EDITS:
        session = Module.parse(TEXT).session()
        session.set("params/b/b", "P('model')")
        rows.append(next(session.evaluate([edit], hardware)).record())
    return rows


@contextmanager
def processes() -> Iterator[Executor]:
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn")) as pool:
        yield pool


@contextmanager
def threads() -> Iterator[Executor]:
    with ThreadPoolExecutor(3) as pool:
        yield pool


class Failing(Executor):
    """Every second call fails, and after some calls none is taken."""

    def __init__(self) -> None:
        self._calls = count()

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        call = next(self._calls)
        if call > 6:
            raise RuntimeError("broken")
        future: Future[Any] = Future()
        if call % 2:
            future.set_exception(MemoryError())
        else:
            future.set_result(fn(*args, **kwargs))
        return future


@contextmanager
def failing() -> Iterator[Executor]:
    yield Failing()


@contextmanager
def nothing() -> Iterator[None]:
    yield None


@pytest.mark.parametrize("executor", [nothing, threads, processes, failing])
@pytest.mark.parametrize("hardware", [None, "tpu-v5e"])
def test_rows_come_in_order_whoever_works(executor: Any, hardware: str | None) -> None:
    session = Module.parse(TEXT).session()
    session.set("params/b/b", "P('model')")
    with executor() as pool:
        rows = list(session.evaluate(EDITS, hardware, pool))
    assert [row.edit for row in rows] == EDITS
    assert [row.record() for row in rows] == expected(hardware)
    assert [row.error is not None for row in rows] == [edit["x"] == "P('q')" for edit in EDITS]


@pytest.mark.parametrize("hardware", [None, "tpu-v5e"])
def test_other_processes_do_all_the_work(hardware: str | None, tmp_path: Path) -> None:
    session = Module.parse(TEXT).session()
    file = tmp_path / "chips.toml"
    shipped = Path(shardcore.__file__).parent / "calculus/hardware.toml"
    file.write_text(shipped.read_text("utf-8").replace("hbm_bytes = ", "hbm_bytes = 1"), "utf-8")
    options = {} if hardware is None else {"hardware_file": file}
    wanted = [row.record() for row in session.evaluate(EDITS, hardware, **options)]
    here = []

    def counted(*given: Any) -> Evaluation:
        here.append(given)
        return figures(*given)

    with processes() as pool, patch.object(evaluate, "figures", counted):
        # Other tests may have left rules in this process.
        registered = pool.submit(registered_here).result()
        with patch.object(evaluate, "registered_here", lambda: registered):
            for _ in range(2):
                rows = session.evaluate(EDITS, hardware, pool, **options)
                assert [row.record() for row in rows] == wanted
    assert not here


def test_workers_without_the_rules_of_this_process_do_nothing() -> None:
    session = Module.parse(TEXT).session()
    with processes() as pool:
        before = [row.record() for row in session.evaluate(EDITS, "tpu-v5e", pool)]
        shardcore.rule("stablehlo.tanh", "_ _ -> _ _")
        try:
            rows = [row.record() for row in session.evaluate(EDITS, "tpu-v5e", pool)]
            here = [row.record() for row in session.evaluate(EDITS, "tpu-v5e")]
        finally:
            shardcore.rules.unregister("stablehlo.tanh")
    assert rows == here != before


def test_a_cluster_works_off_edits() -> None:
    # Importing Dask changes how exceptions are pickled, so it has a process of its own.
    command = [sys.executable, "-m", "tests.session.cluster"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)
    assert rows == [json.loads(json.dumps(expected(hardware))) for hardware in (None, "tpu-v5e")]


def test_a_row_has_the_figures_of_the_cost() -> None:
    session = Module.parse(TEXT).session()
    row = next(session.evaluate([EDITS[0]], "tpu-v5e"))
    session.set(EDITS[0])
    cost = session.cost("tpu-v5e")
    assert row.step_seconds_upper == cost.step_seconds_upper
    assert row.peak_bytes == cost.peak_bytes
    assert row.comm_bytes == sum(each.total_wire_bytes for each in cost.collectives)


def test_the_program_is_sent_once_to_each_worker() -> None:
    sent = []

    class Counting(ThreadPoolExecutor):
        def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
            sent.append(args[1] is not None)
            return super().submit(fn, *args, **kwargs)

    session = Module.parse(TEXT).session()
    with Counting(2) as pool:
        list(session.evaluate(EDITS * 20, None, pool))
        assert sum(sent) == 2 < len(sent)
        list(session.evaluate(EDITS * 20, None, pool))
    assert sum(sent) == 2


def test_an_endless_list_of_edits_is_read_as_far_as_needed() -> None:
    session = Module.parse(TEXT).session()
    read = []

    def edits() -> Iterator[dict[str, object]]:
        for number in count():
            read.append(number)
            yield EDITS[number % len(EDITS)]

    rows = session.evaluate(edits())
    assert len(list(islice(rows, 5))) == 5
    rows.close()  # type: ignore[attr-defined]
    assert len(read) < 20 + 8 * (os.cpu_count() or 1)


def test_edits_of_the_session_meanwhile_have_no_effect() -> None:
    session = Module.parse(TEXT).session()
    wanted = [row.record() for row in session.evaluate(EDITS)]
    rows = session.evaluate(EDITS)
    first = next(rows)
    unread = session.evaluate(EDITS)
    session.set("x", "P('model')")
    assert [row.record() for row in (first, *rows)] == wanted
    assert [row.record() for row in unread] == wanted


@pytest.mark.parametrize("executor", [nothing, threads])
def test_edits_that_end_with_an_exception_have_their_rows_first(executor: Any) -> None:
    session = Module.parse(TEXT).session()
    rows = []

    def edits() -> Iterator[dict[str, object]]:
        yield from EDITS[:11]
        raise KeyError("no more")

    def read(pool: Executor | None) -> None:
        for row in session.evaluate(edits(), None, pool):
            rows.append(row.record())

    with executor() as pool, pytest.raises(KeyError, match="no more"):
        read(pool)
    assert rows == [row.record() for row in session.evaluate(EDITS[:11])]


def test_progress() -> None:
    seen: list[float] = []
    session = Module.parse(TEXT).session()
    list(session.evaluate(EDITS, progress=lambda _, fraction: seen.append(fraction)))
    assert seen == sorted(seen)
    assert seen[-1] == 1.0


def test_a_row_without_hardware() -> None:
    session = Module.parse(TEXT).session()
    row: Evaluation = next(session.evaluate([{}]))
    totals = session.result.summary()["after"]
    assert row.argument_bytes == totals["argument_bytes_per_device"]
    assert row.value_bytes == totals["bytes_per_device"]
    assert (row.step_seconds_upper, row.error) == (None, None)
    assert isinstance(next(session.evaluate([{"x": "[{"}])).error, ParseError)


def test_a_row_is_pickled_with_the_bytes_of_its_values() -> None:
    session = Module.parse(TEXT).session()
    row = next(session.evaluate([EDITS[0]]))
    twin = pickle.loads(pickle.dumps(row))
    assert twin == row
    assert isinstance(twin.value_bytes, int)
    assert twin.record() == row.record()


def test_threads_replay_at_the_same_time() -> None:
    session = Module.parse(TEXT).session()
    session.set("params/b/b", "P('model')")
    copy = session._copy()
    with ThreadPoolExecutor(8) as pool:
        rows = list(pool.map(lambda edit: figures(copy, edit, None, {}).record(), EDITS * 8))
    assert rows == expected(None) * 8


INTERRUPTED = """
import signal, sys, time
from shardcore import Module, rule
signal.signal(signal.SIGINT, signal.default_int_handler)
TEXT = '''
sdy.mesh @mesh = <["x"=2]>
func.func @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {
  %0 = "my.op"(%arg0) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
'''
@rule("my.op")
def f(signature):
    print("in", flush=True)
    WAIT
edits = [{"%arg0": '[{"x"}]'}, {"%arg0": "[{}]"}, {"%arg0": None}]
list(Module.parse(TEXT).session().evaluate(edits))
"""


@pytest.mark.parametrize("wait", ["time.sleep(3600)", "while True: pass"])
def test_a_rule_that_never_returns_can_be_interrupted(wait: str) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED.replace("WAIT", wait)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline().startswith("in")
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=60)
    assert process.returncode == -signal.SIGINT
    assert error.strip().endswith("KeyboardInterrupt")
