"""No annotations lead to less than the bound: random ones of random programs, all of one."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Mapping
from typing import Any

import pytest
import shardcore
from shardcore import Module
from shardcore.calculus.hardware import hardware
from shardcore.plan.bounds import least
from shardcore.plan.products import products
from shardcore.plan.relaxation import seconds_of
from shardcore.session import Session

from tests.deep import IS_DEEP, sampled
from tests.plan.programs import mlp, mlp_step

CHIP = "tpu-v5e"
MESHES: tuple[dict[str, int], ...] = ({"a": 2, "b": 2}, {"a": 3, "b": 2}, {"a": 4, "b": 2})


def bounds(module: Module, mesh: Mapping[str, int], limit: float) -> tuple[float, float]:
    """The least seconds and the least bytes of a step within ``limit``."""
    session = module.session(mesh=dict(mesh))
    alone = session.cost(CHIP)
    over = [shardcore.Mesh(dict(mesh))]
    in_xla = session.result._as_xla(True)[0]
    seconds = least(in_xla, alone, over, limit, seconds_of(hardware(CHIP), {}), 30)
    return seconds, least(in_xla, alone, over, limit, None, 30)


def random_program(draw: random.Random) -> Module:
    """Products of two dims, with adds, products of elements and transposes between them."""
    sizes = [draw.choice((6, 8, 64, 512, 2048)) for _ in range(3)]
    shapes = [(draw.choice(sizes), draw.choice(sizes)) for _ in range(draw.randint(2, 4))]
    values = [(f"%a{number}", shape) for number, shape in enumerate(shapes)]
    arguments = ", ".join(f"{name}: {_type(shape)}" for name, shape in values)
    lines: list[str] = []
    used: set[str] = set()
    for number in range(draw.randint(2, 7)):
        made = f"%v{number}"
        (one, left), (other, right) = draw.choice(values[-4:]), draw.choice(values)
        kind = draw.random()
        pairs = [(i, j) for i in (0, 1) for j in (0, 1) if left[i] == right[j]]
        if kind < 0.6 and pairs:
            i, j = draw.choice(pairs)
            shape = (left[1 - i], right[1 - j])
            text = f"stablehlo.dot_general {one}, {other}, contracting_dims = [{i}] x [{j}]"
            text += f" : ({_type(left)}, {_type(right)}) -> {_type(shape)}"
            used |= {one, other}
        elif kind < 0.8 and left == right:
            shape, text = left, f"stablehlo.add {one}, {other} : {_type(left)}"
            used |= {one, other}
        elif kind < 0.9:
            shape = left[::-1]
            text = f"stablehlo.transpose {one}, dims = [1, 0] : ({_type(left)}) -> {_type(shape)}"
            used.add(one)
        else:
            shape, text = left, f"stablehlo.tanh {one} : {_type(left)}"
            used.add(one)
        lines.append(f"  {made} = {text}")
        values.append((made, shape))
    results = [(name, shape) for name, shape in values if name not in used]
    types = ", ".join(_type(shape) for _, shape in results)
    names = ", ".join(name for name, _ in results)
    body = "\n".join(lines)
    return Module.parse(
        f"func.func @main({arguments}) -> ({types}) {{\n{body}\n  return {names} : {types}\n}}"
    )


def _type(shape: tuple[int, int]) -> str:
    return f"tensor<{shape[0]}x{shape[1]}xf32>"


def specs() -> list[str]:
    """All ways to shard a matrix along two axes."""
    found = [["", ""], ["a", ""], ["", "a"], ["b", ""], ["", "b"], ["a", "b"], ["b", "a"]]
    found += [["a,b", ""], ["", "a,b"], ["b,a", ""]]
    return [f"P({', '.join(_entry(dim) for dim in dims)})" for dims in found]


def _entry(dim: str) -> str:
    axes = [repr(axis) for axis in dim.split(",") if axis]
    return "None" if not axes else f"({', '.join(axes)})" if len(axes) > 1 else axes[0]


def check(session: Session, edits: Iterable[Mapping[str, str | None]], module: Module) -> int:
    """Assert that what each edit leads to is not below the bounds at some limits; returns how often
    the bound of bytes was above zero."""
    mesh = next(iter(session.module.meshes.values())).shape
    rows = [row for row in session.evaluate(list(edits), CHIP) if row.error is None]
    peaks = sorted(row.peak_bytes or 0 for row in rows)
    counted = 0
    for limit in (peaks[0], peaks[len(peaks) // 3], peaks[-1]):
        seconds, sent = bounds(module, mesh, limit)
        counted += sent > 0
        for row in rows:
            if (row.peak_bytes or 0) <= limit:
                assert (row.serial_seconds or 0.0) >= seconds * (1 - 1e-9), (str(module), row.edit)
                assert (row.comm_bytes or 0) >= sent * (1 - 1e-9), (str(module), row.edit)
    return counted


@pytest.mark.parametrize("seed", sampled(range(20), 3))
def test_no_random_annotations_are_below_the_bound(seed: int) -> None:
    draw = random.Random(seed)
    module = random_program(draw)
    session = module.session(mesh=draw.choice(MESHES))
    targets = [port.name for port in (*module.arguments(), *module.results())]
    targets += [value.name for value in module.values() if value.op is not None]
    choices = [*specs(), None, None]
    edits = [
        {target: spec for target in targets if (spec := draw.choice(choices)) is not None}
        for _ in range(80)
    ]
    check(session, edits, module)


def test_no_annotations_of_arguments_and_results_are_below_the_bound() -> None:
    module = mlp(512, 512, 1024)
    session = module.session(mesh={"a": 2, "b": 2})
    targets = ("x", "params['up']", "params['down']", "result 0")
    kinds = [specs()[: 8 if IS_DEEP else 6]] * len(targets)
    edits = [dict(zip(targets, chosen, strict=True)) for chosen in itertools.product(*kinds)]
    assert check(session, edits, module) > 0


def test_the_bound_of_a_step_that_has_to_communicate_counts_it() -> None:
    step, mesh = mlp_step(4096, 2048, 8192), {"a": 2, "b": 4}
    plan = shardcore.plan(step, CHIP, "60MiB", mesh=mesh)
    alone = step.session(mesh=mesh).cost(CHIP).compute_seconds
    assert alone / 8 * 1.05 < plan.bound <= plan.value
    sent = shardcore.plan(step, CHIP, "60MiB", mesh=mesh, minimize="bytes")
    assert 0 < sent.bound <= sent.value
    assert sent.gap is not None


@pytest.mark.parametrize("sizes", [(0, 4, 8), (1, 4, 1), (1, 1, 1), (3, 5, 7), (4, 0, 4)])
def test_products_without_elements_and_with_odd_sizes_have_a_bound(
    sizes: tuple[int, int, int],
) -> None:
    rows, summed, columns = sizes
    left, right, result = _type((rows, summed)), _type((summed, columns)), _type((rows, columns))
    module = Module.parse(f"""
