"""What users have much of takes time in proportion."""

from __future__ import annotations

import io
import random
import time

from rich.console import Console
from shardcore import HloSharding, Mesh, Module, TensorSharding
from shardcore.report.table import print_result


def test_permuted_devices_in_the_notation_of_gspmd() -> None:
    ids = list(range(1 << 16))
    random.Random(1).shuffle(ids)
    sharding = TensorSharding(Mesh({"x": len(ids)}, device_ids=ids), ["x"])
    started = time.process_time()
    found = sharding.to_hlo()
    assert found.to_sharding(sharding.mesh).dims == sharding.dims
    assert HloSharding.parse(str(found)) == found
    # 0.4 s; what is quadratic takes 20.
    assert time.process_time() - started < 5


HEAD = ["shape", "sharding", "local", "shape", "per", "device", "source"]


def chain(count: int, mesh: str = "", sharding: str = "") -> str:
    """A function of `count` ops, one after the other."""
    ops = "".join(
        f'  %{i} = stablehlo.abs %{"a" if i == 0 else i - 1} : tensor<8xf32> loc("m.py":{i}:1)\n'
        for i in range(count)
    )
    end = f"  return %{count - 1} : tensor<8xf32>\n"
    return f"{mesh}func.func @main(%a: tensor<8xf32> {sharding}) -> tensor<8xf32> {{\n{ops}{end}}}"


def test_a_table_of_very_many_rows() -> None:
    count = 50_000
    result = Module.parse(chain(count)).propagate()
    for is_terminal in (False, True):
        printed = io.StringIO()
        console = Console(file=printed, width=80, force_terminal=is_terminal)
        started = time.process_time()
        print_result(result, limit=0, console=console)
        # 0.4 s; fitted to the terminal it takes 10.
        assert time.process_time() - started < 4
        lines = printed.getvalue().splitlines()
        assert lines[0].split() == ["value", *HEAD]
        last = f"%{count - 1} 8xf32 8 32 B m.py:{count - 1}:1"
        assert lines[count + 1].split() == last.split()


def test_long_and_short_tables_look_alike() -> None:
    mesh = 'sdy.mesh @mesh = <["x"=2]>\n'

    def table(count: int) -> list[str]:
        sharding = '{sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}'
        result = Module.parse(chain(count, mesh, sharding)).propagate()
        printed = io.StringIO()
        print_result(result, limit=0, console=Console(file=printed, width=1000))
        return [line.rstrip() for line in printed.getvalue().splitlines()]

    short, long = table(900), table(1100)
    assert [line[:70] for line in long[:900]] == [line[:70] for line in short[:900]]