func.func @main(%a: {left}, %b: {right}) -> {result} {{
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : ({left}, {right}) -> {result}
  return %0 : {result}
}}""")
    for minimize in ("time", "bytes", "memory"):
        plan = shardcore.plan(module, CHIP, mesh={"a": 3, "b": 64}, minimize=minimize, seconds=20)
        assert 0 <= plan.bound <= plan.value


class Counting:
    """A module that counts the rules that it is asked for."""

    def __init__(self, module: Module) -> None:
        self._module, self.asked = module, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module, name)

    def rule(self, value: Any) -> Any:
        self.asked += 1
        return self._module.rule(value)


def test_products_that_are_alike_are_read_once() -> None:
    """A rule takes 2 ms in a program of 100,000 ops."""
    lines = ["func.func @main(%0: tensor<8x8xf32>) -> tensor<8x8xf32> {"]
    kind = "(tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>"
    lines += [
        f"%{n + 1} = stablehlo.dot_general %{n}, %{n}, contracting_dims = [1] x [0] : {kind}"
        for n in range(50)
    ]
    text = "\n".join([*lines, "return %50 : tensor<8x8xf32>", "}"])
    module = Module.parse(text).session(mesh={"a": 2}).result._as_xla(True)[0]
    counting: Any = Counting(module)
    assert len(products(counting, []).products) == 50
    assert counting.asked == 1
